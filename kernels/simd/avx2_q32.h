/* SPDX-License-Identifier: MIT
 *
 * avx2_q32.h - templates for formats of 32-weight blocks with one scale, times
 *              q8_32 activations, with AVX2
 *
 * vpmaddubsw multiplies unsigned by signed bytes and adds pairs in 16 bits, with
 * saturation. Two ways of keeping clear of that, chosen by the format's bias:
 * - bias 8, nibbles u = q + 8 in 0..15: one product pair is within 2 * 15 * 127 =
 *   3810, and all eight pairs that share a 16-bit lane of a block within 30480.
 *   bias * sum(x) is taken off:  sum(q * x) = sum(u * x) - bias * sum(x)
 * - bias 0, signed bytes q: |q| times x with q's sign. |q| <= 128, |x| <= 127, so
 *   a pair is within 32512; each pair sum is widened to 32 bits before adding.
 * A block's sum stays below 2^24: turning it into a float is exact.
 *
 * Two shapes of loop, as in avx512vnni_q32.h: dot (a register holds one block of
 * a row) for one to three columns, panel (a register holds four weights of each
 * of eight rows, activations are broadcast) for more.
 */
#ifndef SLM_KERNELS_SIMD_AVX2_Q32_H
#define SLM_KERNELS_SIMD_AVX2_Q32_H

#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/simd/avx2.h"

/* The 32 weights of the block at w, as the bias says. */
typedef __m256i q32_unpack_fn(const uint8_t *w);

/* What a format says of itself; its scale is the f16 at the start of a block. */
struct q32_format {
    q32_unpack_fn *unpack;
    size_t block_bytes;
    int bias; /* 8 or 0 */
};

struct q32_job {
    size_t k;
    const uint8_t *w;
    size_t w_stride;
    const uint8_t *x;
    size_t x_stride;
    float *y;
    size_t y_stride;
};

/* ---- dot -------------------------------------------------------------------- */

/* Eight partial sums of one block. minus: bias times the activations, in pairs. */
SIMD_INLINE __m256i q32_block_dot(const int bias, __m256i w, __m256i x, __m256i minus)
{
    __m256i pairs;

    if (bias != 0)
        pairs = _mm256_sub_epi16(_mm256_maddubs_epi16(w, x), minus);
    else
        pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return widen_pairs(pairs);
}

/* Rows of one call follow each other in memory, so the lines that the next tile
 * needs lie one tile further: those are asked for while this one is computed. */
SIMD_INLINE void q32_dot(const struct q32_format f, const int n_r, const int n_c,
                         const struct q32_job *job)
{
    const size_t ahead = (size_t)n_r * job->w_stride;
    const __m256i bias = _mm256_set1_epi8((char)f.bias);
    __m256 acc[4][4];

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        acc[r][c] = _mm256_setzero_ps();

    for (size_t b = 0; b < job->k / 32; b++) {
        __m256i x[4], minus[4];

        SIMD_UNROLL
        for (int c = 0; c < n_c; c++) {
            x[c] = load_256(job->x + (size_t)c * job->x_stride + b * 32);
            minus[c] = _mm256_maddubs_epi16(bias, x[c]);
        }
        SIMD_UNROLL
        for (int r = 0; r < n_r; r++) {
            const uint8_t *at = job->w + (size_t)r * job->w_stride + b * f.block_bytes;
            const __m256i w = f.unpack(at);
            const float d = half_to_f32(load_u16(at));

            prefetch_lines(at, ahead, f.block_bytes);
            SIMD_UNROLL
            for (int c = 0; c < n_c; c++) {
                const uint8_t *col = job->x + (size_t)c * job->x_stride;
                const __m256 dot =
                    _mm256_cvtepi32_ps(q32_block_dot(f.bias, w, x[c], minus[c]));

                acc[r][c] = _mm256_fmadd_ps(
                    _mm256_set1_ps(d * act_q8_32_d(col, job->k)[b]), dot, acc[r][c]);
            }
        }
    }

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        job->y[(size_t)c * job->y_stride + (size_t)r] = sum_8_floats(acc[r][c]);
}

SIMD_INLINE void q32_dot_rows(const struct q32_format f, size_t n_rows, const int n_r,
                              const int n_c, struct q32_job job)
{
    size_t i = 0;

    for (; i + (size_t)n_r <= n_rows; i += (size_t)n_r) {
        q32_dot(f, n_r, n_c, &job);
        job.w += (size_t)n_r * job.w_stride;
        job.y += n_r;
    }
    for (; i < n_rows; i++, job.w += job.w_stride, job.y++)
        q32_dot(f, 1, n_c, &job);
}

SIMD_INLINE void q32_gemv(const struct q32_format f, size_t n_rows, size_t k,
                          const void *w, size_t w_stride, const void *x, float *y)
{
    const struct q32_job job = {.k = k, .w = w, .w_stride = w_stride, .x = x, .y = y};

    q32_dot_rows(f, n_rows, 4, 1, job);
}

/* ---- panel ------------------------------------------------------------------ */

#define Q32_PANEL_BLOCKS 16 /* 8 rows of 512 weights: 4 KiB of the first level */

struct q32_panel {
    __m256i w[Q32_PANEL_BLOCKS * 8]; /* [weight / 4], lane: row */
    __m256 d[Q32_PANEL_BLOCKS];      /* [block], lane: row */
};

