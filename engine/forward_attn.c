/* SPDX-License-Identifier: MIT
 *
 * forward_attn.c - causal attention over the KV cache, block by block
 *
 * The queries that share a KV head are taken together, so each key and value is
 * read once for all of them. Positions come in blocks of ATTN_BLOCK, joined by
 * the online softmax (Milakov and Gimelshein 2018, arXiv 1805.02867): per query
 * we carry the largest score M so far, the sum L of exp(s - M), and the mix O of
 * values under the same weights.
 *
 * Within a block the softmax kernel gives p = exp(s - m) / l, m the block's
 * largest score. Its own largest value is exp(0) / l, which gives l back without
 * a second round of exponentials.
 */
#include "engine/forward_impl.h"

#include <math.h>
#include <string.h>

/* Split a head's positions only where each part gets at least this many. */
#define MIN_SPLIT 256

static int gcd(int a, int b)
{
    while (b) {
        const int r = a % b;

        a = b;
        b = r;
    }
    return a;
}

int fwd_choose_splits(const struct forward *f, int n_pos)
{
    const int n_members = team_size(f->team);
    const int possible = n_pos / MIN_SPLIT;
    /* as many parts per head as make all parts a multiple of the members */
    const int wanted = n_members / gcd(f->m->n_kv_heads, n_members);

    if (possible <= 1)
        return 1;
    return possible < wanted ? possible : wanted;
}

/* Eight independent maxima: one chain of comparisons would wait for itself. */
static float max_of(const float *x, size_t n)
{
    float best[8];
    size_t i = 0;

    for (int k = 0; k < 8; k++)
        best[k] = -INFINITY;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            best[k] = x[i + (size_t)k] > best[k] ? x[i + (size_t)k] : best[k];
    for (; i < n; i++)
        best[0] = x[i] > best[0] ? x[i] : best[0];
    for (int k = 1; k < 8; k++)
        best[0] = best[k] > best[0] ? best[k] : best[0];
    return best[0];
}

static void scale_by(float *x, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* Rotated key and value of token j into the cache, for one head. */
static void store(struct forward *f, int layer, int head, size_t j)
{
    const struct model *m = f->m;
    const size_t d = (size_t)m->head_dim;
    const size_t stride = pad16((size_t)m->n_kv_heads * d);
    const size_t at = ((size_t)f->n_past + j) * d;
    float *k = f->k + j * stride + (size_t)head * d;
    const float *v = f->v + j * stride + (size_t)head * d;

    f->kern.rope(k, f->turn + j * pad16((size_t)m->n_rot), (size_t)m->n_rot);
    f->kern.to_f16(kvcache_k(f->kv, layer, head) + at, k, d);
    f->kern.to_f16(kvcache_v(f->kv, layer, head) + at, v, d);
}

/* Queries of n tokens from j on that share a KV head, rotated, token by token. */
static void gather(struct forward *f, struct fwd_member *me, int head, size_t j,
                   size_t n)
{
    const struct model *m = f->m;
    const size_t d = (size_t)m->head_dim, group = (size_t)(m->n_heads / m->n_kv_heads);
    const size_t stride = pad16((size_t)m->n_heads * d);

    for (size_t i = 0; i < n * group; i++) {
        const size_t token = j + i / group, q = (size_t)head * group + i % group;
        float *dst = me->query + i * pad16(d);

        memcpy(dst, f->q + token * stride + q * d, d * sizeof *dst);
        f->kern.rope(dst, f->turn + token * pad16((size_t)m->n_rot), (size_t)m->n_rot);
        me->max[i] = -INFINITY;
        me->sum[i] = 0.0f;
        memset(me->mix + i * pad16(d), 0, d * sizeof *dst);
    }
}

/* Turn query i's scores of a block, of which it sees the first n_seen, into
 * weights relative to the largest score so far, and bring what was mixed before
 * to that level. */
static void weigh_block(const struct forward *f, struct fwd_member *me, size_t i,
                        size_t n_seen, size_t n_block)
{
    float *s = me->score + i * ATTN_BLOCK;

    memset(s + n_seen, 0, (n_block - n_seen) * sizeof *s);
    if (n_seen == 0)
        return;
    const float block_max = max_of(s, n_seen);
    const float new_max = block_max > me->max[i] ? block_max : me->max[i];
    const float keep = expf(me->max[i] - new_max);

    f->kern.softmax(s, n_seen);
    const float weight = expf(block_max - new_max) / max_of(s, n_seen);

    scale_by(s, n_seen, weight);
    if (keep != 1.0f)
        scale_by(me->mix + i * pad16((size_t)f->m->head_dim), (size_t)f->m->head_dim,
                 keep);
    me->sum[i] = me->sum[i] * keep + weight;
    me->max[i] = new_max;
}

/* Attend to positions begin..end-1 of one head with the n gathered queries. The
 * first token of them sees positions below n_seen, each further token one more. */
static void attend(const struct forward *f, struct fwd_member *me, int layer, int head,
                   size_t n, size_t n_seen, size_t begin, size_t end)
{
    const struct model *m = f->m;
    const size_t d = (size_t)m->head_dim, group = (size_t)(m->n_heads / m->n_kv_heads);
    const uint16_t *k = kvcache_k(f->kv, layer, head);
    const uint16_t *v = kvcache_v(f->kv, layer, head);
    const float scale = 1.0f / sqrtf((float)d);

    for (size_t t = begin; t < end; t += ATTN_BLOCK) {
        const size_t n_block = end - t < ATTN_BLOCK ? end - t : ATTN_BLOCK;

        f->kern.attn_dot(me->score, ATTN_BLOCK, me->query, pad16(d), k + t * d, d, n,
                         n_block, d, scale);
        for (size_t i = 0; i < n; i++) {
            const size_t limit = n_seen + i / group;
            const size_t seen = limit > t ? limit - t : 0;

            weigh_block(f, me, i, seen < n_block ? seen : n_block, n_block);
        }
        f->kern.attn_mix(me->mix, pad16(d), me->score, ATTN_BLOCK, v + t * d, d, n,
                         n_block, d);
        fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT, 4 * n_block * d,
                  2 * n * n_block * d);
    }
}

