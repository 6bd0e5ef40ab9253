/* SPDX-License-Identifier: MIT
 *
 * q2_0_quantize.c - reference quantisation and dequantisation of q2_0
 */
#include "kernels/q2_0/q2_0.h"

#define FIT_N 64

#include "kernels/kernels.h"
#include "kernels/q2_0/q2_0_fit.h"

Q2_0_QUANTIZE(q2_0)

#ifdef KERN_LEVEL_scalar
Q2_0_DEQUANTIZE(q2_0, Q2_0_ELEMS)
#endif
