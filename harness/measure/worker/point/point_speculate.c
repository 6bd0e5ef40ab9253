/* SPDX-License-Identifier: MIT
 *
 * point_speculate.c - a text decoded speculatively and plainly, interleaved
 *
 * A run goes over the text's answer once, in stretches: each is decoded with drafts,
 * taken back, and decoded plainly. So both meet the same tokens at the same depth
 * within a second or so, and slow drift is no difference between them. What is learned
 * about drafts is kept from stretch to stretch, and forgotten with every run, as it
 * would be with every question.
 */
#include <stdlib.h>

#include "engine/base/clock.h"
#include "harness/measure/worker/point/point_worker.h"

#define STRETCH  16  /* tokens, or a few more where a pass goes beyond */
#define PATIENCE 3.0 /* budgets that the first run may take */

static int32_t vocabulary(const struct point_worker *c,
                          const struct point_speculation *s)
{
    return s->prompt.tok ? tokenizer_n_vocab(s->prompt.tok)
                         : slm_info(c->model)->n_vocab;
}

/* ---- before the first run -------------------------------------------------------- */

/* Positions before the prompt are synthetic, as in a decode point. */
static enum status fill(struct point_worker *c, struct err *err)
{
    const struct point_speculation *s = c->speculation;
    const int n_before = s->depth - (int)s->prompt.n_prompt;
    enum status status = ST_OK;

    worker_report_phase(&c->reports, "fill", 0);
    if (s->prompt.n_answer && !c->p->ctx_prefill)
        return slm_fill_synthetic(c->model, s->depth, c->p->setup.seed, err);
    if (n_before > 0)
        status = slm_fill_synthetic(c->model, n_before, c->p->setup.seed, err);
    for (size_t at = 0; status == ST_OK && at < s->prompt.n_prompt;) {
        const size_t left = s->prompt.n_prompt - at, most = (size_t)c->p->setup.n_batch;
        const size_t n = left < most ? left : most;

        status = slm_eval(c->model, s->prompt.ids + at, n,
                          n == left ? SLM_LOGITS_LAST : SLM_LOGITS_NONE, err);
        at += n;
        worker_report_phase(&c->reports, "fill",
                            (double)at / (double)s->prompt.n_prompt);
    }
    return status;
}

/* The model's own answer, decoded plainly, becomes the test prompt. */
static enum status take_own_answer(struct point_worker *c, struct err *err)
{
    struct point_speculation *s = c->speculation;
    struct test_prompt *prompt = &s->prompt;
    int32_t *ids =
        realloc(prompt->ids, (prompt->n_prompt + TEST_PROMPT_OWN_TOKENS) * sizeof *ids);
    enum status status = ST_OK;
    size_t n = 0;

    if (!ids)
        return err_set(err, ST_NO_MEMORY, "no memory for an answer");
    prompt->ids = ids;
    for (ids += prompt->n_prompt; status == ST_OK && n < TEST_PROMPT_OWN_TOKENS;) {
        const int32_t id = sampler_next(s->sampler, slm_logits(c->model, 0));

        if (tokenizer_is_end(prompt->tok, id))
            break;
        ids[n++] = id;
        if (n < TEST_PROMPT_OWN_TOKENS)
            status = slm_eval(c->model, &id, 1, SLM_LOGITS_LAST, err);
        worker_report_phase(&c->reports, "answer", (double)n / TEST_PROMPT_OWN_TOKENS);
    }
    slm_truncate(c->model, s->depth);
    if (status == ST_OK && n < 2)
        status = err_set(err, ST_INPUT,
                         "the model's own answer to %s has %zu tokens: too few to "
                         "measure",
                         c->p->text, n);
    s->n_answer = (int)n;
    return status;
}

