/* SPDX-License-Identifier: MIT
 *
 * engine.c - an open model: opening in order, one sequence, closing in reverse
 */
#include "engine/engine_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/modelfile.h"

/* ---- opening and closing --------------------------------------------------------- */

static enum status open_weights(struct slm *m, const struct slm_params *p,
                                struct err *err)
{
    struct residency_plan plan;
    struct weights_params how = {.residency = p->path ? p->residency : WEIGHTS_MEMORY,
                                 .isa_mask = p->isa_mask,
                                 .pages = p->tuning.pages,
                                 .rewrite = p->image_rewrite,
                                 .ring = p->ring};

    if (how.residency != WEIGHTS_MMAP && how.residency != WEIGHTS_MEMORY) {
        struct slm_info planned;
        const enum status st = info_plan(&planned, &plan, m->g, p, err);

        if (st)
            return st;
        how.residency = planned.residency;
        if (how.residency == WEIGHTS_STREAM)
            how.plan = &plan;
        /* Cached pages make the next start quick. */
        planned.scratch_bytes += planned.weight_bytes;
        planned.made_on_load = false;
        how.drop_cached =
            slm_choose_residency(&planned, info_memory_bytes(p), 0) != WEIGHTS_PACKED;
    }
    m->info.residency = how.residency;
    return weights_open(&m->w, m->g, &how, err);
}

static enum status open_file(struct slm *m, const struct slm_params *p, struct err *err)
{
    enum status st;

    if (!p->path == !p->image)
        return err_set(err, ST_USAGE, "a model is either a file or an image in memory");
    st = p->path && p->requant ? modelfile_requant(&m->g, p->path, p->requant, err)
         : p->path             ? modelfile_open(&m->g, p->path, p->quant, err)
                               : gguf_parse(&m->g, p->image, p->image_bytes,
                                p->name ? p->name : "the model in memory", err);
    return st ? st : open_weights(m, p, err);
}

/* Pages are allocated on first touch, so the system would grant any size and kill the
 * process later; refuse what the machine can never hold. */
static enum status check_memory(const struct slm_info *info, struct err *err)
{
    const uint64_t have = info_machine_bytes();

    if (info->weights_memory_bytes > have)
        return err_set(
            err, ST_NO_MEMORY,
            "%.1f GiB of weights cannot be held in the %.1f GiB of this machine; %s",
            (double)info->weights_memory_bytes / 0x1p30, (double)have / 0x1p30,
            info->made_on_load ? "quantise them to fewer bits"
                               : "map the file instead of packing it");
    if (info->kv_bytes > have || info->scratch_bytes > have - info->kv_bytes)
        return err_set(err, ST_NO_MEMORY,
                       "a context of %d positions and batches of %d tokens take %.1f "
                       "GiB, and this machine has %.1f GiB; choose fewer",
                       info->n_ctx, info->n_batch,
                       ((double)info->kv_bytes + (double)info->scratch_bytes) / 0x1p30,
                       (double)have / 0x1p30);
    return ST_OK;
}

static enum status check_threads(int n_threads, int n_threads_prefill, struct err *err)
{
    if (n_threads < 1 || n_threads_prefill < 0)
        return err_set(err, ST_USAGE,
                       "%d threads to decode and %d to prefill: at least 1 is needed",
                       n_threads, n_threads_prefill);
    return ST_OK;
}

static enum status no_pool(struct err *err)
{
    return err_set(err, ST_NO_MEMORY,
                   "the model lost its threads when they were moved to other CPUs");
}

static enum status check_tuning(const struct slm *m, const struct slm_tuning *t,
                                struct err *err)
{
    const int least =
        t->chunks_decode < t->chunks_prefill ? t->chunks_decode : t->chunks_prefill;
    const int most =
        t->chunks_decode > t->chunks_prefill ? t->chunks_decode : t->chunks_prefill;

