/* SPDX-License-Identifier: MIT
 *
 * iq2_s_quantize.c - floats to iq2_s and back, the reference
 */
#include <string.h>

#include "kernels/codebook/search.h"
#include "kernels/kernels.h"
#include "kernels/iq2_s/iq2_s.h"

/* src[256] with importances w[256]. */
static void quantize_block(const struct codebook_grid *grid, const float *src,
                           const float *w, struct block_iq2_s *out)
{
    struct codebook_block block = {.n_units = 16, .n_levels = 16, .n_variants = 1};
    float x[256];

    block.exponent = codebook_normalise(src, x);
    codebook_search(grid, x, w, 0, block.hulls[0]);
    codebook_fit(&block, x, w);

    memcpy(out->d, &block.d, 2);
    memset(out->high, 0, sizeof(out->high));
    for (int g = 0; g < CODEBOOK_GROUPS; g++) {
        const int point = block.choice[g]->point;

        out->points[g] = (uint8_t)point;
        out->signs[g] =
            codebook_choose_signs(x + 8 * g, w + 8 * g, codebook_iq2s[point], false);
        out->high[g / 4] |= (uint8_t)(point >> 8 << g % 4 * 2);
    }
    for (int i = 0; i < 8; i++)
        out->levels[i] = (uint8_t)(block.level[2 * i] | block.level[2 * i + 1] << 4);
}

CODEBOOK_QUANTIZE(iq2_s, CODEBOOK_IQ2S)
CODEBOOK_DEQUANTIZE(iq2_s, 2, iq2_s_values, CODEBOOK_IQ2_SCALE, CODEBOOK_IQ2_WEIGHT)
