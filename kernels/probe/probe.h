/* SPDX-License-Identifier: MIT
 *
 * probe.h - loops that do nothing but read, or nothing but multiply
 *
 * They find a machine's bandwidth ceiling and its compute ceilings: the roofs that a
 * kernel is compared with. Each exists per ISA level like any kernel (rows
 * KERN_PROBE_ROW in kernels.def); the best of several variants is the roof.
 *
 * Threading: pure functions.
 */
#ifndef SLM_KERNELS_PROBE_PROBE_H
#define SLM_KERNELS_PROBE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/isa.h"

/* stream_read: read p[0..bytes) once, 64-byte aligned, bytes a multiple of 64, in
 * n_streams (1, 2 or 4) equal parts side by side, prefetching at `distance` bytes in
 * each part (0: only the hardware prefetches; a prefetch beyond the end is harmless).
 * Returns the sum of all 64-bit words modulo 2^64, so that no load can be left out. */
typedef uint64_t kern_stream_read_fn(const void *p, size_t bytes, int n_streams,
                                     size_t distance);

/* peak_int8: n_iters rounds of independent multiply-adds of unsigned by signed
 * bytes into 32 bits, all in registers (scalar: in the first-level cache).
 * Returns the operations done, two per multiply-add; *sink receives something
 * that depends on all of them. peak_f32: the same with fused multiply-adds. */
typedef uint64_t kern_peak_int8_fn(uint64_t n_iters, uint64_t *sink);
typedef uint64_t kern_peak_f32_fn(uint64_t n_iters, uint64_t *sink);

#define KERN_PROBE_ROW(op, isa) kern_##op##_fn kern_##op##__##isa;
#include "kernels/kernels.def"

enum probe_op {
    PROBE_OP_stream_read,
    PROBE_OP_peak_int8,
    PROBE_OP_peak_f32,
};

/* One row of kernels.def; the pointer named after op is set. */
struct probe_kernel {
    enum probe_op op;
    enum kern_isa isa;
    union {
        kern_stream_read_fn *stream_read;
        kern_peak_int8_fn *peak_int8;
        kern_peak_f32_fn *peak_f32;
    } fn;
};

/* The rows this build has. */
const struct probe_kernel *probe_kernels(size_t *n);

/* The one with the highest level in isa_mask (bits 1u << isa); never NULL, since
 * each operation has a scalar row. */
const struct probe_kernel *probe_kernel_best(enum probe_op op, uint32_t isa_mask);

#endif
