/* SPDX-License-Identifier: MIT
 *
 * iq2_xs_quantize.c - floats to iq2_xs and back, the reference
 *
 * dequantize rounds as the format is defined: d times (level + 1/2) first, then that
 * times the grid's value. The search is codebook/search.h's.
 */
#include <string.h>

#include "kernels/codebook/search.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/iq2_xs/iq2_xs.h"

/* src[256] with importances w[256]. */
static void quantize_block(const struct codebook_grid *grid, const float *src,
                           const float *w, struct block_iq2_xs *out)
{
    struct codebook_block block = {.n_units = 16, .n_levels = 16, .n_variants = 1};
    float x[256];

    block.exponent = codebook_normalise(src, x);
    codebook_search(grid, x, w, 0, block.hulls[0]);
    codebook_fit(&block, x, w);

    memcpy(out->d, &block.d, 2);
    for (int g = 0; g < CODEBOOK_GROUPS; g++) {
        const int point = block.choice[g]->point;
        const uint8_t signs =
            codebook_choose_signs(x + 8 * g, w + 8 * g, codebook_iq2xs[point], true);

        out->qs[g][0] = (uint8_t)point;
        out->qs[g][1] = (uint8_t)(point >> 8 | (signs & 127) << 1);
    }
    for (int i = 0; i < 8; i++)
        out->levels[i] = (uint8_t)(block.level[2 * i] | block.level[2 * i + 1] << 4);
}

void kern_quantize_iq2_xs__scalar(const float *src, const float *w, void *dst, size_t n)
{
    struct block_iq2_xs *blocks = dst;
    struct codebook_grid grid;
    float importance[256];

    codebook_grid_init(&grid, CODEBOOK_IQ2XS);
    for (size_t b = 0; b < n / 256; b++) {
        codebook_importance(w ? w + 256 * b : NULL, importance);
        quantize_block(&grid, src + 256 * b, importance, &blocks[b]);
    }
}

void kern_dequantize_iq2_xs__scalar(const void *src, float *dst, size_t n)
{
    const struct block_iq2_xs *blocks = src;

    for (size_t b = 0; b < n / 256; b++) {
        const float d = half_to_f32(load_u16(blocks[b].d));

        for (int g = 0; g < 32; g++) {
            const float scale =
                d * (0.5f + (float)iq2_xs_level(&blocks[b], g / 2)) * 0.25f;
            int8_t q[8];

            iq2_xs_values(&blocks[b], g, q);
            for (int j = 0; j < 8; j++)
                *dst++ = scale * (float)q[j];
        }
    }
}
