/* SPDX-License-Identifier: MIT
 *
 * iq4_xs.h - 4-bit weights on iq4_nl's grid in super-blocks of 256 (GGUF type 23,
 * 4.25 bits per weight)
 *
 *   byte 0       2          4             8                            136
 *        | d f16 | scales_h | scales_l[4] | qs: 8 sub-blocks of 16 bytes |
 *
 *   scales_l[j]  7            4 3           0
 *                | low 4 bits   | low 4 bits |
 *                | of s[2j + 1] | of s[2j]   |      s unsigned, 0..63
 *   scales_h     bits 2i, 2i + 1 of the 16, least significant byte first, are
 *                bits 4, 5 of s[i]
 *   qs           each sub-block as in iq4_nl
 *
 *   weight = (d * (s[i] - 32)) * iq4_nl_values[code], i = sub-block of 32
 */
#ifndef SLM_KERNELS_IQ4_XS_H
#define SLM_KERNELS_IQ4_XS_H

#include <assert.h>
#include <stdint.h>

#define IQ4_XS_ELEMS 256
#define IQ4_XS_SUBS  8

struct block_iq4_xs {
    uint8_t d[2]; /* f16 */
    uint8_t scales_h[2];
    uint8_t scales_l[IQ4_XS_SUBS / 2];
    uint8_t qs[IQ4_XS_ELEMS / 2];
};
static_assert(sizeof(struct block_iq4_xs) == 136, "iq4_xs block as in GGUF");

/* Scale of sub-block i, -32..31. */
static inline int iq4_xs_scale(const struct block_iq4_xs *block, int i)
{
    const int low = block->scales_l[i / 2] >> i % 2 * 4 & 15;
    const int high = block->scales_h[i / 4] >> i % 4 * 2 & 3;

    return (low | high << 4) - 32;
}

#endif
