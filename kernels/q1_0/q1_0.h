/* SPDX-License-Identifier: MIT
 *
 * q1_0.h - 128 weights of one bit with one scale (GGUF type 41, 1.125 bits per weight)
 *
 *   byte   0       2                          18
 *          | d f16 | qs[0] | qs[1] | ... qs[15] |
 *
 *   qs[j]  7                      0
 *          | b[8j+7] | ... | b[8j] |
 *
 *   weight i = d * (2 * b[i] - 1), i < 128
 */
#ifndef SLM_KERNELS_Q1_0_H
#define SLM_KERNELS_Q1_0_H

#include <assert.h>
#include <stdint.h>

#define Q1_0_ELEMS 128

struct block_q1_0 {
    uint8_t d[2]; /* f16 */
    uint8_t qs[Q1_0_ELEMS / 8];
};
static_assert(sizeof(struct block_q1_0) == 18, "q1_0 block as in GGUF");

static inline int q1_0_sign(const uint8_t *qs, int i)
{
    return (qs[i / 8] >> i % 8 & 1) * 2 - 1;
}

#endif