    if (least < 1 || most > TUNING_MAX_CHUNKS)
        return err_set(err, ST_USAGE,
                       "tuning: %d and %d chunks a thread; 1 to %d are possible",
                       t->chunks_decode, t->chunks_prefill, TUNING_MAX_CHUNKS);
    if (t->n_batch < 0 || t->n_batch > m->info.n_batch)
        return err_set(err, ST_USAGE,
                       "tuning: passes of %d tokens; the model was opened for %d",
                       t->n_batch, m->info.n_batch);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        if (t->prefetch[fmt].distance > TUNING_MAX_DISTANCE ||
            (unsigned)t->prefetch[fmt].hint >= KERN_N_PREFETCH ||
            t->prefetch[fmt].n_panels > KERN_MAX_INTERLEAVED)
            return err_set(
                err, ST_USAGE,
                "tuning: %s has a prefetch distance of %u bytes, hint %d "
                "and %u interleaved panels; at most %u bytes, hint %d and %d "
                "panels are possible",
                kern_format_info((enum kern_format)fmt)->name,
                (unsigned)t->prefetch[fmt].distance, (int)t->prefetch[fmt].hint,
                (unsigned)t->prefetch[fmt].n_panels, TUNING_MAX_DISTANCE,
                KERN_N_PREFETCH - 1, KERN_MAX_INTERLEAVED);
    return ST_OK;
}

enum status slm_tune(struct slm *m, int n_threads, int n_threads_prefill,
                     const struct slm_tuning *tuning, struct err *err)
{
    const int most = thread_pool_capacity(m->pool);
    enum status st = check_threads(n_threads, n_threads_prefill, err);

    if (!st && (n_threads > most || n_threads_prefill > most))
        st = err_set(
            err, ST_USAGE,
            "%d threads to decode and %d to prefill: the model was opened with %d",
            n_threads, n_threads_prefill, most);
    if (!st)
        st = check_tuning(m, tuning, err);
    if (st)
        return st;
    m->n_threads = n_threads;
    m->n_threads_prefill = n_threads_prefill ? n_threads_prefill : n_threads;
    m->pass_tokens = tuning->n_batch ? tuning->n_batch : m->info.n_batch;
    forward_tune(m->forward, tuning);
    if (m->mtp)
        mtp_tune(m->mtp, tuning);
    return ST_OK;
}

void slm_get_tuning(const struct slm *m, struct slm_tuning *tuning)
{
    forward_get_tuning(m->forward, tuning);
}

enum status slm_measure_prefetch(struct slm *m, double budget_s, uint64_t cache_bytes,
                                 struct err *err)
{
    if (!m->pool)
        return no_pool(err);
    if (!weights_ready(m->w))
        return err_set(err, ST_USAGE,
                       "the weights have not been read in: preload them first");
    thread_pool_use(m->pool, m->n_threads);
    return forward_measure_prefetch(m->forward, budget_s, cache_bytes, err);
}

bool slm_takes_tiles(const struct slm *m, size_t n_tokens)
{
    return forward_takes_tiles(m->forward, n_tokens);
}

bool slm_attends_by_tiles(const struct slm *m)
{
    return forward_attends_by_tiles(m->forward);
}

bool slm_prefetches(const struct slm *m, enum kern_format fmt)
{
    return forward_prefetches(m->forward, fmt);
}

static enum status open_sequences(struct slm *m, struct err *err)
{
    const size_t n = (size_t)m->info.n_sequences;
    enum status st = ST_OK;

    m->seqs = calloc(n, sizeof *m->seqs);
    m->logits_at = calloc(n, sizeof *m->logits_at);
    m->again = calloc((size_t)m->info.n_batch, sizeof *m->again);
    if (!m->seqs || !m->logits_at || !m->again)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu sequences", n);
    if (m->kv.shape.n_checkpoints || (m->kv.pages && !m->kv.shape.n_window_layers &&
                                      !m->kv.shape.n_states && !m->kv.shape.n_recent))
        st = prefix_open(&m->prefixes, m->kv.pages, m->kv.shape.n_checkpoints,
                         m->info.n_ctx, err);
    for (size_t i = 0; !st && i < n; i++)
        st = rewind_open(&m->seqs[i].rewind, &m->kv, (int)i, m->info.n_ctx, err);
    return st;
}