enum status point_speculate_open(struct point_worker *c, struct err *err)
{
    const struct sampler_params greedy = sampler_params_default();
    struct point_speculation *s = calloc(1, sizeof *s);
    enum status status;

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory to speculate");
    c->speculation = s;
    s->parts = malloc(SPECULATE_MAX_PARTS * sizeof *s->parts);
    if (!s->parts)
        return err_set(err, ST_NO_MEMORY, "no memory to speculate");
    if (test_prompt_read(&s->prompt, c->p->text, slm_gguf(c->model),
                         slm_info(c->model)->n_vocab, err) ||
        sampler_open(&s->sampler, &greedy, vocabulary(c, s), err))
        return err->code;
    s->depth = point_depth(c->p);
    s->n_answer = (int)s->prompt.n_answer;
    status = fill(c, err);
    if (status == ST_OK && !s->n_answer)
        status = take_own_answer(c, err);
    s->answer = s->prompt.ids + s->prompt.n_prompt;
    s->stretch = STRETCH;
    if (slm_info(c->model)->n_recurrent) {
        /* States cannot be taken back to any position without running tokens again: one
         * stretch, and the token before it is run untimed. */
        s->stretch = s->n_answer;
        s->first = 1;
    }
    c->facts.tokens_per_sample = s->n_answer - 1 - s->first;
    return status;
}

void point_speculate_close(struct point_worker *c)
{
    if (!c->speculation)
        return;
    sampler_close(c->speculation->sampler);
    test_prompt_free(&c->speculation->prompt);
    free(c->speculation->parts);
    free(c->speculation);
    c->speculation = NULL;
}

/* An uncounted pass: it touches the memory that a wide pass needs. */
enum status point_speculate_warm(struct point_worker *c, struct err *err)
{
    const struct point_speculation *s = c->speculation;
    const int most = slm_info(c->model)->n_logits;
    const size_t n = (size_t)(s->n_answer < most ? s->n_answer : most);
    enum status status = slm_eval(c->model, s->answer, n, SLM_LOGITS_ALL, err);

    slm_truncate(c->model, s->depth);
    if (status == ST_OK)
        status = slm_eval(c->model, s->answer, 1, SLM_LOGITS_LAST, err);
    slm_truncate(c->model, s->depth);
    return status;
}

/* ---- a run ----------------------------------------------------------------------- */

/* Take the sequence back to where answer[at] comes next. */
static enum status go_to(struct point_worker *c, int at, struct err *err)
{
    const struct point_speculation *s = c->speculation;

    slm_truncate(c->model, s->depth + at - (s->first ? 1 : 0));
    if (!s->first)
        return ST_OK;
    return slm_eval(c->model, &s->answer[at - 1], 1, SLM_LOGITS_NONE, err);
}

/* The first run may exceed the budget, up to PATIENCE times, since it should cover all
 * of the text. share: the part of that time which counts here. */
static bool out_of_time(const struct point_worker *c, double share)
{
    const double spent = (double)(clock_ns() - c->measure_begin_ns) * 1e-9;

    return spent > share * PATIENCE * c->p->budget_s;
}

/* Tokens behind answer[at], decoded one way. */
struct stretch {
    struct point_worker *c;
    struct speculator *sp;
    int at, n;
};

static enum status decode_plainly(void *arg, uint64_t *ns, struct err *err)
{
    const struct stretch *of = arg;
    const struct point_speculation *s = of->c->speculation;
    struct slm *m = of->c->model;
    enum status status = ST_OK;

    (void)ns;
    sampler_recite(s->sampler, s->answer + of->at + 1, (size_t)of->n);
    for (int i = 0; i < of->n && status == ST_OK; i++) {
        status = slm_eval(m, &s->answer[of->at + i], 1, SLM_LOGITS_LAST, err);
        if (status == ST_OK)
            sampler_accept(s->sampler, sampler_next(s->sampler, slm_logits(m, 0)));
        worker_heartbeat(&of->c->reports);
    }
    return status;
}

/* Whether drafting ends, of models with states before its stretch: half of the time is
 * for the same tokens decoded plainly. */
static bool stops_early(const struct stretch *of)
{
    return of->c->speculation->first && of->n && out_of_time(of->c, 0.5);
}

/* Decodes with drafts: at least a stretch, at most what is left; n: how many. */
static enum status decode_drafting(void *arg, uint64_t *ns, struct err *err)
{
    struct stretch *of = arg;
    const struct point_speculation *s = of->c->speculation;
    const int left = s->n_answer - 1 - of->at;
    int32_t out[SPECULATE_MAX + 1];
    enum status status = ST_OK;

