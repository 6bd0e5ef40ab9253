/* SPDX-License-Identifier: MIT
 *
 * probe_neon_i8mm.c - the int8 roof with the matrix multiply-add of I8MM
 *
 * One SMMLA multiplies 2 x 8 by 8 x 2 bytes: 32 multiply-adds.
 */
#include "kernels/probe/probe.h"

#include <arm_neon.h>

#define N_INT8 16 /* independent sums: four units of four cycles */

/* The 32-bit sums may wrap: nobody reads them as numbers. */
uint64_t kern_peak_int8__neon_i8mm(uint64_t n_iters, uint64_t *sink)
{
    int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(-5);
    int32x4_t acc[N_INT8];

    /* the empty asm hides values, so that equal sums are not merged into one and
     * products of equal operands are not shared */
    for (int i = 0; i < N_INT8; i++) {
        acc[i] = vdupq_n_s32(i);
        __asm__("" : "+w"(acc[i]));
    }
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_INT8; i++) {
            __asm__ volatile("" : "+w"(a));
            acc[i] = vmmlaq_s32(acc[i], a, b);
        }
    for (int i = 1; i < N_INT8; i++)
        acc[0] = vaddq_s32(acc[0], acc[i]);
    *sink = (uint32_t)vaddvq_s32(acc[0]);
    return n_iters * N_INT8 * 32 * 2;
}
