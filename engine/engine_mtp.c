/* SPDX-License-Identifier: MIT
 *
 * engine_mtp.c - the layer that predicts the token after the next
 *
 * Positions are the model's. Pair p is the hidden state of position p and the token at
 * p + 1; pairs base .. n_pairs-1 are in the layer's cache, pair p at its position
 * p - base.
 */
#include "engine/mtp.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine_impl.h"

/* Positions whose hidden states are kept behind the last pass at least, so that a short
 * text can be taken back. */
#define KEPT 64

struct mtp {
    struct model *model;
    struct kvcache kv;
    struct forward *forward;
    size_t stride;
    float *hidden;   /* [cap][stride] of positions first .. first+n-1 */
    int32_t *tokens; /* [cap] at first+1 ..; the last is unknown yet */
    int first, n, cap;
    int base, n_pairs;
    float *own; /* [stride] the layer's own, of the last guess, behind its last norm */
    int n_run;  /* pairs of the last pass */
    int guess;  /* pairs of guesses behind n_pairs */
};

uint64_t mtp_bytes(const struct model *m, const struct slm_params *p,
                   const struct slm_info *info)
{
    const struct kvcache_shape shape = info_kv_shape(m, p, info->n_back);
    const uint64_t row = ((uint64_t)m->n_embd + 15) / 16 * 64 + sizeof(int32_t);
    uint64_t kv = 0;

    kvcache_bytes(&kv, &shape, info->n_ctx);
    return kv + m->vector_bytes + row * ((uint64_t)info->n_batch + 2 * KEPT + 1) +
           forward_bytes(m, info->kv_type, info->n_batch, 1, 1, slm_params_threads(p));
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
        const struct kvcache_shape shape = info_kv_shape(t->model, p, m->info.n_back);

        st = kvcache_open(&t->kv, &shape, m->info.n_ctx, err);
    }
    if (!st)
        st = forward_open(&t->forward, t->model, &t->kv, m->pool, p->isa_mask,
                          m->info.n_batch, 1, err);
    if (!st) {
        t->stride = forward_stride(t->forward);
        t->cap = m->info.n_batch + 2 * KEPT;
        t->hidden = calloc((size_t)t->cap, t->stride * sizeof *t->hidden);
        t->tokens = calloc((size_t)t->cap, sizeof *t->tokens);
        t->own = calloc(t->stride, sizeof *t->own);
        if (!t->hidden || !t->tokens || !t->own)
            st = err_set(err, ST_NO_MEMORY, "no memory for hidden states");
    }
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
    free(t->hidden);
    free(t->tokens);
    free(t->own);
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

void mtp_set_pool(struct mtp *t, struct thread_pool *pool)
{
    forward_set_pool(t->forward, pool);
}

void mtp_tune(struct mtp *t, const struct slm_tuning *tuning)
{
    forward_tune(t->forward, tuning);
}

/* Guesses are forgotten; what follows them is known by now. */
static void forget_guesses(struct mtp *t)
{
    if (t->guess)
        kvcache_cut(&t->kv, 0, (size_t)(t->n_pairs - t->base));
    t->guess = 0;
}

/* One pass over n pairs behind those in the cache. */
static bool run(struct slm *m, const float *hidden, const int32_t *tokens, int n,
                int n_logits)
{
    struct mtp *t = m->mtp;
    const int at = t->n_pairs + t->guess - t->base;

    if (at + n > slm_info(m)->n_ctx && !slm_info(m)->kv_window)
        return false;
    if (!kvcache_reserve(&t->kv, 0, (size_t)at, (size_t)(at + n)))
        return false;
    thread_pool_use(m->pool, n == 1 ? m->n_threads : m->n_threads_prefill);
    forward_set_hidden(t->forward, hidden);
    forward_run(t->forward, &(struct forward_part){0, tokens, n, at, n_logits}, 1);
    t->n_run = n;
    return true;
}

