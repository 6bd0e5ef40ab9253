/* SPDX-License-Identifier: MIT
 *
 * engine_mtp.c - the layer that predicts the token after the next
 *
 * Positions are the model's. Pair p is the hidden state of position p and the token at
 * p + 1; pairs base .. n_pairs-1 of a sequence are in the layer's cache, pair p at its
 * position p - base.
 */
#include "engine/mtp.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine_impl.h"

enum {
    KEPT = 64,      /* positions whose hidden states are kept at least, so that a short
                       text can be taken back */
    CAP = 3 * KEPT, /* the same at most: then their pairs are evaluated at once */
    FEW = 16,       /* pairs that a sequence brings to a pass of several sequences */
};

/* What the layer knows of a sequence. */
struct mtp_seq {
    float *hidden;   /* [CAP][stride] of positions first .. first+n-1 */
    int32_t *tokens; /* [CAP] at first+1 ..; the last is unknown yet */
    float *own; /* [stride] the layer's own, of the last guess, behind its last norm */
    int first, n;
    int base, n_pairs;
    int guess; /* pairs of guesses behind n_pairs */
};

struct mtp {
    struct model *model;
    struct kvcache kv;
    struct forward *forward;
    size_t stride;
    struct mtp_seq *seqs; /* [n_sequences] */
    int n_sequences;
    float *memory; /* of all that is in seqs, and rows */
    int32_t *tokens;
    float *rows;                /* [row_cap][stride] of a pass of several sequences */
    struct forward_part *parts; /* [n_sequences] */
    int row_cap;
};

/* Rows of hidden states. */
static uint64_t n_rows(int n_sequences)
{
    return (uint64_t)n_sequences * (CAP + 1 + FEW);
}

uint64_t mtp_bytes(const struct model *m, const struct slm_params *p,
                   const struct slm_info *info)
{
    struct kvcache_shape shape = info_kv_shape(m, p, info->n_back);
    const uint64_t row = ((uint64_t)m->n_embd + 15) / 16 * 64 + sizeof(int32_t);
    uint64_t kv = 0;

    shape.n_checkpoints = 0;
    kvcache_bytes(&kv, &shape, info->n_ctx);
    return kv + m->vector_bytes + row * n_rows(info->n_sequences) +
           forward_bytes(m, p->prefill_sums, info->kv_type, info->n_batch,
                         info->n_sequences, info->n_sequences, slm_params_threads(p));
}

static enum status make_tables(struct mtp *t, int n_sequences, struct err *err)
{
    const size_t n = (size_t)n_sequences;

    t->stride = forward_stride(t->forward);
    t->n_sequences = n_sequences;
    t->row_cap = n_sequences * FEW;
    t->seqs = calloc(n, sizeof *t->seqs);
    t->parts = calloc(n, sizeof *t->parts);
    t->memory = calloc(n_rows(n_sequences), t->stride * sizeof *t->memory);
    t->tokens = calloc(n, (CAP + FEW) * sizeof *t->tokens);
    if (!t->seqs || !t->parts || !t->memory || !t->tokens)
        return err_set(err, ST_NO_MEMORY, "no memory for hidden states");
    for (size_t i = 0; i < n; i++) {
        t->seqs[i].hidden = t->memory + i * (CAP + 1) * t->stride;
        t->seqs[i].own = t->seqs[i].hidden + CAP * t->stride;
        t->seqs[i].tokens = t->tokens + i * CAP;
    }
    t->rows = t->memory + n * (CAP + 1) * t->stride;
    return ST_OK;
}

enum status mtp_open(struct mtp **out, struct slm *m, const struct slm_params *p,
                     struct err *err)
{
    struct mtp *t = calloc(1, sizeof *t);
    enum status st;

    if (!t)
        return err_set(err, ST_NO_MEMORY, "no memory to predict further tokens");
    st = model_load_nextn(&t->model, m->g, m->w, err);
    if (!st) {
        struct kvcache_shape shape = info_kv_shape(t->model, p, m->info.n_back);

        shape.n_checkpoints = 0;
        st = kvcache_open(&t->kv, &shape, m->info.n_ctx, err);
    }
    if (!st)
        st = forward_open(&t->forward, t->model, &t->kv, m->pool, p->isa_mask,
                          p->prefill_sums, m->info.n_batch, m->info.n_sequences, err);
    if (!st)
        st = make_tables(t, m->info.n_sequences, err);
    if (st)
        mtp_close(t);
    else
        *out = t;
    return st;
}

void mtp_close(struct mtp *t)
{
    if (!t)
        return;
    forward_close(t->forward);
    kvcache_close(&t->kv);
    model_free(t->model);
    free(t->seqs);
    free(t->parts);
    free(t->memory);
    free(t->tokens);
    free(t);
}

enum status mtp_rebind(struct mtp *t, struct slm *m, struct err *err)
{
    struct model *reloaded, old = *t->model;
    const enum status st = model_load_nextn(&reloaded, m->g, m->w, err);

