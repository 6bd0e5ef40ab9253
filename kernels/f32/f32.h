/* SPDX-License-Identifier: MIT
 *
 * f32.h - weights as float32, one element per block (GGUF type 0)
 *
 *   | float w | little endian; a row of k weights is k floats
 */
#ifndef SLM_KERNELS_F32_H
#define SLM_KERNELS_F32_H

#include <assert.h>

#define F32_BLOCK_BYTES 4
static_assert(sizeof(float) == F32_BLOCK_BYTES, "float32");

#endif
