/* SPDX-License-Identifier: MIT
 *
 * generate.c - text from a prompt, plainly or with drafts
 */
#include "harness/measure/session/generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/speculate/speculate.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/machine/noise.h"
#include "harness/measure/session/conversation.h"
#include "harness/measure/session/textmodel.h"

/* Share of the time in which a thread may be without a CPU before a warning. */
#define CONTENDED 0.1

struct generation {
    struct textmodel model, draft;
    struct sampler *sampler;
    struct speculator *speculator; /* NULL: decoding is plain */
    int32_t *prompt;
    size_t n_prompt;

    struct textout out;
    int n_made, n_decoded;
    uint64_t begin_ns, loaded_ns, first_ns; /* clock: start, model in, first token */
    uint64_t prefill_ns, decode_ns;
    struct noise noise; /* when the prompt was begun */
};

/* ---- printing -------------------------------------------------------------------- */

static double per_second(double n, uint64_t ns)
{
    return ns ? n * 1e9 / (double)ns : 0.0;
}

static void print_speculation(const struct generation *g)
{
    struct speculate_stats stats;

    if (!g->speculator)
        return;
    speculate_read_stats(g->speculator, &stats);
    fprintf(stderr, "speculative decoding: %" PRIu64 " token%s in %" PRIu64 " pass%s, ",
            stats.n_tokens, plural(stats.n_tokens, "s"), stats.n_passes,
            plural(stats.n_passes, "es"));
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " draft tokens accepted\n",
            stats.n_accepted, stats.n_drafted);
    speculation_print(&stats);
}

static void print_speed(const struct generation *g)
{
    fprintf(stderr, "first token after %.2f s, including %.2f s of loading; ",
            (double)(g->first_ns - g->begin_ns) * 1e-9,
            (double)(g->loaded_ns - g->begin_ns) * 1e-9);
    fprintf(stderr, "prefill %zu token%s at %.2f tok/s, ", g->n_prompt,
            plural(g->n_prompt, "s"), per_second((double)g->n_prompt, g->prefill_ns));
    if (g->n_decoded)
        fprintf(stderr, "decode %d token%s at %.2f tok/s, ", g->n_decoded,
                plural(g->n_decoded, "s"), per_second(g->n_decoded, g->decode_ns));
    else
        fprintf(stderr, "nothing decoded, ");
    fprintf(stderr, "%d thread%s\n", g->model.n_threads,
            plural(g->model.n_threads, "s"));
}

/* ---- generating ------------------------------------------------------------------ */

/* Where another program takes the CPU of one thread, all others wait for that one. */
static void print_contention(const struct generation *g)
{
    struct noise noise;

    noise_since(&noise, &g->noise, "");
    if (g->model.n_threads > 1 && noise_wait_share(&noise) > CONTENDED)
        fprintf(stderr,
                "bench: slowed by other programs, which took %.0f %% of the CPUs: in "
                "%.0f %% of the time a thread had no CPU, and the others waited for "
                "it; fewer threads (-t %d) may be faster\n",
                100 * noise_others_share(&noise),
                100 * fmin(1, noise_wait_share(&noise)), g->model.n_threads - 1);
}

/* The whole prompt, in batches, so that an interrupt takes effect. */
static enum status prefill(struct generation *g, struct err *err)
{
    const size_t most = (size_t)slm_info(g->model.m)->n_batch;
    const uint64_t start_ns = clock_ns();

    noise_read(&g->noise, "");
    g->loaded_ns = start_ns;
    for (size_t done = 0; done < g->n_prompt;) {
        const size_t left = g->n_prompt - done;
        const size_t n = left < most ? left : most;
        const enum status st =
            slm_eval(g->model.m, g->prompt + done, n,
                     n == left ? SLM_LOGITS_LAST : SLM_LOGITS_NONE, err);

        if (st)
            return st;
        if (interrupted())
            return err_set(err, ST_INTERRUPTED, "interrupted");
        done += n;
    }
    g->first_ns = clock_ns();
    g->prefill_ns = g->first_ns - start_ns;
    return ST_OK;
}

/* Evaluates id and samples the following tokens, at most n_max, into out. */
static enum status next_tokens(struct generation *g, int32_t id, int n_max,
                               int32_t *out, int *n, struct err *err)
{
    enum status st;

    if (g->speculator)
        return speculate_next(g->speculator, id, n_max, out, n, err);
    st = slm_eval(g->model.m, &id, 1, SLM_LOGITS_LAST, err);
    if (!st) {
        out[0] = sampler_next(g->sampler, slm_logits(g->model.m, 0));
        sampler_accept(g->sampler, out[0]);
        *n = 1;
    }
    return st;
}

/* Print ids[n]; *end where the text ends with them. */
static enum status print_tokens(struct generation *g, const int32_t *ids, int n,
                                int n_max, bool *end, struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; !st && !*end && i < n; i++) {
        *end = tokenizer_is_end(g->model.tok, ids[i]);
        if (*end)
            break;
        st = textout_token(&g->out, ids[i], err);
        if (!st && interrupted())
            st = err_set(err, ST_INTERRUPTED, "interrupted");
        *end = ++g->n_made == n_max;
    }
    return st;
}

