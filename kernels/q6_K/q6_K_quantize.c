/* SPDX-License-Identifier: MIT
 *
 * q6_K_quantize.c - floats to q6_K and back, the reference
 *
 * A sub-block of 16 is scale * q with q in -32..31. As in kquant_fit.h a row of
 * grids is tried, here around the one that maps the value of largest magnitude
 * to -32 or 31; for the q of a grid the best scale is Sxq / Sqq, and what it
 * takes off the squared error is Sxq^2 / Sqq. The scales then become int8 with
 * the super-block's d; the one of largest magnitude becomes -128, so that the
 * whole range is used, and neighbours of the nearest integer are tried too.
 */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/kquant/kquant_fit.h"
#include "kernels/q6_K/q6_K.h"

enum { SUB = 16 };

static float fit_scale(const float *x)
{
    float peak = 0, best_scale = 0;
    double best_gain = 0;

    for (int i = 0; i < SUB; i++)
        if (fabsf(x[i]) > fabsf(peak))
            peak = x[i];
    for (int step = -16; step <= 16; step++) {
        const float inv = -(32 + 0.125f * (float)step) * kquant_inverse(peak);
        double sxq = 0, sqq = 0;

        for (int i = 0; i < SUB; i++) {
            const double q = kquant_nearest(x[i] * inv, -32, 31);

            sxq += (double)x[i] * q;
            sqq += q * q;
        }
        if (sqq > 0 && sxq * sxq / sqq > best_gain) {
            best_gain = sxq * sxq / sqq;
            best_scale = (float)(sxq / sqq);
        }
    }
    return best_scale;
}

static float error_with(const float *x, float scale)
{
    const float inv = kquant_inverse(scale);
    float error = 0;

    for (int i = 0; i < SUB; i++) {
        const float e = scale * (float)kquant_nearest(x[i] * inv, -32, 31) - x[i];

        error += e * e;
    }
    return error;
}

static int8_t round_scale(const float *x, float scale, float d)
{
    const int nearest = kquant_nearest(scale * kquant_inverse(d), -128, 127);
    int best = nearest;
    float best_error = INFINITY;

    for (int sc = nearest - 1; sc <= nearest + 1; sc++) {
        const float error = error_with(x, d * (float)sc);

        if (sc >= -128 && sc <= 127 && error < best_error) {
            best_error = error;
            best = sc;
        }
    }
    return (int8_t)best;
}

/* q[j] = weight j + 32, laid out as in q6_K.h. */
static void pack_weights(const uint8_t q[KQ_ELEMS], struct block_q6_K *block)
{
    for (int h = 0; h < 2; h++) {
        const uint8_t *half = q + 128 * h;

        for (int i = 0; i < 64; i++)
            block->ql[64 * h + i] =
                (uint8_t)((half[i] & 15) | (half[64 + i] & 15) << 4);
        for (int i = 0; i < 32; i++)
            block->qh[32 * h + i] =
                (uint8_t)(half[i] >> 4 | (half[32 + i] >> 4) << 2 |
                          (half[64 + i] >> 4) << 4 | (half[96 + i] >> 4) << 6);
    }
}

void kern_quantize_q6_K__scalar(const float *src, void *dst, size_t n)
{
    struct block_q6_K *blocks = dst;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float *x = src + KQ_ELEMS * b;
        float scale[16], peak = 0;
        uint8_t q[KQ_ELEMS];

        for (int s = 0; s < 16; s++) {
            scale[s] = fit_scale(x + SUB * s);
            if (fabsf(scale[s]) > fabsf(peak))
                peak = scale[s];
        }
        blocks[b].d = kquant_half(peak / -128);

        const float d = half_to_f32(blocks[b].d);

        for (int s = 0; s < 16; s++) {
            const int8_t sc = round_scale(x + SUB * s, scale[s], d);
            const float inv = kquant_inverse(d * (float)sc);

            blocks[b].scales[s] = sc;
            for (int i = SUB * s; i < SUB * s + SUB; i++)
                q[i] = (uint8_t)(kquant_nearest(x[i] * inv, -32, 31) + 32);
        }
        pack_weights(q, &blocks[b]);
    }
}

void kern_dequantize_q6_K__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q6_K *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d);

        for (int j = 0; j < KQ_ELEMS; j++) {
            const int h = j / 128, part = j % 128 / 32, i = j % 32;
            const int low =
                blocks[b].ql[64 * h + part % 2 * 32 + i] >> part / 2 * 4 & 15;
            const int top = blocks[b].qh[32 * h + i] >> part * 2 & 3;

            *dst++ =
                d * (float)blocks[b].scales[j / 16] * (float)((low | top << 4) - 32);
        }
    }
}
