/* SPDX-License-Identifier: MIT
 *
 * f32_scalar.c - a column of floats as it is
 *
 * The only variant: memcpy picks the widest registers by itself.
 */
#include <string.h>

#include "kernels/kernels.h"

void kern_quantize_act_f32__scalar(const float *src, void *dst, size_t k)
{
    memcpy(dst, src, k * sizeof(float));
}
