/* SPDX-License-Identifier: MIT
 *
 * iq1_s_quantize.c - floats to iq1_s and back, the reference
 *
 * dequantize rounds as the format is defined: d times the level first, then that times
 * the shifted value. The search is codebook/search.h's; a unit's two shifts are
 * two variants.
 */
#include <string.h>

#include "kernels/codebook/search.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/iq1_s/iq1_s.h"

/* src[256] with importances w[256]. */
static void quantize_block(const struct codebook_grid grids[2], const float *src,
                           const float *w, struct block_iq1_s *out)
{
    struct codebook_block block = {.n_units = 8, .n_levels = 8, .n_variants = 2};
    float x[256];

    block.exponent = codebook_normalise(src, x);
    codebook_search(&grids[0], x, w, 0, block.hulls[0]);
    codebook_search(&grids[1], x, w, 1, block.hulls[1]);
    codebook_fit(&block, x, w);

    memcpy(out->d, &block.d, 2);
    for (int u = 0; u < 8; u++) {
        unsigned unit = (unsigned)block.variant[u] << 15 | (unsigned)block.level[u]
                                                               << 12;

        for (int i = 0; i < 4; i++) {
            const unsigned point = block.choice[4 * u + i]->point;

            out->points[4 * u + i] = (uint8_t)point;
            unit |= point >> 8 << 3 * i;
        }
        out->units[u][0] = (uint8_t)unit;
        out->units[u][1] = (uint8_t)(unit >> 8);
    }
}

void kern_quantize_iq1_s__scalar(const float *src, const float *w, void *dst, size_t n)
{
    struct block_iq1_s *blocks = dst;
    struct codebook_grid grids[2];
    float importance[256];

    codebook_grid_init(&grids[0], CODEBOOK_IQ1S_PLUS);
    codebook_grid_init(&grids[1], CODEBOOK_IQ1S_MINUS);
    for (size_t b = 0; b < n / 256; b++) {
        codebook_importance(w ? w + 256 * b : NULL, importance);
        quantize_block(grids, src + 256 * b, importance, &blocks[b]);
    }
}

void kern_dequantize_iq1_s__scalar(const void *src, float *dst, size_t n)
{
    const struct block_iq1_s *blocks = src;

    for (size_t b = 0; b < n / 256; b++) {
        const float d = half_to_f32(load_u16(blocks[b].d));

        for (int g = 0; g < 32; g++) {
            const float scale = d * (float)(2 * iq1_s_level(&blocks[b], g / 4) + 1);
            int8_t q[8];

            iq1_s_eighths(&blocks[b], g, q);
            for (int j = 0; j < 8; j++)
                *dst++ = scale * ((float)q[j] * 0.125f);
        }
    }
}