/* The gathered queries' results to attn, for tokens j on. */
static void finish(struct forward *f, struct fwd_member *me, int head, size_t j,
                   size_t n)
{
    const struct model *m = f->m;
    const size_t d = (size_t)m->head_dim, group = (size_t)(m->n_heads / m->n_kv_heads);
    const size_t stride = pad16((size_t)m->n_heads * d);

    for (size_t i = 0; i < n * group; i++) {
        float *dst =
            f->attn + (j + i / group) * stride + ((size_t)head * group + i % group) * d;

        memcpy(dst, me->mix + i * pad16(d), d * sizeof *dst);
        scale_by(dst, d, 1.0f / me->sum[i]);
    }
}

/* ---- one token: heads, or parts of heads ------------------------------------ */

static float *partial_of(const struct forward *f, size_t q, int split)
{
    return f->partial + (q * (size_t)f->n_splits_max + (size_t)split) *
                            pad16((size_t)f->m->head_dim + 2);
}

static void keep_partial(struct forward *f, const struct fwd_member *me, int head,
                         int split)
{
    const size_t d = (size_t)f->m->head_dim;
    const size_t group = (size_t)(f->m->n_heads / f->m->n_kv_heads);

    for (size_t i = 0; i < group; i++) {
        float *dst = partial_of(f, (size_t)head * group + i, split);

        memcpy(dst, me->mix + i * pad16(d), d * sizeof *dst);
        dst[d] = me->max[i];
        dst[d + 1] = me->sum[i];
    }
}

void fwd_join_splits(const struct forward *f, float *out)
{
    const size_t d = (size_t)f->m->head_dim;

    for (size_t q = 0; q < (size_t)f->m->n_heads; q++) {
        float *dst = out + q * d;
        float max = -INFINITY, sum = 0.0f;

        for (int s = 0; s < f->n_splits; s++)
            max = partial_of(f, q, s)[d] > max ? partial_of(f, q, s)[d] : max;
        memset(dst, 0, d * sizeof *dst);
        for (int s = 0; s < f->n_splits; s++) {
            const float *part = partial_of(f, q, s);
            const float weight = expf(part[d] - max);

            for (size_t i = 0; i < d; i++)
                dst[i] += weight * part[i];
            sum += weight * part[d + 1];
        }
        scale_by(dst, d, 1.0f / sum);
    }
}

static void attend_one(struct forward *f, struct fwd_member *me, int layer)
{
    const size_t n_pos = (size_t)f->n_past + 1;
    const size_t n_items = (size_t)f->m->n_kv_heads * (size_t)f->n_splits;
    const size_t group = (size_t)(f->m->n_heads / f->m->n_kv_heads);

    for (size_t item; (item = team_next(f->team, 1)) < n_items;) {
        const int head = (int)(item / (size_t)f->n_splits);
        const int split = (int)(item % (size_t)f->n_splits);
        size_t begin, end;

        team_share(n_pos, 1, split, f->n_splits, &begin, &end);
        /* Only the last part reads the new position, so nobody else waits. */
        if (end == n_pos)
            store(f, layer, head, 0);
        gather(f, me, head, 0, 1);
        attend(f, me, layer, head, group, n_pos, begin, end);
        if (f->n_splits > 1)
            keep_partial(f, me, head, split);
        else
            finish(f, me, head, 0, 1);
    }
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
}

/* ---- several tokens: tiles of a head's queries ------------------------------- */

static void attend_batch(struct forward *f, struct fwd_member *me, int layer)
{
    const struct model *m = f->m;
    const size_t n = (size_t)f->n, group = (size_t)(m->n_heads / m->n_kv_heads);
    const size_t tile = (size_t)f->n_queries / group; /* tokens */
    const size_t n_tiles = (n + tile - 1) / tile;

    for (size_t j; (j = team_next(f->team, 1)) < n;)
        for (int head = 0; head < m->n_kv_heads; head++)
            store(f, layer, head, j);
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);

    for (size_t item;
         (item = team_next(f->team, 1)) < n_tiles * (size_t)m->n_kv_heads;) {
        const int head = (int)(item % (size_t)m->n_kv_heads);
        /* The last tile sees most: long items first. */
        const size_t j = (n_tiles - 1 - item / (size_t)m->n_kv_heads) * tile;
        const size_t n_tokens = n - j < tile ? n - j : tile;
        const size_t n_seen = (size_t)f->n_past + j + 1;

        gather(f, me, head, j, n_tokens);
        attend(f, me, layer, head, n_tokens * group, n_seen, 0, n_seen + n_tokens - 1);
        finish(f, me, head, j, n_tokens);
    }
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
}

void fwd_attention(struct forward *f, struct fwd_member *me, int layer)
{
    if (f->n == 1)
        attend_one(f, me, layer);
    else
        attend_batch(f, me, layer);
}
