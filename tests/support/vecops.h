/* SPDX-License-Identifier: MIT
 *
 * vecops.h - what the tests of vector operations and of attention share
 *
 * EPS is half a unit in the last place of 1.
 */
#ifndef SLM_TESTS_VECOPS_H
#define SLM_TESTS_VECOPS_H

#include "tests/support/test.h"

#include <math.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "tests/support/traps/traps.h"

#define EPS 0x1p-24

/* The rows of op that can run here, or those of a trap's level (traps.h), one after
 * another; *at starts at 0. */
static const struct kern_row *next_row(enum kern_op op, size_t *at)
{
    size_t n;
    const struct kern_row *rows = kern_rows(&n);

    while (*at < n) {
        const struct kern_row *row = &rows[(*at)++];

        if (row->op == op &&
            (trapping() ? !trap_leaves_out(row->isa) : isa_usable() >> row->isa & 1))
            return row;
    }
    return NULL;
}

static float *floats(size_t n)
{
    return guard_alloc(n * sizeof(float));
}

static void free_floats(float *p, size_t n)
{
    guard_free(p, n * sizeof(float));
}

static inline void fill(float *p, size_t n, float size, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = size * test_random_float(seed);
}

static void check(const char *name, size_t i, double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s: element %zu is %.9g, expected %.9g within %.3g", name, i, got,
                 want, bound);
}

#endif
