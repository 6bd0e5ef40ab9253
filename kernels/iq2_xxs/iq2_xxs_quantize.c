/* SPDX-License-Identifier: MIT
 *
 * iq2_xxs_quantize.c - floats to iq2_xxs and back, the reference
 */
#include <string.h>

#include "kernels/codebook/search.h"
#include "kernels/kernels.h"
#include "kernels/iq2_xxs/iq2_xxs.h"

/* src[256] with importances w[256]. */
static void quantize_block(const struct codebook_grid *grid, const float *src,
                           const float *w, struct block_iq2_xxs *out)
{
    struct codebook_block block = {.n_units = 8, .n_levels = 16, .n_variants = 1};
    float x[256];

    block.exponent = codebook_normalise(src, x);
    codebook_search(grid, x, w, 0, block.hulls[0]);
    codebook_fit(&block, x, w);

    memcpy(out->d, &block.d, 2);
    for (int u = 0; u < 8; u++) {
        uint32_t word = (uint32_t)block.level[u] << 28;

        for (int i = 0; i < 4; i++) {
            const int g = 4 * u + i, point = block.choice[g]->point;
            const uint8_t signs = codebook_choose_signs(x + 8 * g, w + 8 * g,
                                                        codebook_iq2xxs[point], true);

            out->unit[u].point[i] = (uint8_t)point;
            word |= (uint32_t)(signs & 127) << 7 * i;
        }
        for (int i = 0; i < 4; i++)
            out->unit[u].signs[i] = (uint8_t)(word >> 8 * i);
    }
}

CODEBOOK_QUANTIZE(iq2_xxs, CODEBOOK_IQ2XXS)
CODEBOOK_DEQUANTIZE(iq2_xxs, 4, iq2_xxs_values, CODEBOOK_IQ2_SCALE, CODEBOOK_IQ2_WEIGHT)