enum status slm_open(struct slm **m, const struct slm_params *p, struct err *err)
{
    struct slm *new = calloc(1, sizeof *new);
    struct residency_plan plan;
    struct slm_info *info;
    enum status st;

    if (!new)
        return err_set(err, ST_NO_MEMORY, "no memory to open a model");
    info = &new->info;
    st = open_file(new, p, err);
    if (!st)
        st = model_load(&new->model, new->g, new->w, err);
    if (!st)
        st = info_fill(info, new->g, new->model, p, err);
    if (!st)
        st = info_weights(info, &plan, new->g, p, err);
    if (!st)
        st = check_memory(info, err);
    if (!st)
        st = check_threads(p->n_threads, p->n_threads_prefill, err);
    if (!st)
        st = thread_pool_start(&new->pool, slm_params_threads(p), p->cpus, err);
    if (!st) {
        const struct kvcache_shape shape = info_kv_shape(new->model, p, info->n_back);

        st = kvcache_open(&new->kv, &shape, info->n_ctx, err);
    }
    if (!st)
        st = open_sequences(new, err);
    if (!st)
        st = forward_open(&new->forward, new->model, &new->kv, new->pool, p->isa_mask,
                          p->prefill_sums, info->n_batch, info->n_logits, err);
    if (!st && (info->n_streamed || info->cache_bytes))
        forward_set_weights(new->forward, new->w);
    if (!st && p->mtp)
        st = mtp_open(&new->mtp, new, p, err);
    if (!st)
        st = slm_tune(new, p->n_threads, p->n_threads_prefill, &p->tuning, err);
    if (!st)
        st = gguf_check(new->g, err);
    if (st)
        slm_close(new);
    else
        *m = new;
    return st;
}

void slm_close(struct slm *m)
{
    if (!m)
        return;
    mtp_close(m->mtp);
    forward_close(m->forward);
    for (int i = 0; m->seqs && i < m->info.n_sequences; i++)
        rewind_close(&m->seqs[i].rewind);
    free(m->seqs);
    prefix_close(m->prefixes);
    free(m->logits_at);
    free(m->again);
    kvcache_close(&m->kv);
    thread_pool_stop(m->pool);
    model_free(m->model);
    weights_close(m->w);
    gguf_close(m->g);
    free(m);
}

const struct slm_info *slm_info(const struct slm *m)
{
    return &m->info;
}

const struct gguf *slm_gguf(const struct slm *m)
{
    return m->g;
}

struct weights *slm_weights(struct slm *m)
{
    return m->w;
}

bool slm_stream_read(const struct slm *m, struct slm_stream *out)
{
    return weights_stream_read(m->w, out);
}

struct thread_pool *slm_thread_pool(struct slm *m)
{
    return m->pool;
}

/* ---- the sequence ---------------------------------------------------------------- */

enum status engine_check_tokens(const struct slm *m, int seq, const int32_t *tokens,
                                size_t n, struct err *err)
{
    if (n == 0)
        return err_set(err, ST_USAGE, "there are no tokens to evaluate");
    if (n > (size_t)slm_seq_n_free(m, seq))
        return err_set(err, ST_USAGE,
                       "the context of %d positions is full: %zu more tokens do not "
                       "fit after %d; open the model with a larger one",
                       m->seqs[seq].n_past + slm_seq_n_free(m, seq), n,
                       m->seqs[seq].n_past);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= m->info.n_vocab)
            return err_set(err, ST_USAGE,
                           "token %d is outside the vocabulary of %d tokens",
                           (int)tokens[i], m->info.n_vocab);
    return ST_OK;
}

enum status engine_begin(struct slm *m, struct err *err)
{
    if (!m->pool)
        return no_pool(err);
    if (!weights_ready(m->w))
        return err_set(err, ST_USAGE,
                       "the weights have not been read in: preload them first");
    if (m->hook)
        m->hook(m->hook_arg);
    return weights_check(m->w, err);
}

/* Where values stop being numbers. */
static enum status no_numbers(struct slm *m, struct err *err)
{
    const int layer = forward_find_fault(m->forward);
    char where[64];

