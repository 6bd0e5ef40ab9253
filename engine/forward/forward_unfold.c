/* SPDX-License-Identifier: MIT
 *
 * forward_unfold.c - latent attention of many tokens with keys and values of each head
 *
 * In the folded form (forward_latent.c) a token's query and result of a head are as
 * long as a latent. With the keys and values that latents stand for they are several
 * times shorter, and these must be made, for all heads, of each position: that pays for
 * many tokens of a sequence. A thread makes those of a block of positions and of a head
 * at a time, and uses them for all tokens, so that they need no memory but a few
 * caches'.
 */
#include "engine/forward/forward_impl.h"

#include <math.h>
#include <string.h>

/* Tokens whose scores are kept at a time. */
#define TILE ((size_t)ATTN_QUERIES)

bool fwd_can_unfold(const struct model *m)
{
    return m->latent.kv_rank && m->latent.key_dim % 16 == 0 &&
           m->latent.value_dim % 16 == 0;
}

/* Heads of a thread. */
static size_t heads_each(const struct forward *f)
{
    const size_t n_heads = (size_t)f->m->n_heads;
    const size_t n_threads = (size_t)thread_pool_size(f->pool);

    return (n_heads + n_threads - 1) / n_threads;
}

/* By products of a thread: those of latents with a head's matrices, and those of pairs
 * of positions. */
bool fwd_is_unfolded(const struct forward *f)
{
    const struct latent_sizes *s = &f->m->latent;
    const struct fwd_part *p = &f->parts[0];
    const double n = (double)p->n, pos = (double)p->pos;
    const double pairs = n * pos + n * (n + 1) / 2;
    const double rank = s->kv_rank, both = s->key_dim + s->value_dim;
    const double n_rot = f->m->n_rot, n_threads = thread_pool_size(f->pool);
    const double folded = (double)f->m->n_heads / n_threads *
                          (n * rank * both + pairs * (2 * rank + n_rot));
    const double unfolded =
        (double)heads_each(f) * ((pos + n) * rank * both + pairs * (both + n_rot));

    return fwd_can_unfold(f->m) && f->n_parts == 1 && !f->hook &&
           !f->kv->shape.n_recent && unfolded < folded;
}

/* ---- queries --------------------------------------------------------------------- */

/* Rotated and scaled in place. */
static void turn_queries(struct forward *f, struct fwd_thread *me,
                         const struct layer *y)
{
    const struct model *m = f->m;
    const size_t key = (size_t)m->latent.key_dim, d = key + (size_t)m->n_rot;

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;)
        for (size_t h = 0; h < (size_t)m->n_heads; h++) {
            float *q = f->q + j * pad16(y->wq.n_rows) + h * d;

            fwd_rotate(f, q + key, y->rope, j);
            for (size_t i = 0; i < d; i++)
                q[i] *= m->attn_scale;
        }
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

/* ---- keys and values ------------------------------------------------------------- */

/* A head's k_b as halves, if keys are made from it: row r of [kv_rank][key_dim] is what
 * element r of a latent adds to a key. */
static void open_head(const struct forward *f, struct fwd_thread *me,
                      const struct layer *y, size_t head)
{
    const struct matrix *w = &y->lat.k_b;
    uint16_t *to = f->unfolding + head * w->n_rows * w->k;

    for (size_t r = 0; r < w->n_rows; r++) {
        const void *row = matrix_row(w, head, r);

        if (r < w->panel_rows) {
            f->kern.unpack[w->fmt](
                w->k, matrix_row(w, head, r / KERN_PANEL_ROWS * KERN_PANEL_ROWS),
                r % KERN_PANEL_ROWS, me->terms);
            row = me->terms;
        }
        f->kern.dequantize[w->fmt](row, me->rest, w->k);
        for (size_t i = 0; w->scale && i < w->k; i++)
            me->rest[i] *= matrix_scale(w, head);
        f->kern.to_kv[KERN_KV_f16](to + r * w->k, me->rest, w->k);
    }
}

