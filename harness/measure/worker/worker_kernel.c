/* SPDX-License-Identifier: MIT
 *
 * worker_kernel.c - a worker's samples of a kernel
 */
#include <stdio.h>

#include "harness/measure/kernels/kernel_work.h"
#include "harness/measure/worker/worker_open.h"
#include "kernels/isa.h"

double worker_kernel_bytes(enum kern_format format)
{
    return (double)WORKER_KERNEL_CALLS * kernel_hot_rows(format) *
           (double)kern_format_bytes(format, KERNEL_COLS);
}

static enum status choose_case(struct kernel_case *c, enum kern_format format,
                               struct err *err)
{
    const struct kern_row *row = kern_best(KERN_OP_gemv, format, isa_usable());

    if (!row)
        return err_set(err, ST_UNSUPPORTED, "there is no gemv of %s here",
                       kern_format_info(format)->name);
    *c = (struct kernel_case){.rows = kernel_hot_rows(format),
                              .cols = KERNEL_COLS,
                              .n_x = 1,
                              .cache = KERNEL_HOT,
                              .n_threads = 1};
    snprintf(c->op, sizeof c->op, "gemv");
    snprintf(c->what, sizeof c->what, "%s", kern_format_info(format)->name);
    snprintf(c->isa, sizeof c->isa, "%s", isa_name(row->isa));
    return ST_OK;
}

enum status worker_kernel_open(struct kernel_work **work,
                               struct kernel_fixture **fixture,
                               const struct topology *topo, enum kern_format format,
                               struct err *err)
{
    struct kernel_case c;
    enum status st = choose_case(&c, format, err);

    if (st == ST_OK && !*fixture)
        st = kernel_fixture_open(fixture, topo, PLACEMENT_SPREAD, err);
    if (st == ST_OK)
        st = kernel_work_open(work, *fixture, &c, err);
    if (st == ST_OK)
        kernel_work_run(*work, WORKER_KERNEL_CALLS);
    return st;
}

enum status worker_kernel_run(void *work, uint64_t *ns, struct err *err)
{
    (void)ns;
    (void)err;
    kernel_work_run(work, WORKER_KERNEL_CALLS);
    return ST_OK;
}