    if (layer < 0)
        snprintf(where, sizeof where, "the embedding of a token has such a value");
    else if (layer < m->info.n_layers)
        snprintf(where, sizeof where,
                 "layer %d is the first that computes such a value", layer);
    else
        snprintf(where, sizeof where, "the output matrix or its norm makes them");
    return err_set(err, ST_INPUT,
                   "the model's logits are not numbers (NaN or infinite): %s; the file "
                   "is damaged or was converted wrongly: %s",
                   where, gguf_path(m->g));
}

enum status engine_end(struct slm *m, struct err *err)
{
    enum status st = gguf_check(m->g, err);

    if (!st)
        st = weights_check(m->w, err);
    return st || forward_is_finite(m->forward) ? st : no_numbers(m, err);
}

void engine_begin_pass(struct slm *m, const struct forward_part *parts, int n_parts)
{
    bool decodes = true; /* all of them */

    for (int i = 0; i < n_parts; i++) {
        const struct forward_part *p = &parts[i];

        decodes &= p->n == 1;
        rewind_pass(&m->seqs[p->seq].rewind, &m->kv, p->tokens, p->n, p->n_again);
    }
    thread_pool_use(m->pool, decodes ? m->n_threads : m->n_threads_prefill);
}

void engine_run_pass(struct slm *m, const struct forward_part *parts, int n_parts)
{
    engine_begin_pass(m, parts, n_parts);
    forward_run(m->forward, parts, n_parts);
    if (m->mtp)
        mtp_after_pass(m, parts, n_parts);
}

static enum status no_room(const struct slm *m, int n, struct err *err)
{
    size_t n_pages, n_free;

    slm_pages(m, &n_pages, &n_free);
    return err_set(err, ST_NO_MEMORY,
                   "the KV cache has no room for %d more tokens: %zu of its %zu pages "
                   "are free; end a sequence, or open the model for more positions",
                   n, n_free, n_pages);
}

size_t engine_begin_of(const struct slm *m, int seq)
{
    const struct sequence *s = &m->seqs[seq];

    return (size_t)rewind_start(&s->rewind, &m->kv, s->n_past);
}

void engine_run_again(struct slm *m, int seq)
{
    struct sequence *s = &m->seqs[seq];
    int pos = rewind_to(&s->rewind, &m->kv, s->n_past);

    while (pos < s->n_past && !weights_check(m->w, NULL)) {
        const int left = s->n_past - pos, at = pos % m->info.n_ctx;
        int n = left < m->pass_tokens ? left : m->pass_tokens;

        n = n < m->info.n_ctx - at ? n : m->info.n_ctx - at;
        const struct forward_part part = {
            .seq = seq, .tokens = s->rewind.tokens + at, .n = n, .n_past = pos};

        engine_run_pass(m, &part, 1);
        pos += n;
    }
}

/* Not where only the last tokens are known: there the copy of the states is what a
 * sequence is cut back to, if the pass fails. */
struct forward_part engine_part_again(struct slm *m, int seq, const int32_t *tokens,
                                      int n, int n_logits, int32_t *buffer, int *room)
{
    struct sequence *s = &m->seqs[seq];
    struct forward_part part = {.seq = seq,
                                .tokens = tokens,
                                .n = n,
                                .n_past = s->n_past,
                                .n_logits = n_logits};
    const int n_again = s->n_past - (int)engine_begin_of(m, seq);

    if (!n_again || n_again > *room || m->info.kv_window) {
        engine_run_again(m, seq);
        return part;
    }
    part.n_past = rewind_to(&s->rewind, &m->kv, s->n_past);
    part.n_again = n_again;
    part.n = n_again + n;
    part.tokens = buffer;
    for (int i = 0; i < n_again; i++)
        buffer[i] = s->rewind.tokens[(part.n_past + i) % m->info.n_ctx];
    memcpy(buffer + n_again, tokens, (size_t)n * sizeof *buffer);
    *room -= n_again;
    return part;
}

/* The first of several passes, or the only one. */
static enum status check_eval(const struct slm *m, const int32_t *tokens, size_t n,
                              enum slm_logits which, struct err *err)
{
    enum status st = slm_check_predicts(&m->info, err);