    if (st)
        return st;
    *t->model = *reloaded;
    *reloaded = old;
    model_free(reloaded);
    return ST_OK;
}

void mtp_tune(struct mtp *t, const struct slm_tuning *tuning)
{
    forward_tune(t->forward, tuning);
}

/* ---- pairs ----------------------------------------------------------------------- */

static void cut_pairs(struct mtp *t, int seq, int n_pairs)
{
    struct mtp_seq *s = &t->seqs[seq];

    s->n_pairs = n_pairs;
    s->guess = 0;
    kvcache_cut(&t->kv, seq, (size_t)(n_pairs - s->base));
}

/* Guesses are forgotten; what follows them is known by now. */
static void forget_guesses(struct mtp *t, int seq)
{
    if (t->seqs[seq].guess)
        cut_pairs(t, seq, t->seqs[seq].n_pairs);
}

/* Have room for n pairs behind those in the cache, guesses with them. */
static bool reserve(struct slm *m, int seq, int n)
{
    struct mtp *t = m->mtp;
    const struct mtp_seq *s = &t->seqs[seq];
    const int at = s->n_pairs + s->guess - s->base;

    if (at + n > m->info.n_ctx && !m->info.kv_window)
        return false;
    return kvcache_reserve(&t->kv, seq, (size_t)at, (size_t)(at + n));
}

static void run(struct slm *m, const float *hidden, const struct forward_part *parts,
                int n_parts)
{
    const bool decodes = n_parts == 1 && parts->n == 1;

    thread_pool_use(m->pool, decodes ? m->n_threads : m->n_threads_prefill);
    forward_set_hidden(m->mtp->forward, hidden);
    forward_run(m->mtp->forward, parts, n_parts);
}

/* The first pair that is not in the cache, as one of the rows there are; where rows
 * before it are missing, the cache begins again. */
static int first_missing(struct mtp *t, int seq)
{
    struct mtp_seq *s = &t->seqs[seq];

    forget_guesses(t, seq);
    if (s->n_pairs < s->first || s->n_pairs > s->first + s->n) {
        s->base = s->first;
        cut_pairs(t, seq, s->first);
    }
    return s->n_pairs - s->first;
}

/* Evaluate pairs until n_left of those whose rows are there remain; the token that
 * follows the last row is known. False: no room. */
static bool evaluate(struct slm *m, int seq, int n_left)
{
    struct mtp *t = m->mtp;
    struct mtp_seq *s = &t->seqs[seq];

    for (int at = first_missing(t, seq), n; at < s->n - n_left; at += n) {
        n = s->n - n_left - at;
        n = n < m->info.n_batch ? n : m->info.n_batch;
        if (!reserve(m, seq, n))
            return false;
        const struct forward_part part = {.seq = seq,
                                          .tokens = s->tokens + at,
                                          .n = n,
                                          .n_past = s->n_pairs - s->base};

        run(m, s->hidden + (size_t)at * t->stride, &part, 1);
        s->n_pairs += n;
    }
    return true;
}

/* ---- rows ------------------------------------------------------------------------ */

/* The last KEPT rows stay. */
static void drop_rows(struct slm *m, int seq)
{
    struct mtp *t = m->mtp;
    struct mtp_seq *s = &t->seqs[seq];
    const size_t gone = (size_t)(s->n - KEPT);

    evaluate(m, seq, 0);
    memmove(s->hidden, s->hidden + gone * t->stride,
            KEPT * t->stride * sizeof *s->hidden);
    memmove(s->tokens, s->tokens + gone, KEPT * sizeof *s->tokens);
    s->first += (int)gone;
    s->n = KEPT;
}

/* Rows of tokens that are evaluated again are replaced. */
static void keep_part(struct slm *m, const struct forward_part *p, size_t first)
{
    struct mtp *t = m->mtp;
    struct mtp_seq *s = &t->seqs[p->seq];

    forget_guesses(t, p->seq);
    if (p->n_past < s->first || p->n_past > s->first + s->n) {
        s->first = p->n_past;
        s->n = 0;
    }
    s->n = p->n_past - s->first;
    for (int j = 0; j < p->n; j++) {
        if (s->n)
            s->tokens[s->n - 1] = p->tokens[j];
        if (s->n == CAP)
            drop_rows(m, p->seq);
        forward_hidden(m->forward, first + (size_t)j, true,
                       s->hidden + (size_t)s->n++ * t->stride);
    }
}

void mtp_after_pass(struct slm *m, const struct forward_part *parts, int n_parts)
{
    size_t first = 0;

    for (int i = 0; i < n_parts; i++) {
        keep_part(m, &parts[i], first);
        first += (size_t)parts[i].n;
    }
}

