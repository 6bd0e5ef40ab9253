/* SPDX-License-Identifier: MIT
 *
 * f16.h - weights in IEEE half precision, one per block (GGUF type 1)
 *
 *   15 14    10 9        0
 *   | s | eeeee | mmmmmmmmmm |   value (-1)^s * 2^(e-15) * 1.m; e = 0: 2^-14 * 0.m
 *
 * Little endian; a row of k weights is k such values.
 */
#ifndef SLM_KERNELS_F16_H
#define SLM_KERNELS_F16_H

#include <assert.h>
#include <stdint.h>

#define F16_BLOCK_BYTES 2
static_assert(sizeof(uint16_t) == F16_BLOCK_BYTES, "16-bit float");

#endif
