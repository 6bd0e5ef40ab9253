/* SPDX-License-Identifier: MIT
 *
 * f16_simd.c - f16 weights times float activations, every vector level
 */
#include "kernels/f16/f16.h"

#include "kernels/kernels.h"
#include "kernels/simd/float.h"

FLOAT_KERNELS(f16, f_half, f_half_two, f_load_two, fp_split_f16, F16_BLOCK_BYTES)
