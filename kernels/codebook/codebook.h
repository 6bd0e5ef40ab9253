/* SPDX-License-Identifier: MIT
 *
 * codebook.h - the grids of the codebook formats (IQ1, IQ2, IQ3) and their signs
 *
 * These formats do not store a value per weight but the index of a grid point:
 * eight (IQ1, IQ2) or four (IQ3) values at once, out of a list that is part of the
 * format. A grid point takes few levels, so it is written down as a code of two or
 * three bits per value, value j in bits 2j (3j) and up:
 *
 *   grid    points x values   code    levels                           used by
 *   iq1s      2048 x 8        2 bit   -1 0 1                           iq1_s iq1_m
 *   iq2xxs     256 x 8        2 bit    8 25 43                         iq2_xxs
 *   iq2xs      512 x 8        2 bit    8 25 43                         iq2_xs
 *   iq2s      1024 x 8        2 bit    8 25 43                         iq2_s
 *   iq3xxs     256 x 4        3 bit    4 12 20 28 36 44 52 62          iq3_xxs
 *   iq3s       512 x 4        3 bit    1 3 5 7 9 11 13 15              iq3_s
 *
 * Three readings of the same lists, none of them written by hand twice:
 * - the tables below hold the values, a point's bytes in a row: one load of eight
 *   or four bytes per index;
 * - the codes are kernels/codebook/<grid>.def: whoever wants another table defines
 *       CODEBOOK_ENTRY(code)
 *   as one element of it with a comma behind, and includes the list inside the
 *   braces of an array;
 * - CODEBOOK_IQ1S_LEVEL() and its like make a value's level from its code.
 *
 * IQ2 and IQ3 magnitudes have signs apart, a bit per weight, set: negative. iq2_s
 * and iq3_s store all eight of a group; iq2_xxs, iq2_xs and iq3_xxs store seven,
 * and the eighth makes the number of minus signs in the group even.
 *
 * Threading: constants.
 */
#ifndef SLM_KERNELS_CODEBOOK_H
#define SLM_KERNELS_CODEBOOK_H

#include <stdint.h>

extern const int8_t codebook_iq1s[2048][8]; /* in eighths: -8 0 8 */
extern const uint8_t codebook_iq2xxs[256][8];
extern const uint8_t codebook_iq2xs[512][8];
extern const uint8_t codebook_iq2s[1024][8];
extern const uint8_t codebook_iq3xxs[256][4];
extern const uint8_t codebook_iq3s[512][4];

/* Points as codes for look-ups (codebook_vbmi.h): a byte for the values 0, 1, 4 and 5
 * of every point, then one for 2, 3, 6 and 7. Bits 4 and 5 of a byte have its first
 * value, 6 and 7 the second, 0 and 1 the third, 2 and 3 the last. */
extern const uint8_t codebook_iq2xxs_codes[2 * 256];
extern const uint8_t codebook_iq2xs_codes[2 * 512];
extern const uint8_t codebook_iq2s_codes[2 * 1024];

/* Shifted IQ1 points for look-ups by index + 2048 * down: a nibble n per value of which
 * 2n - 9 are its eighths; byte j has value j in its lower half, 4 + j in its upper one.
 */
extern const uint32_t codebook_iq1s_nibbles[2 * 2048];

/* Seven stored signs to eight: bit j set when weight j is negative. */
extern const uint8_t codebook_signs[128];

/* The eight weights of a group without their scale. */
static inline void codebook_apply_signs(const uint8_t *values, unsigned signs,
                                        int8_t *q)
{
    for (int j = 0; j < 8; j++)
        q[j] = (int8_t)(signs >> j & 1 ? -values[j] : values[j]);
}

/* The same for IQ1, in eighths: values are shifted by an eighth, down or up. */
static inline void codebook_shift(const int8_t *values, unsigned down, int8_t *q)
{
    for (int j = 0; j < 8; j++)
        q[j] = (int8_t)(values[j] + (down ? -1 : 1));
}

/* Constant expressions, for use in tables too. */
#define CODEBOOK_IQ1S_LEVEL(code)   (8 * ((code)-1))
#define CODEBOOK_IQ2_LEVEL(code)    (8 + 17 * (code) + (code) / 2)
#define CODEBOOK_IQ3XXS_LEVEL(code) (4 + 8 * (code) + (code) / 7 * 2)
#define CODEBOOK_IQ3S_LEVEL(code)   (1 + 2 * (code))

#define CODEBOOK_ROW(a, b, c, d, e, f, g, h) \
    CODEBOOK_ENTRY(a)                        \
    CODEBOOK_ENTRY(b)                        \
    CODEBOOK_ENTRY(c)                        \
    CODEBOOK_ENTRY(d)                        \
    CODEBOOK_ENTRY(e) CODEBOOK_ENTRY(f) CODEBOOK_ENTRY(g) CODEBOOK_ENTRY(h)

#endif
