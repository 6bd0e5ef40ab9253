/* SPDX-License-Identifier: MIT
 *
 * attention_quants_avx512vnni.c - mixes of quantised values as dot products of bytes
 *
 * Sixteen lanes times four bytes: a lane is an element of the values, the bytes are
 * four positions, a quad. Two shuffles bring 64 bytes of values into that order for all
 * queries of a tile; a quad's weights are broadcast.
 *
 * A weight times the scale of a position's block becomes an integer w of 14 bits and
 * sign, in units of s: the largest weight of the chunk's 64 positions times their
 * largest scale, divided by 127 * 128. It is split into two unsigned bytes,
 *
 *     w + 2^14 = 128 high + low,   1 <= high <= 255,   0 <= low <= 127
 *     sum of w x = 128 sum(high x) + sum(low x) - 2^14 sum(x)
 *
 * Range: |x| <= 128, so over 64 positions |sum(high x)| <= 64 * 255 * 128 < 2^21, and
 * the whole is below 2^28. A weight is off by at most s / 2, so a sum of n values x is
 * off by at most n s / 2 max|x|.
 */
#include <immintrin.h>

#include "kernels/vecops/attention_tiles.h"

enum {
    QUADS = PANEL / 4,
    HALF = 16,
    TOP = KERN_MIX_STEPS,
    BIAS = 1 << 14,
    AT_ONCE = 8 /* blocks */
};

/* One query's weights of a chunk. */
struct query {
    float p[CHUNK]; /* divided by the largest, 0 behind the last position */
    float largest;
};

/* Its weights for one block: quad k of panel j is dword 4 k + j. */
struct parts {
    _Alignas(64) uint8_t high[CHUNK]; /* read in dwords just after: on one cache line */
    uint8_t low[CHUNK];
    float unit; /* s */
};

/* Positions of panel v among m, as a mask. */
SIMD_INLINE __mmask16 positions(size_t m, size_t v)
{
    const size_t left = m > v * PANEL ? m - v * PANEL : 0;

    return (__mmask16)(left >= PANEL ? 0xffff : (1u << left) - 1);
}

/* The largest magnitude of a chunk, at least `least`, by which its numbers can be
 * divided. */
SIMD_INLINE float largest_of(const __m512 x[STEP], float least)
{
    const __m512 a = _mm512_max_ps(_mm512_abs_ps(x[0]), _mm512_abs_ps(x[1]));
    const __m512 b = _mm512_max_ps(_mm512_abs_ps(x[2]), _mm512_abs_ps(x[3]));
    const float most = _mm512_reduce_max_ps(_mm512_max_ps(a, b));

    return most > least ? most : least;
}

/* The weights p[m] of a chunk. */
SIMD_INLINE void take_weights(struct query *q, const float *p, size_t m)
{
    __m512 x[STEP];

    SIMD_UNROLL
    for (size_t v = 0; v < STEP; v++)
        x[v] = _mm512_maskz_loadu_ps(positions(m, v), p + v * PANEL);
    q->largest = largest_of(x, 0x1p-100f);
    SIMD_UNROLL
    for (size_t v = 0; v < STEP; v++)
        _mm512_storeu_ps(q->p + v * PANEL,
                         _mm512_mul_ps(x[v], _mm512_set1_ps(1.0f / q->largest)));
}

/* The parts of a query's weights for a block whose scales are d times `largest`. */
SIMD_INLINE void split_weights(struct parts *to, const struct query *q,
                               const __m512 d[STEP], float largest)
{
    __m512i w[STEP], pair[2];

    /* w + BIAS, at most 2^15 - 1 */
    SIMD_UNROLL
    for (size_t v = 0; v < STEP; v++) {
        const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(q->p + v * PANEL), d[v]);

        w[v] = _mm512_cvtps_epi32(
            _mm512_fmadd_ps(x, _mm512_set1_ps(TOP), _mm512_set1_ps(BIAS)));
    }
    /* Packing takes four numbers of each operand in turn: quads stay together. */
    pair[0] = _mm512_packs_epi32(w[0], w[1]);
    pair[1] = _mm512_packs_epi32(w[2], w[3]);
    _mm512_storeu_si512(to->high, _mm512_packus_epi16(_mm512_srli_epi16(pair[0], 7),
                                                      _mm512_srli_epi16(pair[1], 7)));
    _mm512_storeu_si512(
        to->low,
        _mm512_packus_epi16(_mm512_and_si512(pair[0], _mm512_set1_epi16(127)),
                            _mm512_and_si512(pair[1], _mm512_set1_epi16(127))));
    to->unit = q->largest * largest / TOP;
}

