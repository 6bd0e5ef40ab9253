/* SPDX-License-Identifier: MIT
 *
 * codebook.c - the grids of the codebook formats as tables of values
 */
#include "kernels/codebook/codebook.h"

#include <stdalign.h>

/* The values of one point, from a code of two bits per value... */
#define EIGHT(level, code)                                                     \
    {level((code)&3),         level((code) >> 2 & 3), level((code) >> 4 & 3),  \
     level((code) >> 6 & 3),  level((code) >> 8 & 3), level((code) >> 10 & 3), \
     level((code) >> 12 & 3), level((code) >> 14 & 3)},
/* ... and of three. */
#define FOUR(level, code)                                             \
    {level((code)&7), level((code) >> 3 & 7), level((code) >> 6 & 7), \
     level((code) >> 9 & 7)},

#define CODEBOOK_ENTRY(code) EIGHT(CODEBOOK_IQ1S_LEVEL, code)
alignas(64) const int8_t codebook_iq1s[2048][8] = {
#include "kernels/codebook/iq1s.def"
};
#undef CODEBOOK_ENTRY

#define CODEBOOK_ENTRY(code) EIGHT(CODEBOOK_IQ2_LEVEL, code)
alignas(64) const uint8_t codebook_iq2xxs[256][8] = {
#include "kernels/codebook/iq2xxs.def"
};
alignas(64) const uint8_t codebook_iq2xs[512][8] = {
#include "kernels/codebook/iq2xs.def"
};
alignas(64) const uint8_t codebook_iq2s[1024][8] = {
#include "kernels/codebook/iq2s.def"
};
#undef CODEBOOK_ENTRY

#define CODEBOOK_ENTRY(code) FOUR(CODEBOOK_IQ3XXS_LEVEL, code)
alignas(64) const uint8_t codebook_iq3xxs[256][4] = {
#include "kernels/codebook/iq3xxs.def"
};
#undef CODEBOOK_ENTRY

#define CODEBOOK_ENTRY(code) FOUR(CODEBOOK_IQ3S_LEVEL, code)
alignas(64) const uint8_t codebook_iq3s[512][4] = {
#include "kernels/codebook/iq3s.def"
};
#undef CODEBOOK_ENTRY

/* Value j of a point, 4 times 0 to 2 and the shift, in its nibble: see codebook.h. */
#define NIBBLE(code, shift, j) \
    (4u * ((code) >> 2 * (j)&3) + (shift)) << (8 * ((j) % 4) + 4 * ((j) / 4))
#define NIBBLES(code, shift)                                                       \
    NIBBLE(code, shift, 0) | NIBBLE(code, shift, 1) | NIBBLE(code, shift, 2) |     \
        NIBBLE(code, shift, 3) | NIBBLE(code, shift, 4) | NIBBLE(code, shift, 5) | \
        NIBBLE(code, shift, 6) | NIBBLE(code, shift, 7),

alignas(64) const uint32_t codebook_iq1s_nibbles[2 * 2048] = {
#define CODEBOOK_ENTRY(code) NIBBLES(code, 1)
#include "kernels/codebook/iq1s.def"
#undef CODEBOOK_ENTRY
#define CODEBOOK_ENTRY(code) NIBBLES(code, 0)
#include "kernels/codebook/iq1s.def"
#undef CODEBOOK_ENTRY
};

/* Four values of a point in a byte, those at bit `at` and four values on: see
 * codebook.h. */
#define CODE_BYTE(code, at)                                      \
    (((code) >> (at)&3) << 4 | ((code) >> ((at) + 2) & 3) << 6 | \
     ((code) >> ((at) + 8) & 3) | ((code) >> ((at) + 10) & 3) << 2),

alignas(64) const uint8_t codebook_iq2xxs_codes[2 * 256] = {
#define CODEBOOK_ENTRY(code) CODE_BYTE(code, 0)
#include "kernels/codebook/iq2xxs.def"
#undef CODEBOOK_ENTRY
#define CODEBOOK_ENTRY(code) CODE_BYTE(code, 4)
#include "kernels/codebook/iq2xxs.def"
#undef CODEBOOK_ENTRY
};

alignas(64) const uint8_t codebook_iq2xs_codes[2 * 512] = {
#define CODEBOOK_ENTRY(code) CODE_BYTE(code, 0)
#include "kernels/codebook/iq2xs.def"
#undef CODEBOOK_ENTRY
#define CODEBOOK_ENTRY(code) CODE_BYTE(code, 4)
#include "kernels/codebook/iq2xs.def"
#undef CODEBOOK_ENTRY
};

alignas(64) const uint8_t codebook_iq2s_codes[2 * 1024] = {
#define CODEBOOK_ENTRY(code) CODE_BYTE(code, 0)
#include "kernels/codebook/iq2s.def"
#undef CODEBOOK_ENTRY
#define CODEBOOK_ENTRY(code) CODE_BYTE(code, 4)
#include "kernels/codebook/iq2s.def"
#undef CODEBOOK_ENTRY
};

/* Bit 7 is the parity of bits 0 to 6. */
#define SIGNS_1(s)                                                                    \
    ((s) | (((s) ^ (s) >> 1 ^ (s) >> 2 ^ (s) >> 3 ^ (s) >> 4 ^ (s) >> 5 ^ (s) >> 6) & \
            1) << 7)
#define SIGNS_4(s)  SIGNS_1(s), SIGNS_1((s) + 1), SIGNS_1((s) + 2), SIGNS_1((s) + 3)
#define SIGNS_16(s) SIGNS_4(s), SIGNS_4((s) + 4), SIGNS_4((s) + 8), SIGNS_4((s) + 12)

alignas(64) const uint8_t codebook_signs[128] = {
    SIGNS_16(0),  SIGNS_16(16), SIGNS_16(32), SIGNS_16(48),
    SIGNS_16(64), SIGNS_16(80), SIGNS_16(96), SIGNS_16(112),
};