/* Evaluate pairs up to that of the last position, whose next token is `next`. False:
 * there is nothing to continue from. */
static bool catch_up(struct slm *m, int32_t next, int n_logits)
{
    struct mtp *t = m->mtp;
    const int end = t->first + t->n;

    forget_guesses(t);
    if (!t->n)
        return false;
    if (t->n_pairs < t->first || t->n_pairs > end ||
        end - t->n_pairs > m->info.n_batch) {
        /* a gap: begin again */
        t->base = t->n_pairs = end - 1;
        kvcache_cut(&t->kv, 0, 0);
    }
    t->tokens[t->n - 1] = next;
    const int skip = t->n_pairs - t->first, n = t->n - skip;

    if (n <= 0)
        return false;
    if (!run(m, t->hidden + (size_t)skip * t->stride, t->tokens + skip, n, n_logits))
        return false;
    t->n_pairs += n;
    return true;
}

void mtp_before_pass(struct slm *m, const int32_t *tokens, int n_past)
{
    struct mtp *t = m->mtp;

    if (t->n && t->first + t->n == n_past && t->n_pairs < n_past)
        catch_up(m, tokens[0], 0);
    forget_guesses(t);
}

/* Keep the rows that end where the next n begin, or the last of them. */
static void make_room(struct mtp *t, int n, int n_past)
{
    const bool joins = t->n && n_past >= t->first && n_past <= t->first + t->n;
    int kept = joins ? n_past - t->first : 0, gone = 0;

    if (kept + n > t->cap)
        gone = kept > KEPT ? kept - KEPT : 0;
    kept -= gone;
    if (gone) {
        memmove(t->hidden, t->hidden + (size_t)gone * t->stride,
                (size_t)kept * t->stride * sizeof *t->hidden);
        memmove(t->tokens, t->tokens + gone, (size_t)kept * sizeof *t->tokens);
    }
    t->first = n_past - kept;
    t->n = kept;
}

void mtp_after_pass(struct slm *m, const int32_t *tokens, int n, int n_past)
{
    struct mtp *t = m->mtp;

    make_room(t, n, n_past);
    for (int j = 0; j < n; j++) {
        const size_t at = (size_t)(t->n + j);

        forward_hidden(m->forward, (size_t)j, true, t->hidden + at * t->stride);
        t->tokens[at] = j + 1 < n ? tokens[j + 1] : 0;
    }
    if (t->n)
        t->tokens[t->n - 1] = tokens[0];
    t->n += n;
}

/* Pair p holds as long as position p + 1 does. */
void mtp_cut(struct mtp *t, int n_past)
{
    const int pairs = n_past > 0 ? n_past - 1 : 0;

    forget_guesses(t);
    if (t->first + t->n > n_past)
        t->n = n_past > t->first ? n_past - t->first : 0;
    if (t->n_pairs <= pairs)
        return;
    t->n_pairs = pairs > t->base ? pairs : t->base;
    kvcache_cut(&t->kv, 0, (size_t)(t->n_pairs - t->base));
}

const float *mtp_first(struct slm *m, int32_t id)
{
    struct mtp *t = m->mtp;

    if (!t || t->first + t->n != slm_n_past(m))
        return NULL;
    /* The last pair may be there already, with another token or the same. */
    if (t->n && t->n_pairs == t->first + t->n) {
        t->n_pairs--;
        kvcache_cut(&t->kv, 0, (size_t)(t->n_pairs - t->base));
    }
    if (!catch_up(m, id, 1))
        return NULL;
    forward_hidden(t->forward, (size_t)t->n_run - 1, true, t->own);
    return forward_logits(t->forward, 0);
}

const float *mtp_next(struct slm *m, int32_t id)
{
    struct mtp *t = m->mtp;

    if (!run(m, t->own, &id, 1, 1))
        return NULL;
    t->guess++;
    forward_hidden(t->forward, 0, true, t->own);
    return forward_logits(t->forward, 0);
}
