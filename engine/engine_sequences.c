/* SPDX-License-Identifier: MIT
 *
 * engine_sequences.c - several sequences: a pass over parts of them, copies, their room
 */
#include <assert.h>

#include "engine/engine_impl.h"

/* ---- one sequence ---------------------------------------------------------------- */

int slm_seq_n_past(const struct slm *m, int seq)
{
    return m->seqs[seq].n_past;
}

int slm_seq_n_free(const struct slm *m, int seq)
{
    return (m->info.kv_window ? SLM_MAX_POSITIONS : m->info.n_ctx) -
           m->seqs[seq].n_past;
}

void slm_seq_truncate(struct slm *m, int seq, int n_past)
{
    struct sequence *s = &m->seqs[seq];

    assert(n_past >= 0 && n_past <= s->n_past);
    assert(n_past == 0 || n_past >= slm_seq_min_past(m, seq));
    s->n_past = n_past;
    kvcache_cut(&m->kv, seq, (size_t)n_past);
    /* States of which there is a copy return here, and not in the time of the next
     * token. */
    if (rewind_start(&s->rewind, &m->kv, n_past) == n_past)
        (void)rewind_to(&s->rewind, &m->kv, n_past);
    if (m->mtp)
        mtp_cut(m->mtp, seq, n_past);
}

int slm_seq_min_past(const struct slm *m, int seq)
{
    return rewind_min(&m->seqs[seq].rewind, &m->kv, m->seqs[seq].n_past);
}

void slm_seq_fork(struct slm *m, int from, int to)
{
    assert(from != to);
    kvcache_fork(&m->kv, from, to, (size_t)m->seqs[from].n_past);
    rewind_fork(&m->seqs[to].rewind, &m->seqs[from].rewind);
    m->seqs[to].n_past = m->seqs[from].n_past;
    if (m->mtp)
        mtp_fork(m->mtp, from, to);
}

void slm_pages(const struct slm *m, size_t *n, size_t *n_free)
{
    const struct kvpages *p = m->kv.pages;

    *n = p ? p->n_pages : 0;
    *n_free = p ? p->n_free : 0;
}

static struct kvcache_span span_of(const struct slm *m, int seq, int n)
{
    return (struct kvcache_span){seq, engine_begin_of(m, seq),
                                 (size_t)m->seqs[seq].n_past + (size_t)n};
}

size_t slm_seq_pages(const struct slm *m, int seq, int n)
{
    const struct kvcache_span span = span_of(m, seq, n);

    return kvcache_reserve_pages(&m->kv, &span, 1);
}

size_t slm_batch_pages(const struct slm *m, const struct slm_part *parts, int n_parts)
{
    struct kvcache_span spans[SLM_MAX_SEQUENCES];

    for (int i = 0; i < n_parts; i++)
        spans[i] = span_of(m, parts[i].seq, parts[i].n);
    return kvcache_reserve_pages(&m->kv, spans, n_parts);
}

/* ---- a batch --------------------------------------------------------------------- */

static int n_logits_of(const struct slm_part *p)
{
    return p->which == SLM_LOGITS_ALL ? p->n : p->which == SLM_LOGITS_LAST;
}

static enum status check_part(const struct slm *m, const struct slm_part *parts, int i,
                              struct err *err)
{
    const struct slm_part *p = &parts[i];

    if (p->seq < 0 || p->seq >= m->info.n_sequences)
        return err_set(err, ST_USAGE,
                       "sequence %d: the model was opened for %d, numbered from 0",
                       p->seq, m->info.n_sequences);
    for (int other = 0; other < i; other++)
        if (parts[other].seq == p->seq)
            return err_set(err, ST_USAGE, "sequence %d is twice in a batch", p->seq);
    if (p->n < 1)
        return err_set(err, ST_USAGE, "sequence %d has %d tokens in a batch", p->seq,
                       p->n);
    return engine_check_tokens(m, p->seq, p->tokens, (size_t)p->n, err);
}

