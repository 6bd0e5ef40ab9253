/* SPDX-License-Identifier: MIT
 *
 * attention_sums.h - a tile's sums in registers: some queries times some vectors
 */
#ifndef SLM_KERNELS_VECOPS_ATTENTION_SUMS_H
#define SLM_KERNELS_VECOPS_ATTENTION_SUMS_H

#include "kernels/vecops/attention_tiles.h"
#include "kernels/vecops/vec_float.h"

enum {
    PANEL_VECS = PANEL / V_LANES,
    MAX_VECS = 4, /* of a query */
};

/* nq queries (constant) of nv vectors (constant); rows of out are o_stride floats
 * apart. */
SIMD_INLINE void load_sums(const size_t nq, const size_t nv, const float *out,
                           size_t o_stride, vf (*sum)[MAX_VECS])
{
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            sum[q][v] = v_load_f(out + q * o_stride + v * V_LANES);
    }
}

SIMD_INLINE void store_sums(const size_t nq, const size_t nv, float *out,
                            size_t o_stride, vf (*sum)[MAX_VECS])
{
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t v = 0; v < nv; v++)
            v_store_f(out + q * o_stride + v * V_LANES, sum[q][v]);
    }
}

#endif
