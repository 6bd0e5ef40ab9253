/* SPDX-License-Identifier: MIT
 *
 * attention_simd.c - scores, weights and mixes of cached positions, every vector level;
 *                    attention_quants_simd.c has the mixes of quantised values, and
 *                    attention_avx512bf16.c products of pairs of bf16
 *
 * attn_dot: a panel has 16 positions side by side, so a lane is a position and nothing
 * is summed across lanes. A tile is up to Q_TILE queries times a few panels; each key
 * is converted once per tile and each element of a query broadcast.
 *
 * attn_mix: a lane is an element of the values, weights are broadcast. A tile is up to
 * Q_TILE queries times a few vectors of each position; its sums stay in registers over
 * all positions.
 *
 * A lane of bf16 holds a pair: two elements of a key, or one of two values. Their sums
 * are those of floats: nothing is rounded but what is stored.
 *
 * Both process positions in chunks of CHUNK, which all tiles use before the next one,
 * and each tile prefetches its share of the next chunk, line by line: memory is then
 * read all the time, and not only while the first tile reads it. Chunks of a head
 * follow each other in memory, so that the last of one call prefetches the first of the
 * next.
 */
#include "kernels/vecops/attention_sums.h"

/* A tile's sums take 16 registers of 32, or 8 of AVX2's 16. */
enum {
#if defined(KERN_LEVEL_avx512)
    DOT_PANELS = 4,
    DOT_QUERIES =
        8, /* at once, where there are as many: keys are converted less often */
    MIX_VECS = 4,
#elif defined(KERN_LEVEL_avx2)
    DOT_PANELS = 1,
    MIX_VECS = 2,
#else
    DOT_PANELS = 1,
    MIX_VECS = 1,
#endif
#if !defined(KERN_LEVEL_avx512)
    DOT_QUERIES = Q_TILE,
#endif
};

#if defined(__clang__)
#define UNROLL_2 _Pragma("unroll 2")
#else
#define UNROLL_2 _Pragma("GCC unroll 2")
#endif

/* ---- types ----------------------------------------------------------------------- */

/* V_LANES lanes from `from` on, of one element (f16) or a pair (bf16) each: x[h] has
 * element h of each. */
typedef void lanes_fn(const uint16_t *from, vf x[2]);

SIMD_INLINE void lanes_f16(const uint16_t *from, vf x[2])
{
    x[0] = v_half(from);
}

SIMD_INLINE void lanes_bf16(const uint16_t *from, vf x[2])
{
    const vi pair = v_load(from);

    x[0] = v_float_bits(v_sll32(pair, 16));
    x[1] = v_float_bits(v_and(pair, v_set1_32((int)0xffff0000)));
}

/* ---- scores ---------------------------------------------------------------------- */

/* s[q][0..16 np) of nq queries and np panels (constants); a lane has `per` elements
 * (constant), of which d is a multiple. */
SIMD_INLINE void dot_tile(lanes_fn *lanes, const size_t per, const size_t nq,
                          const size_t np, size_t d, const uint16_t *key,
                          const float *query, size_t q_stride, float *s,
                          size_t s_stride, struct share next)
{
    const size_t nv = np * PANEL_VECS;
    const float *at[DOT_QUERIES];
    vf sum[DOT_QUERIES][MAX_VECS];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        at[q] = query + q * q_stride;
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            sum[q][v] = v_zero_f();
    }
    UNROLL_2
    for (size_t i = 0; i < d; i += per) {
        vf k[MAX_VECS][2];

        prefetch_share(next, i / per);
        SIMD_UNROLL
        for (size_t p = 0; p < np; p++) {
            const uint16_t *from = key + (p * d + i) * PANEL;

            SIMD_UNROLL
            for (size_t v = 0; v < PANEL_VECS; v++)
                lanes(from + v * V_LANES * per, k[p * PANEL_VECS + v]);
        }
        SIMD_UNROLL
        for (size_t h = 0; h < per; h++) {
            SIMD_UNROLL
            for (size_t q = 0; q < nq; q++) {
                const vf one = v_set1_f(at[q][i + h]);

                SIMD_UNROLL
                for (size_t v = 0; v < nv; v++)
                    sum[q][v] = v_fma(k[v][h], one, sum[q][v]);
            }
        }
    }
    store_sums(nq, nv, s, s_stride, sum);
}