static enum status check_batch(const struct slm *m, const struct slm_part *parts,
                               int n_parts, struct err *err)
{
    int64_t n = 0, n_logits = 0;
    const enum status predicts = slm_check_predicts(&m->info, err);

    if (predicts)
        return predicts;
    if (n_parts < 1 || n_parts > m->info.n_sequences)
        return err_set(err, ST_USAGE,
                       "a batch of %d sequences; the model was opened for %d", n_parts,
                       m->info.n_sequences);
    for (int i = 0; i < n_parts; i++) {
        const enum status st = check_part(m, parts, i, err);

        if (st)
            return st;
        n += parts[i].n;
        n_logits += n_logits_of(&parts[i]);
    }
    if (n > m->info.n_batch || n_logits > m->info.n_logits)
        return err_set(
            err, ST_USAGE,
            "a batch of %lld tokens, %lld of them with logits; the model was "
            "opened for %d and %d",
            (long long)n, (long long)n_logits, m->info.n_batch, m->info.n_logits);
    return ST_OK;
}

/* Room for all parts, or for none. */
enum status engine_reserve(struct slm *m, const struct slm_part *parts, int n_parts,
                           struct err *err)
{
    const size_t wanted = slm_batch_pages(m, parts, n_parts);
    size_t n_pages, n_free;

    slm_pages(m, &n_pages, &n_free);
    if (wanted > n_free)
        return err_set(
            err, ST_NO_MEMORY,
            "the KV cache has no room for the batch: it takes %zu pages, and "
            "%zu of %zu are free; end a sequence, or open the model for more "
            "positions",
            wanted, n_free, n_pages);
    for (int i = 0; i < n_parts; i++) {
        const struct kvcache_span span = span_of(m, parts[i].seq, parts[i].n);
        const bool ok = kvcache_reserve(&m->kv, span.seq, span.begin, span.end);

        assert(ok);
        (void)ok;
    }
    return ST_OK;
}

/* What the pass computes; for parts that run tokens again as many as it has room for,
 * the others do it first. */
static void make_pass(struct slm *m, const struct slm_part *parts, int n_parts,
                      struct forward_part *pass)
{
    int32_t *buffer = m->again;
    int room = m->info.n_batch;

    for (int i = 0; i < n_parts; i++)
        room -= parts[i].n;
    for (int i = 0; i < n_parts; i++) {
        pass[i] = engine_part_again(m, parts[i].seq, parts[i].tokens, parts[i].n,
                                    n_logits_of(&parts[i]), buffer, &room);
        engine_place_marks(m, &pass[i]);
        buffer += parts[i].n + pass[i].n_again;
    }
}

static void run(struct slm *m, const struct forward_part *pass, int n_parts)
{
    m->n_logits = 0;
    m->n_parts = n_parts;
    for (int i = 0; i < n_parts; i++) {
        m->logits_at[i] = m->n_logits;
        m->n_logits += (size_t)pass[i].n_logits;
    }
    engine_run_pass(m, pass, n_parts);
}

/* The batch is none. */
static void forget_marks(struct slm *m, const struct slm_part *parts, int n_parts)
{
    for (int i = 0; i < n_parts; i++)
        if (parts[i].seq >= 0 && parts[i].seq < m->info.n_sequences)
            m->seqs[parts[i].seq].n_marks = 0;
}

enum status slm_batch(struct slm *m, const struct slm_part *parts, int n_parts,
                      struct err *err)
{
    struct forward_part pass[SLM_MAX_SEQUENCES];
    enum status st = engine_begin(m, err);

