/* SPDX-License-Identifier: MIT
 *
 * mix_keys_simd.c - mixes of keys that are values, too, every vector level
 *
 * A panel of keys has 16 positions of an element side by side, so that here, unlike in
 * attention_simd.c, a lane is a position on both sides: an element of a mix is a dot
 * product over positions, whose lanes are summed at the end of a run of RUN positions.
 *
 * Some elements of a run are unpacked to floats, which all queries then share: they
 * stay in the first cache, in rows a panel longer than a run, so that not all of them
 * begin in the same few sets of it. Keys are not prefetched, because their scores have
 * just been computed from them. A tile is some queries times some elements.
 */
#include "kernels/vecops/attention_tiles.h"
#include "kernels/vecops/vec_float.h"

enum {
    PANEL_VECS = PANEL / V_LANES,
    RUN_PANELS = 16,
    RUN = RUN_PANELS * PANEL,
    ROW = RUN + PANEL, /* of floats */
    FEW = 16,          /* elements at a time; of quantised types a block */
    N_SUMS = 4,        /* elements of a tile */
#if defined(KERN_LEVEL_avx512)
    N_QUERIES = 4,
#else
    N_QUERIES = 2,
#endif
};

/* The sums of the lanes of four vectors. */
#if defined(KERN_LEVEL_avx512)
SIMD_INLINE void sum_lanes(const vf v[N_SUMS], float *sum)
{
    const __m512 ab =
        _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
    const __m512 cd =
        _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
    const __m512 four = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(
                                          _mm512_castps_pd(ab), _mm512_castps_pd(cd))),
                                      _mm512_castpd_ps(_mm512_unpackhi_pd(
                                          _mm512_castps_pd(ab), _mm512_castps_pd(cd))));
    const __m256 two =
        _mm256_add_ps(_mm512_castps512_ps256(four), _mm512_extractf32x8_ps(four, 1));

    _mm_storeu_ps(
        sum, _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1)));
}
#elif defined(KERN_LEVEL_avx2)
SIMD_INLINE void sum_lanes(const vf v[N_SUMS], float *sum)
{
    const __m256 two =
        _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));

    _mm_storeu_ps(
        sum, _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1)));
}
#else
SIMD_INLINE void sum_lanes(const vf v[N_SUMS], float *sum)
{
    SIMD_UNROLL
    for (size_t i = 0; i < N_SUMS; i++)
        sum[i] = v_sum(v[i]);
}
#endif

/* ---- unpacking ------------------------------------------------------------------- */

/* Elements i .. i + BLOCK - 1 of the 16 positions of a panel, to x[BLOCK][ROW]; of
 * floats only n of them. i is a multiple of BLOCK, d the length of a key. */
typedef void unpack_fn(const void *panel, size_t d, size_t i, size_t n, float *x);

SIMD_INLINE void unpack_f16(const void *panel, size_t d, size_t i, size_t n, float *x)
{
    const uint16_t *from = (const uint16_t *)panel + i * PANEL;

    (void)d;
    for (size_t e = 0; e < n; e++) {
        SIMD_UNROLL
        for (size_t v = 0; v < PANEL_VECS; v++)
            v_store_f(x + e * ROW + v * V_LANES,
                      v_half(from + e * PANEL + v * V_LANES));
    }
}

SIMD_INLINE void unpack_bf16(const void *panel, size_t d, size_t i, size_t n, float *x)
{
    const uint16_t *from = (const uint16_t *)panel + i * PANEL;

    (void)d;
    for (size_t e = 0; e < n; e += 2) {
        SIMD_UNROLL
        for (size_t v = 0; v < PANEL_VECS; v++) {
            const vi pair = v_load(from + e * PANEL + 2 * v * V_LANES);
            float *at = x + e * ROW + v * V_LANES;

            v_store_f(at, v_float_bits(v_sll32(pair, 16)));
            v_store_f(at + ROW, v_float_bits(v_and(pair, v_set1_32((int)0xffff0000))));
        }
    }
}

/* Where block i / BLOCK has its body, and its scales. */
SIMD_INLINE const uint8_t *block_of(const void *panel, const size_t body_bytes,
                                    size_t d, size_t i, const uint8_t **scale)
{
    const size_t bodies = PANEL * body_bytes, b = i / BLOCK;

    *scale = (const uint8_t *)panel + kern_panel_scales_at(bodies, 2 * PANEL, b);
    return (const uint8_t *)panel + kern_panel_body_at(bodies, 2 * PANEL, d / BLOCK, b);
}

SIMD_INLINE void unpack_q8_0(const void *panel, size_t d, size_t i, size_t n, float *x)
{
    const uint8_t *scale, *body = block_of(panel, 32, d, i, &scale);

    (void)n;
    SIMD_UNROLL
    for (size_t v = 0; v < PANEL_VECS; v++) {
        const vf by = v_half(scale + 2 * V_LANES * v);

        for (size_t j = 0; j < BLOCK / 4; j++) {
            const vi four = v_load(body + 4 * (j * PANEL + v * V_LANES));

            SIMD_UNROLL
            for (size_t k = 0; k < 4; k++)
                v_store_f(
                    x + (4 * j + k) * ROW + v * V_LANES,
                    v_mul(v_to_float(v_sra32(v_sll32(four, (int)(24 - 8 * k)), 24)),
                          by));
        }
    }
}

