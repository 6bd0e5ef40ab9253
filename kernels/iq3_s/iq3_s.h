/* SPDX-License-Identifier: MIT
 *
 * iq3_s.h - codebook weights in super-blocks of 256 (ggml type 21), 3.4375 bits each
 *
 *   byte 0     2              66            74               106               110
 *        | d   | qs: 64 bytes | qh: 8 bytes | signs: 32 bytes | scales: 4 bytes |
 *          f16   low 8 bits     9th bits      bit: negative     4 bits each
 *                of indices
 *
 *     point of the grid iq3s for weights 4g .. 4g + 3: qs[g], and bit g % 8 of
 *     qh[g / 8] as bit 8
 *     signs[i]     bit j: weight 8i + j is negative
 *     scales[i]    low nibble = ls of weights 64i .. 64i + 31, high = of the next 32
 *
 *   w = d * (2 * ls + 1) * sign * point, magnitudes 1..15
 */
#ifndef SLM_KERNELS_IQ3_S_H
#define SLM_KERNELS_IQ3_S_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_iq3_s {
    uint16_t d;
    uint8_t qs[64];
    uint8_t qh[8];
    uint8_t signs[32];
    uint8_t scales[4];
};

_Static_assert(sizeof(struct block_iq3_s) == 110, "iq3_s block size");

/* Index of the point of weights 4g .. 4g + 3. */
static inline int iq3_s_point(const struct block_iq3_s *block, int g)
{
    return block->qs[g] | (block->qh[g / 8] >> g % 8 & 1) << 8;
}

/* 2 * ls + 1 for weights 32s .. 32s + 31. */
static inline int iq3_s_scale(const struct block_iq3_s *block, int s)
{
    return 2 * (block->scales[s / 2] >> s % 2 * 4 & 15) + 1;
}

#endif
