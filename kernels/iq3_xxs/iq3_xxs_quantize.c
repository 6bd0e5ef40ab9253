/* SPDX-License-Identifier: MIT
 *
 * iq3_xxs_quantize.c - floats to iq3_xxs and back, the reference
 */
#include "kernels/codebook/codebook.h"
#include "kernels/codebook/iq3_fit.h"
#include "kernels/iq3_xxs/iq3_xxs.h"
#include "kernels/kernels.h"

static void pack(const struct iq3_block *from, struct block_iq3_xxs *block)
{
    block->d = from->d;
    for (int g = 0; g < 64; g++)
        block->qs[g] = (uint8_t)from->point[g];
    for (int b = 0; b < 8; b++) {
        uint32_t word = (uint32_t)from->ls[b] << 28;

        for (int i = 0; i < 4; i++)
            word |= (uint32_t)(from->signs[4 * b + i] & 127) << 7 * i;
        for (int i = 0; i < 4; i++)
            block->words[b][i] = (uint8_t)(word >> 8 * i);
    }
}

IQ3_QUANTIZE(iq3_xxs, codebook_iq3xxs, 256, true, 0.25f, CODEBOOK_IQ3XXS_LEVEL)

#ifdef KERN_LEVEL_scalar
void kern_dequantize_iq3_xxs__scalar(const void *src, float *dst, size_t n)
{
    const struct block_iq3_xxs *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d);

        for (int s = 0; s < 8; s++) {
            const uint32_t word = iq3_xxs_word(&blocks[b], s);
            const float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;

            for (int i = 0; i < 32; i++) {
                const uint8_t m = codebook_iq3xxs[blocks[b].qs[8 * s + i / 4]][i % 4];
                const uint8_t signs = codebook_signs[word >> i / 8 * 7 & 127];

                *dst++ = scale * (float)(signs >> i % 8 & 1 ? -m : m);
            }
        }
    }
}
#endif
