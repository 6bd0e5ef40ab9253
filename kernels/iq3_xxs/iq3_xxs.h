/* SPDX-License-Identifier: MIT
 *
 * iq3_xxs.h - codebook weights in super-blocks of 256 (ggml type 18), 3.0625 bits each
 *
 *   byte 0     2              66                        98
 *        | d   | qs: 64 bytes | scales and signs: 8 x 4 |
 *          f16   grid indices   bytes, little endian
 *
 *     qs[g]      point of the grid iq3xxs for weights 4g .. 4g + 3
 *     word b     (weights 32b .. 32b + 31), from bit 0 up:
 *                | signs 0: 7 | signs 1: 7 | signs 2: 7 | signs 3: 7 | ls: 4 |
 *                signs i: of weights 32b + 8i .. 32b + 8i + 7, the eighth from parity
 *                (codebook/codebook.h)
 *
 *   w = d * (ls + 0.5) * 0.5 * sign * point, magnitudes 4..62
 */
#ifndef SLM_KERNELS_IQ3_XXS_H
#define SLM_KERNELS_IQ3_XXS_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_iq3_xxs {
    uint16_t d;
    uint8_t qs[64];
    uint8_t words[8][4];
};

_Static_assert(sizeof(struct block_iq3_xxs) == 98, "iq3_xxs block size");

/* Word b as a number. */
static inline uint32_t iq3_xxs_word(const struct block_iq3_xxs *block, int b)
{
    const uint8_t *p = block->words[b];

    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
