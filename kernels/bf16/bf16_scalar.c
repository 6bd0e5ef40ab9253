/* SPDX-License-Identifier: MIT
 *
 * bf16_scalar.c - float32 to bf16, rounding to nearest even, and back; bf16 weights
 * times float activations, reference
 */
#include "kernels/bf16/bf16.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

SIMD_INLINE float value(const void *at)
{
    return bf16_to_f32(load_u16(at));
}

SCALAR_HALF_KERNELS(bf16, bf16_from_f32, bf16_to_f32)
SCALAR_KERNELS(bf16, scalar_float_gemm, value, BF16_BLOCK_BYTES)
