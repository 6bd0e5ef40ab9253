/* SPDX-License-Identifier: MIT
 *
 * q4_K.h - 4-bit weights in super-blocks of 256 (ggml type 12), 4.5 bits each
 *
 *   byte 0    2      4                    16                               144
 *        | d  | dmin | scales: 12 bytes   | qs: 128 bytes                    |
 *          f16  f16    8 x 6 bit scales,    low nibbles  | high nibbles
 *                      8 x 6 bit minima     of 32 bytes: | of the same:
 *                      (kquant/kquant.h)
 *     qs[  0.. 31]   low = weights   0.. 31 (sub-block 0), high =  32.. 63 (1)
 *     qs[ 32.. 63]   low = weights  64.. 95 (sub-block 2), high =  96..127 (3)
 *     qs[ 64.. 95]   low = weights 128..159 (sub-block 4), high = 160..191 (5)
 *     qs[ 96..127]   low = weights 192..223 (sub-block 6), high = 224..255 (7)
 *
 *   w = (d * scale[s]) * q - (dmin * min[s]),  q in 0..15, s = sub-block
 */
#ifndef SLM_KERNELS_Q4_K_H
#define SLM_KERNELS_Q4_K_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_q4_K {
    uint16_t d;
    uint16_t dmin;
    uint8_t scales[12];
    uint8_t qs[128];
};

_Static_assert(sizeof(struct block_q4_K) == 144, "q4_K block size");

#endif
