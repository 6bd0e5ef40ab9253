/* SPDX-License-Identifier: MIT
 *
 * q4_1.h - 32 weights of 4 bits with scale and minimum (GGUF type 3, 5 bits per
 * weight)
 *
 *   byte   0       2       4                          20
 *          | d f16 | m f16 | qs[0] | qs[1] | ... qs[15] |
 *
 *   qs[j]  7       4 3       0
 *          | q[j+16] | q[j]  |     unsigned, 0..15
 *
 *   weight i = d * q[i] + m, i < 32
 */
#ifndef SLM_KERNELS_Q4_1_H
#define SLM_KERNELS_Q4_1_H

#include <assert.h>
#include <stdint.h>

#define Q4_1_ELEMS 32

struct block_q4_1 {
    uint8_t d[2]; /* f16 */
    uint8_t m[2]; /* f16 */
    uint8_t qs[Q4_1_ELEMS / 2];
};
static_assert(sizeof(struct block_q4_1) == 20, "q4_1 block as in GGUF");

#endif
