/* SPDX-License-Identifier: MIT
 *
 * tq1_0_simd.c - tq1_0 weights times q8_256 activations, every vector level
 *
 * Trits stay unsigned, 0..2, the format's -1 is the frame's bias; or, where products
 * take signs (V_SIGNS_APART), are -1..1, from bytes c that have 128 subtracted: then
 * the first trit is 1 above 42 and -1 below -42, and 3c mod 256 stays what it was.
 * There are no scales: eight sub-blocks with the scale 1 are so many sums that do not
 * wait for each other. Range: a block's dot product is at most 256 * 2 * 127 = 65024.
 *
 * A dot instruction of unsigned bytes needs no trits (products()): with c' = 3c mod 256
 * what is left of a byte c when its first trit t has been taken, t = (3c - c') / 256.
 * Summed up over all weights
 *     256 * sum t x = 3 * sum c x - sum c' x
 * which costs a second dot product, but no extraction. Both sums are at most 256 * 255
 * * 127 = 8290560, so three times that fits, and the difference is a multiple of 256.
 */
#include "kernels/simd/x16_super.h"
#include "kernels/tq1_0/tq1_0.h"

/* 3c of every byte, less multiples of 256. Kept: clang would multiply c by 9, 27, 81
 * and 243 instead, and no instruction multiplies bytes. */
SIMD_INLINE vi three_times(vi c)
{
    return v_keep(v_add8(c, v_add8(c, c)));
}

#if V_SIGNS_APART
enum { BIAS = 0 };

/* Emits n trits of every byte: fours `four`, four + step, ... */
SIMD_INLINE void trits(vi c, int n, int four, int step, x16_emit_fn *emit,
                       const struct x16_sink sink)
{
    c = v_xor(c, v_set1_8(-128));
    SIMD_UNROLL
    for (int i = 0; i < n; i++) {
        x16_emit_units(
            v_sub8(v_greater_8(v_set1_8(-42), c), v_greater_8(c, v_set1_8(42))),
            four + i * step, emit, sink);
        c = three_times(c);
    }
}
#else
enum { BIAS = 1 };

/* The first trit of every byte: 3c >> 8, in 16 bits for even and odd bytes. */
SIMD_INLINE vi first_trit(vi c)
{
    const vi even = v_and(c, v_set1_32(0x00ff00ff)), odd = v_srl16(c, 8);
    const vi even_3 = v_add32(even, v_add32(even, even));
    const vi odd_3 = v_add32(odd, v_add32(odd, odd));

    return v_or(v_srl16(even_3, 8), v_and(odd_3, v_set1_32((int)0xff00ff00)));
}

/* Emits n trits of every byte: fours `four`, four + step, ... */
SIMD_INLINE void trits(vi c, int n, int four, int step, x16_emit_fn *emit,
                       const struct x16_sink sink)
{
    SIMD_UNROLL
    for (int i = 0; i < n; i++) {
        emit(sink, four + i * step, first_trit(c));
        c = three_times(c);
    }
}

#endif

/* Body, in dwords: 0..11 five trits a byte, 12 four. Sub-blocks start and end with
 * their first and last four, as the frame wants it. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi c = v_load(body + 64 * step);

    if (step < 8)
        trits(c, 5, step, 8, emit, sink);
    else if (step < 12)
        trits(c, 5, 40 + step - 8, 4, emit, sink);
    else
        trits(c, 4, 60, 1, emit, sink);
}

#if V_WIDE
#define PRODUCTS products

enum { CHAINS = 4 }; /* sums that do not wait for each other */

/* Sums of c x and of c' x. */
struct fractions {
    vi first[CHAINS], rest[CHAINS];
};

/* n fours, four, four + step, ...; chain: to which sums they are added. */
SIMD_INLINE void fractions(vi c, int n, int four, int step, int chain, const int8_t *x,
                           struct fractions *out)
{
    SIMD_UNROLL
    for (int i = 0; i < n; i++) {
        const int8_t *at = x + 4 * (four + i * step);

        out->first[chain] = v_dot_u(out->first[chain], c, at);
        c = three_times(c);
        out->rest[chain] = v_dot_u(out->rest[chain], c, at);
    }
    v_made(out->first[chain]); /* clang would make them all where they are added up */
}

SIMD_INLINE void products(const uint8_t *body, const struct x16_sink sink)
{
    const int8_t *x = sink.q;
    struct fractions sums;
    vi first, rest, start = v_zero();

    SIMD_UNROLL
    for (int i = 0; i < CHAINS; i++)
        sums.first[i] = sums.rest[i] = v_zero();
    SIMD_UNROLL
    for (int j = 0; j < 8; j++) {
        x16_prefetch_later(sink, j, 12, sums.rest[(j + CHAINS - 1) % CHAINS]);
        fractions(v_load(body + 64 * j), 5, j, 8, j % CHAINS, x, &sums);
    }
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
        x16_prefetch_later(sink, 8 + j, 12, sums.rest[(j + CHAINS - 1) % CHAINS]);
        fractions(v_load(body + 64 * (8 + j)), 5, 40 + j, 4, j % CHAINS, x, &sums);
    }
    fractions(v_load(body + 64 * 12), 4, 60, 1, 0, x, &sums);
    first = sums.first[0];
    rest = sums.rest[0];
    SIMD_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        first = v_add32(first, sums.first[i]);
        rest = v_add32(rest, sums.rest[i]);
    }
    rest = v_sub32(v_add32(first, v_add32(first, first)), rest);
    SIMD_UNROLL
    for (int s = 0; s < 8; s++)
        start = v_add32(start, v_bcast_4(&sink.column->start[s]));
    sink.to->sum[sink.strand][0] = v_add32(v_sra32(rest, 8), start);
}
#else
#define PRODUCTS NULL
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    (void)body;
    out->d = v_half(block_scales);
    SIMD_UNROLL
    for (int s = 0; s < 8; s++)
        out->scale[s] = v_scale(v_set1_32(1));
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_tq1_0),
               .body_bytes = offsetof(struct block_tq1_0, d),
               .n_scales = 1,
               .scale_bytes = 2,
               .scale_at = {offsetof(struct block_tq1_0, d)}},
    .n_subs = 8,
    .unscaled = true,
    .max = 2,
    .narrow = 1,
    .bias = BIAS,
    .is_signed = BIAS == 0,
    .steps = 13,
    .weights = weights,
    .products = PRODUCTS,
    .scales = scales,
};

X16_SUPER_KERNELS(tq1_0, format)
