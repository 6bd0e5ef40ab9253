/* SPDX-License-Identifier: MIT
 *
 * nvfp4_quantize.c - reference quantisation and dequantisation of nvfp4
 *
 * The scale that puts the largest magnitude at 6, the largest E2M1 value, need not be
 * the best: every code is tried that puts it between 3 and 8, above 6 cutting it off.
 */
#include "kernels/nvfp4/nvfp4.h"

#define FIT_N 16

#include "kernels/fit/e2m1.h"
#include "kernels/kernels.h"

static_assert(FIT_N == NVFP4_GROUP, "a group at a time");

/* The code of the least scale that is not below v; of the largest there is if none. */
static int code_from(float v)
{
    const float most = 448;

    return (half_from_f32(fminf(v, most) / 256) + 127) >> 7;
}

static float error_of(const fit_vec *x, const fit_vec *w, int code)
{
    return fit_scale_error(e2m1_nearest, x, w, 2 * nvfp4_half_scale((uint8_t)code));
}

static void quantize_group(const float *src, const fit_vec *w, uint8_t *s, uint8_t *qs)
{
    fit_vec x[FIT_VECS];
    float largest, least = INFINITY;
    int last, best = 0;
    uint8_t codes[FIT_N];

    fit_load(src, x);
    largest = fabsf(fmaxf(-fit_lowest(x), fit_highest(x))); /* not minus zero */
    last = code_from(largest / 3);
    for (int code = code_from(largest / 8); code <= last && code <= NVFP4_LARGEST;
         code++) {
        const float error = error_of(x, w, code);

        if (error < least) {
            least = error;
            best = code;
        }
    }
    *s = (uint8_t)best;
    e2m1_codes(x, fit_inverse(2 * nvfp4_half_scale(*s)), codes);
    fit_pack_four(codes, qs);
}

void KERN_NAME(quantize, nvfp4)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_nvfp4 *out = dst;
    fit_vec importance[FIT_VECS];

    for (size_t i = 0; i < n; i += NVFP4_GROUP) {
        const size_t g = i % NVFP4_ELEMS / NVFP4_GROUP;
        struct block_nvfp4 *block = &out[i / NVFP4_ELEMS];

        fit_importance(w ? w + i : NULL, importance);
        quantize_group(src + i, importance, &block->s[g],
                       block->qs + g * NVFP4_GROUP / 2);
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_nvfp4__scalar(const void *src, float *dst, size_t n)
{
    const struct block_nvfp4 *in = src;

    for (size_t i = 0; i < n; i++) {
        const struct block_nvfp4 *block = &in[i / NVFP4_ELEMS];
        const int at = (int)(i % NVFP4_ELEMS);

        dst[i] = nvfp4_half_scale(block->s[at / NVFP4_GROUP]) *
                 (float)nvfp4_value(block->qs, at);
    }
}
#endif
