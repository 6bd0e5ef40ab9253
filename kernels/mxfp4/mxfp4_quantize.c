/* SPDX-License-Identifier: MIT
 *
 * mxfp4_quantize.c - reference quantisation and dequantisation of mxfp4
 *
 * The plain rule gives the scale the exponent of the largest magnitude, less 2,
 * that of the largest E2M1 value; what is above 6 after that is cut to 6. Half of
 * that scale (cutting more) or its double (cutting nothing) may fit better, so all
 * three are tried. Scaling by powers of two is exact.
 */
#include "kernels/mxfp4/mxfp4.h"

#include <float.h>
#include <string.h>

#include "kernels/fit/e2m1.h"
#include "kernels/kernels.h"

/* 6 * 2^(252 - 127) is the largest product that a float holds; 4 * 2^(253 - 127) is
 * infinite already. */
#define LARGEST_E 252

/* 2^(127 - e), which takes weights to E2M1's units: exponent field 254 - e. */
static float inverse_scale(int e)
{
    return float_from_bits((uint32_t)(254 - e) << 23);
}

/* Squared error with exponent e, in units of 2^(unit - 127). With e next to unit a
 * term is at most (8 * 2)^2. */
SIMD_INLINE float error_of(const fit_vec *x, const fit_vec *w, int e, int unit)
{
    const float inverse = inverse_scale(e);
    const float rescale = e < unit ? 0.25f : e == unit ? 1 : 4;
    fit_vec sum = fit_all(0);

    SIMD_UNROLL
    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec t = x[i] * fit_all(inverse), miss = t - e2m1_nearest(t);

        sum += w[i] * miss * miss;
    }
    return fit_sum(sum) * rescale;
}

static void quantize_block(const float *src, const fit_vec *w, struct block_mxfp4 *out)
{
    fit_vec x[FIT_VECS];
    float largest, least;
    uint8_t codes[FIT_N];
    int plain, e;

    memcpy(x, src, sizeof(x));
    for (int i = 0; i < FIT_VECS; i++)
        x[i] = fit_clamp(fit_choose(x[i] == x[i], x[i], fit_all(0)), -FLT_MAX, FLT_MAX);
    largest = fabsf(fmaxf(-fit_lowest(x), fit_highest(x))); /* not minus zero */
    /* The exponent field is 127 more than the exponent, as is e; subnormals have
     * that of the smallest scale, 0. */
    plain = (int)(float_bits(largest) >> 23) - 2;
    if (plain < 0)
        plain = 0;
    e = plain;
    least = error_of(x, w, plain, plain);
    for (int i = plain - 1; i <= plain + 1; i += 2) {
        float error;

        if (i < 0 || i > LARGEST_E)
            continue;
        error = error_of(x, w, i, plain);
        if (error < least) {
            least = error;
            e = i;
        }
    }
    out->e = (uint8_t)e;
    e2m1_codes(x, inverse_scale(e), codes);
    fit_pack_four(codes, out->qs);
}

FIT_QUANTIZE(mxfp4)

#ifdef KERN_LEVEL_scalar
void kern_dequantize_mxfp4__scalar(const void *src, float *dst, size_t n)
{
    const struct block_mxfp4 *in = src;

    for (size_t b = 0; b < n / MXFP4_ELEMS; b++) {
        const float d = mxfp4_scale(in[b].e);
        float *out = dst + b * MXFP4_ELEMS;

        for (int j = 0; j < MXFP4_ELEMS / 2; j++) {
            out[j] = d * (float)mxfp4_values[in[b].qs[j] & 15];
            out[j + MXFP4_ELEMS / 2] = d * (float)mxfp4_values[in[b].qs[j] >> 4];
        }
    }
}
#endif
