/* SPDX-License-Identifier: MIT
 *
 * attention_amx.h - scores and mixes of f16 keys and values by tiles of bf16
 *
 * A half has 11 bits of precision and is the sum of two bf16, of 8 bits each, exactly:
 * y = high + low with |low| < 2^-7 |y|. An element of a query, or a weight, is nearly
 * one, x = high + low + rest with |low| <= 2^-8 |x|, |rest| <= 2^-16 |x|. Three
 * products are added, high high + low high + high low; what they leave out of x y is at
 * most 2^-16 + 2^-15 of it.
 *
 * Sums run over blocks of 32 numbers; pair j is numbers j and 16 + j of a block. Which
 * vectors of the cache are the rows of a tile differs by operation, but a row of two
 * tiles, of high and of low parts, is always made of two vectors of 16 halves, lane by
 * lane.
 *
 * Queries, or weights, are held as tiles [block][group][high, low], a group being up to
 * 16 of them. The cache is converted block by block, while the block before is
 * multiplied. Tile registers are sums first, then the groups, then the cache, 8 in all:
 *
 *     groups   tiles of the cache   sums   groups         cache
 *     1        4                    0..3   4 high 5 low   6, 7 in turn
 *     2        2                    0..3   4, 5           6, 7
 *     3        2                    0..5   6              7
 *
 * so that at least three instructions follow each other before one adds to the sums of
 * the first.
 */
#ifndef SLM_KERNELS_VECOPS_ATTENTION_AMX_H
#define SLM_KERNELS_VECOPS_ATTENTION_AMX_H

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/vecops/attention_amx_tiles.h"
#include "kernels/vecops/attention_tiles.h"

enum {
    MAX_GROUPS = 3,
    MAX_QUERIES = MAX_GROUPS * SIDE,
    MAX_HELD = 64, /* blocks times groups: 128 KiB */
};

/* High and low parts. */
struct two_tiles {
    uint32_t high[SIDE][SIDE], low[SIDE][SIDE];
} __attribute__((aligned(64)));

struct held {
    size_t n_groups, n_blocks;
    struct two_tiles of[MAX_HELD]; /* [block * n_groups + group] */
};

/* The sums of group g and tile p of the cache, [row of the first factor][row of the
 * second]. */
struct sums {
    float of[MAX_GROUPS][MAX_TILES][SIDE][SIDE];
} __attribute__((aligned(64)));

/* Halves that become tiles: row r of tile p of block k is made of the 16 halves at
 * `at` + k * block + tile[p] + r * row and those `second` behind them. Of a block from
 * n_whole on only n_rows rows, counting the second ones, and the lanes of `mask` are
 * there. */
struct halves {
    const uint16_t *at;
    size_t block, tile[MAX_TILES], row, second;
    size_t n_whole, n_rows;
    __mmask16 mask[2];
    size_t ahead; /* halves from what is converted to what is prefetched; 0: none */
};

/* What is converted of the cache: a block, and the next one. */
typedef struct two_tiles converted[2][MAX_TILES];

/* Offsets of n tiles that are `next` apart; those that are missing are the last one,
 * too.
 */
SIMD_INLINE void set_tiles(struct halves *h, size_t n, size_t next)
{
    for (size_t p = 0; p < MAX_TILES; p++)
        h->tile[p] = (p < n ? p : n - 1) * next;
}

/* The upper halves of the lanes of a and b as pairs, a's first. */
SIMD_INLINE __m512i upper_pairs(__m512 a, __m512 b)
{
    const __m512i down = _mm512_set1_epi32(0x00000302);
    const __m512i lanes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);

    return _mm512_mask_shuffle_epi8(_mm512_castps_si512(b), 0x3333333333333333,
                                    _mm512_castps_si512(a),
                                    _mm512_add_epi8(down, lanes));
}

/* What a bf16 in the upper half of a lane leaves of x. */
SIMD_INLINE __m512 rest_of(__m512 x, __m512 upper)
{
    return _mm512_sub_ps(
        x, _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(upper),
                                                _mm512_set1_epi32((int)0xffff0000))));
}

/* Rows of both tiles of two vectors of 16 floats that were halves. */
SIMD_INLINE void split_row(__m512 a, __m512 b, struct two_tiles *to, size_t r)
{
    _mm512_store_si512(to->high[r], upper_pairs(a, b));
    _mm512_store_si512(to->low[r], upper_pairs(rest_of(a, a), rest_of(b, b)));
}

SIMD_INLINE __m512 load_masked(const uint16_t *from, __mmask16 mask)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
}

