/* SPDX-License-Identifier: MIT
 *
 * iq4_nl_quantize.c - reference quantisation and dequantisation of iq4_nl
 */
#include "kernels/iq4_nl/iq4_nl.h"

#include <string.h>

#include "kernels/iq4_nl/iq4_nl_fit.h"
#include "kernels/kernels.h"

static void quantize_block(const float *src, const fit_vec *w, struct block_iq4_nl *out)
{
    fit_vec x[FIT_VECS];
    uint8_t codes[FIT_N];

    fit_load(src, x);

    const struct fit_scale s = fit_scale(iq4_nl_nearest, x, w, iq4_nl_positions,
                                         IQ4_NL_N_POSITIONS, FIT_REPEATS);
    const uint16_t half = fit_half(s.d);

    memcpy(out->d, &half, sizeof(half));
    iq4_nl_codes(x, half_to_f32(half), codes);
    fit_pack_four(codes, out->qs);
}

FIT_QUANTIZE(iq4_nl)

#ifdef KERN_LEVEL_scalar
void kern_dequantize_iq4_nl__scalar(const void *src, float *dst, size_t n)
{
    const struct block_iq4_nl *in = src;

    for (size_t b = 0; b < n / IQ4_NL_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d));
        float *out = dst + b * IQ4_NL_ELEMS;

        for (int j = 0; j < IQ4_NL_ELEMS / 2; j++) {
            out[j] = d * (float)iq4_nl_values[in[b].qs[j] & 15];
            out[j + IQ4_NL_ELEMS / 2] = d * (float)iq4_nl_values[in[b].qs[j] >> 4];
        }
    }
}
#endif
