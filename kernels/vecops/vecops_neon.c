/* SPDX-License-Identifier: MIT
 *
 * vecops_neon.c - vector operations with NEON
 *
 * Ends shorter than a register go through load_part() and store_part(). Sums run in
 * several registers and are folded once.
 */
#include <math.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/exp.h"
#include "kernels/simd/neon.h"

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
SIMD_INLINE float32x4_t rotate_pairs(float32x4_t v, float32x4_t cs)
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
        vst1q_f32(v + i, rotate_pairs(vld1q_f32(v + i), vld1q_f32(cs + i)));
    if (i < n)
        store_part(v + i,
                   rotate_pairs(load_part(v + i, n - i), load_part(cs + i, n - i)),
                   n - i);
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
