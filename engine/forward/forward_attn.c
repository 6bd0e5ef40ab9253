/* SPDX-License-Identifier: MIT
 *
 * forward_attn.c - attention over the KV cache, block by block
 *
 * The queries that share a KV head are computed together, so each key and value is read
 * once for all of them. Blocks of ATTN_BLOCK positions are joined by the online softmax
 * (Milakov and Gimelshein 2018, arXiv 1805.02867): each query keeps the largest score
 * so far, the sum of weights relative to it, and the mix of values under the same
 * weights.
 *
 * A token sees itself and what came before, in layers with a window only the last
 * positions of that. In an encoder it sees the whole text, which a pass computes at
 * once, or as much ahead as back. Blocks that no query of a tile sees are not read.
 *
 * With a KV cache of the last n_recent positions a token sees the first n_sinks, too.
 * Keys are stored rotated by their positions in the sequence, and a product of rotated
 * vectors depends on the distance of their positions alone, so those of the window need
 * no other rotation however long the sequence is. The sinks would become more distant
 * than the model has ever seen. As in Xiao et al. 2023 (arXiv 2309.17453) they stay
 * right in front of the window: a query is rotated a second time for them, by the
 * position n_sinks + n_recent - 1, which it has within the cache.
 *
 * Keys and values of quantised caches are multiplied by a Hadamard matrix before they
 * are rounded, as in QuaRot (Ashkboos et al. 2024, arXiv 2404.00456): the few elements
 * that are far larger than the others of their block, and would leave these no bits,
 * are spread over the head. Products of queries and keys are the same if both are, and
 * the mix of values is what its own inverse, the same matrix, makes of it.
 */
#include "engine/forward/forward_impl.h"

#include <math.h>
#include <string.h>

/* Split a head's positions only if each part has at least this many. */
#define MIN_SPLIT 256

/* Prefetch of quantised keys, as of weights: the panels of a head follow each other,
 * and only behind its last one what is fetched is of no use. */
static const struct kern_prefetch keys_prefetch = {4096, KERN_PREFETCH_T0, 0};

