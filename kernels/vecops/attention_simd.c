/* SPDX-License-Identifier: MIT
 *
 * attention_simd.c - scores, weights and mixes of cached positions, every vector level;
 *                    attention_avx512vnni.c has mixes of quantised values for its own
 *
 * attn_dot (F16): a panel has 16 positions side by side, so a lane is a position and
 * nothing is summed across lanes. A tile is up to Q_TILE queries times a few panels;
 * each key is converted once per tile and each element of a query broadcast.
 *
 * attn_mix: a lane is an element of the values, weights are broadcast. A tile is up to
 * Q_TILE queries times a few vectors of each position; its sums stay in registers over
 * all positions. Scales of quantised values, one per position and block, go to the
 * weights, 16 positions at once.
 *
 * Both process positions in chunks of CHUNK, which all tiles use before the next one,
 * and each tile prefetches its share of the next chunk, line by line: memory is then
 * read all the time, and not only while the first tile reads it. Chunks of a head
 * follow each other in memory, so that the last of one call prefetches the first of the
 * next.
 */
#include "kernels/vecops/attention_tiles.h"
#include "kernels/vecops/vec_float.h"

/* A tile's sums take 16 registers of 32, or 8 of AVX2's 16. Quantised values cost more
 * to unpack: more queries share them where registers allow. */
enum {
    PANEL_VECS = PANEL / V_LANES,
    MAX_VECS = 4,
#if defined(KERN_LEVEL_avx512)
    DOT_PANELS = 4,
    MIX_VECS = 4,
    QUANT_VECS = 2,
    QUANT_QUERIES = 8,
#elif defined(KERN_LEVEL_avx2)
    DOT_PANELS = 1,
    MIX_VECS = 2,
    QUANT_VECS = 2,
    QUANT_QUERIES = 4,
#else
    DOT_PANELS = 1,
    MIX_VECS = 1,
    QUANT_VECS = 1,
    QUANT_QUERIES = 4,
#endif
};

#if defined(__clang__)
#define UNROLL_2 _Pragma("unroll 2")
#else
#define UNROLL_2 _Pragma("GCC unroll 2")
#endif

/* ---- scores ---------------------------------------------------------------------- */

/* s[q][0..16 np) of nq queries and np panels (constants). */
SIMD_INLINE void dot_tile(const size_t nq, const size_t np, size_t d,
                          const uint16_t *key, const float *query, size_t q_stride,
                          float *s, size_t s_stride, struct share next)
{
    const size_t nv = np * PANEL_VECS;
    const float *at[Q_TILE];
    vf sum[Q_TILE][MAX_VECS];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        at[q] = query + q * q_stride;
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            sum[q][v] = v_zero_f();
    }
    UNROLL_2
    for (size_t i = 0; i < d; i++) {
        vf k[MAX_VECS];

        prefetch_share(next, i);
        SIMD_UNROLL
        for (size_t p = 0; p < np; p++) {
            const uint16_t *from = key + (p * d + i) * PANEL;

            SIMD_UNROLL
            for (size_t v = 0; v < PANEL_VECS; v++)
                k[p * PANEL_VECS + v] = v_half(from + v * V_LANES);
        }
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            const vf one = v_set1_f(at[q][i]);

            SIMD_UNROLL
            for (size_t v = 0; v < nv; v++)
                sum[q][v] = v_fma(k[v], one, sum[q][v]);
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            v_store_f(s + q * s_stride + v * V_LANES, sum[q][v]);
    }
}

/* n panels, at most STEP, of nq queries (constant): group `group` of n_groups. */
SIMD_INLINE void dot_step(const size_t nq, size_t n, size_t d, const uint16_t *key,
                          const float *query, size_t q_stride, float *s,
                          size_t s_stride, size_t group, size_t n_groups)
{
    const size_t bytes = CHUNK * d * sizeof(*key);
    /* Two queries alone would wait for their chains of additions. */
    const size_t np =
        nq <= 2 && (size_t)DOT_PANELS < STEP ? 2 * DOT_PANELS : DOT_PANELS;
    size_t p = 0;

    for (; p + np <= n; p += np)
        dot_tile(nq, np, d, key + p * d * PANEL, query, q_stride, s + p * PANEL,
                 s_stride,
                 share_of(key, bytes, group * (STEP / np) + p / np,
                          n_groups * (STEP / np), d));
    for (; np > 1 && p < n; p++) /* of the last positions: nothing follows */
        dot_tile(nq, 1, d, key + p * d * PANEL, query, q_stride, s + p * PANEL,
                 s_stride, (struct share){(const char *)key, 0});
}

