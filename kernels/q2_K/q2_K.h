/* SPDX-License-Identifier: MIT
 *
 * q2_K.h - 2-bit weights in super-blocks of 256 (ggml type 10), 2.625 bits each
 *
 *   byte 0                  16             80     82     84
 *        | scales: 16 bytes | qs: 64 bytes | d    | dmin |
 *          per 16 weights:    2 bits each    f16    f16
 *          min << 4 | scale
 *     two halves of 128 weights; in half h, i in 0..31:
 *     qs[32h + i]   bits 1 0 = weight 128h      + i    bits 5 4 = weight 128h + 64 + i
 *                   bits 3 2 = weight 128h + 32 + i    bits 7 6 = weight 128h + 96 + i
 *
 *   w = (d * scale[s]) * q - (dmin * min[s]),  q in 0..3, s = weight / 16
 */
#ifndef SLM_KERNELS_Q2_K_H
#define SLM_KERNELS_Q2_K_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_q2_K {
    uint8_t scales[16];
    uint8_t qs[64];
    uint16_t d;
    uint16_t dmin;
};

_Static_assert(sizeof(struct block_q2_K) == 84, "q2_K block size");

#endif