    if (!st)
        st = engine_check_tokens(m, 0, tokens, n, err);
    if (!st && which == SLM_LOGITS_ALL && n > (size_t)m->info.n_logits)
        return err_set(
            err, ST_USAGE,
            "logits of all %zu tokens are requested; the model was opened for %d", n,
            m->info.n_logits);
    return st;
}

enum status slm_eval(struct slm *m, const int32_t *tokens, size_t n,
                     enum slm_logits which, struct err *err)
{
    struct sequence *s = &m->seqs[0];
    const int n_past = s->n_past;
    bool again = false;
    enum status st = engine_begin(m, err);

    if (!st)
        st = check_eval(m, tokens, n, which, err);
    if (!st && !kvcache_reserve(&m->kv, 0, engine_begin_of(m, 0), (size_t)n_past + n))
        st = no_room(m, (int)n, err);
    if (st)
        return st;
    m->n_parts = 0;
    for (size_t done = 0; done < n && !weights_check(m->w, NULL);) {
        const size_t left = n - done;
        const size_t most = which == SLM_LOGITS_ALL ? n : (size_t)m->pass_tokens;
        const int batch = (int)(left < most ? left : most);
        int n_logits = 0;

        if (which == SLM_LOGITS_ALL)
            n_logits = batch;
        else if (which == SLM_LOGITS_LAST && left <= most)
            n_logits = 1;
        int room = m->info.n_batch - batch;
        const struct forward_part part =
            engine_part_again(m, 0, tokens + done, batch, n_logits, m->again, &room);

        again |= part.n_again > 0;
        engine_run_pass(m, &part, 1);
        m->n_logits = (size_t)n_logits;
        s->n_past += batch;
        done += (size_t)batch;
    }
    st = engine_end(m, err);
    if (st) {
        s->n_past = n_past;
        kvcache_cut(&m->kv, 0, (size_t)n_past);
        if (again)
            rewind_forget(&s->rewind);
        if (m->mtp)
            mtp_cut(m->mtp, 0, n_past);
    }
    return st;
}

const float *slm_logits(const struct slm *m, size_t i)
{
    assert(i < m->n_logits);
    return forward_logits(m->forward, i);
}

enum status slm_profile_start(struct slm *m, struct err *err)
{
    return forward_profile_start(m->forward, err);
}

void slm_profile_read(const struct slm *m, struct slm_profile *out)
{
    forward_profile_read(m->forward, out);
}

void slm_set_activation_hook(struct slm *m, slm_activation_hook_fn *hook, void *arg)
{
    forward_set_hook(m->forward, hook, arg);
}

int slm_n_past(const struct slm *m)
{
    return slm_seq_n_past(m, 0);
}

void slm_truncate(struct slm *m, int n_past)
{
    slm_seq_truncate(m, 0, n_past);
}

int slm_min_past(const struct slm *m)
{
    return slm_seq_min_past(m, 0);
}

int slm_n_free(const struct slm *m)
{
    return slm_seq_n_free(m, 0);
}

void slm_set_eval_hook(struct slm *m, slm_eval_hook_fn *hook, void *arg)
{
    m->hook = hook;
    m->hook_arg = arg;
}

enum status slm_reclaim(struct slm *m, uint64_t bytes, uint64_t *freed, struct err *err)
{
    struct slm_info *info = &m->info;
    const struct residency_plan *plan;
    enum status st;

    /* Threads that read from now on start here, and not on this thread's CPU alone. */
    thread_pool_unpin_caller(m->pool);
    st = weights_reclaim(m->w, info->n_layers, bytes, freed, err);
    thread_pool_pin_caller(m->pool);
    if (st)
        return st;
    plan = weights_plan(m->w);
    info->residency = WEIGHTS_STREAM;
    info_stream(info, plan);
    st = model_rebind(m->model, m->g, m->w, err);
    if (!st && m->mtp)
        st = mtp_rebind(m->mtp, m, err);
    if (st)
        weights_break(m->w, err);
    else if (info->n_streamed || info->cache_bytes)
        forward_set_weights(m->forward, m->w);
    return st;
}
