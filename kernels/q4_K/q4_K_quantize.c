/* SPDX-License-Identifier: MIT
 *
 * q4_K_quantize.c - floats to q4_K and back, the reference
 *
 * dequantize rounds as the format is defined: d * scale and dmin * min first,
 * each product rounded to float, no contraction.
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_fit.h"
#include "kernels/q4_K/q4_K.h"

void KERN_NAME(quantize, q4_K)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q4_K *blocks = dst;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        uint8_t q[KQ_ELEMS], six[16];
        uint16_t d, dmin;

        kquant_quantize_lines(src + KQ_ELEMS * b, w ? w + KQ_ELEMS * b : NULL, 32, 15,
                              63, &d, &dmin, six, six + 8, q);
        blocks[b].d = d;
        blocks[b].dmin = dmin;
        kquant_pack_six(six, blocks[b].scales);
        for (int i = 0; i < 128; i++) {
            const uint8_t *pair = q + i / 32 * 64 + i % 32;

            blocks[b].qs[i] = (uint8_t)(pair[0] | pair[32] << 4);
        }
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q4_K__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q4_K *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d), dmin = half_to_f32(blocks[b].dmin);
        uint8_t six[16];

        kquant_unpack_six(blocks[b].scales, six);
        for (int s = 0; s < 8; s++) {
            const uint8_t *qs = blocks[b].qs + s / 2 * 32;
            const float scale = d * (float)six[s], min = dmin * (float)six[8 + s];

            for (int i = 0; i < 32; i++)
                *dst++ = scale * (float)(qs[i] >> s % 2 * 4 & 15) - min;
        }
    }
}
#endif