/* n panels, at most STEP, of nq queries (constant) from query q of n_q on. */
SIMD_INLINE void dot_step(lanes_fn *lanes, const size_t per, const size_t nq, size_t n,
                          size_t d, const uint16_t *key, const float *query,
                          size_t q_stride, float *s, size_t s_stride, size_t q,
                          size_t n_q)
{
    const size_t bytes = CHUNK * d * sizeof(*key);
    /* Two queries alone would wait for their chains of additions. */
    const size_t np = nq > Q_TILE                            ? DOT_PANELS / 2
                      : nq <= 2 && (size_t)DOT_PANELS < STEP ? 2 * DOT_PANELS
                                                             : DOT_PANELS;
    size_t p = 0;

    for (; p + np <= n; p += np)
        dot_tile(lanes, per, nq, np, d, key + p * d * PANEL, query, q_stride,
                 s + p * PANEL, s_stride,
                 share_of(key, bytes, q * STEP + nq * p, nq * np, n_q * STEP, d / per));
    for (; np > 1 && p < n; p++) /* of the last positions: nothing follows */
        dot_tile(lanes, per, nq, 1, d, key + p * d * PANEL, query, q_stride,
                 s + p * PANEL, s_stride, (struct share){(const char *)key, 0});
}

SIMD_INLINE void dot(lanes_fn *lanes, const size_t per, size_t n_panels, size_t d,
                     const void *keys, size_t n_q, const void *query, size_t q_stride,
                     float *s, size_t s_stride)
{
    const size_t stride = q_stride / sizeof(float);

    for (size_t p = 0; p < n_panels; p += STEP) {
        const size_t n = smaller(n_panels - p, STEP);
        const uint16_t *key = (const uint16_t *)keys + p * d * PANEL;

        for (size_t q = 0; q < n_q;) {
            const float *from = (const float *)query + q * stride;
            float *to = s + q * s_stride + p * PANEL;

#define CALL(nq) dot_step(lanes, per, nq, n, d, key, from, stride, to, s_stride, q, n_q)
            if ((size_t)DOT_QUERIES > Q_TILE && n_q - q >= DOT_QUERIES) {
                CALL(DOT_QUERIES);
                q += DOT_QUERIES;
                continue;
            }
            FOR_QUERIES(n_q - q, CALL)
#undef CALL
            q += Q_TILE;
        }
    }
}

#define DOT(type, per)                                                                \
    void KERN_NAME(attn_dot, type)(size_t n_panels, size_t d, const void *keys,       \
                                   size_t n_q, const void *query, size_t q_stride,    \
                                   float *s, size_t s_stride)                         \
    {                                                                                 \
        dot(lanes_##type, per, n_panels, d, keys, n_q, query, q_stride, s, s_stride); \
    }

DOT(f16, 1)
DOT(bf16, 2)

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

/* The lanes at `value`, of `have` positions (constant), times their weights at[q][t..],
 * to the sums of nq queries and nv vectors (constants). */
SIMD_INLINE void mix_lanes(lanes_fn *lanes, const size_t per, const size_t have,
                           const size_t nq, const size_t nv, const uint16_t *value,
                           const float *const *at, size_t t, vf (*sum)[MAX_VECS])
{
    vf x[MAX_VECS][2];

    SIMD_UNROLL
    for (size_t v = 0; v < nv; v++)
        lanes(value + v * V_LANES * per, x[v]);
    SIMD_UNROLL
    for (size_t h = 0; h < have; h++) {
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            const vf one = v_set1_f(at[q][t + h]);

            SIMD_UNROLL
            for (size_t v = 0; v < nv; v++)
                sum[q][v] = v_fma(x[v][h], one, sum[q][v]);
        }
    }
}

