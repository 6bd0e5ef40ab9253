/* SPDX-License-Identifier: MIT
 *
 * kquant.h - what the K-quant formats share: super-blocks of 256 weights
 *
 * A super-block has one or two half-precision scales and a small integer scale
 * (and minimum) per sub-block. Against activations in layout q8_256 (one float
 * scale and 256 int8 values over the same 256 elements) a whole super-block is
 * a sum of integers, turned into a float once:
 *
 *   q4_K, q5_K   w = d * sc[s] * q - dmin * m[s]       8 sub-blocks of 32
 *       dot = dx * (d * sum_s sc[s] * dot(q, x)_s - dmin * sum_s m[s] * sum(x)_s)
 *   q6_K         w = d * sc[s] * (q - 32)             16 sub-blocks of 16
 *       dot = dx * d * (sum_s sc[s] * dot(q, x)_s - 32 * sum_s sc[s] * sum(x)_s)
 *
 * The eight 6-bit scales and eight 6-bit minima of q4_K and q5_K lie in twelve
 * bytes; s0..s3 are whole in the low six bits of A and B, the upper four are
 * split between a nibble of C and the top two bits of A and B:
 *
 *            byte i of A (0..3)   byte i of B (4..7)   byte i of C (8..11)
 *   bits 7 6 | sc[4+i] bits 5 4 | m[4+i] bits 5 4    | m[4+i] bits 3 2
 *   bits 5 4 | sc[i]   bits 5 4 | m[i]   bits 5 4    | m[4+i] bits 1 0
 *   bits 3-0 | sc[i]   bits 3-0 | m[i]   bits 3-0    | sc[4+i] bits 3-0
 */
#ifndef SLM_KERNELS_KQUANT_H
#define SLM_KERNELS_KQUANT_H

#include <stddef.h>
#include <stdint.h>

#define KQ_ELEMS 256 /* weights in a super-block */

/* The 2-bit fields that q2_K, q3_K and tq2_0 share: 32 bytes hold 128 weights, byte i
 * the weights i, 32 + i, 64 + i and 96 + i from its low end up. */
static inline int kquant_two(const uint8_t qs[64], int j)
{
    return qs[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3;
}

/* The inverse: q[256], each 0..3. */
static inline void kquant_pack_two(const uint8_t q[KQ_ELEMS], uint8_t qs[64])
{
    for (int i = 0; i < 64; i++) {
        const uint8_t *four = q + i / 32 * 128 + i % 32;

        qs[i] = (uint8_t)(four[0] | four[32] << 2 | four[64] << 4 | four[96] << 6);
    }
}

/* Scales to six[0..7], minima to six[8..15], each 0..63. */
static inline void kquant_unpack_six(const uint8_t packed[12], uint8_t six[16])
{
    for (int i = 0; i < 4; i++) {
        const unsigned a = packed[i], b = packed[4 + i], c = packed[8 + i];

        six[i] = a & 63;
        six[4 + i] = (uint8_t)((c & 15) | (a >> 6) << 4);
        six[8 + i] = b & 63;
        six[12 + i] = (uint8_t)(c >> 4 | (b >> 6) << 4);
    }
}

/* The inverse of kquant_unpack_six(). */
static inline void kquant_pack_six(const uint8_t six[16], uint8_t packed[12])
{
    for (int i = 0; i < 4; i++) {
        const unsigned sc = six[4 + i], m = six[12 + i];

        packed[i] = (uint8_t)(six[i] | (sc >> 4) << 6);
        packed[4 + i] = (uint8_t)(six[8 + i] | (m >> 4) << 6);
        packed[8 + i] = (uint8_t)((sc & 15) | (m & 15) << 4);
    }
}

#endif
