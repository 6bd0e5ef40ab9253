/* SPDX-License-Identifier: MIT
 *
 * float.h - gemv and gemm for weights that are floats of 16 or 32 bits
 *
 * Written once and compiled for every vector level that differs for floats: avx2,
 * avx512, neon. A tile of rows times columns is held in registers, one accumulator of
 * F_LANES lanes per product; a load of F_LANES weights serves all columns of the tile,
 * one of F_LANES activations all its rows. Odd ends of a row are padded with zeros.
 * One column has a loop of its own; many columns go through panels (float_panel.h).
 */
#ifndef SLM_KERNELS_SIMD_FLOAT_H
#define SLM_KERNELS_SIMD_FLOAT_H

#include "kernels/simd/float_panel.h"

/* The level's words: fv is F_LANES floats; f_load, f_half and f_bf16 read that many
 * weights at any address. F_ROWS: rows of a tile with F_COLS columns. */
#if defined(KERN_LEVEL_avx512) || defined(KERN_LEVEL_avx2)
enum {
    F_LANES = V_LANES,
#ifdef KERN_LEVEL_avx512
    F_ROWS = 4,
#else
    F_ROWS = 2, /* of 16 registers: eight sums, two weights, one activation */
#endif
    F_COLS = 4,
};
typedef vf fv;

SIMD_INLINE fv f_half(const void *p)
{
    return v_half(p);
}

SIMD_INLINE fv f_bf16(const void *p)
{
    return v_float_bits(v_sll32(MM(cvtepu16_epi32)(load_half(p)), 16));
}

SIMD_INLINE fv f_zero(void)
{
    return v_zero_f();
}

SIMD_INLINE fv f_fma(fv a, fv b, fv c)
{
    return v_fma(a, b, c);
}

SIMD_INLINE fv f_add(fv a, fv b)
{
    return MM(add_ps)(a, b);
}

SIMD_INLINE void f_bf16_apart(const void *p, fv v[2])
{
    const vi w = v_keep(v_load(p));

    v[0] = v_float_bits(v_sll32(w, 16));
    v[1] = v_float_bits(v_and(w, v_set1_32((int)0xffff0000)));
}

#ifdef KERN_LEVEL_avx512
SIMD_INLINE fv f_load(const void *p)
{
    return _mm512_loadu_ps(p);
}

SIMD_INLINE float f_sum(fv v)
{
    return _mm512_reduce_add_ps(v);
}

SIMD_INLINE void f_apart(const void *p, fv v[2])
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512 a = f_load(p), b = f_load((const float *)p + F_LANES);

    v[0] = _mm512_permutex2var_ps(a, even, b);
    v[1] = _mm512_permutex2var_ps(a, odd, b);
}
#else
SIMD_INLINE fv f_load(const void *p)
{
    return v_float_bits(v_load(p));
}

SIMD_INLINE float f_sum(fv v)
{
    return sum_8_floats(v);
}

SIMD_INLINE void f_apart(const void *p, fv v[2])
{
    const float *x = p;
    const __m256 a = _mm256_loadu2_m128(x + 8, x),
                 b = _mm256_loadu2_m128(x + 12, x + 4);

    v[0] = _mm256_shuffle_ps(a, b, 0x88);
    v[1] = _mm256_shuffle_ps(a, b, 0xdd);
}
#endif
#elif defined(KERN_LEVEL_neon)
#include "kernels/simd/neon.h"

enum { F_LANES = 4, F_ROWS = 4, F_COLS = 4 };
typedef float32x4_t fv;

SIMD_INLINE fv f_load(const void *p)
{
    return vreinterpretq_f32_u8(vld1q_u8(p));
}

SIMD_INLINE fv f_half(const void *p)
{
    return load_4_halves(p);
}

