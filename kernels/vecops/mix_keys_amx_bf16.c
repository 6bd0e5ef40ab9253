/* SPDX-License-Identifier: MIT
 *
 * mix_keys_amx_bf16.c - mixes of f16 keys that are values, too, by tiles
 *
 * A panel of keys has 16 positions of an element side by side: a tile of it has a row
 * for each element, and pairs of a row are summed over positions, of two panels. It is
 * therefore the first factor, weights are the second, with a row for each pair of
 * positions, and a tile of sums has a row for each element; weights and sums are
 * transposed.
 */
#include "kernels/vecops/attention_amx.h"

/* row[i] lane j <-> row[j] lane i */
static void transpose(__m512 row[SIDE])
{
    __m512 a[SIDE];

    SIMD_UNROLL
    for (size_t i = 0; i < SIDE; i += 4) { /* of every 4 lanes, those of 4 rows */
        const __m512d x = _mm512_castps_pd(_mm512_unpacklo_ps(row[i], row[i + 1]));
        const __m512d y = _mm512_castps_pd(_mm512_unpackhi_ps(row[i], row[i + 1]));
        const __m512d z = _mm512_castps_pd(_mm512_unpacklo_ps(row[i + 2], row[i + 3]));
        const __m512d w = _mm512_castps_pd(_mm512_unpackhi_ps(row[i + 2], row[i + 3]));

        a[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, z));
        a[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, z));
        a[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(y, w));
        a[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(y, w));
    }
    SIMD_UNROLL
    for (size_t i = 0; i < 4; i++) { /* quarters of 128 bits */
        const __m512 x = _mm512_shuffle_f32x4(a[i], a[4 + i], 0x88);
        const __m512 y = _mm512_shuffle_f32x4(a[i], a[4 + i], 0xdd);
        const __m512 z = _mm512_shuffle_f32x4(a[8 + i], a[12 + i], 0x88);
        const __m512 w = _mm512_shuffle_f32x4(a[8 + i], a[12 + i], 0xdd);

        row[i] = _mm512_shuffle_f32x4(x, z, 0x88);
        row[4 + i] = _mm512_shuffle_f32x4(y, w, 0x88);
        row[8 + i] = _mm512_shuffle_f32x4(x, z, 0xdd);
        row[12 + i] = _mm512_shuffle_f32x4(y, w, 0xdd);
    }
}

/* Weights t .. t + 15 of n, of group g of nq queries, transposed. */
static void weights_of(size_t nq, size_t g, size_t n, size_t t, const float *p,
                       size_t stride, __m512 row[SIDE])
{
    for (size_t i = 0; i < SIDE; i++) {
        const size_t q = g * SIDE + i;

        row[i] =
            _mm512_maskz_loadu_ps(q < nq ? first_lanes(n, t) : 0, p + q * stride + t);
    }
    transpose(row);
}

/* n weights of nq rows, for tiles with a row for each pair of weights; what is missing
 * is 0. */
static void hold_columns(struct held *held, size_t nq, size_t n, const float *p,
                         size_t stride)
{
    set_held(held, nq, n);
    for (size_t k = 0; k < held->n_blocks; k++)
        for (size_t g = 0; g < held->n_groups; g++) {
            __m512 first[SIDE], second[SIDE];

            weights_of(nq, g, n, k * PAIRS, p, stride, first);
            weights_of(nq, g, n, k * PAIRS + SIDE, p, stride, second);
            for (size_t i = 0; i < SIDE; i++)
                hold_row(&held->of[k * held->n_groups + g], i, first[i], second[i]);
        }
}

/* out[q][0 .. 15] += sums[element][q] */
static void add_columns(const float (*sums)[SIDE], size_t nq, float *out,
                        size_t o_stride)
{
    float turned[SIDE][SIDE] __attribute__((aligned(64)));
    __m512 row[SIDE];

    for (size_t i = 0; i < SIDE; i++)
        row[i] = _mm512_load_ps(sums[i]);
    transpose(row);
    for (size_t i = 0; i < SIDE; i++)
        _mm512_store_ps(turned[i], row[i]);
    add_rows(turned, smaller(nq, SIDE), out, o_stride);
}

static void mix_queries(size_t n, size_t d, size_t key_dim, const uint16_t *keys,
                        size_t nq, const float *p, size_t p_stride, float *out,
                        size_t o_stride)
{
    const size_t most = held_at_once(nq);
    struct held held;
    struct sums sums;
    converted c;

    for (size_t t = 0; t < n; t += most) {
        const size_t n_here = smaller(n - t, most), rest = n_here % PAIRS;

        hold_columns(&held, nq, n_here, p + t, p_stride);
        for (size_t i = 0, m; i < d; i += m * SIDE) {
            m = smaller((d - i) / SIDE, tiles_at_once(held.n_groups));
            struct halves h = {.at = keys + t * key_dim + i * PANEL,
                               .block = PAIRS * key_dim,
                               .row = PANEL,
                               .second = SIDE * key_dim,
                               .n_whole = n_here / PAIRS,
                               .n_rows = PAIRS,
                               .mask = {first_lanes(rest, 0), first_lanes(rest, SIDE)}};

            set_tiles(&h, m, SIDE * PANEL);
            multiply_tiles(true, &held, &h, c, &sums);
            for (size_t q = 0; q < nq; q += SIDE)
                for (size_t j = 0; j < m; j++)
                    add_columns(sums.of[q / SIDE][j], nq - q,
                                out + q * o_stride + i + j * SIDE, o_stride);
        }
    }
}

void kern_attn_mix_keys_f16__amx_bf16(size_t n, size_t d, size_t key_dim,
                                      const void *keys, size_t n_q, const float *p,
                                      size_t p_stride, float *out, size_t o_stride)
{
    amx_begin(SIDE, ROW_BYTES);
    for (size_t q = 0; q < n_q; q += MAX_QUERIES)
        mix_queries(n, d, key_dim, keys, smaller(n_q - q, MAX_QUERIES),
                    p + q * p_stride, p_stride, out + q * o_stride, o_stride);
    amx_end();
}
