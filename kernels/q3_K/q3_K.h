/* SPDX-License-Identifier: MIT
 *
 * q3_K.h - 3-bit weights in super-blocks of 256 (ggml type 11), 3.4375 bits each
 *
 *   byte 0                 32             96                 108    110
 *        | hmask: 32 bytes | qs: 64 bytes | scales: 12 bytes | d    |
 *          top bits          low 2 bits     16 x 6 bits        f16
 *
 *     hmask[i]      bit p = top bit of weight 32p + i, i in 0..31
 *     two halves of 128 weights; in half h:
 *     qs[32h + i]   bits 1 0 = weight 128h      + i    bits 5 4 = weight 128h + 64 + i
 *                   bits 3 2 = weight 128h + 32 + i    bits 7 6 = weight 128h + 96 + i
 *     scales[i]     low nibble = bits 3-0 of sc[i], high nibble = of sc[8 + i], i < 8
 *     scales[8 + i] bits 5 4 of sc[i] | sc[4 + i] | sc[8 + i] | sc[12 + i], i < 4
 *              at   bits 1 0            3 2         5 4         7 6
 *
 *   w = (d * (sc[j / 16] - 32)) * (q - 4) for weight j,  sc in 0..63, q in 0..7
 */
#ifndef SLM_KERNELS_Q3_K_H
#define SLM_KERNELS_Q3_K_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_q3_K {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint16_t d;
};

_Static_assert(sizeof(struct block_q3_K) == 110, "q3_K block size");

/* sc[s] - 32, in -32..31. */
static inline int q3_K_scale(const uint8_t packed[12], int s)
{
    return ((packed[s % 8] >> s / 8 * 4 & 15) | (packed[8 + s % 4] >> s / 4 * 2 & 3)
                                                    << 4) -
           32;
}

/* q - 4 of weight j, in -4..3. */
static inline int q3_K_weight(const struct block_q3_K *block, int j)
{
    return kquant_two(block->qs, j) + 4 * (block->hmask[j % 32] >> j / 32 & 1) - 4;
}

#endif
