/* SPDX-License-Identifier: MIT
 *
 * q5_K.h - 5-bit weights in super-blocks of 256 (ggml type 13), 5.5 bits each
 *
 *   byte 0    2      4                   16              48              176
 *        | d  | dmin | scales: 12 bytes  | qh: 32 bytes  | qs: 128 bytes   |
 *          f16  f16    8 x 6 bit scales,   fifth bits      as in q4_K
 *                      8 x 6 bit minima
 *                      (kquant/kquant.h)
 *   qs: the low four bits, two sub-blocks of 32 in each 32 bytes (low nibble: the
 *       even sub-block, high nibble: the odd one).
 *   qh: bit s of qh[i] is the fifth bit of weight i of sub-block s.
 *
 *   w = (d * scale[s]) * q - (dmin * min[s]),  q in 0..31, s = sub-block
 */
#ifndef SLM_KERNELS_Q5_K_H
#define SLM_KERNELS_Q5_K_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_q5_K {
    uint16_t d;
    uint16_t dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
};

_Static_assert(sizeof(struct block_q5_K) == 176, "q5_K block size");

#endif
