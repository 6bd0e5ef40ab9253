/* SPDX-License-Identifier: MIT
 *
 * q3_K_quantize.c - floats to q3_K and back, the reference
 *
 * dequantize rounds as the format is defined: d * scale first.
 */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/kquant/kquant_fit.h"
#include "kernels/q3_K/q3_K.h"

void KERN_NAME(quantize, q3_K)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q3_K *blocks = dst;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        struct block_q3_K *out = &blocks[b];
        uint8_t q[KQ_ELEMS];
        int8_t sc[16];
        uint16_t d;

        kquant_quantize_scales(src + KQ_ELEMS * b, w ? w + KQ_ELEMS * b : NULL, 4, 32,
                               &d, sc, q);
        memset(out, 0, sizeof(*out));
        out->d = d;
        for (int s = 0; s < 16; s++) {
            const unsigned six = (unsigned)(sc[s] + 32);

            out->scales[s % 8] |= (uint8_t)((six & 15) << s / 8 * 4);
            out->scales[8 + s % 4] |= (uint8_t)((six >> 4) << s / 4 * 2);
        }
        for (int j = 0; j < KQ_ELEMS; j++) {
            out->hmask[j % 32] |= (uint8_t)((q[j] >> 2) << j / 32);
            q[j] &= 3;
        }
        kquant_pack_two(q, out->qs);
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q3_K__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q3_K *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d);

        for (int j = 0; j < KQ_ELEMS; j++)
            *dst++ = d * (float)q3_K_scale(blocks[b].scales, j / 16) *
                     (float)q3_K_weight(&blocks[b], j);
    }
}
#endif
