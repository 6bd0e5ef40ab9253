/* SPDX-License-Identifier: MIT
 *
 * tq1_0_quantize.c - floats to tq1_0 and back, the reference
 */
#include "kernels/kernels.h"
#include "kernels/kquant/ternary_fit.h"
#include "kernels/tq1_0/tq1_0.h"

/* The byte of n trits, step apart; trits that are missing count as 0. */
static uint8_t pack_trits(const uint8_t *q, int n, int step)
{
    int v = 0;

    for (int i = 0; i < 5; i++)
        v = 3 * v + (i < n ? q[i * step] : 0);
    return (uint8_t)((v * 256 + 242) / 243);
}

void kern_quantize_tq1_0__scalar(const float *src, const float *w, void *dst, size_t n)
{
    struct block_tq1_0 *blocks = dst;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        uint8_t q[KQ_ELEMS];

        blocks[b].d =
            ternary_quantize(src + KQ_ELEMS * b, w ? w + KQ_ELEMS * b : NULL, q);
        for (int i = 0; i < 32; i++)
            blocks[b].qs[i] = pack_trits(q + i, 5, 32);
        for (int i = 0; i < 16; i++)
            blocks[b].qs[32 + i] = pack_trits(q + 160 + i, 5, 16);
        for (int i = 0; i < 4; i++)
            blocks[b].qh[i] = pack_trits(q + 240 + i, 4, 4);
    }
}

void kern_dequantize_tq1_0__scalar(const void *src, float *dst, size_t n)
{
    const struct block_tq1_0 *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d);
        uint8_t q[KQ_ELEMS];

        tq1_0_unpack(&blocks[b], q);
        for (int j = 0; j < KQ_ELEMS; j++)
            *dst++ = (float)(q[j] - 1) * d;
    }
}