/* The latents of n positions from t on, and as columns that values are made from. */
static void read_latents(const struct forward *f, struct fwd_thread *me, int layer,
                         size_t t, size_t n)
{
    const struct layer *y = &f->m->layers[layer];
    const struct matrix *w = y->lat.kv_b.n_rows ? &y->lat.kv_b : &y->lat.v_b;
    const size_t stride = pad16((size_t)f->m->head_dim);

    for (size_t i = 0; i < n; i++) {
        float *latent = me->latents + i * stride;

        kvcache_read(f->kv, &f->kern, f->parts[0].seq, y->cached, 0, t + i, latent);
        f->kern.quantize_act[w->act](
            latent, me->latent_columns + i * kern_act_bytes(w->act, w->k), w->k);
    }
}

/* Key and value of each head's row, n positions, to me->unfolded. */
static void multiply(const struct forward *f, struct fwd_thread *me,
                     const struct layer *y, size_t head, size_t n)
{
    const struct latent_sizes *s = &f->m->latent;
    const size_t key = (size_t)s->key_dim, both = key + (size_t)s->value_dim;
    const struct matrix *kv_b = &y->lat.kv_b, *v_b = &y->lat.v_b, *k_b = &y->lat.k_b;

    if (kv_b->n_rows) {
        fwd_product(f, kv_b, 0, head * both, (head + 1) * both, n, me->latent_columns,
                    kern_act_bytes(kv_b->act, kv_b->k), me->unfolded, pad16(both));
        return;
    }
    fwd_product(f, v_b, head, 0, v_b->n_rows, n, me->latent_columns,
                kern_act_bytes(v_b->act, v_b->k), me->unfolded + key, pad16(both));
    for (size_t i = 0; i < n; i++)
        memset(me->unfolded + i * pad16(both), 0, key * sizeof *me->unfolded);
    fwd_attn_mix(f, KERN_KV_f16, n)(
        k_b->n_rows, key, f->unfolding + head * k_b->n_rows * key, n, me->latents,
        pad16((size_t)f->m->head_dim), me->unfolded, pad16(both));
}

/* The same in panels, as a cache of halves has them; rotated parts behind the keys. */
static void make_panels(const struct forward *f, struct fwd_thread *me, size_t n)
{
    const struct latent_sizes *s = &f->m->latent;
    const size_t key = (size_t)s->key_dim, value = (size_t)s->value_dim;
    const size_t d = key + (size_t)f->m->n_rot;
    kern_to_kv_fn *to_halves = f->kern.to_kv[KERN_KV_f16];

    for (size_t i = 0; i < n; i++) {
        const float *row = me->unfolded + i * pad16(key + value);
        uint16_t *to =
            me->keys + i / KVCACHE_PANEL * KVCACHE_PANEL * d + i % KVCACHE_PANEL;

        to_halves(me->halves, row, key);
        to_halves(me->halves + key,
                  me->latents + i * pad16((size_t)f->m->head_dim) + f->m->first_rot,
                  d - key);
        for (size_t e = 0; e < d; e++)
            to[e * KVCACHE_PANEL] = me->halves[e];
        to_halves(me->values + i * value, row + key, value);
    }
}

/* ---- attention ------------------------------------------------------------------- */

