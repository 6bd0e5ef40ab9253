/* SPDX-License-Identifier: MIT
 *
 * attention_bf16_amx_bf16.c - scores and mixes of bf16 keys and values by tiles
 *
 * The cache is the second factor as it lies in memory: a line of 64 bytes has a pair of
 * elements of 16 keys, or of two values 16 elements, and 16 lines are a tile. Queries,
 * or weights, become the first factor, rounded as attention_avx512bf16.c rounds them;
 * up to 16 of them are a group. Tile registers:
 *
 *     groups   tiles of the cache   sums   groups   cache
 *     1        4                    0..3   4        5, 6, 7, 5
 *     2        2                    0..3   4, 5     6, 7
 */
#include <string.h>

#include "kernels/vecops/attention_amx_tiles.h"
#include "kernels/vecops/attention_pairs.h"
#include "kernels/vecops/attention_tiles.h"

enum {
    MAX_GROUPS = 2,
    MAX_QUERIES = MAX_GROUPS * SIDE,
    MAX_HELD = 64, /* blocks times groups: 64 KiB */
};

typedef uint32_t tile_of_pairs[SIDE][SIDE];

/* The first factor. */
struct held {
    size_t n_groups, n_blocks;
    tile_of_pairs of[MAX_HELD] __attribute__((aligned(64))); /* [block][group] */
};

/* The second one, in pairs: line r of block k of tile p stands at k * block + p * next
 * + r * row. Block n_whole has n_lines; the last has no second numbers if is_odd. */
struct lines {
    const uint32_t *at;
    size_t block, next, row;
    size_t n_whole, n_lines;
    bool is_odd;
    size_t ahead; /* pairs from what is multiplied to what is prefetched */
};

/* Where sums come from and go to, by tile register; NULL: nowhere. */
struct sums {
    float *at[MAX_TILES];
    size_t stride[MAX_TILES]; /* bytes from row to row */
};

SIMD_INLINE size_t groups_of(size_t nq)
{
    return (nq + SIDE - 1) / SIDE;
}

/* How many numbers of nq queries are held at most. */
SIMD_INLINE size_t held_at_once(size_t nq)
{
    return MAX_HELD / groups_of(nq) * PAIRS;
}

/* Tiles of the cache that n_groups are multiplied with at a time. */
SIMD_INLINE size_t tiles_at_once(size_t n_groups)
{
    return n_groups == 1 ? 4 : 2;
}

/* n numbers of nq rows; what is missing of the last group and block is zero. */
static void hold(struct held *held, size_t nq, size_t n, const float *x, size_t stride)
{
    held->n_groups = groups_of(nq);
    held->n_blocks = (n + PAIRS - 1) / PAIRS;
    for (size_t q = 0; q < held->n_groups * SIDE; q++)
        for (size_t k = 0; k < held->n_blocks; k++)
            _mm512_store_si512(
                held->of[k * held->n_groups + q / SIDE][q % SIDE],
                q < nq ? first_pairs(x + q * stride + k * PAIRS, n - k * PAIRS)
                       : _mm512_setzero_si512());
}

/* The lines of a tile of block n_whole, and zeros. */
static void copy_lines(const struct lines *l, const uint32_t *from, tile_of_pairs to)
{
    for (size_t r = 0; r < SIDE; r++) {
        const bool is_half = l->is_odd && r + 1 == l->n_lines;
        const __m512i line = r < l->n_lines ? _mm512_loadu_si512(from + r * l->row)
                                            : _mm512_setzero_si512();

        _mm512_store_si512(
            to[r], _mm512_and_si512(line, _mm512_set1_epi32(is_half ? 0xffff : -1)));
    }
}

/* Block k of n_groups (constant), whose first factors are at `first`; m tiles are
 * there, and the last of them stands for the others. */
SIMD_INLINE void multiply_block(const size_t n_groups, const tile_of_pairs *first,
                                const struct lines *l, size_t k, size_t m,
                                tile_of_pairs *last)
{
    const uint32_t *second[MAX_TILES];
    size_t row = l->row * sizeof(uint32_t);

    SIMD_UNROLL
    for (size_t p = 0; p < tiles_at_once(n_groups); p++) {
        second[p] = l->at + k * l->block + smaller(p, m - 1) * l->next;
        for (size_t r = 0; k < l->n_whole && r < SIDE; r++)
            __builtin_prefetch(
                (const void *)((uintptr_t)(second[p] + r * l->row) + 4 * l->ahead), 0,
                2);
        if (k >= l->n_whole) {
            copy_lines(l, second[p], last[p]);
            second[p] = last[p][0];
        }
    }
    if (k >= l->n_whole)
        row = sizeof last[0][0];
    tiles_are_written();
    _tile_loadd(4, first[0], 64);
    if (n_groups == 1) {
        _tile_loadd(5, second[0], row);
        _tile_dpbf16ps(0, 4, 5);
        _tile_loadd(6, second[1], row);
        _tile_dpbf16ps(1, 4, 6);
        _tile_loadd(7, second[2], row);
        _tile_dpbf16ps(2, 4, 7);
        _tile_loadd(5, second[3], row);
        _tile_dpbf16ps(3, 4, 5);
    } else {
        _tile_loadd(6, second[0], row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, second[1], row);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, first[1], 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

#define BEGIN_SUM(t, adds)                          \
    do {                                            \
        if ((adds) && s->at[t])                     \
            _tile_loadd(t, s->at[t], s->stride[t]); \
        else                                        \
            _tile_zero(t);                          \
    } while (0)

#define END_SUM(t)                                   \
    do {                                             \
        if (s->at[t])                                \
            _tile_stored(t, s->at[t], s->stride[t]); \
    } while (0)

SIMD_INLINE void multiply_blocks(const size_t n_groups, const struct held *held,
                                 const struct lines *l, size_t m, bool adds,
                                 const struct sums *s)
{
    tile_of_pairs last[MAX_TILES] __attribute__((aligned(64)));

    tiles_are_written();
    BEGIN_SUM(0, adds);
    BEGIN_SUM(1, adds);
    BEGIN_SUM(2, adds);
    BEGIN_SUM(3, adds);
    for (size_t k = 0; k < held->n_blocks; k++)
        multiply_block(n_groups, held->of + k * n_groups, l, k, m, last);
    END_SUM(0);
    END_SUM(1);
    END_SUM(2);
    END_SUM(3);
}

/* n rows of m tiles' sums */
static void copy_sums(float *to, size_t to_stride, const float *from,
                      size_t from_stride, size_t n, size_t m)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, m * SIDE * sizeof *to);
}