/* nq queries, nv vectors of every value, `per` positions in a lane (constants). */
SIMD_INLINE void mix_tile(lanes_fn *lanes, const size_t per, const size_t nq,
                          const size_t nv, size_t n, size_t d, const uint16_t *value,
                          const float *p, size_t p_stride, float *out, size_t o_stride,
                          struct share next)
{
    const float *at[Q_TILE];
    vf sum[Q_TILE][MAX_VECS];
    size_t t = 0;

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++)
        at[q] = p + q * p_stride;
    load_sums(nq, nv, out, o_stride, sum);
    for (; t + per <= n; t += per) {
        prefetch_share(next, t / per);
        mix_lanes(lanes, per, per, nq, nv, value + t * d, at, t, sum);
    }
    if (t < n) /* the first of a pair, whose second may be anything */
        mix_lanes(lanes, per, 1, nq, nv, value + t * d, at, t, sum);
    store_sums(nq, nv, out, o_stride, sum);
}

/* Elements of a tile of nq queries: few queries take longer runs. */
SIMD_INLINE size_t mix_width(size_t nq)
{
    return (nq <= 2 && (size_t)MIX_VECS < MAX_VECS ? 2 * MIX_VECS : MIX_VECS) * V_LANES;
}

/* Elements i .. end - 1 of n positions, at most CHUNK. */
SIMD_INLINE void mix_queries(lanes_fn *lanes, const size_t per, const size_t nq,
                             size_t n, size_t d, const uint16_t *value, const float *p,
                             size_t p_stride, float *out, size_t o_stride, size_t i,
                             size_t end, struct share next)
{
    const size_t width = mix_width(nq);

    for (; i + width <= end; i += width) {
        mix_tile(lanes, per, nq, width / V_LANES, n, d, value + i * per, p, p_stride,
                 out + i, o_stride, next);
        next.bytes = 0;
    }
    for (; i < end; i += PANEL) {
        mix_tile(lanes, per, nq, PANEL_VECS, n, d, value + i * per, p, p_stride,
                 out + i, o_stride, next);
        next.bytes = 0;
    }
}

SIMD_INLINE void mix(lanes_fn *lanes, const size_t per, size_t n, size_t d,
                     const void *values, size_t n_q, const float *p, size_t p_stride,
                     float *out, size_t o_stride)
{
    const size_t width = MAX_VECS * V_LANES, bytes = CHUNK * d * sizeof(uint16_t);
    const size_t n_parts = (d + width - 1) / width * n_q;

    for (size_t t = 0; t < n; t += CHUNK) {
        const uint16_t *value = (const uint16_t *)values + t * d;
        const size_t m = smaller(n - t, CHUNK);

        for (size_t i = 0; i < d; i += width)
            for (size_t q = 0; q < n_q; q += Q_TILE) {
                const float *weight = p + q * p_stride + t;
                float *to = out + q * o_stride;
                const size_t end = smaller(i + width, d);

#define CALL(nq)                                                                     \
    mix_queries(lanes, per, nq, m, d, value, weight, p_stride, to, o_stride, i, end, \
                share_of(value, bytes, i / width * n_q + q, nq, n_parts, CHUNK / per))
                FOR_QUERIES(n_q - q, CALL)
#undef CALL
            }
    }
}

#define MIX(type, per)                                                                 \
    void KERN_NAME(attn_mix, type)(size_t n, size_t d, const void *values, size_t n_q, \
                                   const float *p, size_t p_stride, float *out,        \
                                   size_t o_stride)                                    \
    {                                                                                  \
        mix(lanes_##type, per, n, d, values, n_q, p, p_stride, out, o_stride);         \
    }

MIX(f16, 1)
MIX(bf16, 2)
