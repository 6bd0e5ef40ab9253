/* SPDX-License-Identifier: MIT
 *
 * nvfp4.h - 64 weights of 4-bit floats, a scale of 8 bits for every 16 (GGUF type 40,
 * 4.5 bits per weight)
 *
 *   byte   0                 4                          36
 *          | s[0] ... s[3]   | qs[0] | qs[1] | ... qs[31] |
 *
 *   s      7        6      3 2        0
 *          | unused | exponent | mantissa |     UE4M3
 *          scale 2^(exponent - 7) * (1 + mantissa / 8); exponent 0: 2^-9 * mantissa;
 *          127, which is not a number there, reads as zero here, as in the format's
 *          reference, and so does what has the unused bit
 *
 *   qs[8g+j]  7            4 3          0
 *             | c[16g+j+8] | c[16g+j]   |       E2M1, j < 8, as in mxfp4
 *
 *   weight i = s[i / 16] * E2M1(c[i]) = s[i / 16] / 2 * mxfp4_values[c[i]], i < 64
 *
 * Files may hold one more scale for the whole tensor, in a tensor of its own.
 */
#ifndef SLM_KERNELS_NVFP4_H
#define SLM_KERNELS_NVFP4_H

#include <assert.h>
#include <stdint.h>

#include "kernels/half.h"
#include "kernels/mxfp4/mxfp4.h"

#define NVFP4_ELEMS   64
#define NVFP4_GROUP   16  /* weights with one scale */
#define NVFP4_LARGEST 126 /* code of the largest scale, 448 */

struct block_nvfp4 {
    uint8_t s[NVFP4_ELEMS / NVFP4_GROUP];
    uint8_t qs[NVFP4_ELEMS / 2];
};
static_assert(sizeof(struct block_nvfp4) == 36, "nvfp4 block as in GGUF");

/* Half of the scale with code s: as the bits of a half a code is 2^8 times too small.
 */
static inline float nvfp4_half_scale(uint8_t s)
{
    return s > NVFP4_LARGEST ? 0 : 128 * half_to_f32((uint16_t)(s << 7));
}

static inline int nvfp4_value(const uint8_t qs[NVFP4_ELEMS / 2], int i)
{
    const uint8_t two = qs[i / 16 * 8 + i % 8];

    return mxfp4_values[i % 16 < 8 ? two & 15 : two >> 4];
}

#endif
