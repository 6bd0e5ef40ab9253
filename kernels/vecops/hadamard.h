/* SPDX-License-Identifier: MIT
 *
 * hadamard.h - products with Hadamard matrices, as every level computes them
 *
 * All steps are the same (Pease 1968, "An adaptation of the fast Fourier transform for
 * parallel processing"): sums of neighbours become the first half, differences the
 * second. So the compiler can use registers of any width in each of them.
 */
#ifndef SLM_KERNELS_VECOPS_HADAMARD_H
#define SLM_KERNELS_VECOPS_HADAMARD_H

#include <math.h>

#include "kernels/kernels.h"

static inline void hadamard_step(float *restrict to, const float *restrict from,
                                 size_t half)
{
    for (size_t i = 0; i < half; i++) {
        to[i] = from[2 * i] + from[2 * i + 1];
        to[half + i] = from[2 * i] - from[2 * i + 1];
    }
}

/* The largest power of two that divides n, at most KERN_MAX_HADAMARD. */
static inline size_t hadamard_block(size_t n)
{
    const size_t block = n & (~n + 1);

    return block < KERN_MAX_HADAMARD ? block : KERN_MAX_HADAMARD;
}

static inline void hadamard_blocks(float *x, size_t n)
{
    const size_t block = hadamard_block(n);
    const float scale = 1.0f / sqrtf((float)block);
    float other[KERN_MAX_HADAMARD];

    for (float *at = x; at < x + n; at += block) {
        size_t done = 1;

        for (; 2 * done < block; done *= 4) {
            hadamard_step(other, at, block / 2);
            hadamard_step(at, other, block / 2);
        }
        if (done < block) {
            hadamard_step(other, at, block / 2);
            for (size_t i = 0; i < block; i++)
                at[i] = other[i];
        }
        for (size_t i = 0; i < block; i++)
            at[i] *= scale;
    }
}

#endif
