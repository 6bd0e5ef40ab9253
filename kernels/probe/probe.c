/* SPDX-License-Identifier: MIT
 *
 * probe.c - the probe rows of kernels.def as data
 */
#include "kernels/probe/probe.h"

#include "kernels_built.h" /* SLM_HAS_<level>, as in kernels/registry.c */

#define ROW_0(o, i)
#define ROW_1(o, i) \
    {.op = PROBE_OP_##o, .isa = KERN_ISA_##i, .fn = {.o = kern_##o##__##i}},
#define ROW_VALUE(v, o, i) ROW_##v(o, i)
#define ROW(has, o, i)     ROW_VALUE(has, o, i)

static const struct probe_kernel rows[] = {
#define KERN_PROBE_ROW(op, isa) ROW(SLM_HAS_##isa, op, isa)
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
