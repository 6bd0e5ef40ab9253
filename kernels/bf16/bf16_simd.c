/* SPDX-License-Identifier: MIT
 *
 * bf16_simd.c - bf16 weights times float activations, every vector level
 */
#include "kernels/bf16/bf16.h"

#include "kernels/kernels.h"
#include "kernels/simd/float.h"

FLOAT_KERNELS(bf16, f_bf16, f_bf16_apart, f_apart, fp_split_bf16, BF16_BLOCK_BYTES)