/* Rows begin .. end-1 of all tiles of block k, counted through. */
SIMD_INLINE void convert_rows(const struct halves *h, size_t k, size_t begin,
                              size_t end, struct two_tiles *to)
{
    const uint16_t *at = h->at + k * h->block;

    if (k >= h->n_whole) {
        for (size_t i = begin; i < end; i++) {
            const size_t r = i % SIDE;
            const uint16_t *from = at + h->tile[i / SIDE] + r * h->row;

            split_row(
                load_masked(from, r < h->n_rows ? h->mask[0] : 0),
                load_masked(from + h->second, SIDE + r < h->n_rows ? h->mask[1] : 0),
                &to[i / SIDE], r);
        }
        return;
    }
    SIMD_UNROLL
    for (size_t i = begin; i < end; i++) {
        const uint16_t *from = at + h->tile[i / SIDE] + i % SIDE * h->row;

        if (h->ahead)
            __builtin_prefetch((const void *)((uintptr_t)from + 2 * h->ahead), 0, 2);
        split_row(_mm512_cvtph_ps(_mm256_loadu_si256((const void *)from)),
                  _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from + h->second))),
                  &to[i / SIDE], i % SIDE);
    }
}

#define LOAD_TILE(t, from) _tile_loadd(t, (const void *)(from), 64)

/* sums += held times cache; `swapped`: cache times held. */
#define DOT_TILES(sums, held, cache)           \
    do {                                       \
        if (swapped)                           \
            _tile_dpbf16ps(sums, cache, held); \
        else                                   \
            _tile_dpbf16ps(sums, held, cache); \
    } while (0)

/* Part i of n of the next block's conversion. */
#define CONVERT(i, n)                                                                  \
    if (more)                                                                          \
    convert_rows(h, k + 1, (i)*n_tiles * SIDE / (n), ((i) + 1) * n_tiles * SIDE / (n), \
                 to)

/* A group's part in register g times four tiles' parts. */
#define MULTIPLY_4(g, part, i)     \
    do {                           \
        LOAD_TILE(6, now[0].part); \
        DOT_TILES(0, g, 6);        \
        CONVERT((i), 12);          \
        LOAD_TILE(7, now[1].part); \
        DOT_TILES(1, g, 7);        \
        CONVERT((i) + 1, 12);      \
        LOAD_TILE(6, now[2].part); \
        DOT_TILES(2, g, 6);        \
        CONVERT((i) + 2, 12);      \
        LOAD_TILE(7, now[3].part); \
        DOT_TILES(3, g, 7);        \
        CONVERT((i) + 3, 12);      \
    } while (0)

/* Two groups' parts times two tiles' parts. */
#define MULTIPLY_2_2(of_group, part, i)  \
    do {                                 \
        LOAD_TILE(4, query[0].of_group); \
        LOAD_TILE(6, now[0].part);       \
        DOT_TILES(0, 4, 6);              \
        CONVERT((i), 12);                \
        LOAD_TILE(7, now[1].part);       \
        DOT_TILES(1, 4, 7);              \
        CONVERT((i) + 1, 12);            \
        LOAD_TILE(5, query[1].of_group); \
        DOT_TILES(2, 5, 6);              \
        CONVERT((i) + 2, 12);            \
        DOT_TILES(3, 5, 7);              \
        CONVERT((i) + 3, 12);            \
    } while (0)

/* Part i of a group's sums s and t: its part times two tiles' parts. */
#define MULTIPLY_2(s, t, from, part, i) \
    do {                                \
        LOAD_TILE(6, from);             \
        LOAD_TILE(7, now[0].part);      \
        DOT_TILES(s, 6, 7);             \
        CONVERT((i), 18);               \
        LOAD_TILE(7, now[1].part);      \
        DOT_TILES(t, 6, 7);             \
        CONVERT((i) + 1, 18);           \
    } while (0)

/* Block k of n_groups and n_tiles (constants), while the next one is converted, if
 * there are more. */
SIMD_INLINE void multiply_block(const bool swapped, const size_t n_groups,
                                const size_t n_tiles, const struct two_tiles *query,
                                const struct halves *h, size_t k, bool more,
                                const struct two_tiles *now, struct two_tiles *to)
{
    tiles_are_written();
    if (n_groups == 1) {
        LOAD_TILE(4, query->high);
        MULTIPLY_4(4, high, 0);
        LOAD_TILE(5, query->low);
        MULTIPLY_4(5, high, 4);
        MULTIPLY_4(4, low, 8);
    } else if (n_groups == 2) {
        MULTIPLY_2_2(high, high, 0);
        MULTIPLY_2_2(high, low, 4);
        MULTIPLY_2_2(low, high, 8);
    } else {
        MULTIPLY_2(0, 1, query[0].high, high, 0);
        MULTIPLY_2(2, 3, query[1].high, high, 2);
        MULTIPLY_2(4, 5, query[2].high, high, 4);
        MULTIPLY_2(0, 1, query[0].high, low, 6);
        MULTIPLY_2(2, 3, query[1].high, low, 8);
        MULTIPLY_2(4, 5, query[2].high, low, 10);
        MULTIPLY_2(0, 1, query[0].low, high, 12);
        MULTIPLY_2(2, 3, query[1].low, high, 14);
        MULTIPLY_2(4, 5, query[2].low, high, 16);
    }
}