/* Tokens j .. j + n - 1 of the part, one head, over the n_block positions from t on. */
static void attend_tile(const struct forward *f, struct fwd_thread *me,
                        const struct layer *y, size_t head, size_t j, size_t n,
                        size_t t, size_t n_block)
{
    const struct latent_sizes *s = &f->m->latent;
    const size_t d = (size_t)(s->key_dim + f->m->n_rot), value = (size_t)s->value_dim;
    const size_t q_stride = pad16(y->wq.n_rows), stride = pad16(y->wo.k);
    float *out = f->attn + j * stride + head * value;
    float *max = f->tops + head * (size_t)f->n_batch,
          *sum = f->sums + head * (size_t)f->n_batch;

    fwd_attn_dot(f, KERN_KV_f16, n)(pad16(n_block) / KVCACHE_PANEL, d, me->keys, n,
                                    f->q + j * q_stride + head * d,
                                    q_stride * sizeof *f->q, me->score, ATTN_BLOCK);
    for (size_t i = 0; i < n; i++) {
        const size_t end = f->parts[0].pos + j + i + 1; /* of what it sees */
        const size_t n_seen = end <= t ? 0 : end - t < n_block ? end - t : n_block;
        const float keep = f->kern.attn_weigh(me->score + i * ATTN_BLOCK, n_seen,
                                              pad16(n_block), &max[j + i], &sum[j + i]);

        for (size_t e = 0; keep != 1.0f && e < value; e++)
            out[i * stride + e] *= keep;
    }
    fwd_attn_mix(f, KERN_KV_f16, n)(n_block, value, me->values, n, me->score,
                                    ATTN_BLOCK, out, stride);
    fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT, 0, n * n_block * (d + value));
}

static void attend_block(const struct forward *f, struct fwd_thread *me, int layer,
                         size_t head, size_t t, size_t n_block)
{
    const struct layer *y = &f->m->layers[layer];
    const struct latent_sizes *s = &f->m->latent;
    const size_t n = (size_t)f->n, pos = f->parts[0].pos;
    const size_t first =
        t > pos ? (t - pos) / TILE * TILE : 0; /* that sees any of it */

    multiply(f, me, y, head, n_block);
    make_panels(f, me, n_block);
    fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT, 0,
              n_block * (size_t)s->kv_rank * (size_t)(s->key_dim + s->value_dim));
    for (size_t j = first; j < n; j += TILE)
        attend_tile(f, me, y, head, j, n - j < TILE ? n - j : TILE, t, n_block);
}

/* Heads begin .. end-1 of all tokens. */
static void attend_heads(struct forward *f, struct fwd_thread *me, int layer,
                         size_t begin, size_t end)
{
    const struct layer *y = &f->m->layers[layer];
    const size_t n = (size_t)f->n, n_pos = f->parts[0].pos + n;
    const size_t value = (size_t)f->m->latent.value_dim, stride = pad16(y->wo.k);

    for (size_t h = begin; h < end; h++) {
        if (!y->lat.kv_b.n_rows)
            open_head(f, me, y, h);
        for (size_t j = 0; j < n; j++) {
            f->tops[h * (size_t)f->n_batch + j] = -INFINITY;
            f->sums[h * (size_t)f->n_batch + j] = 0.0f;
            memset(f->attn + j * stride + h * value, 0, value * sizeof *f->attn);
        }
    }
    for (size_t t = 0; t < n_pos; t += ATTN_BLOCK) {
        const size_t n_block = n_pos - t < ATTN_BLOCK ? n_pos - t : ATTN_BLOCK;

        read_latents(f, me, layer, t, n_block);
        for (size_t h = begin; h < end; h++)
            attend_block(f, me, layer, h, t, n_block);
    }
    for (size_t h = begin; h < end; h++)
        for (size_t j = 0; j < n; j++) {
            const float by = 1.0f / f->sums[h * (size_t)f->n_batch + j];
            float *out = f->attn + j * stride + h * value;

            for (size_t e = 0; e < value; e++)
                out[e] *= by;
        }
}

void fwd_attention_unfolded(struct forward *f, struct fwd_thread *me, int layer)
{
    const size_t n_heads = (size_t)f->m->n_heads, each = heads_each(f);

    turn_queries(f, me, &f->m->layers[layer]);
    fwd_store(f, me, layer);
    for (size_t h; (h = thread_pool_next(f->pool, each)) < n_heads;)
        attend_heads(f, me, layer, h, h + each < n_heads ? h + each : n_heads);
    fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT,
              me == f->threads ? (f->parts[0].pos + f->parts[0].n) *
                                     f->kv->heads[0].key_bytes / KVCACHE_PANEL
                               : 0,
              0);
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
}
