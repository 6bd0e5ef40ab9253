/* SPDX-License-Identifier: MIT
 *
 * tq2_0.h - ternary weights in blocks of 256 (ggml type 35), 2.0625 bits each
 *
 *   byte 0              64     66
 *        | qs: 64 bytes | d    |
 *          2 bits each    f16
 *     two halves of 128 weights; in half h, i in 0..31:
 *     qs[32h + i]   bits 1 0 = weight 128h      + i    bits 5 4 = weight 128h + 64 + i
 *                   bits 3 2 = weight 128h + 32 + i    bits 7 6 = weight 128h + 96 + i
 *
 *   w = (q - 1) * d,  q in 0..2; the quantiser leaves 3 unused, a file may hold it
 */
#ifndef SLM_KERNELS_TQ2_0_H
#define SLM_KERNELS_TQ2_0_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_tq2_0 {
    uint8_t qs[64];
    uint16_t d;
};

_Static_assert(sizeof(struct block_tq2_0) == 66, "tq2_0 block size");

#endif
