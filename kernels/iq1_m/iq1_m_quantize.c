/* SPDX-License-Identifier: MIT
 *
 * iq1_m_quantize.c - floats to iq1_m and back, the reference
 *
 * The search is codebook/search.h's; each group takes its points from both shifts.
 */
#include <string.h>

#include "kernels/codebook/search.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/iq1_m/iq1_m.h"

/* src[256] with importances w[256]. */
static void quantize_block(const struct codebook_grid grids[2], const float *src,
                           const float *w, struct block_iq1_m *out)
{
    struct codebook_block block = {.n_units = 16, .n_levels = 8, .n_variants = 1};
    float x[256];

    block.exponent = codebook_normalise(src, x);
    codebook_search(&grids[0], x, w, 0, block.hulls[0]);
    codebook_search(&grids[1], x, w, 1, block.hulls[1]);
    for (int g = 0; g < CODEBOOK_GROUPS; g++)
        codebook_merge(&block.hulls[0][g], &block.hulls[1][g]);
    codebook_fit(&block, x, w);

    memset(out->high, 0, sizeof(out->high));
    for (int g = 0; g < CODEBOOK_GROUPS; g++) {
        const struct codebook_choice *c = block.choice[g];

        out->points[g] = (uint8_t)c->point;
        out->high[g / 2] |= (uint8_t)((c->variant << 3 | c->point >> 8) << g % 2 * 4);
    }
    for (int i = 0; i < 4; i++) {
        unsigned scales = (unsigned)(block.d >> 4 * i & 15) << 12;

        for (int u = 0; u < 4; u++)
            scales |= (unsigned)block.level[4 * i + u] << 3 * u;
        out->scales[i][0] = (uint8_t)scales;
        out->scales[i][1] = (uint8_t)(scales >> 8);
    }
}

CODEBOOK_QUANTIZE(iq1_m, CODEBOOK_IQ1S_PLUS, CODEBOOK_IQ1S_MINUS)
CODEBOOK_DEQUANTIZE(iq1_m, 2, iq1_m_eighths, CODEBOOK_IQ1_SCALE, CODEBOOK_IQ1_WEIGHT)