void KERN_NAME(attn_dot, f16)(size_t n_panels, size_t d, const void *keys, size_t n_q,
                              const void *query, size_t q_stride, float *s,
                              size_t s_stride)
{
    const size_t stride = q_stride / sizeof(float);
    const size_t n_groups = (n_q + Q_TILE - 1) / Q_TILE;

    for (size_t p = 0; p < n_panels; p += STEP) {
        const size_t n = smaller(n_panels - p, STEP);
        const uint16_t *key = (const uint16_t *)keys + p * d * PANEL;

        for (size_t q = 0; q < n_q; q += Q_TILE) {
            const float *from = (const float *)query + q * stride;
            float *to = s + q * s_stride + p * PANEL;

#define CALL(nq) \
    dot_step(nq, n, d, key, from, stride, to, s_stride, q / Q_TILE, n_groups)
            FOR_QUERIES(n_q - q, CALL)
#undef CALL
        }
    }
}

/* ---- weights -----------------------------------------------------------------------
 */

float KERN_LEVEL_NAME(attn_weigh)(float *s, size_t n_seen, size_t n, float *max,
                                  float *sum)
{
    const float before = *max;
    vf top = v_set1_f(before), total = v_zero_f();
    float keep = 1.0f;

    for (size_t i = n_seen; i < n; i++)
        s[i] = -__builtin_inff();
    for (size_t i = 0; i < n; i += V_LANES)
        top = v_max_f(top, v_load_f(s + i));
    *max = v_largest(top);
    /* nothing seen, now or before: no weights, and no difference of infinities */
    const float level = *max == -__builtin_inff() ? 0.0f : *max;
    for (size_t i = 0; i < n; i += V_LANES) {
        const vf e = v_exp(v_sub(v_load_f(s + i), v_set1_f(level)));

        v_store_f(s + i, e);
        total = v_add(total, e);
    }
    if (*max != before) {
        float lanes[V_LANES];

        v_store_f(lanes, v_exp(v_set1_f(before - level)));
        keep = lanes[0];
    }
    *sum = *sum * keep + v_sum(total);
    return keep;
}

/* ---- mixes -------------------------------------------------------------------------
 */

SIMD_INLINE void load_sums(const size_t nq, const size_t nv, const float *out,
                           size_t o_stride, vf (*sum)[MAX_VECS])
{
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            sum[q][v] = v_load_f(out + q * o_stride + v * V_LANES);
    }
}

SIMD_INLINE void store_sums(const size_t nq, const size_t nv, float *out,
                            size_t o_stride, vf (*sum)[MAX_VECS])
{
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            v_store_f(out + q * o_stride + v * V_LANES, sum[q][v]);
    }
}

/* nq queries, nv vectors of every value (constants). */
SIMD_INLINE void mix_tile(const size_t nq, const size_t nv, size_t n, size_t d,
                          const uint16_t *value, const float *p, size_t p_stride,
                          float *out, size_t o_stride, struct share next)
{
    const float *at[Q_TILE];
    vf sum[Q_TILE][MAX_VECS];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++)
        at[q] = p + q * p_stride;
    load_sums(nq, nv, out, o_stride, sum);
    for (size_t t = 0; t < n; t++) {
        vf x[MAX_VECS];

        prefetch_share(next, t);
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            x[v] = v_half(value + t * d + v * V_LANES);
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            const vf one = v_set1_f(at[q][t]);

            SIMD_UNROLL
            for (size_t v = 0; v < nv; v++)
                sum[q][v] = v_fma(x[v], one, sum[q][v]);
        }
    }
    store_sums(nq, nv, out, o_stride, sum);
}

/* Elements of a tile of nq queries: few queries take longer runs. */
SIMD_INLINE size_t mix_width(size_t nq)
{
    return (nq <= 2 && MIX_VECS < MAX_VECS ? 2 * MIX_VECS : MIX_VECS) * V_LANES;
}

