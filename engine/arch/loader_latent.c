/* SPDX-License-Identifier: MIT
 *
 * loader_latent.c - latent attention: its sizes, and files that have the matrices of
 *                   keys and values in one
 *
 * Such a matrix, kv_b, has for each head the rows of its key, then those of its value.
 * The rows of values are v_b as they are: a view. Those of keys make a key from a
 * latent, and what is compared with latents is made from a query by their sum, each
 * times an element of the query: blocks of quantised weights lie along what is not
 * summed. So they are dequantised when the model is loaded, to halves, which keep what
 * any quantised weight has (8 bits times a half) to 2^-11 of it.
 */
#include "engine/arch/loader_impl.h"

#include <stdlib.h>

#include "engine/kv/kvcache.h"
#include "kernels/half.h"

/* ---- sizes ----------------------------------------------------------------------- */

/* The size of a head's key or value: by its own key, where files describe the folded
 * form by the usual one. */
static enum status head_size(struct loader *l, const char *mla, const char *usual,
                             int missing, int *out)
{
    int folded;
    enum status st = loader_int_or(l, usual, 1, KVCACHE_MAX_HEAD_DIM, missing, &folded);

    return st ? st : loader_int_or(l, mla, 1, KVCACHE_MAX_HEAD_DIM, folded, out);
}

static enum status check_sizes(struct loader *l, const struct model *m, int key)
{
    const struct latent_sizes *s = &m->latent;

    if (m->n_rot % 2 || m->n_rot >= key)
        return loader_fail(l, ST_INPUT,
                           "%s.rope.dimension_count is %d, and an even number below "
                           "the key's %d elements is possible",
                           m->arch->name, m->n_rot, key);
    if (s->kv_rank % 16)
        return loader_fail(l, ST_UNSUPPORTED,
                           "attention.kv_lora_rank is %d, and only multiples of 16 are "
                           "supported",
                           s->kv_rank);
    if (s->kv_rank + m->n_rot > KVCACHE_MAX_HEAD_DIM)
        return loader_fail(l, ST_UNSUPPORTED,
                           "latents of %d and rotated keys of %d elements are not "
                           "supported, only up to %d together",
                           s->kv_rank, m->n_rot, KVCACHE_MAX_HEAD_DIM);
    return ST_OK;
}

enum status loader_latent_sizes(struct loader *l, struct model *m)
{
    struct latent_sizes *s = &m->latent;
    int key = 0;
    enum status st = loader_int(l, "attention.head_count", 1, MAX_HEADS, &m->n_heads);

    if (!st)
        st = loader_int_or(l, "attention.q_lora_rank", 0, MAX_WIDTH, 0, &s->q_rank);
    if (!st)
        st = loader_int(l, "attention.kv_lora_rank", 1, KVCACHE_MAX_HEAD_DIM,
                        &s->kv_rank);
    if (!st)
        st = loader_int(l, "rope.dimension_count", 2, KVCACHE_MAX_HEAD_DIM, &m->n_rot);
    if (!st)
        st = head_size(l, "attention.key_length_mla", "attention.key_length",
                       m->n_embd / m->n_heads, &key);
    if (!st)
        st = head_size(l, "attention.value_length_mla", "attention.value_length",
                       m->n_embd / m->n_heads, &s->value_dim);
    if (!st)
        st = check_sizes(l, m, key);
    if (st)
        return st;
    s->key_dim = key - m->n_rot;
    m->n_kv_heads = 1;
    m->first_rot = s->kv_rank;
    m->head_dim = s->kv_rank + m->n_rot;
    return ST_OK;
}

/* ---- kv_b ------------------------------------------------------------------------ */

/* Row i of a head's key, row[kv_rank], to the panels of its columns. */
static void put_key(const struct latent_sizes *s, const float *row, float scale,
                    size_t i, uint16_t *to)
{
    const size_t width = latent_width(s), n_key = (size_t)s->key_dim;

    for (size_t k = 0; k < (size_t)s->kv_rank; k++)
        to[(k / width * n_key + i) * width + k % width] = half_from_f32(row[k] * scale);
}

/* Rows are read from the file: the weights may be loaded only later. */
static enum status make_keys(struct loader *l, const struct matrix *w, uint16_t *to)
{
    const struct latent_sizes *s = &l->m->latent;
    const struct gguf_tensor *t = gguf_tensor_find(l->g, w->name);
    const size_t n_key = (size_t)s->key_dim;
    const size_t n_both = n_key + (size_t)s->value_dim;
    kern_dequantize_fn *const to_floats =
        kern_best(KERN_OP_dequantize, (int)w->fmt, 1u << KERN_ISA_scalar)
            ->fn.dequantize;
    unsigned char *rows = malloc(n_key * w->row_bytes);
    float *row = malloc(w->k * sizeof *row);
    enum status st =
        rows && row ? ST_OK
                    : loader_fail(l, ST_NO_MEMORY, "no memory for keys of %s", w->name);

    for (size_t h = 0; !st && h < (size_t)l->m->n_heads; h++) {
        st = gguf_read_rows(l->g, t, h * n_both, n_key, false, rows, l->err);
        for (size_t i = 0; !st && i < n_key; i++) {
            to_floats(rows + i * w->row_bytes, row, w->k);
            put_key(s, row, matrix_scale(w, 0), i, to + h * n_key * w->k);
        }
    }
    free(rows);
    free(row);
    return st;
}

/* The rows of values, behind those of keys in each head. */
static enum status view_v_b(struct loader *l, const struct matrix *w,
                            struct matrix *out)
{
    const size_t n_key = (size_t)l->m->latent.key_dim;
    const size_t n = (size_t)l->m->latent.value_dim, n_heads = (size_t)l->m->n_heads;
    struct matrix_slice *slices = calloc(n_heads, sizeof *slices);

    if (!slices)
        return loader_fail(l, ST_NO_MEMORY, "no memory for %zu heads' places", n_heads);
    for (size_t h = 0; h < n_heads; h++)
        slices[h] = (struct matrix_slice){
            w->name,
            w->data ? w->data + (h * (n_key + n) + n_key) * w->row_bytes : NULL};
    *out = *w;
    out->slices = slices;
    out->n_slices = n_heads;
    out->n_rows = n;
    out->panel_rows = w->panel_rows ? n : 0;
    return ST_OK;
}

enum status loader_split_kv_b(struct loader *l, struct layer *y)
{
    const struct matrix *w = &y->lat.kv_b;
    const size_t bytes =
        (size_t)l->m->n_heads * (size_t)l->m->latent.key_dim * w->k * sizeof(uint16_t);

    if (w->n_rows == 0)
        return ST_OK;
    /* A token reads them in place of the rows of keys, which count as what it reads. */
    l->m->derived_bytes += (bytes + 63) & ~(size_t)63;
    enum status st = view_v_b(l, w, &y->lat.v_b);

    if (st || !l->w)
        return st;
    uint16_t *to =
        (uint16_t *)(void *)((unsigned char *)l->m->derived.base + l->n_derived_bytes);

    y->lat.keys = to;
    l->n_derived_bytes += (bytes + 63) & ~(size_t)63;
    return make_keys(l, w, to);
}
