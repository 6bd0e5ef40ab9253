/* SPDX-License-Identifier: MIT
 *
 * probe.c - the probe rows of kernels.def as data
 */
#include "kernels/probe/probe.h"

/* Rows of another architecture have no source in this build, so they must not be
 * named; each level expands to its row or to nothing. */
#define ROW(o, i) \
    {.op = PROBE_OP_##o, .isa = KERN_ISA_##i, .fn = {.o = kern_##o##__##i}},
#define ROW_scalar(o) ROW(o, scalar)
#if defined(__x86_64__)
#define ROW_avx2(o)       ROW(o, avx2)
#define ROW_avxvnni(o)    ROW(o, avxvnni)
#define ROW_avx512(o)     ROW(o, avx512)
#define ROW_avx512vnni(o) ROW(o, avx512vnni)
#else
#define ROW_avx2(o)
#define ROW_avxvnni(o)
#define ROW_avx512(o)
#define ROW_avx512vnni(o)
#endif
#if defined(__aarch64__)
#define ROW_neon(o)      ROW(o, neon)
#define ROW_neon_i8mm(o) ROW(o, neon_i8mm)
#else
#define ROW_neon(o)
#define ROW_neon_i8mm(o)
#endif

static const struct probe_kernel rows[] = {
#define KERN_PROBE_ROW(op, isa) ROW_##isa(op)
#include "kernels/kernels.def"
};

const struct probe_kernel *probe_kernels(size_t *n)
{
    *n = sizeof rows / sizeof rows[0];
    return rows;
}

const struct probe_kernel *probe_kernel_best(enum probe_op op, uint32_t isa_mask)
{
    const struct probe_kernel *best = NULL;

    isa_mask |= 1u << KERN_ISA_scalar;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].op == op && (isa_mask >> rows[i].isa & 1) &&
            (!best || rows[i].isa > best->isa))
            best = &rows[i];
    return best;
}