SIMD_INLINE fv f_bf16(const void *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

SIMD_INLINE fv f_zero(void)
{
    return vdupq_n_f32(0);
}

SIMD_INLINE fv f_fma(fv a, fv b, fv c)
{
    return vfmaq_f32(c, a, b);
}

SIMD_INLINE fv f_add(fv a, fv b)
{
    return vaddq_f32(a, b);
}

SIMD_INLINE float f_sum(fv v)
{
    return vaddvq_f32(v);
}

SIMD_INLINE void f_apart(const void *p, fv v[2])
{
    const float32x4x2_t x = vld2q_f32(p);

    v[0] = x.val[0];
    v[1] = x.val[1];
}

SIMD_INLINE void f_bf16_apart(const void *p, fv v[2])
{
    const uint32x4_t w = vreinterpretq_u32_u8(vld1q_u8(p));

    v[0] = vreinterpretq_f32_u32(vshlq_n_u32(w, 16));
    v[1] = vreinterpretq_f32_u32(vandq_u32(w, vdupq_n_u32(0xffff0000)));
}
#else
#error "a level that inherits another's float kernels has no rows of its own"
#endif

/* F_LANES weights as floats. */
typedef fv float_load_fn(const void *w);

/* 2 * F_LANES weights, or activations in the order that they have there. */
typedef void float_load_two_fn(const void *p, fv v[2]);

SIMD_INLINE void f_load_two(const void *p, fv v[2])
{
    v[0] = f_load(p);
    v[1] = f_load((const float *)p + F_LANES);
}

SIMD_INLINE void f_half_two(const void *p, fv v[2])
{
    v[0] = f_half(p);
    v[1] = f_half((const uint16_t *)p + F_LANES);
}

struct float_job {
    size_t k;
    const uint8_t *w; /* first row of the tile */
    size_t w_stride;
    size_t elem_bytes;
    const uint8_t *x; /* first column of the tile, floats */
    size_t x_stride;
    float *y; /* of the first row and column */
    size_t y_stride;
};

/* acc += n elements from i on; n < F_LANES (the last ones) or the constant F_LANES. */
SIMD_INLINE void float_step(float_load_fn *load, const int n_r, const int n_c,
                            const struct float_job *job, size_t i, size_t n,
                            fv acc[4][4])
{
    uint8_t padded[F_LANES * sizeof(float)] = {0};
    fv w[4];

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++) {
        const uint8_t *at = job->w + (size_t)r * job->w_stride + i * job->elem_bytes;

        if (n < F_LANES)
            at = memcpy(padded, at, n * job->elem_bytes);
        w[r] = load(at);
    }
    SIMD_UNROLL
    for (int c = 0; c < n_c; c++) {
        const uint8_t *at = job->x + (size_t)c * job->x_stride + i * sizeof(float);
        fv x;

        if (n < F_LANES)
            at = memcpy(padded, at, n * sizeof(float));
        x = f_load(at);
        SIMD_UNROLL
        for (int r = 0; r < n_r; r++)
            acc[r][c] = f_fma(w[r], x, acc[r][c]);
    }
}

/* Rows of one call follow each other in memory, so the lines that the next tile
 * needs lie one tile further: they are prefetched while this one is computed. */
SIMD_INLINE void float_tile(float_load_fn *load, const int n_r, const int n_c,
                            const struct float_job *job)
{
    const size_t per_line = 64 / job->elem_bytes;
    const size_t offset = (size_t)n_r * job->w_stride;
    fv acc[4][4];
    size_t i = 0;

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        acc[r][c] = f_zero();

    for (; i + per_line <= job->k; i += per_line) {
        SIMD_UNROLL
        for (int r = 0; r < n_r; r++)
            prefetch_lines(job->w + (size_t)r * job->w_stride + i * job->elem_bytes,
                           (ptrdiff_t)offset, 64);
        SIMD_UNROLL
        for (size_t j = 0; j < per_line; j += F_LANES)
            float_step(load, n_r, n_c, job, i + j, F_LANES, acc);
    }
    for (; i + F_LANES <= job->k; i += F_LANES)
        float_step(load, n_r, n_c, job, i, F_LANES, acc);
    if (i < job->k)
        float_step(load, n_r, n_c, job, i, job->k - i, acc);

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        job->y[(size_t)c * job->y_stride + (size_t)r] = f_sum(acc[r][c]);
}

/* n_r rows times one column. An accumulator takes a product when it has the one before:
 * two of a row keep the multipliers busy meanwhile. The next rows are prefetched as in
 * float_tile(), whole lines at a time. */
