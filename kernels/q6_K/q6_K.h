/* SPDX-License-Identifier: MIT
 *
 * q6_K.h - 6-bit weights in super-blocks of 256 (ggml type 14), 6.5625 bits each
 *
 *   byte 0                128            192                  208    210
 *        | ql: 128 bytes  | qh: 64 bytes | scales: int8[16]   | d f16 |
 *
 *   Two halves of 128 weights; in half h, with ql + 64h and qh + 32h, and i in
 *   0..31:
 *     weight 128h      + i: low bits ql[i] & 15,      top bits qh[i] bits 1 0
 *     weight 128h + 32 + i: low bits ql[32 + i] & 15, top bits qh[i] bits 3 2
 *     weight 128h + 64 + i: low bits ql[i] >> 4,      top bits qh[i] bits 5 4
 *     weight 128h + 96 + i: low bits ql[32 + i] >> 4, top bits qh[i] bits 7 6
 *
 *   w = (d * scale[j / 16]) * (q - 32) for weight j,  q in 0..63
 */
#ifndef SLM_KERNELS_Q6_K_H
#define SLM_KERNELS_Q6_K_H

#include "kernels/kquant/kquant.h"

/* Packed: a row of weights may start at any address. */
struct __attribute__((packed)) block_q6_K {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    uint16_t d;
};

_Static_assert(sizeof(struct block_q6_K) == 210, "q6_K block size");

#endif
