/* SPDX-License-Identifier: MIT
 *
 * iq4_nl.h - 32 weights of 4 bits on an uneven grid (GGUF type 20, 4.5 bits per
 * weight)
 *
 *   byte   0       2                          18
 *          | d f16 | qs[0] | qs[1] | ... qs[15] |
 *
 *   qs[j]  7       4 3       0
 *          | c[j+16] | c[j]  |     codes, 0..15
 *
 *   weight i = d * iq4_nl_values[c[i]], i < 32
 *
 * The grid is denser near zero, as the weights are, and a little heavier on its
 * negative side, so that the sign of d matters. iq4_xs uses it too.
 */
#ifndef SLM_KERNELS_IQ4_NL_H
#define SLM_KERNELS_IQ4_NL_H

#include <assert.h>
#include <stdint.h>

#define IQ4_NL_ELEMS 32

struct block_iq4_nl {
    uint8_t d[2]; /* f16 */
    uint8_t qs[IQ4_NL_ELEMS / 2];
};
static_assert(sizeof(struct block_iq4_nl) == 18, "iq4_nl block as in GGUF");

static const int8_t iq4_nl_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

#endif
