/* SPDX-License-Identifier: MIT
 *
 * iq2_xxs.h - 256 weights from a codebook of 256 points (GGUF type 16, 2.0625 bits
 * per weight)
 *
 *   byte   0       2        10       18                58       66
 *          | d f16 | unit 0 | unit 1 |       ...       | unit 7 |
 *
 *   unit of 32 weights = 4 groups of 8:
 *   byte   0          1          2          3          4                         8
 *          | point 0  | point 1  | point 2  | point 3  | 32 bits, little-endian  |
 *                       bits  0- 6   7-13  14-20  21-27   signs of groups 0..3
 *                       bits 28-31                        level of the unit
 *
 *   weight = d * (2 * level + 1) / 8 * (+-)grid[point][j];  grid and the eighth sign
 *   in codebook/codebook.h (iq2xxs)
 */
#ifndef SLM_KERNELS_IQ2_XXS_H
#define SLM_KERNELS_IQ2_XXS_H

#include <assert.h>
#include <stdint.h>

#include "kernels/codebook/codebook.h"
#include "kernels/half.h"

struct block_iq2_xxs {
    uint8_t d[2]; /* f16 */
    struct {
        uint8_t point[4];
        uint8_t signs[4]; /* and the level */
    } unit[8];
};
static_assert(sizeof(struct block_iq2_xxs) == 66, "iq2_xxs block as in GGUF");

static inline uint16_t iq2_xxs_d(const struct block_iq2_xxs *w)
{
    return load_u16(w->d);
}

static inline uint32_t iq2_xxs_word(const struct block_iq2_xxs *w, int unit)
{
    const uint8_t *b = w->unit[unit].signs;

    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* unit 0..7 */
static inline int iq2_xxs_level(const struct block_iq2_xxs *w, int unit)
{
    return (int)(iq2_xxs_word(w, unit) >> 28);
}

/* group 0..31: its weights without scale */
static inline void iq2_xxs_values(const struct block_iq2_xxs *w, int group, int8_t *q)
{
    const uint32_t signs = iq2_xxs_word(w, group / 4) >> group % 4 * 7 & 127;

    codebook_apply_signs(codebook_iq2xxs[w->unit[group / 4].point[group % 4]],
                         codebook_signs[signs], q);
}

#endif
