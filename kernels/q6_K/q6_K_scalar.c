/* SPDX-License-Identifier: MIT
 *
 * q6_K_scalar.c - q6_K weights times q8_256 activations, plain C
 *
 * Range: |q - 32| <= 32, |x| <= 127, |scale| <= 128, so a super-block's integer
 * is at most 256 * 32 * 127 * 128 = 133169152 < 2^31.
 */
#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/q6_K/q6_K.h"

static void unpack(const struct block_q6_K *w, int8_t q[KQ_ELEMS])
{
    for (int h = 0; h < 2; h++) {
        const uint8_t *ql = w->ql + 64 * h, *qh = w->qh + 32 * h;

        for (int i = 0; i < 32; i++) {
            int8_t *out = q + 128 * h + i;

            out[0] = (int8_t)(((ql[i] & 15) | (qh[i] & 3) << 4) - 32);
            out[32] = (int8_t)(((ql[32 + i] & 15) | (qh[i] >> 2 & 3) << 4) - 32);
            out[64] = (int8_t)((ql[i] >> 4 | (qh[i] >> 4 & 3) << 4) - 32);
            out[96] = (int8_t)((ql[32 + i] >> 4 | (qh[i] >> 6) << 4) - 32);
        }
    }
}

/* Column by column for each super-block, so that it is unpacked once. */
void kern_gemm_q6_K__scalar(size_t n_rows, size_t k, const void *w, size_t w_stride,
                            size_t n_cols, const void *x, size_t x_stride, float *y,
                            size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i++) {
        const struct block_q6_K *row = (const void *)((const char *)w + i * w_stride);

        for (size_t j = 0; j < n_cols; j++)
            y[j * y_stride + i] = 0;
        for (size_t b = 0; b < k / KQ_ELEMS; b++) {
            const float d = half_to_f32(row[b].d);
            int8_t q[KQ_ELEMS];

            unpack(&row[b], q);
            for (size_t j = 0; j < n_cols; j++) {
                const char *col = (const char *)x + j * x_stride;
                const int8_t *xq = act_q(col) + KQ_ELEMS * b;
                int32_t sum = 0;

                for (int s = 0; s < 16; s++) {
                    int32_t part = 0;

                    for (int e = 16 * s; e < 16 * s + 16; e++)
                        part += q[e] * xq[e];
                    sum += part * row[b].scales[s];
                }
                y[j * y_stride + i] += act_q8_256_d(col, k)[b] * d * (float)sum;
            }
        }
    }
}

void kern_gemv_q6_K__scalar(size_t n_rows, size_t k, const void *w, size_t w_stride,
                            const void *x, float *y)
{
    kern_gemm_q6_K__scalar(n_rows, k, w, w_stride, 1, x, 0, y, 0);
}