/* What is held, of nq queries, times m tiles: to[q * stride + 0 .. 16 m), or that much
 * more of it if it adds. A group that is not whole has its sums elsewhere: a tile has
 * 16 rows. */
static void multiply(const struct held *held, size_t nq, const struct lines *l,
                     size_t m, bool adds, float *to, size_t stride)
{
    const size_t n_tiles = tiles_at_once(held->n_groups);
    const size_t whole = nq / SIDE, left = nq % SIDE;
    float part[SIDE][MAX_TILES * SIDE] __attribute__((aligned(64)));
    float *const rest = to + whole * SIDE * stride;
    struct sums s;

    for (size_t t = 0; t < MAX_TILES; t++) {
        const size_t group = t / n_tiles, p = t % n_tiles;
        const bool is_whole = group < whole;

        s.at[t] = p >= m     ? NULL
                  : is_whole ? to + group * SIDE * stride + p * SIDE
                             : &part[0][p * SIDE];
        s.stride[t] = is_whole ? stride * sizeof *to : sizeof part[0];
    }
    if (left && adds) {
        memset(part, 0, sizeof part);
        copy_sums(part[0], MAX_TILES * SIDE, rest, stride, left, m);
    }
    if (held->n_groups == 1)
        multiply_blocks(1, held, l, m, adds, &s);
    else
        multiply_blocks(2, held, l, m, adds, &s);
    if (left)
        copy_sums(rest, stride, part[0], MAX_TILES * SIDE, left, m);
}

/* ---- scores ---------------------------------------------------------------------- */

static void dot_queries(size_t n_panels, size_t d, const uint32_t *keys, size_t nq,
                        const float *query, size_t stride, float *s, size_t s_stride)
{
    const size_t most = held_at_once(nq), panel = d / 2 * PANEL;
    struct held held;

    for (size_t i = 0; i < d; i += most) {
        const size_t n = smaller(d - i, most);

        hold(&held, nq, n, query + i, stride);
        for (size_t p = 0, m; p < n_panels; p += m) {
            m = smaller(n_panels - p, tiles_at_once(held.n_groups));
            const struct lines l = {.at = keys + p * panel + i / 2 * PANEL,
                                    .block = SIDE * PANEL,
                                    .next = panel,
                                    .row = PANEL,
                                    .n_whole = n / PAIRS,
                                    .n_lines = n % PAIRS / 2,
                                    .ahead = m * panel};

            multiply(&held, nq, &l, m, i > 0, s + p * PANEL, s_stride);
        }
    }
}

void kern_attn_dot_bf16__amx_bf16(size_t n_panels, size_t d, const void *keys,
                                  size_t n_q, const void *query, size_t q_stride,
                                  float *s, size_t s_stride)
{
    const size_t stride = q_stride / sizeof(float);

    amx_begin(SIDE, ROW_BYTES);
    for (size_t q = 0; q < n_q; q += MAX_QUERIES)
        dot_queries(n_panels, d, keys, smaller(n_q - q, MAX_QUERIES),
                    (const float *)query + q * stride, stride, s + q * s_stride,
                    s_stride);
    amx_end();
}

/* ---- mixes ----------------------------------------------------------------------- */

static void mix_queries(size_t n, size_t d, const uint32_t *values, size_t nq,
                        const float *p, size_t p_stride, float *out, size_t o_stride)
{
    const size_t most = held_at_once(nq);
    struct held held;

    for (size_t t = 0; t < n; t += most) {
        const size_t n_here = smaller(n - t, most), n_rest = n_here % PAIRS;

        hold(&held, nq, n_here, p + t, p_stride);
        for (size_t i = 0, m; i < d; i += m * SIDE) {
            m = smaller((d - i) / SIDE, tiles_at_once(held.n_groups));
            const struct lines l = {.at = values + t / 2 * d + i,
                                    .block = SIDE * d,
                                    .next = SIDE,
                                    .row = d,
                                    .n_whole = n_here / PAIRS,
                                    .n_lines = (n_rest + 1) / 2,
                                    .is_odd = n_rest % 2,
                                    .ahead = n / 2 * d};

            multiply(&held, nq, &l, m, true, out + i, o_stride);
        }
    }
}

void kern_attn_mix_bf16__amx_bf16(size_t n, size_t d, const void *values, size_t n_q,
                                  const float *p, size_t p_stride, float *out,
                                  size_t o_stride)
{
    amx_begin(SIDE, ROW_BYTES);
    for (size_t q = 0; q < n_q; q += MAX_QUERIES)
        mix_queries(n, d, values, smaller(n_q - q, MAX_QUERIES), p + q * p_stride,
                    p_stride, out + q * o_stride, o_stride);
    amx_end();
}
