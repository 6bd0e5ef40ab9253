/* SPDX-License-Identifier: MIT
 *
 * sums.h - how products of many tokens' columns are summed up
 *
 * Exact: weights are multiplied as their format has them; a float step follows each
 * block, or super-block. With int8 sums, 256 weights of a row become bytes times one
 * float first (kern_gemm_int8_fn), which is faster and less exact. Only products of
 * SUMS_INT8_COLUMNS tokens and more are, so prefill; formats of floats, routers and
 * attention stay exact.
 */
#ifndef SLM_ENGINE_FORWARD_SUMS_H
#define SLM_ENGINE_FORWARD_SUMS_H

enum slm_sums { SLM_SUMS_EXACT, SLM_SUMS_INT8, SLM_N_SUMS };

/* Fewer columns are multiplied faster, or as fast, without requantising. */
#define SUMS_INT8_COLUMNS 64

/* Matrices whose rows are no multiple of this stay exact. */
#define SUMS_INT8_K 256

#endif
