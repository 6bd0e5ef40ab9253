/* SPDX-License-Identifier: MIT
 *
 * q5_1.h - 32 weights of 5 bits with scale and minimum (GGUF type 7, 6 bits per
 * weight)
 *
 *   byte   0       2       4       8                          24
 *          | d f16 | m f16 | qh[4] | qs[0] | qs[1] | ... qs[15] |
 *
 *   qs[j]  7           4 3           0
 *          | low 4 bits | low 4 bits |
 *          | of q[j+16] | of q[j]    |     q unsigned, 0..31
 *
 *   qh     bit i of the 32, least significant byte first, is bit 4 of q[i]
 *
 *   weight i = d * q[i] + m, i < 32
 */
#ifndef SLM_KERNELS_Q5_1_H
#define SLM_KERNELS_Q5_1_H

#include <assert.h>
#include <stdint.h>

#define Q5_1_ELEMS 32

struct block_q5_1 {
    uint8_t d[2]; /* f16 */
    uint8_t m[2]; /* f16 */
    uint8_t qh[4];
    uint8_t qs[Q5_1_ELEMS / 2];
};
static_assert(sizeof(struct block_q5_1) == 24, "q5_1 block as in GGUF");

#endif
