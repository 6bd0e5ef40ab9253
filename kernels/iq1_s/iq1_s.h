/* SPDX-License-Identifier: MIT
 *
 * iq1_s.h - 256 weights of -1, 0, 1, shifted by an eighth, from a codebook of 2048
 * points (GGUF type 19, 1.5625 bits per weight)
 *
 *   byte   0       2                  34                             50
 *          | d f16 | points: 32 bytes | units: 8 of 16 bits          |
 *
 *   points[g]  bits 0-7 of the point of group g (8 weights)
 *   units[u]   32 weights, little-endian:
 *              | 15: shift | 14 ... 12: level | 11-9 | 8-6 | 5-3 | 2-0 |
 *                bits 8-10 of the points of groups    4u+3  4u+2  4u+1  4u
 *
 *   weight = d * (2 * level + 1) * (grid[point][j] + (shift ? -1/8 : 1/8));  grid in
 *   codebook/codebook.h (iq1s)
 */
#ifndef SLM_KERNELS_IQ1_S_H
#define SLM_KERNELS_IQ1_S_H

#include <assert.h>
#include <stdint.h>

#include "kernels/codebook/codebook.h"
#include "kernels/half.h"

struct block_iq1_s {
    uint8_t d[2]; /* f16 */
    uint8_t points[32];
    uint8_t units[8][2];
};
static_assert(sizeof(struct block_iq1_s) == 50, "iq1_s block as in GGUF");

static inline uint16_t iq1_s_d(const struct block_iq1_s *w)
{
    return load_u16(w->d);
}

static inline unsigned iq1_s_unit(const struct block_iq1_s *w, int unit)
{
    return w->units[unit][0] | (unsigned)w->units[unit][1] << 8;
}

/* unit 0..7 */
static inline int iq1_s_level(const struct block_iq1_s *w, int unit)
{
    return (int)(iq1_s_unit(w, unit) >> 12 & 7);
}

/* group 0..31: its weights without scale, in eighths */
static inline void iq1_s_eighths(const struct block_iq1_s *w, int group, int8_t *q)
{
    const unsigned unit = iq1_s_unit(w, group / 4);
    const unsigned high = unit >> group % 4 * 3 & 7;

    codebook_shift(codebook_iq1s[w->points[group] | high << 8], unit >> 15, q);
}

#endif
