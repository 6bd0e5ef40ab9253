/* SPDX-License-Identifier: MIT
 *
 * iq1_m.h - 256 weights of -1, 0, 1, shifted by an eighth, from a codebook of 2048
 * points, with more scales than iq1_s (GGUF type 29, 1.75 bits per weight)
 *
 *   byte   0                  32                48                    56
 *          | points: 32 bytes | high: 16 bytes  | scales: 4 of 16 bits |
 *
 *   points[g]  bits 0-7 of the point of group g (8 weights)
 *   high[u]    unit u, 16 weights:  | 7: shift | 6-4: bits 8-10 | of group 2u + 1
 *                                   | 3: shift | 2-0: bits 8-10 | of group 2u
 *   scales[i]  little-endian:  | 15-12 | 11-9 | 8-6 | 5-3 | 2-0 |
 *                levels of units         4i+3  4i+2  4i+1  4i
 *                bits 4i .. 4i+3 of d, an f16
 *
 *   weight = d * (2 * level + 1) * (grid[point][j] + (shift ? -1/8 : 1/8));  grid in
 *   codebook/codebook.h (iq1s)
 */
#ifndef SLM_KERNELS_IQ1_M_H
#define SLM_KERNELS_IQ1_M_H

#include <assert.h>
#include <stdint.h>

#include "kernels/codebook/codebook.h"

struct block_iq1_m {
    uint8_t points[32];
    uint8_t high[16];
    uint8_t scales[4][2];
};
static_assert(sizeof(struct block_iq1_m) == 56, "iq1_m block as in GGUF");

/* f16 */
static inline uint16_t iq1_m_d(const struct block_iq1_m *w)
{
    unsigned d = 0;

    for (int i = 0; i < 4; i++)
        d |= (unsigned)(w->scales[i][1] >> 4) << 4 * i;
    return (uint16_t)d;
}

/* unit 0..15 */
static inline int iq1_m_level(const struct block_iq1_m *w, int unit)
{
    const uint8_t *scales = w->scales[unit / 4];

    return (scales[0] | scales[1] << 8) >> unit % 4 * 3 & 7;
}

/* group 0..31: its weights without scale, in eighths */
static inline void iq1_m_eighths(const struct block_iq1_m *w, int group, int8_t *q)
{
    const unsigned high = w->high[group / 2] >> group % 2 * 4 & 15u;

    codebook_shift(codebook_iq1s[w->points[group] | (high & 7) << 8], high >> 3, q);
}

#endif
