/* SPDX-License-Identifier: MIT
 *
 * f16_scalar.c - float32 to f16, rounding to nearest even, and back; f16 weights times
 *               float activations, reference
 */
#include "kernels/f16/f16.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

SIMD_INLINE float value(const void *at)
{
    return half_to_f32(load_u16(at));
}

SCALAR_HALF_KERNELS(f16, half_from_f32, half_to_f32)
SCALAR_KERNELS(f16, scalar_float_gemm, value, F16_BLOCK_BYTES)
