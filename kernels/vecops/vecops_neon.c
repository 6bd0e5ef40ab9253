/* SPDX-License-Identifier: MIT
 *
 * vecops_neon.c - vector operations with NEON
 *
 * Ends shorter than a register go through load_part() and store_part(). Sums run in
 * several registers and are folded once.
 *
 * attn_dot works on tiles of two positions and up to four queries, attn_mix on
 * tiles of 16 elements and up to four queries: every key or value is converted
 * from half precision once per tile and sixteen sums are kept in registers.
 * The order of positions and queries is that of attention.h.
 */
#include <math.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/exp.h"
#include "kernels/simd/neon.h"
#include "kernels/vecops/attention.h"

void kern_rmsnorm__neon(float *y, const float *x, const float *w, size_t n, float eps)
{
    float32x4_t sum[4];
    size_t i = 0;

    for (int j = 0; j < 4; j++)
        sum[j] = vdupq_n_f32(0);
    for (; i + 16 <= n; i += 16) {
        SIMD_UNROLL
        for (size_t j = 0; j < 4; j++) {
            const float32x4_t v = vld1q_f32(x + i + 4 * j);

            sum[j] = vfmaq_f32(sum[j], v, v);
        }
    }
    for (; i < n; i += 4) {
        const float32x4_t v = n - i >= 4 ? vld1q_f32(x + i) : load_part(x + i, n - i);

        sum[0] = vfmaq_f32(sum[0], v, v);
    }

    const float total =
        vaddvq_f32(vaddq_f32(vaddq_f32(sum[0], sum[1]), vaddq_f32(sum[2], sum[3])));
    const float scale = 1.0f / sqrtf(total / (float)n + eps);

    for (i = 0; i + 4 <= n; i += 4)
        vst1q_f32(y + i,
                  vmulq_f32(vmulq_n_f32(vld1q_f32(x + i), scale), vld1q_f32(w + i)));
    for (; i < n; i++)
        y[i] = x[i] * scale * w[i];
}

/* Pairs (a, b) turned by (c, s): even elements a c - b s, odd ones b c + a s. */
SIMD_INLINE float32x4_t turn_pairs(float32x4_t v, float32x4_t cs)
{
    const uint32x4_t even_sign = {0x80000000u, 0, 0x80000000u, 0};
    const float32x4_t swapped = vrev64q_f32(v);
    const float32x4_t cosines = vtrn1q_f32(cs, cs), sines = vtrn2q_f32(cs, cs);
    const float32x4_t signed_sines =
        vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(sines), even_sign));

    return vfmaq_f32(vmulq_f32(swapped, signed_sines), v, cosines);
}

void kern_rope__neon(float *v, const float *cs, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        vst1q_f32(v + i, turn_pairs(vld1q_f32(v + i), vld1q_f32(cs + i)));
    if (i < n)
        store_part(v + i, turn_pairs(load_part(v + i, n - i), load_part(cs + i, n - i)),
                   n - i);
}

void kern_softmax__neon(float *x, size_t n)
{
    const size_t whole = n & ~(size_t)3;
    float32x4_t sum = vdupq_n_f32(0), top = vdupq_n_f32(x[0]);
    float rest = 0;

    for (size_t i = 0; i < whole; i += 4)
        top = vmaxq_f32(top, vld1q_f32(x + i));
    for (size_t i = whole; i < n; i++)
        top = vmaxq_f32(top, vdupq_n_f32(x[i]));
    top = vdupq_n_f32(vmaxvq_f32(top));
    for (size_t i = 0; i < whole; i += 4) {
        const float32x4_t e = exp_neon(vsubq_f32(vld1q_f32(x + i), top));

        vst1q_f32(x + i, e);
        sum = vaddq_f32(sum, e);
    }
    if (whole < n) {
        store_part(x + whole, exp_neon(vsubq_f32(load_part(x + whole, n - whole), top)),
                   n - whole);
        for (size_t i = whole; i < n; i++)
            rest += x[i];
    }

    const float scale = 1.0f / (vaddvq_f32(sum) + rest);

    for (size_t i = 0; i < whole; i += 4)
        vst1q_f32(x + i, vmulq_n_f32(vld1q_f32(x + i), scale));
    for (size_t i = whole; i < n; i++)
        x[i] *= scale;
}

SIMD_INLINE float32x4_t silu(float32x4_t g)
{
    return vdivq_f32(g, vaddq_f32(vdupq_n_f32(1.0f), exp_neon(vnegq_f32(g))));
}

void kern_silu_mul__neon(float *y, const float *gate, const float *up, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vmulq_f32(silu(vld1q_f32(gate + i)), vld1q_f32(up + i)));
    if (i < n) {
        const float32x4_t g = load_part(gate + i, n - i), u = load_part(up + i, n - i);

        store_part(y + i, vmulq_f32(silu(g), u), n - i);
    }
}

void kern_add__neon(float *y, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vaddq_f32(vld1q_f32(y + i), vld1q_f32(x + i)));
    for (; i < n; i++)
        y[i] += x[i];
}

/* ---- attention ------------------------------------------------------------------ */

