/* SPDX-License-Identifier: MIT
 *
 * scalar.h - gemv and gemm in portable C around a format's unpacking of a block
 *
 * Four frames:
 * - scalar_float_gemm(): for formats without blocks.
 * - scalar_block_gemm(): blocks of 32 with a float scale (and a float minimum),
 *   times q8_32 activations:      w = d * q + m
 * - scalar_two_parts_gemm(), scalar_four_parts_gemm(): blocks of 64 and 128 with a
 *   float scale per 16 weights, unpacked 32 at a time, likewise.
 * - scalar_super_gemm(): super-blocks of 256 with integer scales (and minima) per
 *   16 weights, times q8_256 activations:      w = d * scale * q - dmin * min
 * In all but the first a block is unpacked once for all columns, products add up in
 * integers within a block, blocks in float. They are what the other ISA levels
 * are compared with, so they are kept plain.
 */
#ifndef SLM_KERNELS_SIMD_SCALAR_H
#define SLM_KERNELS_SIMD_SCALAR_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/activations/activations.h"
#include "kernels/simd/simd.h"

/* One weight of a format without blocks; it may be at any address. */
typedef float scalar_value_fn(const void *at);

/* Rows outside, so that a row is read from memory once for all columns. */
SIMD_INLINE void scalar_float_gemm(scalar_value_fn *value, size_t elem_bytes,
                                   size_t n_rows, size_t k, const void *w,
                                   size_t w_stride, size_t n_cols, const void *x,
                                   size_t x_stride, float *y, size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n_cols; j++) {
            const char *row = (const char *)w + i * w_stride;
            const float *column = (const void *)((const char *)x + j * x_stride);
            float sum = 0;

            for (size_t e = 0; e < k; e++)
                sum += value(row + e * elem_bytes) * column[e];
            y[j * y_stride + i] = sum;
        }
}

/* ---- blocks of 32 ------------------------------------------------------------- */

/* weight i = d * q[i] + m. */
struct scalar_block {
    float d, m;
    int8_t q[32];
};

typedef void scalar_block_fn(const uint8_t *block, struct scalar_block *out);

SIMD_INLINE void scalar_block_gemm(scalar_block_fn *unpack, size_t block_bytes,
                                   size_t n_rows, size_t k, const void *w,
                                   size_t w_stride, size_t n_cols, const void *x,
                                   size_t x_stride, float *y, size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i++) {
        const uint8_t *row = (const uint8_t *)w + i * w_stride;

        for (size_t j = 0; j < n_cols; j++)
            y[j * y_stride + i] = 0;
        for (size_t b = 0; b < k / 32; b++) {
            struct scalar_block block;

            unpack(row + b * block_bytes, &block);
            for (size_t j = 0; j < n_cols; j++) {
                const char *col = (const char *)x + j * x_stride;
                const int8_t *q = act_q(col) + 32 * b;
                int32_t products = 0;

                for (int e = 0; e < 32; e++)
                    products += block.q[e] * q[e];
                y[j * y_stride + i] +=
                    (float)products * (block.d * act_q8_32_d(col, k)[b]) +
                    block.m * act_q8_32_s(col, k)[b];
            }
        }
    }
}

/* ---- blocks of two or four times 32 ---------------------------------------------- */

/* weight i = d[i / 16] * q[i] of a part of 32. */
struct scalar_part {
    float d[2];
    int8_t q[32];
};

typedef void scalar_part_fn(const uint8_t *block, int part, struct scalar_part *out);

SIMD_INLINE void scalar_parts_gemm(scalar_part_fn *unpack, size_t n_parts,
                                   size_t block_bytes, size_t n_rows, size_t k,
                                   const void *w, size_t w_stride, size_t n_cols,
                                   const void *x, size_t x_stride, float *y,
                                   size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i++) {
        const uint8_t *row = (const uint8_t *)w + i * w_stride;

        for (size_t j = 0; j < n_cols; j++)
            y[j * y_stride + i] = 0;
        for (size_t b = 0; b < k / 32; b++) {
            struct scalar_part part;

            unpack(row + b / n_parts * block_bytes, (int)(b % n_parts), &part);
            for (size_t j = 0; j < n_cols; j++) {
                const char *col = (const char *)x + j * x_stride;
                const int8_t *q = act_q(col) + 32 * b;
                int32_t products[2] = {0};

                for (int e = 0; e < 32; e++)
                    products[e / 16] += part.q[e] * q[e];
                y[j * y_stride + i] +=
                    act_q8_32_d(col, k)[b] *
                    (part.d[0] * (float)products[0] + part.d[1] * (float)products[1]);
            }
        }
    }
}

