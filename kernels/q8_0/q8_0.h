/* SPDX-License-Identifier: MIT
 *
 * q8_0.h - 32 weights of 8 bits with one scale (GGUF type 8, 8.5 bits per weight)
 *
 *   byte   0       2                          34
 *          | d f16 | qs[0] | qs[1] | ... qs[31] |
 *
 *   weight i = d * qs[i], qs signed. A quantiser writes -127..127, a file may
 *   hold -128 too.
 */
#ifndef SLM_KERNELS_Q8_0_H
#define SLM_KERNELS_Q8_0_H

#include <assert.h>
#include <stdint.h>

#define Q8_0_ELEMS 32

struct block_q8_0 {
    uint8_t d[2]; /* f16 */
    int8_t qs[Q8_0_ELEMS];
};
static_assert(sizeof(struct block_q8_0) == 34, "q8_0 block as in GGUF");

#endif