    if (!st)
        st = check_batch(m, parts, n_parts, err);
    if (!st)
        st = engine_reserve(m, parts, n_parts, err);
    if (st) {
        forget_marks(m, parts, n_parts);
        return st;
    }
    make_pass(m, parts, n_parts, pass);
    if (!weights_check(m->w, NULL))
        run(m, pass, n_parts);
    st = engine_end(m, err);
    for (int i = 0; i < n_parts; i++) {
        struct sequence *s = &m->seqs[parts[i].seq];

        engine_keep_marks(m, parts[i].seq, !st);
        if (!st) {
            s->n_past += parts[i].n;
            continue;
        }
        kvcache_cut(&m->kv, parts[i].seq, (size_t)s->n_past);
        if (pass[i].n_again)
            rewind_forget(&s->rewind);
        if (m->mtp)
            mtp_cut(m->mtp, parts[i].seq, s->n_past);
    }
    return st;
}

const float *slm_batch_logits(const struct slm *m, int part, size_t i)
{
    assert(part >= 0 && part < m->n_parts && m->logits_at[part] + i < m->n_logits);
    return forward_logits(m->forward, m->logits_at[part] + i);
}

/* ---- synthetic contents ---------------------------------------------------------- */

struct fill {
    struct slm *m;
    struct kern_set kern;
    struct kvcache pool;
    uint64_t seed;
    int seq, end;
    int begin_whole, begin_ring; /* where layers begin that keep all, and a ring */
};

/* The pool fills the cache, so that pages lie on the NUMA node of their readers. */
static void fill_heads(void *arg, int thread, int n_threads)
{
    struct fill *fill = arg;
    struct slm *m = fill->m;
    const size_t n_kv = (size_t)m->info.n_kv_heads;

    (void)thread;
    (void)n_threads;
    for (size_t i;
         (i = thread_pool_next(m->pool, 1)) < (size_t)m->kv.shape.n_layers * n_kv;) {
        const int layer = (int)(i / n_kv);
        const bool whole = layer < kvcache_n_whole(&m->kv) && !m->info.kv_window;

        if ((int)(i % n_kv) >= kvcache_heads(&m->kv, layer)->n)
            continue;
        kvcache_fill(&m->kv, &fill->kern, fill->seq, layer, (int)(i % n_kv),
                     whole ? fill->begin_whole : fill->begin_ring, fill->end,
                     &fill->pool, fill->seed);
    }
}

enum status slm_seq_fill_synthetic(struct slm *m, int seq, int n_past, uint64_t seed,
                                   struct err *err)
{
    struct sequence *s = &m->seqs[seq];
    const bool kept = rewind_has_window(&s->rewind, &m->kv, s->n_past);
    struct fill fill = {.m = m,
                        .seed = seed,
                        .seq = seq,
                        .end = n_past,
                        .begin_whole = s->n_past,
                        .begin_ring = kept ? s->n_past : 0};
    /* whole panels are written */
    const size_t end =
        ((size_t)n_past + KVCACHE_PANEL - 1) / KVCACHE_PANEL * KVCACHE_PANEL;
    const size_t begin =
        (size_t)(m->info.kv_window ? fill.begin_ring : fill.begin_whole);
    enum status st;

    if (n_past < s->n_past || n_past > m->info.n_ctx)
        return err_set(err, ST_USAGE,
                       "the KV cache cannot be filled to %d positions: %d are in use "
                       "of a context of %d",
                       n_past, s->n_past, m->info.n_ctx);
    if (!kvcache_reserve(&m->kv, seq, begin, end))
        return err_set(err, ST_NO_MEMORY,
                       "the KV cache has not enough free pages to be filled to %d "
                       "positions; open the model for more",
                       n_past);
    kern_select(&fill.kern, isa_usable());
    st = kvcache_make_pool(&fill.pool, &m->kv, &fill.kern, seed, err);
    if (st)
        return st;
    thread_pool_use(m->pool, thread_pool_capacity(m->pool));
    thread_pool_run(m->pool, fill_heads, &fill);
    kvcache_close(&fill.pool);
    rewind_fill(&s->rewind, &m->kv, n_past, kept);
    s->n_past = n_past;
    return ST_OK;
}

enum status slm_fill_synthetic(struct slm *m, int n_past, uint64_t seed,
                               struct err *err)
{
    return slm_seq_fill_synthetic(m, 0, n_past, seed, err);
}