/* One block of up to 8 rows; missing rows become zeros with scale 0. */
SIMD_INLINE void q32_pack(const struct q32_format f, struct q32_panel *panel, size_t to,
                          const uint8_t *w, size_t w_stride, size_t n_rows)
{
    __m256i m[8];
    float d[8];

    for (size_t r = 0; r < 8; r++) {
        const uint8_t *at = w + r * w_stride;

        if (r >= n_rows) {
            m[r] = _mm256_setzero_si256();
            d[r] = 0;
            continue;
        }
        prefetch_lines(at, 8 * w_stride, f.block_bytes);
        m[r] = f.unpack(at);
        d[r] = half_to_f32(load_u16(at));
    }
    transpose_8x8(m);
    SIMD_UNROLL
    for (size_t i = 0; i < 8; i++)
        panel->w[to * 8 + i] = m[i];
    panel->d[to] = _mm256_loadu_ps(d);
}

/* Sums of one block of the panel times n_c columns, 32 bits per row. */
SIMD_INLINE void q32_panel_dot(const int bias, const __m256i *w, const int n_c,
                               const uint8_t *x, size_t x_stride, __m256i *sum)
{
    SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        sum[c] = _mm256_setzero_si256();
    SIMD_UNROLL
    for (size_t i = 0; i < 8; i++) {
        const __m256i magnitude = bias != 0 ? w[i] : _mm256_abs_epi8(w[i]);

        SIMD_UNROLL
        for (int c = 0; c < n_c; c++) {
            const __m256i xb = broadcast_4_bytes(x + (size_t)c * x_stride + i * 4);

            if (bias != 0)
                sum[c] = _mm256_add_epi16(sum[c], _mm256_maddubs_epi16(magnitude, xb));
            else
                sum[c] = _mm256_add_epi32(sum[c],
                                          widen_pairs(_mm256_maddubs_epi16(
                                              magnitude, _mm256_sign_epi8(xb, w[i]))));
        }
    }
    if (bias != 0)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        sum[c] = widen_pairs(sum[c]);
}

/* One tile of n_c columns: y += panel * x, or y = for the first panel. */
SIMD_INLINE void q32_panel_columns(const struct q32_panel *panel, const int bias,
                                   size_t first, size_t n_blocks, size_t n_rows,
                                   const int n_c, const struct q32_job *job)
{
    __m256 acc[4];

    SIMD_UNROLL
    for (int c = 0; c < n_c; c++) {
        const float *y = job->y + (size_t)c * job->y_stride;

        if (first == 0)
            acc[c] = _mm256_setzero_ps();
        else
            acc[c] = n_rows == 8 ? _mm256_loadu_ps(y) : load_part(y, n_rows);
    }
    for (size_t b = 0; b < n_blocks; b++) {
        __m256i sum[4];

        q32_panel_dot(bias, &panel->w[b * 8], n_c, job->x + (first + b) * 32,
                      job->x_stride, sum);
        SIMD_UNROLL
        for (int c = 0; c < n_c; c++) {
            const uint8_t *col = job->x + (size_t)c * job->x_stride;
            const __m256 dx = _mm256_set1_ps(act_q8_32_d(col, job->k)[first + b]);
            __m256 dot = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[c]), dx);

            if (bias != 0)
                dot = _mm256_sub_ps(
                    dot,
                    _mm256_set1_ps((float)bias * act_q8_32_s(col, job->k)[first + b]));
            acc[c] = _mm256_fmadd_ps(panel->d[b], dot, acc[c]);
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < n_c; c++) {
        float *y = job->y + (size_t)c * job->y_stride;

        if (n_rows == 8)
            _mm256_storeu_ps(y, acc[c]);
        else
            store_part(y, acc[c], n_rows);
    }
}

/* Up to 8 rows times all columns. */
SIMD_INLINE void q32_panel_rows(const struct q32_format f, size_t n_rows, size_t n_cols,
                                const struct q32_job *rows)
{
    const size_t n_blocks = rows->k / 32;
    struct q32_panel panel;

    for (size_t first = 0; first < n_blocks; first += Q32_PANEL_BLOCKS) {
        const size_t n =
            n_blocks - first < Q32_PANEL_BLOCKS ? n_blocks - first : Q32_PANEL_BLOCKS;
        struct q32_job job = *rows;
        size_t j = 0;

        for (size_t b = 0; b < n; b++)
            q32_pack(f, &panel, b, job.w + (first + b) * f.block_bytes, job.w_stride,
                     n_rows);
        for (; j + 4 <= n_cols;
             j += 4, job.x += 4 * job.x_stride, job.y += 4 * job.y_stride)
            q32_panel_columns(&panel, f.bias, first, n, n_rows, 4, &job);
        for (; j < n_cols; j++, job.x += job.x_stride, job.y += job.y_stride)
            q32_panel_columns(&panel, f.bias, first, n, n_rows, 1, &job);
    }
}

SIMD_INLINE void q32_gemm(const struct q32_format f, size_t n_rows, size_t k,
                          const void *w, size_t w_stride, size_t n_cols, const void *x,
                          size_t x_stride, float *y, size_t y_stride)
{
    struct q32_job job = {.k = k,
                          .w = w,
                          .w_stride = w_stride,
                          .x = x,
                          .x_stride = x_stride,
                          .y = y,
                          .y_stride = y_stride};

    if (n_cols == 1) {
        q32_dot_rows(f, n_rows, 4, 1, job);
    } else if (n_cols == 2) {
        q32_dot_rows(f, n_rows, 2, 2, job);
    } else if (n_cols == 3) {
        q32_dot_rows(f, n_rows, 2, 3, job);
    } else {
        for (size_t i = 0; i < n_rows; i += 8, job.w += 8 * w_stride, job.y += 8)
            q32_panel_rows(f, n_rows - i < 8 ? n_rows - i : 8, n_cols, &job);
    }
}

#endif