    (void)ns;
    sampler_recite(s->sampler, s->answer + of->at + 1, (size_t)left);
    for (of->n = 0;
         of->n < s->stretch && of->n < left && status == ST_OK && !stops_early(of);) {
        int got = 0;

        status = speculate_next(of->sp, s->answer[of->at + of->n], left - of->n, out,
                                &got, err);
        of->n += got;
        worker_heartbeat(&of->c->reports);
    }
    return status;
}

/* One sample of it. */
static enum status time_stretch(struct stretch *of, measured_call_fn *decode,
                                double *taken_ns, struct err *err)
{
    struct measured_step step = {.kind = MEASURED_CALL, .call = decode, .call_arg = of};
    uint64_t ns = 0;
    enum status status = go_to(of->c, of->at, err);

    if (status == ST_OK)
        status = measured_sample(&of->c->measured, &step, &ns, err);
    *taken_ns = (double)ns;
    return status;
}

static void count(struct point_speculation *s, const struct speculator *sp)
{
    struct speculate_stats of;

    speculate_read_stats(sp, &of);
    s->sum.n_passes += of.n_passes;
    s->sum.n_tokens += of.n_tokens;
    s->sum.n_drafted += of.n_drafted;
    s->sum.n_accepted += of.n_accepted;
    for (int i = 0; i < SPECULATE_MAX; i++) {
        s->sum.drafted_at[i] += of.drafted_at[i];
        s->sum.accepted_at[i] += of.accepted_at[i];
    }
    s->n_runs++;
}

static enum status run_stretches(struct point_worker *c, struct speculator *sp,
                                 double *drafting_ns, int *n_done, struct err *err)
{
    struct point_speculation *s = c->speculation;
    enum status status = ST_OK;
    struct stretch of = {.c = c, .sp = sp, .at = s->first};

    while (of.at < s->n_answer - 1 && status == ST_OK &&
           (of.at == s->first || (!s->first && !out_of_time(c, 1)))) {
        struct stats_pair part = {0, 0};

        status = time_stretch(&of, decode_drafting, &part.b, err);
        if (status == ST_OK)
            status = time_stretch(&of, decode_plainly, &part.a, err);
        if (status == ST_OK && s->n_parts < SPECULATE_MAX_PARTS)
            s->parts[s->n_parts++] = part;
        s->plain_ns += part.a;
        s->drafting_ns += part.b;
        *drafting_ns += part.b;
        of.at += of.n;
    }
    *n_done = of.at - s->first;
    return status;
}

enum status point_speculate_run(struct point_worker *c, uint64_t *ns, struct err *err)
{
    const struct sampler_params greedy = sampler_params_default();
    const struct speculate_params how = {.mtp = c->p->mtp,
                                         .sampling = &greedy,
                                         .accept = c->p->accept_hundredths / 100.0};
    struct point_speculation *s = c->speculation;
    struct speculator *sp = NULL;
    double drafting_ns = 0;
    int n_done = 0;
    enum status status =
        speculate_open(&sp, c->model, s->sampler, s->prompt.tok, &how, err);

    if (status == ST_OK)
        status = speculate_begin(sp, s->prompt.ids,
                                 s->prompt.n_prompt + (size_t)s->first, err);
    if (status == ST_OK)
        status = run_stretches(c, sp, &drafting_ns, &n_done, err);
    if (status == ST_OK) {
        count(s, sp);
        *ns = (uint64_t)(drafting_ns * c->facts.tokens_per_sample / n_done);
    }
    speculate_close(sp);
    return status;
}

/* ---- what came of it ------------------------------------------------------------- */

void point_speculate_conclude(struct point_worker *c)
{
    const struct point_speculation *s = c->speculation;
    const double n_passes = (double)s->sum.n_passes, n_runs = (double)s->n_runs;

    if (!s->n_runs || !(n_passes > 0))
        return;
    /* Each pass of a run reads the weights, and a pass over several tokens more experts
     * than one token takes; its columns give the multiply-adds. */
    const struct slm_info *info = slm_info(c->model);
    const double n_columns = n_passes + (double)s->sum.n_drafted;
    const double more_experts = slm_bytes_per_pass(info, n_columns / n_passes) -
                                (double)info->weight_token_bytes;

    c->facts.bytes_per_sample =
        n_passes / n_runs *
        ((double)slm_bytes_per_token(info, s->depth) + more_experts);
    c->facts.ops_per_sample *= n_columns / n_runs;
}