/* s[q][t] for nq <= 4 queries and nt <= 2 positions (constants). */
SIMD_INLINE void dot_tile(size_t nq, size_t nt, const float *query, size_t q_stride,
                          const uint16_t *key, size_t kv_stride, size_t d, float scale,
                          float *s, size_t s_stride)
{
    float32x4_t low[4][2], high[4][2]; /* of eight elements each */

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t t = 0; t < nt; t++)
            low[q][t] = high[q][t] = vdupq_n_f32(0);
    }
    for (size_t i = 0; i < d; i += 8) {
        struct eight_floats k[2];

        SIMD_UNROLL
        for (size_t t = 0; t < nt; t++)
            k[t] = load_8_halves(key + t * kv_stride + i);
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            const float32x4_t v0 = vld1q_f32(query + q * q_stride + i);
            const float32x4_t v1 = vld1q_f32(query + q * q_stride + i + 4);

            SIMD_UNROLL
            for (size_t t = 0; t < nt; t++) {
                low[q][t] = vfmaq_f32(low[q][t], v0, k[t].low);
                high[q][t] = vfmaq_f32(high[q][t], v1, k[t].high);
            }
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t t = 0; t < nt; t++)
            s[q * s_stride + t] = scale * vaddvq_f32(vaddq_f32(low[q][t], high[q][t]));
    }
}

/* A dot_queries_fn. */
SIMD_INLINE void dot_queries(size_t nq, const float *query, size_t q_stride,
                             const uint16_t *key, size_t kv_stride, size_t n_kv,
                             size_t d, float scale, float *s, size_t s_stride,
                             size_t fetch)
{
    size_t t = 0;

    for (; t + 2 <= n_kv; t += 2) {
        for (size_t j = 0; j < 2; j++)
            prefetch_row(key, (t + j + KV_AHEAD) * kv_stride, fetch);
        dot_tile(nq, 2, query, q_stride, key + t * kv_stride, kv_stride, d, scale,
                 s + t, s_stride);
    }
    if (t < n_kv)
        dot_tile(nq, 1, query, q_stride, key + t * kv_stride, kv_stride, d, scale,
                 s + t, s_stride);
}

void kern_attn_dot__neon(float *s, size_t s_stride, const float *query, size_t q_stride,
                         const uint16_t *key, size_t kv_stride, size_t n_q, size_t n_kv,
                         size_t d, float scale)
{
    attn_dot_blocks(dot_queries, 2, s, s_stride, query, q_stride, key, kv_stride, n_q,
                    n_kv, d, scale);
}

/* out[q][0..8 nc) += sum of p[q][t] * value[t][..] over n positions, for nq
 * queries (constants). fetch: see dot_queries_fn. */
SIMD_INLINE void mix_tile(size_t nq, size_t nc, const float *p, size_t p_stride,
                          const uint16_t *value, size_t kv_stride, size_t n, float *out,
                          size_t o_stride, size_t fetch)
{
    struct eight_floats sum[4][2];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t c = 0; c < nc; c++) {
            sum[q][c].low = vld1q_f32(out + q * o_stride + 8 * c);
            sum[q][c].high = vld1q_f32(out + q * o_stride + 8 * c + 4);
        }
    }
    for (size_t t = 0; t < n; t++) {
        struct eight_floats v[2];

        prefetch_row(value, (t + KV_AHEAD) * kv_stride, fetch);

        SIMD_UNROLL
        for (size_t c = 0; c < nc; c++)
            v[c] = load_8_halves(value + t * kv_stride + 8 * c);
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            const float weight = p[q * p_stride + t];

            SIMD_UNROLL
            for (size_t c = 0; c < nc; c++) {
                sum[q][c].low = vfmaq_n_f32(sum[q][c].low, v[c].low, weight);
                sum[q][c].high = vfmaq_n_f32(sum[q][c].high, v[c].high, weight);
            }
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t c = 0; c < nc; c++) {
            vst1q_f32(out + q * o_stride + 8 * c, sum[q][c].low);
            vst1q_f32(out + q * o_stride + 8 * c + 4, sum[q][c].high);
        }
    }
}

/* A mix_queries_fn. */
SIMD_INLINE void mix_queries(size_t nq, const float *p, size_t p_stride,
                             const uint16_t *value, size_t kv_stride, size_t n,
                             size_t d, float *out, size_t o_stride, size_t fetch)
{
    size_t i = 0;

    for (; i + 16 <= d; i += 16)
        mix_tile(nq, 2, p, p_stride, value + i, kv_stride, n, out + i, o_stride,
                 i == 0 ? fetch : 0);
    if (i < d)
        mix_tile(nq, 1, p, p_stride, value + i, kv_stride, n, out + i, o_stride,
                 i == 0 ? fetch : 0);
}

void kern_attn_mix__neon(float *out, size_t o_stride, const float *p, size_t p_stride,
                         const uint16_t *value, size_t kv_stride, size_t n_q,
                         size_t n_kv, size_t d)
{
    attn_mix_blocks(mix_queries, 2, out, o_stride, p, p_stride, value, kv_stride, n_q,
                    n_kv, d);
}

void kern_to_f16__neon(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        vst1_u16(dst + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(src + i))));
    for (; i < n; i++)
        dst[i] = half_from_f32(src[i]);
}