static enum status decode(struct generation *g, int n_max, struct err *err)
{
    const uint64_t start_ns = clock_ns();
    int32_t ids[SPECULATE_MAX + 1];
    enum status st = ST_OK;
    bool end = false;
    int n = 1;

    ids[0] = sampler_next(g->sampler, slm_logits(g->model.m, 0));
    sampler_accept(g->sampler, ids[0]);
    while (!(st = print_tokens(g, ids, n, n_max, &end, err)) && !end) {
        const int32_t last = ids[n - 1];

        if (slm_n_free(g->model.m) == 0) {
            fprintf(stderr,
                    "bench: the context of %d positions is full; --ctx sets it\n",
                    slm_info(g->model.m)->n_ctx);
            break;
        }
        st = next_tokens(g, last, n_max - g->n_made, ids, &n, err);
        if (st)
            break;
        g->n_decoded += n;
        g->decode_ns = clock_ns() - start_ns;
    }
    return st;
}

/* Tokens of the prompt; its errors are reported before a large model is read. */
static enum status encode_prompt(struct generation *g,
                                 const struct generate_settings *s, struct err *err)
{
    const struct tokenizer *tok = g->model.tok;
    const size_t len = strlen(s->prompt);
    enum status st =
        tokenizer_encode(tok, s->prompt, len, tokenizer_adds_bos(tok) || len == 0,
                         s->special, &g->prompt, &g->n_prompt, err);

    if (!st && g->n_prompt == 0)
        st =
            err_set(err, ST_USAGE,
                    "%s has no token that begins a text, so it needs a prompt: -p TEXT",
                    s->session.model);
    if (!st)
        st = textout_open(&g->out, tok, err);
    if (!st)
        textout_begin(&g->out, len == 0 && tokenizer_adds_space(tok));
    return st;
}

/* Default context: what prompt and text need, at most the context of training. */
static enum status open_model(struct generation *g, const struct generate_settings *s,
                              struct err *err)
{
    const struct sampler_params sampling = sampling_params(&s->sampling);
    const size_t n_ctx_train = (size_t)g->model.planned.n_ctx_train;
    const size_t need = g->n_prompt + (size_t)s->n_max;
    struct session_params params = s->session;
    enum status st;

    params.n_logits = params.drafts ? SPECULATE_MAX + 1 : 1;
    if (!params.n_ctx)
        params.n_ctx = (int)(need < n_ctx_train ? need : n_ctx_train);
    if (g->n_prompt > (size_t)params.n_ctx && !params.setup.kv_window)
        return err_set(err, ST_USAGE,
                       "the prompt has %zu tokens, the context %d positions; shorten "
                       "it or set a larger context with --ctx",
                       g->n_prompt, params.n_ctx);
    st = textmodel_open(&g->model, &params, err);
    /* Embeddings may be padded to a round number: ids without a text are not sampled.
     */
    if (!st)
        st = sampler_open(&g->sampler, &sampling, tokenizer_n_vocab(g->model.tok), err);
    for (size_t i = 0; !st && i < g->n_prompt; i++)
        sampler_accept(g->sampler, g->prompt[i]);
    return st;
}

/* The draft model is opened for the same context; the prompt goes through both. */
static enum status open_speculation(struct generation *g,
                                    const struct generate_settings *s, struct err *err)
{
    const struct sampler_params sampling = sampling_params(&s->sampling);
    struct speculate_params how = {.sampling = &sampling,
                                   .mtp = s->session.drafts == DRAFTS_MTP};
    struct session_params params = s->session;
    enum status st = ST_OK;

    if (s->session.drafts == DRAFTS_OFF)
        return ST_OK;
    if (s->draft) {
        params.model = s->draft;
        params.quant = NULL;
        params.n_ctx = slm_info(g->model.m)->n_ctx;
        params.n_logits = 1;
        st = textmodel_look(&g->draft, &params, NULL, err);
        if (!st)
            st = textmodel_open(&g->draft, &params, err);
        how.draft = g->draft.m;
        how.draft_tok = g->draft.tok;
    }
    if (!st)
        st = speculate_open(&g->speculator, g->model.m, g->sampler, g->model.tok, &how,
                            err);
    return st ? st : speculate_begin(g->speculator, g->prompt, g->n_prompt, err);
}

enum status generate_run(const struct generate_settings *s, struct err *err)
{
    struct generation g = {.begin_ns = clock_ns()};
    enum status st = ST_OK;

    if (textmodel_look(&g.model, &s->session, NULL, err) || encode_prompt(&g, s, err) ||
        open_model(&g, s, err) || open_speculation(&g, s, err) || prefill(&g, err))
        st = err->code;
    if (!st) {
        st = decode(&g, s->n_max, err);
        textout_end(&g.out, err);
        print_speed(&g);
        print_contention(&g);
        print_speculation(&g);
    }
    sampler_close(g.sampler);
    textout_close(&g.out);
    speculate_close(g.speculator);
    textmodel_close(&g.draft);
    textmodel_close(&g.model);
    free(g.prompt);
    return st;
}