/* Elements 0 .. 15 and 16 .. 31 of four positions whose bodies begin at `body`: lane i
 * has the four bytes of element i. */
typedef void quad_fn(const uint8_t *body, __m512i x[2]);

/* Four dwords of a lane, each of one position, to four elements. */
SIMD_INLINE __m512i elements(__m512i v)
{
    return _mm512_shuffle_epi8(
        v, _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400));
}

/* A body is 8 dwords: dword i of each position goes to lane i % 4 of a half. */
SIMD_INLINE void quad_q8_0(const uint8_t *body, __m512i x[2])
{
    const __m512i a = _mm512_loadu_si512(body), b = _mm512_loadu_si512(body + 64);
    const __m512i low =
        _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    const __m512i high =
        _mm512_setr_epi32(4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);

    x[0] = elements(_mm512_permutex2var_epi32(a, low, b));
    x[1] = elements(_mm512_permutex2var_epi32(a, high, b));
}

/* Byte j has elements j and j + 16, plus 8. */
SIMD_INLINE void quad_q4_0(const uint8_t *body, __m512i x[2])
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i v =
        elements(_mm512_permutexvar_epi32(order, _mm512_loadu_si512(body)));
    const __m512i nibble = _mm512_set1_epi8(15), eight = _mm512_set1_epi8(8);

    x[0] = _mm512_sub_epi8(_mm512_and_si512(v, nibble), eight);
    x[1] = _mm512_sub_epi8(_mm512_and_si512(_mm512_srli_epi16(v, 4), nibble), eight);
}

SIMD_INLINE __m512i broadcast(const uint8_t *four)
{
    int32_t dword;

    memcpy(&dword, four, sizeof(dword));
    return _mm512_set1_epi32(dword);
}

/* The weights' parts of nq queries (constant) for a block of m positions, at most
 * CHUNK, whose scales are at `scale`, and those of the next panel panel_bytes further.
 */
SIMD_INLINE void split_all(struct parts *parts, const struct query *query,
                           const size_t nq, size_t m, const uint8_t *scale,
                           size_t panel_bytes)
{
    __m512 d[STEP];

    SIMD_UNROLL
    for (size_t v = 0; v < STEP; v++) {
        const size_t at = v * PANEL < m ? v : 0;

        d[v] = _mm512_maskz_cvtph_ps(
            positions(m, v),
            _mm256_loadu_si256((const void *)(scale + at * panel_bytes)));
    }
    const float largest = largest_of(d, 0x1p-24f);
    SIMD_UNROLL
    for (size_t v = 0; v < STEP; v++)
        d[v] = _mm512_mul_ps(d[v], _mm512_set1_ps(1.0f / largest));
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++)
        split_weights(&parts[q], &query[q], d, largest);
}

/* n_panels panels of a block, at `body` and panel_bytes apart, of nq queries
 * (constant). */
SIMD_INLINE void mix_block(quad_fn *quad, const size_t body_bytes, const size_t nq,
                           size_t n_panels, const uint8_t *body, size_t panel_bytes,
                           const struct parts *parts, float *out, size_t o_stride,
                           struct share next)
{
    __m512i high[Q_TILE][2], low[Q_TILE][2], plain[2];

