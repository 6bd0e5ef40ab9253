/* SPDX-License-Identifier: MIT
 *
 * iq1_s_quantize.c - floats to iq1_s and back, the reference
 *
 * The search is codebook/search.h's; a unit's two shifts are two variants.
 */
#include <string.h>

#include "kernels/codebook/search.h"
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

CODEBOOK_QUANTIZE(iq1_s, CODEBOOK_IQ1S_PLUS, CODEBOOK_IQ1S_MINUS)
CODEBOOK_DEQUANTIZE(iq1_s, 4, iq1_s_eighths, CODEBOOK_IQ1_SCALE, CODEBOOK_IQ1_WEIGHT)
