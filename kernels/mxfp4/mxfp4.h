/* SPDX-License-Identifier: MIT
 *
 * mxfp4.h - 32 weights of 4-bit floats with a power of two as scale (GGUF type 39,
 * 4.25 bits per weight; OCP Microscaling Formats, version 1.0)
 *
 *   byte   0        1                          17
 *          | e E8M0 | qs[0] | qs[1] | ... qs[15] |
 *
 *   qs[j]  7       4 3       0
 *          | c[j+16] | c[j]  |
 *
 *   c      3      2 1        0
 *          | sign | exponent | mantissa |       E2M1
 *          magnitudes 0 0.5 1 1.5 2 3 4 6; minus zero reads as zero
 *   e      the scale is 2^(e - 127); 255 is not a number
 *
 *   weight i = 2^(e - 127) * E2M1(c[i]) = 2^(e - 128) * mxfp4_values[c[i]], i < 32
 *
 * Magnitudes are doubled here, which makes them integers, and the scale halved.
 */
#ifndef SLM_KERNELS_MXFP4_H
#define SLM_KERNELS_MXFP4_H

#include <assert.h>
#include <stdint.h>

#include "kernels/half.h"

#define MXFP4_ELEMS 32

struct block_mxfp4 {
    uint8_t e;
    uint8_t qs[MXFP4_ELEMS / 2];
};
static_assert(sizeof(struct block_mxfp4) == 17, "mxfp4 block as in GGUF");

static const int8_t mxfp4_values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                        0, -1, -2, -3, -4, -6, -8, -12};

/* 2^(e - 128): exponent field e - 1; below that subnormal, 2^22 and 2^21 times the
 * smallest float. */
static inline float mxfp4_scale(uint8_t e)
{
    if (e == 255)
        return float_from_bits(0x7fc00000);
    return float_from_bits(e >= 2 ? (uint32_t)(e - 1) << 23 : 0x200000u << e);
}

#endif
