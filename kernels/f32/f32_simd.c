/* SPDX-License-Identifier: MIT
 *
 * f32_simd.c - f32 weights times float activations, every vector level
 */
#include "kernels/f32/f32.h"

#include "kernels/kernels.h"
#include "kernels/simd/float.h"

FLOAT_KERNELS(f32, f_load, f_load_two, f_load_two, fp_split_f32, F32_BLOCK_BYTES)
