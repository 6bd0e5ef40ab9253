/* SPDX-License-Identifier: MIT
 *
 * iq2_s.h - 256 weights from a codebook of 1024 points (GGUF type 22, 2.5625 bits
 * per weight)
 *
 *   byte   0       2             34              66             74             82
 *          | d f16 | points: 32  | signs: 32     | high: 8      | levels: 8    |
 *
 *   points[g]  bits 0-7 of the point of group g (8 weights)
 *   signs[g]   bit j: weight j of group g is negative
 *   high[u]    bits 8-9 of the points of groups 4u .. 4u+3, two bits each, lowest first
 *   levels[i]  | 7 ... 4: level of unit 2i + 1 | 3 ... 0: of unit 2i |
 *   a unit is 16 weights, 2 groups
 *
 *   weight = d * (2 * level + 1) / 8 * (+-)grid[point][j];  grid in
 *   codebook/codebook.h (iq2s)
 */
#ifndef SLM_KERNELS_IQ2_S_H
#define SLM_KERNELS_IQ2_S_H

#include <assert.h>
#include <stdint.h>

#include "kernels/codebook/codebook.h"
#include "kernels/half.h"

struct block_iq2_s {
    uint8_t d[2]; /* f16 */
    uint8_t points[32];
    uint8_t signs[32];
    uint8_t high[8];
    uint8_t levels[8];
};
static_assert(sizeof(struct block_iq2_s) == 82, "iq2_s block as in GGUF");

static inline uint16_t iq2_s_d(const struct block_iq2_s *w)
{
    return load_u16(w->d);
}

/* unit 0..15 */
static inline int iq2_s_level(const struct block_iq2_s *w, int unit)
{
    return w->levels[unit / 2] >> unit % 2 * 4 & 15;
}

/* group 0..31: its weights without scale */
static inline void iq2_s_values(const struct block_iq2_s *w, int group, int8_t *q)
{
    const int high = w->high[group / 4] >> group % 4 * 2 & 3;

    codebook_apply_signs(codebook_iq2s[w->points[group] | high << 8], w->signs[group],
                         q);
}

#endif
