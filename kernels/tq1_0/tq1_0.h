/* SPDX-License-Identifier: MIT
 *
 * tq1_0.h - ternary weights in blocks of 256 (ggml type 34), 1.6875 bits each
 *
 *   byte 0              48            52     54
 *        | qs: 48 bytes | qh: 4 bytes | d    |
 *          5 trits each   4 trits each  f16
 *
 *     qs[i],      i in 0..31: weights i, 32 + i, ... 128 + i
 *     qs[32 + i], i in 0..15: weights 160 + i, 176 + i, ... 224 + i
 *     qh[i],      i in 0..3:  weights 240 + i, 244 + i, 248 + i, 252 + i (and a 0)
 *
 * Five trits t0 (the first weight's) to t4, each 0..2, are the number
 * v = 81 t0 + 27 t1 + 9 t2 + 3 t3 + t4 in 0..242, and the byte is the fraction v / 243
 * in 256ths, rounded up: c = ceil(256 v / 243). With a fraction the first trit is what
 * a multiplication by 3 carries out of the byte, and what stays in it is the fraction
 * of the others:
 *     t_n = ((c * 3^n mod 256) * 3) >> 8
 * A block may hold any byte; this formula says what it means.
 *
 *   w = (t - 1) * d
 */
#ifndef SLM_KERNELS_TQ1_0_H
#define SLM_KERNELS_TQ1_0_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_tq1_0 {
    uint8_t qs[48];
    uint8_t qh[4];
    uint16_t d;
};

_Static_assert(sizeof(struct block_tq1_0) == 54, "tq1_0 block size");

/* Trit n (0..4) of a byte. */
static inline int tq1_0_trit(uint8_t c, int n)
{
    static const uint8_t pow3[5] = {1, 3, 9, 27, 81};

    return (uint8_t)(c * pow3[n]) * 3 >> 8;
}

/* The trits of a block, one per weight. */
static inline void tq1_0_unpack(const struct block_tq1_0 *block, uint8_t q[KQ_ELEMS])
{
    for (int j = 0; j < 160; j++)
        q[j] = (uint8_t)tq1_0_trit(block->qs[j % 32], j / 32);
    for (int j = 0; j < 80; j++)
        q[160 + j] = (uint8_t)tq1_0_trit(block->qs[32 + j % 16], j / 16);
    for (int j = 0; j < 16; j++)
        q[240 + j] = (uint8_t)tq1_0_trit(block->qh[j % 4], j / 4);
}

#endif
