/* SPDX-License-Identifier: MIT
 *
 * attention_quants_simd.c - mixes of quantised values, every vector level;
 *                           attention_quants_avx512vnni.c has a level with products of
 *                           bytes
 *
 * As mixes of floats (attention_simd.c), block by block of the values. Scales, one per
 * position and block, go to the weights, 16 positions at once.
 */
#include "kernels/vecops/attention_sums.h"

/* Values cost more to unpack than floats: more queries share them where registers
 * allow. */
enum {
#if defined(KERN_LEVEL_avx512)
    QUANT_VECS = 2,
    QUANT_QUERIES = 8,
#elif defined(KERN_LEVEL_avx2)
    QUANT_VECS = 2,
    QUANT_QUERIES = 4,
#else
    QUANT_VECS = 1,
    QUANT_QUERIES = 4,
#endif
};

/* Elements of a tile: all of a quantised block, or half where registers are few. */
enum { QUANT_TILE = QUANT_VECS * V_LANES };

/* QUANT_TILE elements of one position from element `from` of its block on: bytes. */
typedef void unpack_fn(const uint8_t *body, size_t from, vf *x);

SIMD_INLINE void unpack_q8_0(const uint8_t *body, size_t from, vf *x)
{
    SIMD_UNROLL
    for (size_t v = 0; v < QUANT_VECS; v++)
        x[v] = v_to_float(v_s8(body + from + v * V_LANES));
}

/* Byte j has elements j and j + 16, plus 8. */
SIMD_INLINE void unpack_q4_0(const uint8_t *body, size_t from, vf *x)
{
    SIMD_UNROLL
    for (size_t v = 0; v < QUANT_VECS; v++) {
        const size_t i = from + v * V_LANES;
        const vi byte = v_u8(body + i % 16);
        const vi nibble = i < 16 ? v_and(byte, v_set1_32(15)) : v_srl32(byte, 4);

        x[v] = v_to_float(v_sub32(nibble, v_set1_32(8)));
    }
}

/* One block of n positions, elements from `from` on, times nq queries (constant).
 * body_bytes: of a block. */
SIMD_INLINE void mix_block(unpack_fn *unpack, const size_t body_bytes, const size_t nq,
                           const size_t from, size_t n, size_t n_blocks, size_t b,
                           const uint8_t *values, const float *p, size_t p_stride,
                           float *out, size_t o_stride, struct share next)
{
    const size_t panel_bytes = PANEL * n_blocks * (body_bytes + sizeof(uint16_t));
    vf sum[QUANT_QUERIES][MAX_VECS];

    load_sums(nq, QUANT_VECS, out, o_stride, sum);
    for (size_t t = 0; t < n; t += PANEL, values += panel_bytes) {
        const uint8_t *body =
            values + kern_panel_body_at(PANEL * body_bytes, 2 * PANEL, n_blocks, b);
        const uint8_t *scale =
            values + kern_panel_scales_at(PANEL * body_bytes, 2 * PANEL, b);
        const size_t m = smaller(n - t, PANEL);
        float scaled[QUANT_QUERIES][PANEL];

        SIMD_UNROLL
        for (size_t v = 0; v < PANEL_VECS; v++) {
            const vf d = v_half(scale + 2 * V_LANES * v);

            SIMD_UNROLL
            for (size_t q = 0; q < nq; q++)
                v_store_f(&scaled[q][v * V_LANES],
                          v_mul(d, v_load_f(p + q * p_stride + t + v * V_LANES)));
        }
        for (size_t j = 0; j < m; j++) {
            vf x[QUANT_VECS];

            prefetch_share(next, t + j);
            unpack(body + j * body_bytes, from, x);
            SIMD_UNROLL
            for (size_t q = 0; q < nq; q++) {
                const vf one = v_set1_f(scaled[q][j]);

                SIMD_UNROLL
                for (size_t v = 0; v < QUANT_VECS; v++)
                    sum[q][v] = v_fma(x[v], one, sum[q][v]);
            }
        }
    }
    store_sums(nq, QUANT_VECS, out, o_stride, sum);
}

/* All blocks of n positions, at most CHUNK, of nq queries (constant) from query q of
 * n_q on. */
SIMD_INLINE void mix_queries_blocks(unpack_fn *unpack, const size_t body_bytes,
                                    const size_t nq, size_t n, size_t n_blocks,
                                    const uint8_t *values, const float *p,
                                    size_t p_stride, float *out, size_t o_stride,
                                    size_t q, size_t n_q)
{
    const size_t bytes = CHUNK * n_blocks * (body_bytes + sizeof(uint16_t));

    for (size_t b = 0; b < n_blocks; b++)
        for (size_t from = 0; from < BLOCK; from += QUANT_TILE)
            mix_block(unpack, body_bytes, nq, from, n, n_blocks, b, values, p, p_stride,
                      out + b * BLOCK + from, o_stride,
                      from == 0 ? share_of(values, bytes, q * n_blocks + nq * b, nq,
                                           n_q * n_blocks, CHUNK)
                                : (struct share){(const char *)values, 0});
}

SIMD_INLINE void mix_blocks(unpack_fn *unpack, const size_t body_bytes, size_t n,
                            size_t d, const uint8_t *values, size_t n_q, const float *p,
                            size_t p_stride, float *out, size_t o_stride)
{
    const size_t n_blocks = d / BLOCK;
    const size_t chunk_bytes = CHUNK * n_blocks * (body_bytes + sizeof(uint16_t));

    for (size_t t = 0; t < n; t += CHUNK, values += chunk_bytes)
        for (size_t q = 0; q < n_q;) {
            const float *weight = p + q * p_stride + t;
            float *to = out + q * o_stride;
            const size_t m = smaller(n - t, CHUNK);

#define CALL(nq)                                                                      \
    mix_queries_blocks(unpack, body_bytes, nq, m, n_blocks, values, weight, p_stride, \
                       to, o_stride, q, n_q)
            if ((size_t)QUANT_QUERIES > Q_TILE && n_q - q >= QUANT_QUERIES) {
                CALL(QUANT_QUERIES);
                q += QUANT_QUERIES;
                continue;
            }
            FOR_QUERIES(n_q - q, CALL)
#undef CALL
            q += Q_TILE;
        }
}

void KERN_NAME(attn_mix, q8_0)(size_t n, size_t d, const void *values, size_t n_q,
                               const float *p, size_t p_stride, float *out,
                               size_t o_stride)
{
    mix_blocks(unpack_q8_0, 32, n, d, values, n_q, p, p_stride, out, o_stride);
}

void KERN_NAME(attn_mix, q4_0)(size_t n, size_t d, const void *values, size_t n_q,
                               const float *p, size_t p_stride, float *out,
                               size_t o_stride)
{
    mix_blocks(unpack_q4_0, 16, n, d, values, n_q, p, p_stride, out, o_stride);
}
