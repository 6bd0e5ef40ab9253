/* SPDX-License-Identifier: MIT
 *
 * attention.h - how attn_dot and attn_mix of every SIMD level go over positions
 *               and queries
 *
 * Positions are taken in blocks that stay in the first-level cache, and each block
 * with up to four queries at a time, so that memory is read once. The first of
 * them also ask for rows that come later.
 */
#ifndef SLM_KERNELS_VECOPS_ATTENTION_H
#define SLM_KERNELS_VECOPS_ATTENTION_H

#include "kernels/simd/simd.h"

/* Bytes of keys or values in a block of positions: half of a first level of
 * 32 KiB. */
enum { KV_BLOCK_BYTES = 16384 };

/* Positions that software prefetch runs ahead: rows of one head are short and far
 * apart, which the hardware's prefetchers do not follow. */
enum { KV_AHEAD = 12 };

/* nq queries (a constant, up to 4) against n_kv positions. fetch: elements to
 * prefetch of each later row, 0 for none. */
typedef void dot_queries_fn(size_t nq, const float *query, size_t q_stride,
                            const uint16_t *key, size_t kv_stride, size_t n_kv,
                            size_t d, float scale, float *s, size_t s_stride,
                            size_t fetch);

/* nq queries (a constant, up to 4), all d elements, n positions; fetch as above. */
typedef void mix_queries_fn(size_t nq, const float *p, size_t p_stride,
                            const uint16_t *value, size_t kv_stride, size_t n, size_t d,
                            float *out, size_t o_stride, size_t fetch);

/* n halves, `at` elements behind p; they need not be readable. */
SIMD_INLINE void prefetch_row(const uint16_t *p, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i += 32)
        __builtin_prefetch((const void *)((uintptr_t)p + (at + i) * sizeof(*p)), 0, 2);
}

/* Positions in a block, a multiple of unit. */
SIMD_INLINE size_t kv_block_positions(size_t d, size_t unit)
{
    const size_t n = KV_BLOCK_BYTES / (d * sizeof(uint16_t)) / unit * unit;

    return n < unit ? unit : n;
}

/* attn_dot; unit: positions in a tile. */
SIMD_INLINE void attn_dot_blocks(dot_queries_fn *dot_queries, size_t unit, float *s,
                                 size_t s_stride, const float *query, size_t q_stride,
                                 const uint16_t *key, size_t kv_stride, size_t n_q,
                                 size_t n_kv, size_t d, float scale)
{
    const size_t block = kv_block_positions(d, unit);

    for (size_t t = 0; t < n_kv; t += block) {
        const size_t n = n_kv - t < block ? n_kv - t : block;
        const uint16_t *k = key + t * kv_stride;

        for (size_t q = 0; q < n_q; q += 4) {
            const float *v = query + q * q_stride;
            float *out = s + q * s_stride + t;
            const size_t fetch = q == 0 ? d : 0;

            if (n_q - q >= 4)
                dot_queries(4, v, q_stride, k, kv_stride, n, d, scale, out, s_stride,
                            fetch);
            else if (n_q - q == 3)
                dot_queries(3, v, q_stride, k, kv_stride, n, d, scale, out, s_stride,
                            fetch);
            else if (n_q - q == 2)
                dot_queries(2, v, q_stride, k, kv_stride, n, d, scale, out, s_stride,
                            fetch);
            else
                dot_queries(1, v, q_stride, k, kv_stride, n, d, scale, out, s_stride,
                            fetch);
        }
    }
}

/* attn_mix; unit as for attn_dot. */
SIMD_INLINE void attn_mix_blocks(mix_queries_fn *mix_queries, size_t unit, float *out,
                                 size_t o_stride, const float *p, size_t p_stride,
                                 const uint16_t *value, size_t kv_stride, size_t n_q,
                                 size_t n_kv, size_t d)
{
    const size_t block = kv_block_positions(d, unit);

    for (size_t t = 0; t < n_kv; t += block) {
        const size_t n = n_kv - t < block ? n_kv - t : block;
        const uint16_t *v = value + t * kv_stride;

        for (size_t q = 0; q < n_q; q += 4) {
            const float *weights = p + q * p_stride + t;
            float *o = out + q * o_stride;
            const size_t fetch = q == 0 ? d : 0;

            if (n_q - q >= 4)
                mix_queries(4, weights, p_stride, v, kv_stride, n, d, o, o_stride,
                            fetch);
            else if (n_q - q == 3)
                mix_queries(3, weights, p_stride, v, kv_stride, n, d, o, o_stride,
                            fetch);
            else if (n_q - q == 2)
                mix_queries(2, weights, p_stride, v, kv_stride, n, d, o, o_stride,
                            fetch);
            else
                mix_queries(1, weights, p_stride, v, kv_stride, n, d, o, o_stride,
                            fetch);
        }
    }
}

#endif
