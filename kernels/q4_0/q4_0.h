/* SPDX-License-Identifier: MIT
 *
 * q4_0.h - 32 weights of 4 bits with one scale (GGUF type 2, 4.5 bits per weight)
 *
 *   byte   0       2                          18
 *          | d f16 | qs[0] | qs[1] | ... qs[15] |
 *
 *   qs[j]  7       4 3       0
 *          | w[j+16] | w[j]  |     unsigned, 0..15
 *
 *   weight i = d * (w[i] - 8), i < 32
 *
 * A block starts at any even address or, in a caller's buffer, at any address.
 */
#ifndef SLM_KERNELS_Q4_0_H
#define SLM_KERNELS_Q4_0_H

#include <assert.h>
#include <stdint.h>

#define Q4_0_ELEMS 32

struct block_q4_0 {
    uint8_t d[2]; /* f16 */
    uint8_t qs[Q4_0_ELEMS / 2];
};
static_assert(sizeof(struct block_q4_0) == 18, "q4_0 block as in GGUF");

#endif
