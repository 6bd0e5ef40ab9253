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

static inline __attribute__((always_inline)) void
hadamard_step(float *restrict to, const float *restrict from, size_t half)
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

static inline __attribute__((always_inline)) void hadamard_one(float *x, size_t block)
{
    const float scale = 1.0f / sqrtf((float)block);
    float other[KERN_MAX_HADAMARD];
    size_t done = 1;

    for (; 2 * done < block; done *= 4) {
        hadamard_step(other, x, block / 2);
        hadamard_step(x, other, block / 2);
    }
    if (done < block)
        hadamard_step(other, x, block / 2);
    for (size_t i = 0; i < block; i++)
        x[i] = scale * (done < block ? other[i] : x[i]);
}

/* Heads are mostly of these lengths, which the compiler then knows. */
static inline void hadamard_blocks(float *x, size_t n)
{
    const size_t block = hadamard_block(n);

    for (float *at = x; at < x + n; at += block)
        switch (block) {
        case 64:
            hadamard_one(at, 64);
            break;
        case 128:
            hadamard_one(at, 128);
            break;
        case 256:
            hadamard_one(at, 256);
            break;
        default:
            hadamard_one(at, block);
        }
}

#endif
