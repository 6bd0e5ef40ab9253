/* SPDX-License-Identifier: MIT
 *
 * q4_1_quantize.c - reference quantisation and dequantisation of q4_1
 */
#include "kernels/q4_1/q4_1.h"

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

static void quantize_block(const float *src, const fit_vec *w, struct block_q4_1 *out)
{
    uint8_t q[FIT_N];

    fit_quantize_line(src, w, 15, out->d, out->m, q);
    fit_pack_four(q, out->qs);
}

FIT_QUANTIZE(q4_1)

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q4_1__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q4_1 *in = src;

    for (size_t b = 0; b < n / Q4_1_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d)),
                    m = half_to_f32(load_u16(in[b].m));
        float *out = dst + b * Q4_1_ELEMS;

        for (int j = 0; j < Q4_1_ELEMS / 2; j++) {
            out[j] = (float)(in[b].qs[j] & 15) * d + m;
            out[j + Q4_1_ELEMS / 2] = (float)(in[b].qs[j] >> 4) * d + m;
        }
    }
}
#endif