#define SCALAR_PARTS_GEMM(name, n_parts)                                             \
    SIMD_INLINE void name(scalar_part_fn *unpack, size_t block_bytes, size_t n_rows, \
                          size_t k, const void *w, size_t w_stride, size_t n_cols,   \
                          const void *x, size_t x_stride, float *y, size_t y_stride) \
    {                                                                                \
        scalar_parts_gemm(unpack, n_parts, block_bytes, n_rows, k, w, w_stride,      \
                          n_cols, x, x_stride, y, y_stride);                         \
    }
SCALAR_PARTS_GEMM(scalar_two_parts_gemm, 2)
SCALAR_PARTS_GEMM(scalar_four_parts_gemm, 4)

/* ---- super-blocks of 256 ------------------------------------------------------ */

/* weight i = d * scale[i / 16] * q[i] - dmin * min[i / 16]; of every sum over the
 * super-block, |sum of scale * q * x| and |sum of min * x| must be below 2^31. */
struct scalar_super {
    float d, dmin;
    int16_t scale[16], min[16];
    int8_t q[256];
};

typedef void scalar_super_fn(const uint8_t *block, struct scalar_super *out);

SIMD_INLINE void scalar_super_gemm(scalar_super_fn *unpack, size_t block_bytes,
                                   size_t n_rows, size_t k, const void *w,
                                   size_t w_stride, size_t n_cols, const void *x,
                                   size_t x_stride, float *y, size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i++) {
        const uint8_t *row = (const uint8_t *)w + i * w_stride;

        for (size_t j = 0; j < n_cols; j++)
            y[j * y_stride + i] = 0;
        for (size_t b = 0; b < k / 256; b++) {
            struct scalar_super block;

            unpack(row + b * block_bytes, &block);
            for (size_t j = 0; j < n_cols; j++) {
                const char *col = (const char *)x + j * x_stride;
                const int8_t *q = act_q(col) + 256 * b;
                const int16_t *sums = act_q8_256_sums(col, k) + 16 * b;
                int32_t products = 0, mins = 0;

                for (int s = 0; s < 16; s++) {
                    int32_t part = 0;

                    for (int e = 16 * s; e < 16 * s + 16; e++)
                        part += block.q[e] * q[e];
                    products += part * block.scale[s];
                    mins += block.min[s] * sums[s];
                }
                y[j * y_stride + i] +=
                    act_q8_256_d(col, k)[b] *
                    (block.d * (float)products - block.dmin * (float)mins);
            }
        }
    }
}

/* ---- a format's two kernels ---------------------------------------------------- */

/* Defines kern_gemm_<format>__scalar and kern_gemv_<format>__scalar; `frame` is
 * one of the four, `unpack` the format's function for it, block_bytes what it takes.
 */
#define SCALAR_KERNELS(format, frame, unpack, block_bytes)                           \
    void kern_gemm_##format##__scalar(size_t n_rows, size_t k, const void *w,        \
                                      size_t w_stride, size_t n_cols, const void *x, \
                                      size_t x_stride, float *y, size_t y_stride)    \
    {                                                                                \
        frame(unpack, block_bytes, n_rows, k, w, w_stride, n_cols, x, x_stride, y,   \
              y_stride);                                                             \
    }                                                                                \
    void kern_gemv_##format##__scalar(size_t n_rows, size_t k, const void *w,        \
                                      size_t w_stride, const void *x, float *y)      \
    {                                                                                \
        frame(unpack, block_bytes, n_rows, k, w, w_stride, 1, x, 0, y, 0);           \
    }

/* Defines kern_quantize_<format>__scalar and kern_dequantize_<format>__scalar of 16-bit
 * floats. */
#define SCALAR_HALF_KERNELS(format, from_f32, to_f32)                                  \
    void kern_quantize_##format##__scalar(const float *src, const float *w, void *dst, \
                                          size_t n)                                    \
    {                                                                                  \
        (void)w;                                                                       \
        for (size_t i = 0; i < n; i++) {                                               \
            const uint16_t v = from_f32(src[i]);                                       \
                                                                                       \
            memcpy((char *)dst + i * sizeof(v), &v, sizeof(v));                        \
        }                                                                              \
    }                                                                                  \
    void kern_dequantize_##format##__scalar(const void *src, float *dst, size_t n)     \
    {                                                                                  \
        for (size_t i = 0; i < n; i++)                                                 \
            dst[i] = to_f32(load_u16((const char *)src + i * sizeof(uint16_t)));       \
    }

#endif
