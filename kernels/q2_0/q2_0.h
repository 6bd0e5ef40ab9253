/* SPDX-License-Identifier: MIT
 *
 * q2_0.h - 64 weights of 2 bits with one scale (GGUF type 42, 2.25 bits per weight)
 *
 *   byte   0       2                          18
 *          | d f16 | qs[0] | qs[1] | ... qs[15] |
 *
 *   qs[j]  7      6 5      4 3      2 1    0
 *          | q[4j+3] | q[4j+2] | q[4j+1] | q[4j] |
 *
 *   weight i = d * (q[i] - 1), i < 64;  q in 0..3
 *
 * Older files have 128 weights in a block, 32 bytes of quants behind d, under the same
 * type number: q2_0_128.
 */
#ifndef SLM_KERNELS_Q2_0_H
#define SLM_KERNELS_Q2_0_H

#include <assert.h>
#include <stdint.h>

#define Q2_0_ELEMS     64
#define Q2_0_128_ELEMS 128

struct block_q2_0 {
    uint8_t d[2]; /* f16 */
    uint8_t qs[Q2_0_ELEMS / 4];
};
static_assert(sizeof(struct block_q2_0) == 18, "q2_0 block as in GGUF");

struct block_q2_0_128 {
    uint8_t d[2]; /* f16 */
    uint8_t qs[Q2_0_128_ELEMS / 4];
};
static_assert(sizeof(struct block_q2_0_128) == 34, "q2_0 block as in older files");

static inline int q2_0_value(const uint8_t *qs, int i)
{
    return (qs[i / 4] >> 2 * (i % 4) & 3) - 1;
}

#endif
