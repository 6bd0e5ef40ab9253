/* SPDX-License-Identifier: MIT
 *
 * forward_latent.c - latent attention in the folded form: what is done per head before
 * and after attention over latents
 *
 * A head's key is K c next to a part that all heads share and that is rotated, its
 * value V c, of a position's latent c. Folded, K goes to the query, q'(K c) = (K'q)'c,
 * and V to the result, sum p (V c) = V (sum p c), so that attention reads latents
 * alone. Both are products of a slice per head (k_b, v_b) with that head's part of
 * every token.
 */
#include "engine/forward/forward_impl.h"

#include <string.h>

#include "kernels/activations/activations.h"

/* Columns of every head of all tokens, and where products of them go: a head's are
 * `each` floats behind those of the one before. */
struct per_head {
    const struct matrix *w;
    const float *in;
    size_t in_stride, in_each;
    float *out;
    size_t out_stride, out_each;
    bool in_pairs; /* a column that is quantised is the sum of two */
};

static size_t n_terms(const struct per_head *p)
{
    return p->in_pairs && p->w->act != KERN_ACT_f32 ? FWD_LATENT_TERMS : 1;
}

/* What a quantised column leaves of x[k]. */
static void rest_of(enum kern_act act, const float *x, const unsigned char *column,
                    size_t k, float *rest)
{
    const float *d =
        act == KERN_ACT_q8_32 ? act_q8_32_d(column, k) : act_q8_256_d(column, k);
    const size_t block = act == KERN_ACT_q8_32 ? 32 : 256;

    for (size_t b = 0; b < k / block; b++)
        for (size_t i = b * block; i < (b + 1) * block; i++)
            rest[i] = x[i] - d[b] * (float)act_q(column)[i];
}

/* The columns of a head of n tokens from j on, then their rests. */
static void convert(const struct forward *f, struct fwd_thread *me,
                    const struct per_head *p, size_t head, size_t j, size_t n)
{
    const enum kern_act act = p->w->act;
    const size_t k = p->w->k, bytes = kern_act_bytes(act, k);

    for (size_t i = 0; i < n; i++) {
        const float *x = p->in + (j + i) * p->in_stride + head * p->in_each;

        f->kern.quantize_act[act](x, me->terms + i * bytes, k);
        if (n_terms(p) == 1)
            continue;
        rest_of(act, x, me->terms + i * bytes, k, me->rest);
        f->kern.quantize_act[act](me->rest, me->terms + (n + i) * bytes, k);
    }
}

/* Rows begin .. end-1 of a head's slice times the columns of n tokens from j on. */
static void multiply(const struct forward *f, struct fwd_thread *me,
                     const struct per_head *p, size_t head, size_t j, size_t n,
                     size_t begin, size_t end)
{
    const size_t bytes = kern_act_bytes(p->w->act, p->w->k), n_rows = end - begin;
    float *out = p->out + j * p->out_stride + head * p->out_each + begin;
    float *both = me->products;

    if (n_terms(p) == 1) {
        fwd_product(f, p->w, head, begin, end, n, me->terms, bytes, out, p->out_stride);
        return;
    }
    fwd_product(f, p->w, head, begin, end, FWD_LATENT_TERMS * n, me->terms, bytes, both,
                pad16(n_rows));
    for (size_t i = 0; i < n; i++) {
        memcpy(out + i * p->out_stride, both + i * pad16(n_rows), n_rows * sizeof *out);
        f->kern.add(out + i * p->out_stride, both + (n + i) * pad16(n_rows), n_rows);
    }
}

