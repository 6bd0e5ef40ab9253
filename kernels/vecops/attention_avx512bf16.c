/* SPDX-License-Identifier: MIT
 *
 * attention_avx512bf16.c - scores and mixes of bf16 keys and values as dot products of
 *                          pairs
 *
 * A lane of 32 bits holds a pair: two elements of a key, or one element of two values.
 * Queries and weights become pairs of bf16, too, rounded to nearest even, so that one
 * instruction adds two products to a lane's sum where one of floats adds one. A product
 * of two bf16 is exact in a float, which rounds sums as usual; but denormal numbers,
 * in and out, are taken for zero.
 *
 * Chunks, tiles and prefetching are those of attention_simd.c.
 */
#include "kernels/vecops/attention_pairs.h"
#include "kernels/vecops/attention_tiles.h"

enum {
    /* A tile's sums take 16 registers of 32; those of one or two queries fewer, but two
     * to a panel: a sum waits for the one before it. */
    TILE_VECS = 4,
    WIDE_VECS = 8,
    /* Queries that are held as pairs, 64 KiB: at least Q_TILE of the longest. */
    HELD_PAIRS = 16384,
};

_Static_assert(HELD_PAIRS / (KERN_MAX_HEAD_DIM / 2) >= Q_TILE, "a tile of queries");

SIMD_INLINE __m512bh load_pairs(const void *p)
{
    return (__m512bh)_mm512_loadu_si512(p);
}

SIMD_INLINE __m512bh broadcast(uint32_t pair)
{
    return (__m512bh)_mm512_set1_epi32((int)pair);
}

/* ---- scores ---------------------------------------------------------------------- */

/* Pairs that a query takes. */
SIMD_INLINE size_t pairs_of(size_t d)
{
    return (d / 2 + LANES - 1) / LANES * LANES;
}

/* s[q][0..16 np) of nq queries and np panels, with n_sums sums of each (constants);
 * pair i goes to sum i % n_sums. */
SIMD_INLINE void dot_tile(const size_t nq, const size_t np, const size_t n_sums,
                          size_t d, const uint32_t *key, const uint32_t *query,
                          float *s, size_t s_stride, struct share next)
{
    const size_t n_pairs = d / 2;
    const uint32_t *at[Q_TILE];
    __m512 sum[Q_TILE][TILE_VECS][2];
    size_t i = 0;

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        at[q] = query + q * pairs_of(d);
        SIMD_UNROLL
        for (size_t p = 0; p < np; p++)
            sum[q][p][0] = sum[q][p][1] = _mm512_setzero_ps();
    }
    for (; i + n_sums <= n_pairs; i += n_sums) {
        SIMD_UNROLL
        for (size_t h = 0; h < n_sums; h++) {
            __m512bh k[TILE_VECS];

            prefetch_share(next, i + h);
            SIMD_UNROLL
            for (size_t p = 0; p < np; p++)
                k[p] = load_pairs(key + (p * n_pairs + i + h) * PANEL);
            SIMD_UNROLL
            for (size_t q = 0; q < nq; q++) {
                const __m512bh one = broadcast(at[q][i + h]);

                SIMD_UNROLL
                for (size_t p = 0; p < np; p++)
                    sum[q][p][h] = _mm512_dpbf16_ps(sum[q][p][h], one, k[p]);
            }
        }
    }
    for (; i < n_pairs; i++) {
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            SIMD_UNROLL
            for (size_t p = 0; p < np; p++)
                sum[q][p][0] =
                    _mm512_dpbf16_ps(sum[q][p][0], broadcast(at[q][i]),
                                     load_pairs(key + (p * n_pairs + i) * PANEL));
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t p = 0; p < np; p++)
            _mm512_storeu_ps(s + q * s_stride + p * PANEL,
                             n_sums > 1 ? _mm512_add_ps(sum[q][p][0], sum[q][p][1])
                                        : sum[q][p][0]);
    }
}

/* n panels, at most STEP, of nq queries (constant) from query q of n_q on. */
SIMD_INLINE void dot_step(const size_t nq, size_t n, size_t d, const uint32_t *key,
                          const uint32_t *query, float *s, size_t s_stride, size_t q,
                          size_t n_q)
{
    const size_t n_sums = nq <= 2 ? 2 : 1;

    if (n == STEP) {
        dot_tile(nq, STEP, n_sums, d, key, query, s, s_stride,
                 share_of(key, CHUNK * d * sizeof(uint16_t), q, nq, n_q, d / 2));
        return;
    }
    for (size_t p = 0; p < n; p++) /* of the last positions: nothing follows */
        dot_tile(nq, 1, n_sums, d, key + p * d / 2 * PANEL, query, s + p * PANEL,
                 s_stride, (struct share){(const char *)key, 0});
}