    SIMD_UNROLL
    for (size_t h = 0; h < 2; h++) {
        plain[h] = _mm512_setzero_si512();
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++)
            high[q][h] = low[q][h] = _mm512_setzero_si512();
    }
    for (size_t v = 0; v < n_panels; v++) {
        SIMD_UNROLL
        for (size_t k = 0; k < QUADS; k++) {
            __m512i x[2];

            prefetch_share(next, v * QUADS + k);
            quad(body + v * panel_bytes + k * 4 * body_bytes, x);
            SIMD_UNROLL
            for (size_t h = 0; h < 2; h++)
                plain[h] = _mm512_dpbusd_epi32(plain[h], _mm512_set1_epi8(1), x[h]);
            SIMD_UNROLL
            for (size_t q = 0; q < nq; q++) {
                const __m512i up = broadcast(parts[q].high + (k * STEP + v) * 4);
                const __m512i down = broadcast(parts[q].low + (k * STEP + v) * 4);

                SIMD_UNROLL
                for (size_t h = 0; h < 2; h++) {
                    high[q][h] = _mm512_dpbusd_epi32(high[q][h], up, x[h]);
                    low[q][h] = _mm512_dpbusd_epi32(low[q][h], down, x[h]);
                }
            }
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t h = 0; h < 2; h++) {
            const __m512i sum = _mm512_sub_epi32(
                _mm512_add_epi32(_mm512_slli_epi32(high[q][h], 7), low[q][h]),
                _mm512_slli_epi32(plain[h], 14));
            float *to = out + q * o_stride + h * HALF;

            _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum),
                                                 _mm512_set1_ps(parts[q].unit),
                                                 _mm512_loadu_ps(to)));
        }
    }
}

/* All blocks of m positions, at most CHUNK, of nq queries (constant) from query
 * first_q of n_q on. Weights of several blocks are split before the first is mixed:
 * each waits for a division, and they wait together. */
SIMD_INLINE void mix_queries(quad_fn *quad, const size_t body_bytes, const size_t nq,
                             size_t m, size_t n_blocks, const uint8_t *values,
                             const float *p, size_t p_stride, float *out,
                             size_t o_stride, size_t first_q, size_t n_q)
{
    const size_t panel_bytes = PANEL * n_blocks * (body_bytes + sizeof(uint16_t));
    const size_t n_panels = (m + PANEL - 1) / PANEL;
    struct query query[Q_TILE];
    struct parts parts[AT_ONCE][Q_TILE];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++)
        take_weights(&query[q], p + q * p_stride, m);
    for (size_t first = 0; first < n_blocks; first += AT_ONCE) {
        const size_t n = smaller(n_blocks - first, AT_ONCE);

        for (size_t i = 0; i < n; i++)
            split_all(
                parts[i], query, nq, m,
                values + kern_panel_scales_at(PANEL * body_bytes, 2 * PANEL, first + i),
                panel_bytes);
        for (size_t i = 0; i < n; i++) {
            const size_t b = first + i;

            mix_block(
                quad, body_bytes, nq, n_panels,
                values + kern_panel_body_at(PANEL * body_bytes, 2 * PANEL, n_blocks, b),
                panel_bytes, parts[i], out + b * BLOCK, o_stride,
                share_of(values, STEP * panel_bytes, first_q * n_blocks + nq * b, nq,
                         n_q * n_blocks, STEP * QUADS));
        }
    }
}

SIMD_INLINE void mix(quad_fn *quad, const size_t body_bytes, size_t n, size_t d,
                     const uint8_t *values, size_t n_q, const float *p, size_t p_stride,
                     float *out, size_t o_stride)
{
    const size_t n_blocks = d / BLOCK;
    const size_t chunk_bytes = CHUNK * n_blocks * (body_bytes + sizeof(uint16_t));

    for (size_t t = 0; t < n; t += CHUNK, values += chunk_bytes)
        for (size_t q = 0; q < n_q; q += Q_TILE) {
            const float *weight = p + q * p_stride + t;
            float *to = out + q * o_stride;
            const size_t m = smaller(n - t, CHUNK);

#define CALL(nq)                                                                 \
    mix_queries(quad, body_bytes, nq, m, n_blocks, values, weight, p_stride, to, \
                o_stride, q, n_q)
            FOR_QUERIES(n_q - q, CALL)
#undef CALL
        }
}

void KERN_NAME(attn_mix, q8_0)(size_t n, size_t d, const void *values, size_t n_q,
                               const float *p, size_t p_stride, float *out,
                               size_t o_stride)
{
    mix(quad_q8_0, 32, n, d, values, n_q, p, p_stride, out, o_stride);
}

void KERN_NAME(attn_mix, q4_0)(size_t n, size_t d, const void *values, size_t n_q,
                               const float *p, size_t p_stride, float *out,
                               size_t o_stride)
{
    mix(quad_q4_0, 16, n, d, values, n_q, p, p_stride, out, o_stride);
}
