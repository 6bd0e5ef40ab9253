/* SPDX-License-Identifier: MIT
 *
 * bf16.h - weights in bfloat16, the upper half of a float32, one per block (GGUF type
 * 30)
 *
 *   15 14       7 6     0
 *   | s | eeeeeeee | mmmmmmm |   value (-1)^s * 2^(e-127) * 1.m
 *
 * Little endian; a row of k weights is k such values.
 */
#ifndef SLM_KERNELS_BF16_H
#define SLM_KERNELS_BF16_H

#include <assert.h>
#include <stdint.h>

#define BF16_BLOCK_BYTES 2
static_assert(sizeof(uint16_t) == BF16_BLOCK_BYTES, "16-bit float");

#endif
