/* SPDX-License-Identifier: MIT
 *
 * q4_0_quantize.c - reference quantisation and dequantisation of q4_0
 *
 * The value of largest magnitude maps to about -8, the one quant that has no
 * counterpart on the other side, so that all 16 steps are used on its side; d may
 * therefore be negative. Moving that value a little off -8 lets the many others
 * fit better: 19 positions from -8.9 to -7.1 are tried, each with the scale that
 * is best for its quants in the sense of least squares.
 */
#include "kernels/q4_0/q4_0.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

#define N_STEPS 9 /* on either side of -8, a tenth each */

struct fit {
    float d;
    float error; /* squared, in units of the largest magnitude */
    uint8_t u[Q4_0_ELEMS];
};

/* Quants for the largest value at `position`. Arithmetic is in steps (x / d), so
 * it neither overflows nor underflows whatever the size of x. */
static struct fit fit_at(const float *x, float extreme, float position)
{
    const float inverse = position / extreme;
    float xq = 0, qq = 0, stretch;
    struct fit f = {0};

    for (int i = 0; i < Q4_0_ELEMS; i++) {
        const float rounded = floorf(x[i] * inverse + 8.5f);
        const float u = rounded >= 15 ? 15 : rounded >= 0 ? rounded : 0;

        f.u[i] = (uint8_t)u;
        xq += x[i] * inverse * (u - 8);
        qq += (u - 8) * (u - 8);
    }
    stretch = qq > 0 ? xq / qq : 1;
    for (int i = 0; i < Q4_0_ELEMS; i++) {
        const float miss = x[i] * inverse - stretch * (float)(f.u[i] - 8);

        f.error += miss * miss;
    }
    f.error /= position * position;
    f.d = stretch / inverse;
    return f;
}

static void quantize_block(const float *x, struct block_q4_0 *out)
{
    struct fit best = {0};
    float extreme = 0;
    uint16_t half;

    for (int i = 0; i < Q4_0_ELEMS; i++)
        if (fabsf(x[i]) > fabsf(extreme))
            extreme = x[i];

    memset(best.u, 8, sizeof(best.u));
    /* A scale below half of the smallest f16 is 0, and so are all weights. */
    if (fabsf(extreme) > 0x1p-23f) {
        best = fit_at(x, extreme, -8);
        for (int step = -N_STEPS; step <= N_STEPS; step++) {
            const struct fit f = fit_at(x, extreme, -8 + 0.1f * (float)step);

            if (f.error < best.error)
                best = f;
        }
    }
    half = half_from_f32(best.d);
    memcpy(out->d, &half, sizeof(half));
    for (int j = 0; j < Q4_0_ELEMS / 2; j++)
        out->qs[j] = (uint8_t)(best.u[j] | best.u[j + Q4_0_ELEMS / 2] << 4);
}

void kern_quantize_q4_0__scalar(const float *src, void *dst, size_t n)
{
    struct block_q4_0 *out = dst;

    for (size_t b = 0; b < n / Q4_0_ELEMS; b++)
        quantize_block(src + b * Q4_0_ELEMS, &out[b]);
}

void kern_dequantize_q4_0__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q4_0 *in = src;

    for (size_t b = 0; b < n / Q4_0_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d));
        float *out = dst + b * Q4_0_ELEMS;

        for (int j = 0; j < Q4_0_ELEMS / 2; j++) {
            out[j] = (float)((in[b].qs[j] & 15) - 8) * d;
            out[j + Q4_0_ELEMS / 2] = (float)((in[b].qs[j] >> 4) - 8) * d;
        }
    }
}