SIMD_INLINE void float_rows(float_load_fn *load, float_load_two_fn *load_two,
                            float_load_two_fn *x_two, const int n_r,
                            const struct float_job *job)
{
    enum { TWO = 2 * F_LANES };
    const size_t per_line = 64 / job->elem_bytes;
    const size_t step = per_line > TWO ? per_line : TWO;
    const size_t offset = (size_t)n_r * job->w_stride;
    fv acc[4][4], more[4];
    size_t i = 0;

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        acc[r][0] = more[r] = f_zero();
    for (; i + step <= job->k; i += step) {
        SIMD_UNROLL
        for (int r = 0; r < n_r; r++)
            prefetch_lines(job->w + (size_t)r * job->w_stride + i * job->elem_bytes,
                           (ptrdiff_t)offset, step * job->elem_bytes);
        SIMD_UNROLL
        for (size_t j = i; j < i + step; j += TWO) {
            fv x[2];

            x_two(job->x + j * sizeof(float), x);
            SIMD_UNROLL
            for (int r = 0; r < n_r; r++) {
                fv w[2];

                load_two(job->w + (size_t)r * job->w_stride + j * job->elem_bytes, w);
                acc[r][0] = f_fma(w[0], x[0], acc[r][0]);
                more[r] = f_fma(w[1], x[1], more[r]);
            }
        }
    }
    for (; i + F_LANES <= job->k; i += F_LANES)
        float_step(load, n_r, 1, job, i, F_LANES, acc);
    if (i < job->k)
        float_step(load, n_r, 1, job, i, job->k - i, acc);
    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        job->y[r] = f_sum(f_add(acc[r][0], more[r]));
}

SIMD_INLINE void float_gemv(float_load_fn *load, float_load_two_fn *load_two,
                            float_load_two_fn *x_two, size_t elem_bytes, size_t n_rows,
                            size_t k, const void *w, size_t w_stride, const void *x,
                            float *y)
{
    struct float_job job = {
        .k = k, .w = w, .w_stride = w_stride, .elem_bytes = elem_bytes, .x = x, .y = y};
    size_t i = 0;

    for (; i + 4 <= n_rows; i += 4, job.w += 4 * w_stride, job.y += 4)
        float_rows(load, load_two, x_two, 4, &job);
    for (; i < n_rows; i++, job.w += w_stride, job.y++)
        float_rows(load, load_two, x_two, 1, &job);
}

/* All columns of a few rows, the rows staying in the first-level cache. */
SIMD_INLINE void float_columns(float_load_fn *load, const int n_r, size_t n_cols,
                               struct float_job job)
{
    size_t j = 0;

    for (; j + F_COLS <= n_cols;
         j += F_COLS, job.x += F_COLS * job.x_stride, job.y += F_COLS * job.y_stride)
        float_tile(load, n_r, F_COLS, &job);
    for (; j < n_cols; j++, job.x += job.x_stride, job.y += job.y_stride)
        float_tile(load, n_r, 1, &job);
}

SIMD_INLINE void float_gemm(float_load_fn *load, float_split_fn *split,
                            const size_t elem_bytes, size_t n_rows, size_t k,
                            const void *w, size_t w_stride, size_t n_cols,
                            const void *x, size_t x_stride, float *y, size_t y_stride)
{
    const size_t in_panels = n_cols < FP_LEAST ? 0 : n_rows / V_LANES * V_LANES;
    struct float_job job = {.k = k,
                            .w = (const uint8_t *)w + in_panels * w_stride,
                            .w_stride = w_stride,
                            .elem_bytes = elem_bytes,
                            .x = x,
                            .x_stride = x_stride,
                            .y = y + in_panels,
                            .y_stride = y_stride};
    size_t i = in_panels;

    if (in_panels > 0)
        float_panel_gemm(split, elem_bytes, in_panels, k, w, w_stride, n_cols, x,
                         x_stride, y, y_stride);
    for (; i + F_ROWS <= n_rows;
         i += F_ROWS, job.w += F_ROWS * w_stride, job.y += F_ROWS)
        float_columns(load, F_ROWS, n_cols, job);
    for (; i < n_rows; i++, job.w += w_stride, job.y++)
        float_columns(load, 1, n_cols, job);
}

/* Defines the two kernels of a format at this level. */
#define FLOAT_KERNELS(format, load, load_two, x_two, split, elem_bytes)              \
    void KERN_NAME(gemv, format)(size_t n_rows, size_t k, const void *w,             \
                                 size_t w_stride, const void *x, float *y)           \
    {                                                                                \
        float_gemv(load, load_two, x_two, elem_bytes, n_rows, k, w, w_stride, x, y); \
    }                                                                                \
    void KERN_NAME(gemm, format)(size_t n_rows, size_t k, const void *w,             \
                                 size_t w_stride, size_t n_cols, const void *x,      \
                                 size_t x_stride, float *y, size_t y_stride)         \
    {                                                                                \
        float_gemm(load, split, elem_bytes, n_rows, k, w, w_stride, n_cols, x,       \
                   x_stride, y, y_stride);                                           \
    }

#endif