/* Elements i .. end - 1 of n positions, at most CHUNK. */
SIMD_INLINE void mix_queries(const size_t nq, size_t n, size_t d, const uint16_t *value,
                             const float *p, size_t p_stride, float *out,
                             size_t o_stride, size_t i, size_t end, struct share next)
{
    const size_t width = mix_width(nq);

    for (; i + width <= end; i += width) {
        mix_tile(nq, width / V_LANES, n, d, value + i, p, p_stride, out + i, o_stride,
                 next);
        next.bytes = 0;
    }
    for (; i < end; i += PANEL) {
        mix_tile(nq, PANEL_VECS, n, d, value + i, p, p_stride, out + i, o_stride, next);
        next.bytes = 0;
    }
}

void KERN_NAME(attn_mix, f16)(size_t n, size_t d, const void *values, size_t n_q,
                              const float *p, size_t p_stride, float *out,
                              size_t o_stride)
{
    const size_t width = MAX_VECS * V_LANES, bytes = CHUNK * d * sizeof(uint16_t);
    const size_t n_groups = (n_q + Q_TILE - 1) / Q_TILE;
    const size_t n_tiles = (d + width - 1) / width * n_groups;

    for (size_t t = 0; t < n; t += CHUNK) {
        const uint16_t *value = (const uint16_t *)values + t * d;
        const size_t m = smaller(n - t, CHUNK);
        size_t tile = 0;

        for (size_t i = 0; i < d; i += width)
            for (size_t q = 0; q < n_q; q += Q_TILE, tile++) {
                const float *weight = p + q * p_stride + t;
                float *to = out + q * o_stride;
                const size_t end = smaller(i + width, d);
                const struct share next = share_of(value, bytes, tile, n_tiles, CHUNK);

#define CALL(nq) \
    mix_queries(nq, m, d, value, weight, p_stride, to, o_stride, i, end, next)
                FOR_QUERIES(n_q - q, CALL)
#undef CALL
            }
    }
}

/* ---- mixes of quantised values ------------------------------------------------------
 */

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

/* All blocks of n positions, at most CHUNK, of nq queries (constant), which are group
 * `group` of n_groups. */
SIMD_INLINE void mix_queries_blocks(unpack_fn *unpack, const size_t body_bytes,
                                    const size_t nq, size_t n, size_t n_blocks,
                                    const uint8_t *values, const float *p,
                                    size_t p_stride, float *out, size_t o_stride,
                                    size_t group, size_t n_groups)
{
    const size_t bytes = CHUNK * n_blocks * (body_bytes + sizeof(uint16_t));

    for (size_t b = 0; b < n_blocks; b++)
        for (size_t from = 0; from < BLOCK; from += QUANT_TILE)
            mix_block(unpack, body_bytes, nq, from, n, n_blocks, b, values, p, p_stride,
                      out + b * BLOCK + from, o_stride,
                      from == 0 ? share_of(values, bytes, group * n_blocks + b,
                                           n_groups * n_blocks, CHUNK)
                                : (struct share){(const char *)values, 0});
}

SIMD_INLINE void mix_blocks(unpack_fn *unpack, const size_t body_bytes, size_t n,
                            size_t d, const uint8_t *values, size_t n_q, const float *p,
                            size_t p_stride, float *out, size_t o_stride)
{
    const size_t n_blocks = d / BLOCK;
    const size_t chunk_bytes = CHUNK * n_blocks * (body_bytes + sizeof(uint16_t));
    const size_t n_groups = (n_q + QUANT_QUERIES - 1) / QUANT_QUERIES;

    for (size_t t = 0; t < n; t += CHUNK, values += chunk_bytes)
        for (size_t q = 0; q < n_q;) {
            const float *weight = p + q * p_stride + t;
            float *to = out + q * o_stride;
            const size_t m = smaller(n - t, CHUNK), group = q / QUANT_QUERIES;

#define CALL(nq)                                                                      \
    mix_queries_blocks(unpack, body_bytes, nq, m, n_blocks, values, weight, p_stride, \
                       to, o_stride, group, n_groups)
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
