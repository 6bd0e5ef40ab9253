/* SPDX-License-Identifier: MIT
 *
 * q5_1_quantize.c - reference quantisation and dequantisation of q5_1
 */
#include "kernels/q5_1/q5_1.h"

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

static void quantize_block(const float *src, const fit_vec *w, struct block_q5_1 *out)
{
    uint8_t q[FIT_N];

    fit_quantize_line(src, w, 31, out->d, out->m, q);
    fit_pack_five(q, out->qs, out->qh);
}

FIT_QUANTIZE(q5_1)

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q5_1__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q5_1 *in = src;

    for (size_t b = 0; b < n / Q5_1_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d)),
                    m = half_to_f32(load_u16(in[b].m));

        for (int i = 0; i < Q5_1_ELEMS; i++) {
            const int low = in[b].qs[i % 16] >> i / 16 * 4 & 15;
            const int high = in[b].qh[i / 8] >> i % 8 & 1;

            dst[b * Q5_1_ELEMS + i] = (float)(low | high << 4) * d + m;
        }
    }
}
#endif
