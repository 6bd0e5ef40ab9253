/* SPDX-License-Identifier: MIT
 *
 * q5_K_quantize.c - floats to q5_K and back, the reference
 *
 * dequantize rounds as the format is defined: d * scale and dmin * min first,
 * each product rounded to float, no contraction.
 */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/kquant/kquant_fit.h"
#include "kernels/q5_K/q5_K.h"

static void pack_weights(const uint8_t q[KQ_ELEMS], struct block_q5_K *block)
{
    memset(block->qh, 0, sizeof(block->qh));
    for (int i = 0; i < 128; i++) {
        const int s = i / 32 * 2; /* the even sub-block of this byte */
        const unsigned low = q[32 * s + i % 32], high = q[32 * s + 32 + i % 32];

        block->qs[i] = (uint8_t)((low & 15) | (high & 15) << 4);
        block->qh[i % 32] |= (uint8_t)((low >> 4) << s | (high >> 4) << (s + 1));
    }
}

void KERN_NAME(quantize, q5_K)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q5_K *blocks = dst;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        uint8_t q[KQ_ELEMS], six[16];
        uint16_t d, dmin;

        kquant_quantize_lines(src + KQ_ELEMS * b, w ? w + KQ_ELEMS * b : NULL, 32, 31,
                              63, &d, &dmin, six, six + 8, q);
        blocks[b].d = d;
        blocks[b].dmin = dmin;
        kquant_pack_six(six, blocks[b].scales);
        pack_weights(q, &blocks[b]);
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q5_K__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q5_K *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d), dmin = half_to_f32(blocks[b].dmin);
        uint8_t six[16];

        kquant_unpack_six(blocks[b].scales, six);
        for (int s = 0; s < 8; s++) {
            const uint8_t *qs = blocks[b].qs + s / 2 * 32, *qh = blocks[b].qh;
            const float scale = d * (float)six[s], min = dmin * (float)six[8 + s];

            for (int i = 0; i < 32; i++) {
                const int q = (qs[i] >> s % 2 * 4 & 15) | (qh[i] >> s & 1) << 4;

                *dst++ = scale * (float)q - min;
            }
        }
    }
}
#endif
