/* SPDX-License-Identifier: MIT
 *
 * q5_K_scalar.c - q5_K weights times q8_256 activations, plain C
 *
 * Range: a sub-block's dot product is at most 32 * 31 * 127 and its scale at
 * most 63, so a super-block's integer is below 8 * 32 * 31 * 127 * 63 =
 * 63495936 < 2^31; the minima sum to at most 8 * 63 * 4064 = 2048256.
 */
#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/q5_K/q5_K.h"

static void unpack(const struct block_q5_K *w, struct kquant_affine *out)
{
    out->d = half_to_f32(w->d);
    out->dmin = half_to_f32(w->dmin);
    kquant_unpack_six(w->scales, out->six);
    for (int s = 0; s < 8; s++)
        for (int i = 0; i < 32; i++)
            out->q[32 * s + i] = (uint8_t)((w->qs[s / 2 * 32 + i] >> s % 2 * 4 & 15) |
                                           (w->qh[i] >> s & 1) << 4);
}

/* Column by column for each super-block, so that it is unpacked once. */
void kern_gemm_q5_K__scalar(size_t n_rows, size_t k, const void *w, size_t w_stride,
                            size_t n_cols, const void *x, size_t x_stride, float *y,
                            size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i++) {
        const struct block_q5_K *row = (const void *)((const char *)w + i * w_stride);

        for (size_t j = 0; j < n_cols; j++)
            y[j * y_stride + i] = 0;
        for (size_t b = 0; b < k / KQ_ELEMS; b++) {
            struct kquant_affine block;

            unpack(&row[b], &block);
            for (size_t j = 0; j < n_cols; j++) {
                const char *col = (const char *)x + j * x_stride;

                y[j * y_stride + i] +=
                    kquant_affine_dot(&block, act_q(col) + KQ_ELEMS * b,
                                      act_q8_256_sums(col, k) + KQ_ELEMS / 16 * b,
                                      act_q8_256_d(col, k)[b]);
            }
        }
    }
}

void kern_gemv_q5_K__scalar(size_t n_rows, size_t k, const void *w, size_t w_stride,
                            const void *x, float *y)
{
    kern_gemm_q5_K__scalar(n_rows, k, w, w_stride, 1, x, 0, y, 0);
}
