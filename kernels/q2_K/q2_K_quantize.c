/* SPDX-License-Identifier: MIT
 *
 * q2_K_quantize.c - floats to q2_K and back, the reference
 *
 * dequantize rounds as the format is defined: d * scale and dmin * min first,
 * each product rounded to float, no contraction.
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_fit.h"
#include "kernels/q2_K/q2_K.h"

void KERN_NAME(quantize, q2_K)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q2_K *blocks = dst;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        uint8_t q[KQ_ELEMS], sc[16], m[16];
        uint16_t d, dmin;

        kquant_quantize_lines(src + KQ_ELEMS * b, w ? w + KQ_ELEMS * b : NULL, 16, 3,
                              15, &d, &dmin, sc, m, q);
        blocks[b].d = d;
        blocks[b].dmin = dmin;
        for (int s = 0; s < 16; s++)
            blocks[b].scales[s] = (uint8_t)(sc[s] | m[s] << 4);
        kquant_pack_two(q, blocks[b].qs);
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q2_K__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q2_K *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d), dmin = half_to_f32(blocks[b].dmin);

        for (int j = 0; j < KQ_ELEMS; j++) {
            const uint8_t both = blocks[b].scales[j / 16];
            const float scale = d * (float)(both & 15), min = dmin * (float)(both >> 4);

            *dst++ = scale * (float)kquant_two(blocks[b].qs, j) - min;
        }
    }
}
#endif