/* n_q queries, held as pairs. */
SIMD_INLINE void dot_held(size_t n_panels, size_t d, const uint32_t *keys, size_t n_q,
                          const uint32_t *query, float *s, size_t s_stride)
{
    for (size_t p = 0; p < n_panels; p += STEP) {
        const size_t n = smaller(n_panels - p, STEP);
        const uint32_t *key = keys + p * d / 2 * PANEL;

        for (size_t q = 0; q < n_q; q += Q_TILE) {
            const uint32_t *from = query + q * pairs_of(d);
            float *to = s + q * s_stride + p * PANEL;

#define CALL(nq) dot_step(nq, n, d, key, from, to, s_stride, q, n_q)
            FOR_QUERIES(n_q - q, CALL)
#undef CALL
        }
    }
}

void KERN_NAME(attn_dot, bf16)(size_t n_panels, size_t d, const void *keys, size_t n_q,
                               const void *query, size_t q_stride, float *s,
                               size_t s_stride)
{
    const size_t n_held = HELD_PAIRS / pairs_of(d) / Q_TILE * Q_TILE;
    uint32_t held[HELD_PAIRS];

    for (size_t q = 0; q < n_q; q += n_held) {
        const size_t n = smaller(n_q - q, n_held);

        for (size_t i = 0; i < n; i++)
            to_pairs((const float *)((const char *)query + (q + i) * q_stride), d,
                     held + i * pairs_of(d));
        dot_held(n_panels, d, keys, n, held, s + q * s_stride, s_stride);
    }
}

/* ---- mixes ----------------------------------------------------------------------- */

/* nq queries, nv vectors of every value (constants); n positions, whose pairs are at
 * `value`. */
SIMD_INLINE void mix_tile(const size_t nq, const size_t nv, size_t n, size_t d,
                          const uint32_t *value, const uint32_t (*weight)[CHUNK / 2],
                          float *out, size_t o_stride, struct share next)
{
    __m512 sum[Q_TILE][WIDE_VECS];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            sum[q][v] = _mm512_loadu_ps(out + q * o_stride + v * LANES);
    }
    for (size_t t = 0; t < n / 2; t++) {
        __m512bh x[WIDE_VECS];

        prefetch_share(next, t);
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            x[v] = load_pairs(value + t * d + v * LANES);
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            const __m512bh one = broadcast(weight[q][t]);

            SIMD_UNROLL
            for (size_t v = 0; v < nv; v++)
                sum[q][v] = _mm512_dpbf16_ps(sum[q][v], one, x[v]);
        }
    }
    if (n % 2) { /* the second of the last pair may be anything; its weight is 0 */
        const __m512i first = _mm512_set1_epi32(0xffff);

        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++) {
            const __m512i x = _mm512_and_si512(
                first, _mm512_loadu_si512(value + n / 2 * d + v * LANES));

            SIMD_UNROLL
            for (size_t q = 0; q < nq; q++)
                sum[q][v] = _mm512_dpbf16_ps(sum[q][v], broadcast(weight[q][n / 2]),
                                             (__m512bh)x);
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            _mm512_storeu_ps(out + q * o_stride + v * LANES, sum[q][v]);
    }
}

/* n positions, at most CHUNK, of nq queries (constant) from query `first` of n_q on. */
SIMD_INLINE void mix_step(const size_t nq, size_t n, size_t d, const uint32_t *value,
                          const float *p, size_t p_stride, float *out, size_t o_stride,
                          size_t first, size_t n_q)
{
    const size_t nv = nq <= 2 ? WIDE_VECS : TILE_VECS, width = nv * LANES;
    const size_t n_tiles = (d + width - 1) / width;
    uint32_t weight[Q_TILE][CHUNK / 2];
    size_t i = 0;

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++)
        to_pairs(p + q * p_stride, n, weight[q]);
    for (size_t tile = 0; tile < n_tiles; tile++) {
        struct share next =
            share_of(value, CHUNK * d * sizeof(uint16_t), first * n_tiles + nq * tile,
                     nq, n_q * n_tiles, CHUNK / 2);

        if (i + width <= d) {
            mix_tile(nq, nv, n, d, value + i, weight, out + i, o_stride, next);
            i += width;
            continue;
        }
        for (; i < d; i += LANES, next.bytes = 0)
            mix_tile(nq, 1, n, d, value + i, weight, out + i, o_stride, next);
    }
}

void KERN_NAME(attn_mix, bf16)(size_t n, size_t d, const void *values, size_t n_q,
                               const float *p, size_t p_stride, float *out,
                               size_t o_stride)
{
    for (size_t t = 0; t < n; t += CHUNK) {
        const uint32_t *value = (const uint32_t *)values + t / 2 * d;
        const size_t m = smaller(n - t, CHUNK);

        for (size_t q = 0; q < n_q; q += Q_TILE) {
            const float *weight = p + q * p_stride + t;
            float *to = out + q * o_stride;

#define CALL(nq) mix_step(nq, m, d, value, weight, p_stride, to, o_stride, q, n_q)
            FOR_QUERIES(n_q - q, CALL)
#undef CALL
        }
    }
}