/* Tiles of the cache that n_groups are multiplied with at a time. */
SIMD_INLINE size_t tiles_at_once(size_t n_groups)
{
    return n_groups == 1 ? 4 : 2;
}

SIMD_INLINE void multiply_blocks(const bool swapped, const size_t n_groups,
                                 const struct held *held, const struct halves *h,
                                 converted c)
{
    const size_t n_tiles = tiles_at_once(n_groups);

    convert_rows(h, 0, 0, n_tiles * SIDE, c[0]);
    for (size_t k = 0; k < held->n_blocks; k++)
        multiply_block(swapped, n_groups, n_tiles, held->of + k * n_groups, h, k,
                       k + 1 < held->n_blocks, c[k % 2], c[(k + 1) % 2]);
}

/* The sums of all blocks. */
SIMD_INLINE void multiply_tiles(const bool swapped, const struct held *held,
                                const struct halves *h, converted c, struct sums *s)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (held->n_groups == 1)
        multiply_blocks(swapped, 1, held, h, c);
    else if (held->n_groups == 2)
        multiply_blocks(swapped, 2, held, h, c);
    else {
        _tile_zero(4);
        _tile_zero(5);
        multiply_blocks(swapped, 3, held, h, c);
        _tile_stored(4, s->of[2][0], 64);
        _tile_stored(5, s->of[2][1], 64);
    }
    _tile_stored(0, s->of[0][0], 64);
    _tile_stored(1, s->of[0][1], 64);
    _tile_stored(2, held->n_groups == 1 ? s->of[0][2] : s->of[1][0], 64);
    _tile_stored(3, held->n_groups == 1 ? s->of[0][3] : s->of[1][1], 64);
}

/* to[i * stride] += row i of a tile of sums, n rows */
SIMD_INLINE void add_rows(const float (*row)[SIDE], size_t n, float *to, size_t stride)
{
    for (size_t i = 0; i < n; i++)
        _mm512_storeu_ps(
            to + i * stride,
            _mm512_add_ps(_mm512_loadu_ps(to + i * stride), _mm512_load_ps(row[i])));
}

/* ---- what is held ---------------------------------------------------------------- */

/* To the nearest bf16, in the upper half of a lane: the next larger where two are as
 * near. */
SIMD_INLINE __m512 rounded(__m512 x)
{
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000)));
}

/* Row r of both tiles, from two vectors of 16 floats. */
SIMD_INLINE void hold_row(struct two_tiles *to, size_t r, __m512 a, __m512 b)
{
    const __m512 x = rounded(a), y = rounded(b);

    _mm512_store_si512(to->high[r], upper_pairs(x, y));
    _mm512_store_si512(to->low[r],
                       upper_pairs(rounded(rest_of(a, x)), rounded(rest_of(b, y))));
}

SIMD_INLINE void set_held(struct held *held, size_t nq, size_t n)
{
    held->n_groups = (nq + SIDE - 1) / SIDE;
    held->n_blocks = (n + PAIRS - 1) / PAIRS;
}

/* How many numbers of nq queries are held at most. */
SIMD_INLINE size_t held_at_once(size_t nq)
{
    return MAX_HELD / ((nq + SIDE - 1) / SIDE) * PAIRS;
}

/* n elements of nq rows, for tiles with a row for each of them; the other rows of the
 * last group are zero. */
SIMD_INLINE void hold_rows(struct held *held, size_t nq, size_t n, const float *x,
                           size_t stride)
{
    set_held(held, nq, n);
    for (size_t q = 0; q < held->n_groups * SIDE; q++)
        for (size_t k = 0; k < held->n_blocks; k++) {
            const size_t i = k * PAIRS;
            const float *from = x + q * stride + i;
            struct two_tiles *to = &held->of[k * held->n_groups + q / SIDE];

            if (q < nq && i + PAIRS <= n)
                hold_row(to, q % SIDE, _mm512_loadu_ps(from),
                         _mm512_loadu_ps(from + SIDE));
            else
                hold_row(to, q % SIDE,
                         _mm512_maskz_loadu_ps(q < nq ? first_lanes(n, i) : 0, from),
                         _mm512_maskz_loadu_ps(q < nq ? first_lanes(n, i + SIDE) : 0,
                                               from + SIDE));
        }
}

#endif
