/* SPDX-License-Identifier: MIT
 *
 * iq2_xs_quantize.c - floats to iq2_xs and back, the reference
 */
#include <string.h>

#include "kernels/codebook/search.h"
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

CODEBOOK_QUANTIZE(iq2_xs, CODEBOOK_IQ2XS)
CODEBOOK_DEQUANTIZE(iq2_xs, 2, iq2_xs_values, CODEBOOK_IQ2_SCALE, CODEBOOK_IQ2_WEIGHT)
