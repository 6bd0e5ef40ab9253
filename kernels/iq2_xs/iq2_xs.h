/* SPDX-License-Identifier: MIT
 *
 * iq2_xs.h - 256 weights from a codebook of 512 points (GGUF type 17, 2.3125 bits
 * per weight)
 *
 *   byte   0       2                                     66                      74
 *          | d f16 | qs: 32 groups of 8, 16 bits each    | levels: 8 bytes       |
 *
 *   group, little-endian:   | 15 ... 9: signs | 8 ... 0: point |
 *   levels[i]:              | 7 ... 4: level of unit 2i + 1 | 3 ... 0: of unit 2i |
 *   a unit is 16 weights, 2 groups
 *
 *   weight = d * (2 * level + 1) / 8 * (+-)grid[point][j];  grid and the eighth sign
 *   in codebook/codebook.h (iq2xs)
 */
#ifndef SLM_KERNELS_IQ2_XS_H
#define SLM_KERNELS_IQ2_XS_H

#include <assert.h>
#include <stdint.h>

#include "kernels/codebook/codebook.h"
#include "kernels/half.h"

struct block_iq2_xs {
    uint8_t d[2]; /* f16 */
    uint8_t qs[32][2];
    uint8_t levels[8];
};
static_assert(sizeof(struct block_iq2_xs) == 74, "iq2_xs block as in GGUF");

static inline uint16_t iq2_xs_d(const struct block_iq2_xs *w)
{
    return load_u16(w->d);
}

/* unit 0..15 */
static inline int iq2_xs_level(const struct block_iq2_xs *w, int unit)
{
    return w->levels[unit / 2] >> unit % 2 * 4 & 15;
}

/* group 0..31: its weights without scale */
static inline void iq2_xs_values(const struct block_iq2_xs *w, int group, int8_t *q)
{
    const unsigned bits = w->qs[group][0] | (unsigned)w->qs[group][1] << 8;

    codebook_apply_signs(codebook_iq2xs[bits & 511], codebook_signs[bits >> 9], q);
}

#endif
