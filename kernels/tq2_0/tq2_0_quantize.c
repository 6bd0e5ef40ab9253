/* SPDX-License-Identifier: MIT
 *
 * tq2_0_quantize.c - floats to tq2_0 and back, the reference
 */
#include "kernels/kernels.h"
#include "kernels/kquant/ternary_fit.h"
#include "kernels/tq2_0/tq2_0.h"

void kern_quantize_tq2_0__scalar(const float *src, const float *w, void *dst, size_t n)
{
    struct block_tq2_0 *blocks = dst;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        uint8_t q[KQ_ELEMS];

        blocks[b].d =
            ternary_quantize(src + KQ_ELEMS * b, w ? w + KQ_ELEMS * b : NULL, q);
        kquant_pack_two(q, blocks[b].qs);
    }
}

void kern_dequantize_tq2_0__scalar(const void *src, float *dst, size_t n)
{
    const struct block_tq2_0 *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d);

        for (int j = 0; j < KQ_ELEMS; j++)
            *dst++ = (float)(kquant_two(blocks[b].qs, j) - 1) * d;
    }
}