/* The rows of a slice's part; there are enough parts that all threads have work. */
static size_t rows_of_part(const struct forward *f, const struct matrix *w)
{
    const size_t wanted = 4 * (size_t)thread_pool_size(f->pool);
    const size_t n_parts = (wanted + w->n_slices - 1) / w->n_slices;

    return ((w->n_rows + n_parts - 1) / n_parts + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT;
}

/* How many of n neighbours in memory a thread takes at a time: of one token about a
 * quarter of its share, which it then reads as one stream. */
static size_t items_at_once(const struct forward *f, size_t n)
{
    const size_t n_chunks = 4 * (size_t)thread_pool_size(f->pool);

    return f->n > 1 || n < n_chunks ? 1 : (n + n_chunks - 1) / n_chunks;
}

/* Item i of multiply_heads(): some rows of a head and some tokens. */
static void multiply_item(struct forward *f, struct fwd_thread *me,
                          const struct per_head *p, enum slm_op op, size_t i)
{
    const struct matrix *w = p->w;
    const size_t n = (size_t)f->n, n_tiles = (n + ALONE_COLUMNS - 1) / ALONE_COLUMNS;
    const size_t each = rows_of_part(f, w), n_parts = (w->n_rows + each - 1) / each;
    const size_t head = i / n_tiles / n_parts, begin = i / n_tiles % n_parts * each;
    const size_t end = begin + each < w->n_rows ? begin + each : w->n_rows;
    const size_t j = i % n_tiles * ALONE_COLUMNS;
    const size_t n_here = n - j < ALONE_COLUMNS ? n - j : ALONE_COLUMNS;

    convert(f, me, p, head, j, n_here);
    multiply(f, me, p, head, j, n_here, begin, end);
    fwd_count(me, op, w->fmt, j ? 0 : (uint64_t)(end - begin) * w->row_bytes,
              (uint64_t)(end - begin) * w->k * n_here);
}

/* All products, as part of op: a thread takes some rows of a head and some tokens, and
 * prepares their columns for itself. Ends in a barrier. */
static void multiply_heads(struct forward *f, struct fwd_thread *me,
                           const struct per_head *p, enum slm_op op)
{
    const struct matrix *w = p->w;
    const size_t n_tiles = ((size_t)f->n + ALONE_COLUMNS - 1) / ALONE_COLUMNS;
    const size_t each = rows_of_part(f, w), n_parts = (w->n_rows + each - 1) / each;
    const size_t n = w->n_slices * n_parts * n_tiles, step = items_at_once(f, n);

    for (size_t i; (i = thread_pool_next(f->pool, step)) < n;)
        for (size_t k = i; k < i + step && k < n; k++)
            multiply_item(f, me, p, op, k);
    fwd_lap(me, op, w->fmt);
    fwd_barrier(f, me, op, w->fmt);
}

/* The same as multiply_heads() of k_b, where a file has its transpose: a mix of the
 * rows of keys, by the elements of a query. */
static void mix_rows(struct forward *f, struct fwd_thread *me, const struct per_head *p,
                     const uint16_t *keys)
{
    const struct latent_sizes *s = &f->m->latent;
    const size_t n_key = (size_t)s->key_dim, width = latent_width(s);
    const size_t n_panels = (size_t)s->kv_rank / width, n = (size_t)f->n;
    const size_t n_items = (size_t)f->m->n_heads * n_panels;
    const size_t step = items_at_once(f, n_items);

    for (size_t i; (i = thread_pool_next(f->pool, step)) < n_items;)
        for (size_t k = i; k < i + step && k < n_items; k++) {
            const size_t head = k / n_panels;
            float *out = p->out + head * p->out_each + k % n_panels * width;

            for (size_t j = 0; j < n; j++)
                memset(out + j * p->out_stride, 0, width * sizeof *out);
            f->kern.attn_mix[KERN_KV_f16](n_key, width, keys + k * n_key * width, n,
                                          p->in + head * p->in_each, p->in_stride, out,
                                          p->out_stride);
            fwd_count(me, SLM_OP_QKV, KERN_FMT_f16, n_key * width * sizeof *keys,
                      n_key * width * n);
        }
    fwd_lap(me, SLM_OP_QKV, KERN_FMT_f16);
    fwd_barrier(f, me, SLM_OP_QKV, KERN_FMT_f16);
}

/* The rotated parts of queries, behind what is folded. */
static void copy_rotated(struct forward *f, const struct fwd_thread *me,
                         size_t q_stride, size_t stride)
{
    const struct model *m = f->m;
    const size_t n_rot = (size_t)m->n_rot, key = (size_t)m->latent.key_dim;
    const size_t head_dim = (size_t)m->head_dim, first = (size_t)m->first_rot;

    for (size_t j = (size_t)(me - f->threads); j < (size_t)f->n;
         j += (size_t)thread_pool_size(f->pool))
        for (size_t h = 0; h < (size_t)m->n_heads; h++)
            memcpy(f->query + j * stride + h * head_dim + first,
                   f->q + j * q_stride + h * (key + n_rot) + key, n_rot * sizeof *f->q);
}

void fwd_latent_in(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const struct model *m = f->m;
    const struct latent *lat = &y->lat;
    const bool low_rank = lat->q_a.n_rows > 0;
    const struct fwd_target first[] = {
        {low_rank ? &lat->q_a : &y->wq, NULL, low_rank ? f->q_a : f->q},
        {&y->wk, NULL, f->k}};
    const struct fwd_target second = {&y->wq, NULL, f->q};
    const size_t stride = pad16((size_t)m->n_heads * (size_t)m->head_dim);
    const struct per_head fold = {
        &lat->k_b, f->q,   pad16(y->wq.n_rows), (size_t)(m->latent.key_dim + m->n_rot),
        f->query,  stride, (size_t)m->head_dim, false};

    fwd_project(f, me, f->x, first, 2, fwd_norm_of(&y->attn_norm));
    if (low_rank)
        fwd_project(f, me, f->q_a, &second, 1, &lat->q_norm);
    if (f->hook && lat->kv_b.n_rows)
        fwd_hook_rows(f, me, &lat->kv_b, f->k, pad16(y->wk.n_rows), (size_t)f->n,
                      &lat->kv_norm);
    else if (f->hook)
        fwd_hook_heads(f, me, &lat->k_b, f->q, fold.in_stride, fold.in_each,
                       (size_t)f->n);
    if (f->unfolded)
        return;
    copy_rotated(f, me, fold.in_stride, stride);
    if (lat->kv_b.n_rows)
        mix_rows(f, me, &fold, lat->keys);
    else
        multiply_heads(f, me, &fold, SLM_OP_QKV);
}

/* Unfolded, errors of latents that are quantised to be multiplied with v_b are averaged
 * over positions. Those of a mix are not, so it is quantised more finely. */
void fwd_latent_out(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const struct model *m = f->m;
    const size_t rank = (size_t)m->latent.kv_rank;
    struct per_head unfold = {
        &y->lat.v_b, f->heads,       pad16((size_t)m->n_heads * rank), rank,
        f->attn,     pad16(y->wo.k), (size_t)m->latent.value_dim,      true};

    if (f->n == 1 && fwd_splits(f, y) > 1) {
        fwd_join_splits(f, y, 0, me->row);
        unfold.in = me->row;
    }
    if (f->hook && !y->lat.kv_b.n_rows)
        fwd_hook_heads(f, me, &y->lat.v_b, unfold.in, unfold.in_stride, rank,
                       (size_t)f->n);
    multiply_heads(f, me, &unfold, SLM_OP_ATTN_OUT);
}
