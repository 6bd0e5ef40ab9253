/* SPDX-License-Identifier: MIT
 *
 * q6_K_quantize.c - floats to q6_K and back, the reference
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_fit.h"
#include "kernels/q6_K/q6_K.h"

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

void KERN_NAME(quantize, q6_K)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q6_K *blocks = dst;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        uint8_t q[KQ_ELEMS];
        uint16_t d;

        kquant_quantize_scales(src + KQ_ELEMS * b, w ? w + KQ_ELEMS * b : NULL, 32, 128,
                               &d, blocks[b].scales, q);
        blocks[b].d = d;
        pack_weights(q, &blocks[b]);
    }
}

#ifdef KERN_LEVEL_scalar
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
#endif
