/* SPDX-License-Identifier: MIT
 *
 * iq3_s_quantize.c - floats to iq3_s and back, the reference
 */
#include "kernels/codebook/codebook.h"
#include "kernels/codebook/iq3_fit.h"
#include "kernels/iq3_s/iq3_s.h"
#include "kernels/kernels.h"

static void pack(const struct iq3_block *from, struct block_iq3_s *block)
{
    memset(block, 0, sizeof(*block));
    block->d = from->d;
    for (int g = 0; g < 64; g++) {
        block->qs[g] = (uint8_t)from->point[g];
        block->qh[g / 8] |= (uint8_t)(from->point[g] >> 8 << g % 8);
    }
    memcpy(block->signs, from->signs, sizeof(block->signs));
    for (int s = 0; s < 8; s++)
        block->scales[s / 2] |= (uint8_t)(from->ls[s] << s % 2 * 4);
}

IQ3_QUANTIZE(iq3_s, codebook_iq3s, 512, false, 1, CODEBOOK_IQ3S_LEVEL)

#ifdef KERN_LEVEL_scalar
void kern_dequantize_iq3_s__scalar(const void *src, float *dst, size_t n)
{
    const struct block_iq3_s *blocks = src;

    for (size_t b = 0; b < n / KQ_ELEMS; b++) {
        const float d = half_to_f32(blocks[b].d);

        for (int j = 0; j < KQ_ELEMS; j++) {
            const float scale = d * (float)iq3_s_scale(&blocks[b], j / 32);
            const uint8_t m = codebook_iq3s[iq3_s_point(&blocks[b], j / 4)][j % 4];

            *dst++ = scale * (float)(blocks[b].signs[j / 8] >> j % 8 & 1 ? -m : m);
        }
    }
}
#endif