SIMD_INLINE void unpack_q4_0(const void *panel, size_t d, size_t i, size_t n, float *x)
{
    const uint8_t *scale, *body = block_of(panel, 16, d, i, &scale);

    (void)n;
    SIMD_UNROLL
    for (size_t v = 0; v < PANEL_VECS; v++) {
        const vf by = v_half(scale + 2 * V_LANES * v);

        for (size_t j = 0; j < BLOCK / 8; j++) {
            const vi four = v_load(body + 4 * (j * PANEL + v * V_LANES));

            SIMD_UNROLL
            for (size_t k = 0; k < 8; k++) {
                const vi nibble = v_and(v_srl32(four, (int)(4 * k)), v_set1_32(15));

                v_store_f(x + (k % 2 * 16 + 4 * j + k / 2) * ROW + v * V_LANES,
                          v_mul(v_to_float(v_sub32(nibble, v_set1_32(8))), by));
            }
        }
    }
}

/* ---- mixes ----------------------------------------------------------------------- */

/* N_SUMS elements of nq queries (constant) over n_panels panels. */
SIMD_INLINE void mix_tile(const size_t nq, size_t n_panels, const float *x,
                          const float *p, size_t p_stride, float *out, size_t o_stride)
{
    vf sum[N_QUERIES][N_SUMS];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t e = 0; e < N_SUMS; e++)
            sum[q][e] = v_zero_f();
    }
    for (size_t t = 0; t < n_panels * PANEL; t += V_LANES) {
        vf key[N_SUMS];

        SIMD_UNROLL
        for (size_t e = 0; e < N_SUMS; e++)
            key[e] = v_load_f(x + e * ROW + t);
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            const vf weight = v_load_f(p + q * p_stride + t);

            SIMD_UNROLL
            for (size_t e = 0; e < N_SUMS; e++)
                sum[q][e] = v_fma(key[e], weight, sum[q][e]);
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        float of[N_SUMS];

        sum_lanes(sum[q], of);
        SIMD_UNROLL
        for (size_t e = 0; e < N_SUMS; e++)
            out[q * o_stride + e] += of[e];
    }
}

/* n elements, a multiple of N_SUMS, of nq queries (constant). */
SIMD_INLINE void mix_queries(const size_t nq, size_t n, size_t n_panels, const float *x,
                             const float *p, size_t p_stride, float *out,
                             size_t o_stride)
{
    for (size_t e = 0; e < n; e += N_SUMS)
        mix_tile(nq, n_panels, x + e * ROW, p, p_stride, out + e, o_stride);
}

/* The positions that the last panel lacks may hold anything, also what is no number. */
SIMD_INLINE void clear_lanes(float *x, size_t n_elems, size_t n, size_t end)
{
    for (size_t e = 0; e < n_elems; e++)
        for (size_t t = n; t < end; t++)
            x[e * ROW + t] = 0.0f;
}

SIMD_INLINE void mix_keys(unpack_fn *unpack, const size_t step,
                          const size_t panel_bytes, size_t n, size_t d, size_t key_dim,
                          const uint8_t *keys, size_t n_q, const float *p,
                          size_t p_stride, float *out, size_t o_stride)
{
    float x[BLOCK * ROW];

    for (size_t t = 0; t < n; t += RUN) {
        const size_t m = smaller(n - t, RUN), n_panels = (m + PANEL - 1) / PANEL;
        const uint8_t *from = keys + t / PANEL * panel_bytes;

        for (size_t i = 0; i < d; i += step) {
            const size_t ne = smaller(d - i, step);
            size_t q = 0;

            for (size_t j = 0; j < n_panels; j++)
                unpack(from + j * panel_bytes, key_dim, i, ne, x + j * PANEL);
            clear_lanes(x, ne, m, n_panels * PANEL);
            for (; q + N_QUERIES <= n_q; q += N_QUERIES)
                mix_queries(N_QUERIES, ne, n_panels, x, p + q * p_stride + t, p_stride,
                            out + q * o_stride + i, o_stride);
            for (; q < n_q; q++)
                mix_queries(1, ne, n_panels, x, p + q * p_stride + t, p_stride,
                            out + q * o_stride + i, o_stride);
        }
    }
}

#define MIX_KEYS(type, step, bytes)                                                   \
    void KERN_NAME(attn_mix_keys, type)(size_t n, size_t d, size_t key_dim,           \
                                        const void *keys, size_t n_q, const float *p, \
                                        size_t p_stride, float *out, size_t o_stride) \
    {                                                                                 \
        mix_keys(unpack_##type, step, bytes, n, d, key_dim, keys, n_q, p, p_stride,   \
                 out, o_stride);                                                      \
    }

MIX_KEYS(f16, FEW, key_dim *PANEL * 2)
MIX_KEYS(bf16, FEW, key_dim *PANEL * 2)
MIX_KEYS(q8_0, BLOCK, key_dim / BLOCK * PANEL * 34)
MIX_KEYS(q4_0, BLOCK, key_dim / BLOCK * PANEL * 18)
