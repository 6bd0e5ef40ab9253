/* SPDX-License-Identifier: MIT
 *
 * q8_0_scalar.c - q8_0 weights times q8_32 activations, reference
 *
 * Products are added up in integers within a block, blocks in float.
 */
#include "kernels/q8_0/q8_0.h"

#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

SIMD_INLINE float dot(const void *row, const void *x, size_t k)
{
    const struct block_q8_0 *w = row;
    const float *d = act_q8_32_d(x, k);
    float sum = 0;

    for (size_t b = 0; b < k / Q8_0_ELEMS; b++) {
        const int8_t *q = act_q(x) + b * Q8_0_ELEMS;
        int32_t products = 0;

        for (int j = 0; j < Q8_0_ELEMS; j++)
            products += w[b].qs[j] * q[j];
        sum += (float)products * (half_to_f32(load_u16(w[b].d)) * d[b]);
    }
    return sum;
}

void kern_gemv_q8_0__scalar(size_t n_rows, size_t k, const void *w, size_t w_stride,
                            const void *x, float *y)
{
    scalar_gemv(dot, n_rows, k, w, w_stride, x, y);
}

void kern_gemm_q8_0__scalar(size_t n_rows, size_t k, const void *w, size_t w_stride,
                            size_t n_cols, const void *x, size_t x_stride, float *y,
                            size_t y_stride)
{
    scalar_gemm(dot, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