/* Pair p holds as long as position p + 1 does. */
void mtp_cut(struct mtp *t, int seq, int n_past)
{
    struct mtp_seq *s = &t->seqs[seq];
    const int pairs = n_past > 0 ? n_past - 1 : 0;

    forget_guesses(t, seq);
    if (s->first + s->n > n_past)
        s->n = n_past > s->first ? n_past - s->first : 0;
    if (s->n_pairs <= pairs)
        return;
    s->base = s->base < pairs ? s->base : pairs;
    cut_pairs(t, seq, pairs);
}

void mtp_fork(struct mtp *t, int from, int to)
{
    const struct mtp_seq *s = &t->seqs[from];
    struct mtp_seq *d = &t->seqs[to];

    forget_guesses(t, from);
    kvcache_fork(&t->kv, from, to, (size_t)(s->n_pairs - s->base));
    memcpy(d->hidden, s->hidden, (size_t)s->n * t->stride * sizeof *d->hidden);
    memcpy(d->tokens, s->tokens, (size_t)s->n * sizeof *d->tokens);
    d->first = s->first;
    d->n = s->n;
    d->base = s->base;
    d->n_pairs = s->n_pairs;
    d->guess = 0;
}

/* ---- guesses --------------------------------------------------------------------- */

/* Add n rows of a sequence to a pass of t->parts. */
static void add_part(struct mtp *t, int seq, const float *rows, const int32_t *tokens,
                     int n, int *n_parts, size_t *n_rows)
{
    const struct mtp_seq *s = &t->seqs[seq];

    memcpy(t->rows + *n_rows * t->stride, rows,
           (size_t)n * t->stride * sizeof *t->rows);
    t->parts[(*n_parts)++] =
        (struct forward_part){.seq = seq,
                              .tokens = tokens,
                              .n = n,
                              .n_past = s->n_pairs + s->guess - s->base,
                              .n_logits = 1};
    *n_rows += (size_t)n;
}

/* The pass of the parts, which are those of the guesses whose logits are not NULL. */
static void guess(struct slm *m, struct mtp_guess *g, int n, int n_parts)
{
    struct mtp *t = m->mtp;
    size_t last = 0;

    if (!n_parts)
        return;
    run(m, t->rows, t->parts, n_parts);
    for (int i = 0, part = 0; i < n; i++) {
        if (!g[i].logits)
            continue;
        last += (size_t)t->parts[part].n;
        forward_hidden(t->forward, last - 1, true, t->seqs[g[i].seq].own);
        g[i].logits = forward_logits(t->forward, (size_t)part++);
    }
}

/* Rows that the sequence brings, the first of them *at; 0: it cannot. */
static int prepare_first(struct slm *m, const struct mtp_guess *g, int most, int *at)
{
    struct mtp *t = m->mtp;
    struct mtp_seq *s = &t->seqs[g->seq];
    int n;

    if (!s->n || s->first + s->n != m->seqs[g->seq].n_past)
        return 0;
    *at = first_missing(t, g->seq);
    /* The last pair may be there already, with another token or the same. */
    if (*at == s->n)
        cut_pairs(t, g->seq, s->n_pairs - 1);
    s->tokens[s->n - 1] = g->id;
    most = most < FEW ? most : FEW;
    if (most < 1 || (s->n - (s->n_pairs - s->first) > most && !evaluate(m, g->seq, 1)))
        return 0;
    *at = s->n_pairs - s->first;
    n = s->n - *at;
    return reserve(m, g->seq, n) ? n : 0;
}

void mtp_first(struct slm *m, struct mtp_guess *g, int n)
{
    struct mtp *t = m->mtp;
    size_t n_rows = 0;
    int n_parts = 0;

    for (int i = 0; i < n; i++) {
        struct mtp_seq *s = t ? &t->seqs[g[i].seq] : NULL;
        /* a row at least is left for each that follows */
        const int most = m->info.n_batch - (int)n_rows - (n - 1 - i);
        int at = 0;
        const int rows = t ? prepare_first(m, &g[i], most, &at) : 0;

        g[i].logits = NULL;
        if (!rows)
            continue;
        g[i].logits = t->rows;
        add_part(t, g[i].seq, s->hidden + (size_t)at * t->stride, s->tokens + at, rows,
                 &n_parts, &n_rows);
        s->n_pairs += rows;
    }
    if (t)
        guess(m, g, n, n_parts);
}

void mtp_next(struct slm *m, struct mtp_guess *g, int n)
{
    struct mtp *t = m->mtp;
    size_t n_rows = 0;
    int n_parts = 0;

    for (int i = 0; i < n; i++) {
        struct mtp_seq *s = &t->seqs[g[i].seq];

        g[i].logits = NULL;
        if ((int)n_rows == m->info.n_batch || !reserve(m, g[i].seq, 1))
            continue;
        g[i].logits = t->rows;
        add_part(t, g[i].seq, s->own, &g[i].id, 1, &n_parts, &n_rows);
        s->guess++;
    }
    guess(m, g, n, n_parts);
}