static int gcd(int a, int b)
{
    while (b) {
        const int r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* Parts into which the positions of a KV head are split among the threads in use, of
 * parts of one token each. */
static int choose_splits(const struct forward *f, int n_kv_heads)
{
    const struct kvcache_shape *s = &f->kv->shape;
    const int n_threads = thread_pool_size(f->pool), n = f->n_parts;
    const int n_pos = (int)f->parts[n - 1].pos + 1; /* of the shortest */
    const int possible =
        (s->n_recent && n_pos > s->n_recent ? s->n_recent : n_pos) / MIN_SPLIT;
    /* so many parts per head that all parts are a multiple of the threads */
    int wanted = n_threads / gcd(n * n_kv_heads, n_threads);

    if (wanted > f->n_splits_max / n)
        wanted = f->n_splits_max / n;
    if (possible <= 1 || wanted <= 1)
        return 1;
    return possible < wanted ? possible : wanted;
}

/* The KV head of a group. */
static int kv_head(const struct forward *f, int layer, int group)
{
    return group / fwd_plan_of(f, layer)->n_groups;
}

/* Into how many groups the queries of a single latent are divided: enough for all
 * threads, where its positions are too few to be split among them. A group reads all of
 * these, so that several are no choice where there are many. */
static int choose_groups(const struct forward *f, int n_splits)
{
    const int n_items = f->n_parts * n_splits, n_threads = thread_pool_size(f->pool);
    int n = 1;

    if (f->m->latent.kv_rank == 0)
        return 1;
    while (n < f->m->n_heads && (f->m->n_heads % n || n * n_items < n_threads))
        n++;
    return n;
}

/* Tokens whose queries of one of n groups are computed together. */
static size_t tile_tokens(const struct forward *f, size_t n)
{
    return (size_t)f->n_queries / ((size_t)f->m->n_heads / n);
}

/* Panels that tokens of a part are in. */
static size_t part_panels(const struct fwd_part *p)
{
    return (p->pos + p->n - 1) / KVCACHE_PANEL - p->pos / KVCACHE_PANEL + 1;
}

/* Plans layers with a window, or those without: kind as in fwd_kind(). */
static void plan_kind(struct forward *f, int kind)
{
    const int n_kv_heads = f->kv->heads[kind].n;
    struct fwd_plan *plan = &f->plans[kind];
    bool single = true;

    for (int i = 0; i < f->n_parts; i++)
        single &= f->parts[i].n == 1;
    plan->n_splits = single ? choose_splits(f, n_kv_heads) : 1;
    plan->n_groups = single ? choose_groups(f, plan->n_splits) : 1;
    f->unfolded = f->m->latent.kv_rank && !single && fwd_is_unfolded(f);

    const size_t n = (size_t)(n_kv_heads * plan->n_groups), tile = tile_tokens(f, n);

    plan->n_store = plan->n_attend = 0;
    for (int i = 0; i < f->n_parts; i++) {
        struct fwd_part *p = &f->parts[i];

        p->store_at[kind] = plan->n_store;
        p->attend_at[kind] = plan->n_attend;
        /* The thread that computes a single token stores it. */
        plan->n_store +=
            p->n == 1 && plan->n_groups == 1 ? 0 : part_panels(p) * (size_t)n_kv_heads;
        plan->n_attend += (p->n + tile - 1) / tile * n * (size_t)plan->n_splits;
    }
}

void fwd_plan_attention(struct forward *f)
{
    for (int kind = 0; kind < 2; kind++)
        plan_kind(f, kind);
}

static void scale_by(float *x, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* ---- what a query sees ----------------------------------------------------------- */

/* The last positions up to its own that it sees in a layer, and the first; window 0:
 * all. And how many it sees ahead. */
struct view {
    size_t window, n_sinks, n_ahead;
};

static struct view view_of(const struct forward *f, int layer)
{
    const struct kvcache_shape *s = &f->kv->shape;
    const bool whole = f->m->layers[layer].cached < kvcache_n_whole(f->kv);

    if (f->m->is_encoder) {
        const size_t reach = (size_t)f->m->layers[layer].window / 2;

        return f->m->layers[layer].window
                   ? (struct view){.window = reach + 1, .n_ahead = reach}
                   : (struct view){.n_ahead = SIZE_MAX};
    }
    return whole ? (struct view){(size_t)s->n_recent, (size_t)s->n_sinks, 0}
                 : (struct view){(size_t)s->window, 0, 0};
}

/* Whether positions between the sinks and the window of a query at pos are hidden. */
static bool has_gap(const struct view *v, size_t pos)
{
    return v->window && pos >= v->n_sinks + v->window;
}

/* The first position of its window; without a gap it sees all. */
static size_t first_seen(const struct view *v, size_t pos)
{
    return has_gap(v, pos) ? pos + 1 - v->window : 0;
}

/* Behind the last position that a query at pos sees of those before end. */
static size_t end_seen(const struct view *v, size_t pos, size_t end)
{
    return pos >= end || v->n_ahead >= end - pos - 1 ? end : pos + 1 + v->n_ahead;
}

/* ---- rotations ------------------------------------------------------------------- */

void fwd_turn_sinks(struct forward *f)
{
    for (int r = 0; f->kv->shape.n_recent && r < f->m->n_ropes; r++)
        rope_turns(&f->m->ropes[r], f->m->arch->pairs, fwd_rope_ctx(f),
                   fwd_rope_ctx(f) - 1, fwd_turn(f, r, (size_t)f->n_batch));
}

/* One head of a query or key of d elements, by the norm of heads if the model has such.
 */
static void normalise(const struct forward *f, float *v, size_t d,
                      const struct norm *norm, int head)
{
    const bool own = f->m->head_norms == HEAD_NORMS_OWN;

    if (!norm->w || f->m->head_norms == HEAD_NORMS_WHOLE)
        return;
    fwd_norm(f, v, v, &(struct norm){.w = norm->w + (own ? (size_t)head * d : 0)}, d);
}

void fwd_rotate(const struct forward *f, float *v, int rope, size_t j)
{
    if (rope == ROPE_NONE)
        return;
    const size_t n_rot = (size_t)f->m->ropes[rope].n_rot;

    if (f->m->arch->pairs == PAIRS_HALVES)
        f->kern.rope_neox(v, fwd_turn(f, rope, j), n_rot);
    else
        f->kern.rope(v, fwd_turn(f, rope, j), n_rot);
}

/* The same of a head in layer y, and rotated by row j of the turns. */
static void turn(const struct forward *f, const struct layer *y, float *v,
                 const struct norm *norm, int head, size_t j)
{
    const struct model *m = f->m;
    const size_t d = (size_t)y->head_dim;

    if (!m->rotates_first)
        normalise(f, v, d, norm, head);
    fwd_rotate(f, v + m->first_rot, y->rope, j);
    if (m->rotates_first)
        normalise(f, v, d, norm, head);
}

void fwd_spread(const struct forward *f, float *v, size_t d)
{
    if (f->spreads)
        f->kern.hadamard(v, d);
}

/* Rotated key and value of token j into the cache, for one head. */
static void store(struct forward *f, const struct fwd_part *p, int layer, int head,
                  size_t j)
{
    const struct layer *y = &f->m->layers[layer];
    const size_t d = (size_t)y->head_dim, stride = pad16(y->wk.n_rows);
    float *k = f->k + j * stride + (size_t)head * d;
    float *v = f->v + j * stride + (size_t)head * d;

    if (y->shares)
        return;
    if (f->m->latent.kv_rank)
        fwd_norm(f, k, k, &y->lat.kv_norm, (size_t)f->m->latent.kv_rank);
    else if (!y->wv.n_rows)
        memcpy(v, k, d * sizeof *v);
    if (y->v_norm.w)
        fwd_norm(f, v, v, &y->v_norm, d);
    turn(f, y, k, &y->k_norm, head, j);
    fwd_spread(f, k, d);
    fwd_spread(f, v, d);
    kvcache_store(f->kv, &f->kern, p->seq, y->cached, head, (size_t)f->pos[j], k, v);
}

/* What scales a query at pos, or, if it sees only a part of the sequence, at the last
 * position of that. */
static float temperature(const struct forward *f, int pos)
{
    const int last = fwd_rope_ctx(f) - 1, at = pos < last ? pos : last;

    if (f->m->temperature_span == 0)
        return 1.0f;
    return 1.0f + f->m->temperature * logf(1.0f + (float)(at / f->m->temperature_span));
}

/* Queries of n tokens from j on that share a KV head, rotated, token by token, and
 * scaled in place of the scores; for the sinks rotated as these are seen. */
static void gather(struct forward *f, struct fwd_thread *me, int layer, int head,
                   size_t j, size_t n, bool for_sinks)
{
    const struct model *m = f->m;
    const struct layer *y = &m->layers[layer];
    const struct view view = view_of(f, layer);
    const size_t d = (size_t)y->head_dim, group = fwd_group_of(f, layer);
    const float *src = f->query ? f->query : f->q;
    const size_t stride = pad16(f->query ? (size_t)m->n_heads * d : y->wq.n_rows);
    const size_t each = m->gated_queries ? 2 * d : d;
    const size_t key_dim = fwd_heads_of(f, layer)->key_dim;

    for (size_t i = 0; i < n * group; i++) {
        const size_t token = j + i / group, q = (size_t)head * group + i % group;
        float *dst = me->query + i * pad16(key_dim);

        memcpy(dst, src + token * stride + q * each, d * sizeof *dst);
        memset(dst + d, 0, (key_dim - d) * sizeof *dst);
        turn(f, y, dst, &y->q_norm, (int)q,
             for_sinks && has_gap(&view, (size_t)f->pos[token]) ? (size_t)f->n_batch
                                                                : token);
        fwd_spread(f, dst, d);
        scale_by(dst, d, m->attn_scale * temperature(f, f->pos[token]));
        if (me->query_q8)
            f->kern.quantize_act[KERN_ACT_q8_32](
                dst, me->query_q8 + i * kern_act_bytes(KERN_ACT_q8_32, key_dim),
                key_dim);
    }
}

/* Nothing is mixed yet, of n queries: but the scores of their heads' sinks,
 * sink[group], unless that is NULL. */
static void begin_mix(const struct forward *f, struct fwd_thread *me, int layer,
                      size_t n, const float *sink)
{
    const size_t group = fwd_group_of(f, layer);

    for (size_t i = 0; i < n; i++) {
        me->max[i] = sink ? sink[i % group] : -INFINITY;
        me->sum[i] = sink ? 1.0f : 0.0f;
    }
    memset(me->mix, 0, n * fwd_heads_of(f, layer)->value_dim * sizeof *me->mix);
}

/* Scores of n queries against the n_panels panels from `keys` on. */
static void score(const struct forward *f, struct fwd_thread *me, size_t key_dim,
                  size_t n, const void *keys, size_t n_panels)
{
    const enum kern_kv type = f->kv->shape.type;
    const void *query = me->query_q8 ? (const void *)me->query_q8 : me->query;
    const size_t stride = me->query_q8 ? kern_act_bytes(KERN_ACT_q8_32, key_dim)
                                       : pad16(key_dim) * sizeof(float);
    kern_gemm_x16_fn *product = f->kern.gemm_x16[kern_kv_format(type)];

    /* Quantised keys have the layout of rows of weights. */
    if (me->query_q8 && product)
        product(n_panels, key_dim, keys, n, query, stride, me->score, ATTN_BLOCK,
                keys_prefetch);
    else
        fwd_attn_dot(f, type, n)(n_panels, key_dim, keys, n, query, stride, me->score,
                                 ATTN_BLOCK);
}

/* Turn query i's scores of positions t .. t + n - 1, of which it sees first .. end-1,
 * into weights relative to the largest score so far, and rescale the mix so far to it.
 * n is a multiple of 16. */
static void weigh(const struct forward *f, struct fwd_thread *me, size_t value_dim,
                  size_t i, size_t t, size_t n, size_t first, size_t end)
{
    const size_t n_seen = end <= t ? 0 : end - t < n ? end - t : n;
    const size_t n_hidden = first <= t ? 0 : first - t < n_seen ? first - t : n_seen;
    float *s = me->score + i * ATTN_BLOCK;

    if (f->m->attn_softcap > 0.0f)
        f->kern.softcap(s, n_seen, f->m->attn_softcap);

    for (size_t k = 0; k < n_hidden; k++)
        s[k] = -INFINITY;
    const float keep = f->kern.attn_weigh(s, n_seen, n, &me->max[i], &me->sum[i]);

    if (keep != 1.0f)
        scale_by(me->mix + i * value_dim, value_dim, keep);
}

/* Which positions a scan is for: all that a query sees, only the sinks, or the others.
 */
enum scan { SCAN_ALL, SCAN_SINKS, SCAN_OTHERS };

/* Add the values of n positions from t on, in a run, with the weights of n_queries. */
static void mix(const struct forward *f, struct fwd_thread *me, int seq, int cached,
                int head, size_t t, size_t n, size_t n_queries)
{
    const enum kern_kv type = f->kv->shape.type;
    const struct kvcache_heads *h = kvcache_heads(f->kv, cached);

    if (f->kv->shape.n_latent)
        fwd_attn_mix_keys(f, type, n_queries)(
            n, h->value_dim, h->key_dim, kvcache_k(f->kv, seq, cached, head, t),
            n_queries, me->score, ATTN_BLOCK, me->mix, h->value_dim);
    else
        fwd_attn_mix(f, type, n_queries)(
            n, h->value_dim, kvcache_v(f->kv, seq, cached, head, t), n_queries,
            me->score, ATTN_BLOCK, me->mix, h->value_dim);
}

/* Attention of the gathered queries of n tokens of a sequence, the first at position
 * pos, over positions begin .. end-1 of one KV head; begin is a multiple of 16. */
static void attend(const struct forward *f, struct fwd_thread *me, int seq, int layer,
                   int head, size_t n, size_t pos, size_t begin, size_t end,
                   enum scan what)
{
    const struct kvcache_heads *h = fwd_heads_of(f, layer);
    const size_t group = fwd_group_of(f, layer);
    const struct view view = view_of(f, layer);
    const size_t from = what == SCAN_OTHERS ? view.n_sinks : 0;
    const int cached = f->m->layers[layer].cached;

    for (size_t t = begin, n_block; t < end; t += n_block) {
        n_block = end - t < ATTN_BLOCK ? end - t : ATTN_BLOCK;
        n_block = kvcache_run(f->kv, cached, t, n_block);
        score(f, me, h->key_dim, n * group, kvcache_k(f->kv, seq, cached, head, t),
              pad16(n_block) / KVCACHE_PANEL);
        for (size_t i = 0; i < n * group; i++) {
            const size_t at = pos + i / group;
            const size_t first = what == SCAN_SINKS ? 0 : first_seen(&view, at);

            weigh(f, me, h->value_dim, i, t, pad16(n_block),
                  first > from ? first : from, end_seen(&view, at, end));
        }
        mix(f, me, seq, cached, head, t, n_block, n * group);
        fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT,
                  n_block * (h->key_bytes + h->value_bytes) / KVCACHE_PANEL,
                  n * group * n_block * (h->key_dim + h->value_dim));
    }
}

void fwd_gate_head(const struct forward *f, const struct layer *y, size_t q, size_t j,
                   float *out)
{
    const size_t d = (size_t)y->head_dim;
    const float *gate = f->q + j * pad16(y->wq.n_rows) + (2 * q + 1) * d;

    for (size_t i = 0; f->m->gated_queries && i < d; i++)
        out[i] /= 1.0f + expf(-gate[i]);
}

/* The gathered queries' results to heads, for tokens j on. */
static void finish(struct forward *f, struct fwd_thread *me, int layer, int head,
                   size_t j, size_t n)
{
    const struct layer *y = &f->m->layers[layer];
    const size_t d = fwd_result_dim(f, y), group = fwd_group_of(f, layer);
    const size_t stride = pad16((size_t)f->m->n_heads * d);
    const size_t value_dim = fwd_heads_of(f, layer)->value_dim;

    for (size_t i = 0; i < n * group; i++) {
        float *dst = f->heads + (j + i / group) * stride +
                     ((size_t)head * group + i % group) * d;

        memcpy(dst, me->mix + i * value_dim, d * sizeof *dst);
        scale_by(dst, d, 1.0f / me->sum[i]);
        fwd_spread(f, dst, d);
        fwd_gate_head(f, y, (size_t)head * group + i % group, j + i / group, dst);
    }
}

/* Attention of n tokens from j on over one head's positions begin .. end-1, and with
 * sinks over these, which hides them there. The first part of the positions has the
 * score of the head's own sink. */
static void attend_tile(struct forward *f, struct fwd_thread *me,
                        const struct fwd_part *p, int layer, int head, size_t j,
                        size_t n, size_t begin, size_t end, bool is_first,
                        bool with_sinks)
{
    const size_t pos = (size_t)f->pos[j];
    const size_t group = fwd_group_of(f, layer);
    const float *sink = f->m->layers[layer].sink;

    begin_mix(f, me, layer, n * group,
              is_first && sink ? sink + (size_t)head * group : NULL);
    if (with_sinks) {
        gather(f, me, layer, head, j, n, true);
        attend(f, me, p->seq, layer, kv_head(f, layer, head), n, pos, 0,
               view_of(f, layer).n_sinks, SCAN_SINKS);
    }
    gather(f, me, layer, head, j, n, false);
    attend(f, me, p->seq, layer, kv_head(f, layer, head), n, pos, begin, end,
           with_sinks ? SCAN_OTHERS : SCAN_ALL);
}

/* ---- work items: heads, or parts of heads, of a token; tiles of several ---------- */

/* A single token's head, or part `split` of its positions. */
static void attend_one(struct forward *f, struct fwd_thread *me,
                       const struct fwd_part *p, int layer, int head, int split)
{
    const struct view view = view_of(f, layer);
    const size_t from = first_seen(&view, p->pos) / KVCACHE_PANEL * KVCACHE_PANEL;
    const int n_splits = fwd_splits(f, &f->m->layers[layer]);
    size_t begin, end;

    thread_pool_share(p->pos + 1 - from, KVCACHE_PANEL, split, n_splits, &begin, &end);
    /* Only one part reads the new position, so no other thread waits. */
    if (fwd_plan_of(f, layer)->n_groups == 1 && begin < end && from + end == p->pos + 1)
        store(f, p, layer, head, p->first);
    attend_tile(f, me, p, layer, head, p->first, 1, from + begin, from + end,
                split == 0, view.n_sinks && has_gap(&view, p->pos) && split == 0);
    if (n_splits > 1)
        fwd_keep_partial(f, me, layer, p->first, head, split);
    else
        finish(f, me, layer, head, p->first, 1);
}

/* Tile number i of a head, from the last one, which sees the most positions, on. */
static void attend_several(struct forward *f, struct fwd_thread *me,
                           const struct fwd_part *p, int layer, int head, size_t i)
{
    const struct view view = view_of(f, layer);
    const size_t tile = tile_tokens(f, fwd_n_groups(f, layer)),
                 n_tiles = (p->n + tile - 1) / tile;
    const size_t at = (n_tiles - 1 - i) * tile;
    const size_t n = p->n - at < tile ? p->n - at : tile;
    const size_t pos = p->pos + at, from = first_seen(&view, pos);

    attend_tile(f, me, p, layer, head, p->first + at, n,
                from / KVCACHE_PANEL * KVCACHE_PANEL,
                end_seen(&view, pos + n - 1, p->pos + p->n), true,
                view.n_sinks && has_gap(&view, pos + n - 1));
    finish(f, me, layer, head, p->first + at, n);
}

/* Write keys and values of a part's tokens to the cache. Threads take whole panels of a
 * head: neighbours in a panel share cache lines. */
static void store_panel(struct forward *f, const struct fwd_part *p, int layer,
                        size_t item)
{
    const size_t n_heads = (size_t)fwd_heads_of(f, layer)->n;
    const size_t at = (p->pos / KVCACHE_PANEL + item / n_heads) * KVCACHE_PANEL;
    const size_t end = p->pos + p->n;
    const size_t to = at + KVCACHE_PANEL < end ? at + KVCACHE_PANEL : end;

    for (size_t pos = at < p->pos ? p->pos : at; pos < to; pos++)
        store(f, p, layer, (int)(item % n_heads), p->first + pos - p->pos);
}

void fwd_store(struct forward *f, struct fwd_thread *me, int layer)
{
    const struct fwd_part *p = f->parts, *last = p + f->n_parts - 1;
    const int kind = fwd_kind(f, &f->m->layers[layer]);
    const size_t n_items = f->plans[kind].n_store;

    for (size_t item; (item = thread_pool_next(f->pool, 1)) < n_items;) {
        while (p < last && item >= p[1].store_at[kind])
            p++;
        store_panel(f, p, layer, item - p->store_at[kind]);
    }
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
}

void fwd_attention(struct forward *f, struct fwd_thread *me, int layer)
{
    const struct fwd_part *p = f->parts, *last = p + f->n_parts - 1;
    const struct layer *y = &f->m->layers[layer];
    const size_t n_heads = fwd_n_groups(f, layer), n_splits = (size_t)fwd_splits(f, y);
    const int kind = fwd_kind(f, y);
    const struct fwd_plan *plan = &f->plans[kind];

    if (plan->n_store && !y->shares)
        fwd_store(f, me, layer);
    for (size_t item; (item = thread_pool_next(f->pool, 1)) < plan->n_attend;) {
        while (p < last && item >= p[1].attend_at[kind])
            p++;
        const size_t i = item - p->attend_at[kind];

        if (p->n == 1)
            attend_one(f, me, p, layer, (int)(i / n_splits), (int)(i % n_splits));
        else
            attend_several(f, me, p, layer, (int)(i % n_heads), i / n_heads);
    }
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
    if (f->n > 1 && n_splits > 1)
        fwd_join_tokens(f, me, layer);
}
