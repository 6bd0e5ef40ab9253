/* SPDX-License-Identifier: MIT
 *
 * count_work.c - kernels and tokens by name, and the CPU's own counter
 */
#include "harness/measure/worker/count_work.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/measure/kernels/kernel_parts.h"
#include "harness/measure/worker/measured.h"

#define MAX_ROWS 4096
#define MAX_SIZE 65536

struct count_work {
    const struct kern_row *row; /* NULL: decode */

    /* a product */
    struct product_call product;
    struct columns x;
    void *weights, *panels;
    size_t n_rows;

    struct operation_call other;

    /* decode */
    struct measured measured;
};

/* ---- kernels --------------------------------------------------------------------- */

/* The sizes fit the kernel, and one call is short. */
static enum status check_sizes(const struct kern_row *row, const struct kernel_case *c,
                               const char *name, struct err *err)
{
    const struct kernel_product *product = kernel_product(row->op);

    if (!product) {
        if (c->rows == 0 && c->n > 0 && c->n <= MAX_SIZE && c->n % 256 == 0)
            return ST_OK;
        return err_set(
            err, ST_USAGE,
            "%.100s: name the number of elements, as /n:512, a multiple of 256 "
            "up to %d",
            name, MAX_SIZE);
    }
    if (c->rows > 0 && c->rows <= MAX_ROWS && c->cols > 0 && c->cols <= MAX_SIZE &&
        c->n_x <= 512 && c->cols % 256 == 0 && c->rows % KERN_PANEL_ROWS == 0 &&
        (product->has_columns || c->n_x == 1))
        return ST_OK;
    return err_set(err, ST_USAGE,
                   "%.100s: add the size, as /rows:16/cols:512, with rows a "
                   "multiple of %d up to %d and cols one of 256 up to %d",
                   name, KERN_PANEL_ROWS, MAX_ROWS, MAX_SIZE);
}

static enum status find_row(const struct kern_row **row, const struct kernel_case *c,
                            const char *name, struct err *err)
{
    const struct kern_entry *e = kernel_case_entry(c);

    if (!e)
        return err_set(err, ST_UNSUPPORTED, "this build has no kernel %.100s", name);
    *row = isa_usable() >> e->isa & 1 ? kern_best(e->op, e->what, 1u << e->isa) : NULL;
    if (!*row)
        return err_set(err, ST_UNSUPPORTED, "this CPU or build cannot run %.100s",
                       name);
    return ST_OK;
}

static enum status open_product(struct count_work *w, const struct kernel_case *c,
                                struct err *err)
{
    const enum kern_format format = (enum kern_format)w->row->what;
    const size_t rows = (size_t)c->rows, cols = (size_t)c->cols, n_x = (size_t)c->n_x;
    const bool packed = kernel_product(w->row->op)->packed;

    w->n_rows = rows;
    w->weights = parts_weights(format, rows * cols);
    if (w->weights && packed)
        w->panels =
            parts_panels(format, isa_included(w->row->isa), w->weights, rows, cols);
    w->product = (struct product_call){.row = w->row,
                                       .k = cols,
                                       .w_stride = kern_format_bytes(format, cols),
                                       .n_x = n_x,
                                       .y_stride = rows,
                                       .x = &w->x,
                                       .y = parts_alloc(rows * n_x * sizeof(float))};
    if (!w->weights || (packed && !w->panels) || !w->product.y ||
        !parts_columns(&w->x, kern_format_info(format)->act, cols, n_x))
        return err_set(err, ST_NO_MEMORY, "no memory for %s", w->row->name);
    return ST_OK;
}

static enum status open_kernel(struct count_work *w, const char *name, struct err *err)
{
    struct kernel_case c;

    if (!kernel_case_parse(&c, name) || kernel_case_is_roof(&c))
        return err_set(err, ST_USAGE,
                       "\"%.100s\" is no kernel with its sizes, such as "
                       "gemv/q4_K/avx2/rows:16/cols:512",
                       name);
    if (find_row(&w->row, &c, name, err) || check_sizes(w->row, &c, name, err))
        return err->code;
    if (kernel_product(w->row->op))
        return open_product(w, &c, err);
    if (!parts_other_open(&w->other, w->row, (size_t)c.n))
        return err_set(err, ST_NO_MEMORY, "no memory for %s", w->row->name);
    return ST_OK;
}

/* ---- a model --------------------------------------------------------------------- */

static enum status open_model(struct count_work *w, const char *reference,
                              struct err *err)
{
    struct model_setup setup = {.residency = WEIGHTS_MEMORY, .seed = MODELREF_SEED};
    struct slm_params p = slm_params_default();
    enum status st = modelref_parse(&setup.model, reference, NULL, err);

    if (st)
        return st;
    if (!setup.model.synthetic)
        return err_set(err, ST_USAGE,
                       "%.100s is no SHAPE:QUANT; instructions are counted of a small "
                       "synthetic model",
                       reference);
    snprintf(setup.model.text, sizeof setup.model.text,
             "the model whose instructions are counted");
    p.n_ctx = 3 * COUNT_MAX_CALLS + 1;
    p.n_batch = 1;
    measured_init(&w->measured, 1);
    st = measured_open(&w->measured, &setup, &p, err);
    return st ? st : measured_preload(&w->measured, UINT64_MAX, err);
}

/* ---- both ------------------------------------------------------------------------ */

static enum status make_calls(struct count_work *w, size_t calls, struct err *err)
{
    for (size_t i = 0; i < calls; i++) {
        const int32_t token = 1;

        if (!w->row) {
            const enum status st =
                slm_eval(w->measured.m, &token, 1, SLM_LOGITS_LAST, err);

            if (st)
                return st;
        } else if (kernel_product(w->row->op)) {
            parts_product(&w->product, w->panels ? w->panels : w->weights, 0,
                          w->n_rows);
        } else {
            parts_other_run(&w->other);
        }
    }
    return ST_OK;
}

enum status count_work_open(struct count_work **work, const char *name, struct err *err)
{
    static const char decode[] = "decode/";
    struct count_work *w = calloc(1, sizeof *w);
    enum status st;

    if (!w)
        return err_set(err, ST_NO_MEMORY, "no memory for %.100s", name);
    if (!strncmp(name, decode, strlen(decode)))
        st = open_model(w, name + strlen(decode), err);
    else
        st = open_kernel(w, name, err);
    if (st == ST_OK)
        st = make_calls(w, 1, err);
    if (st == ST_OK)
        *work = w;
    else
        count_work_close(w);
    return st;
}

/* Not inlined in any build: callgrind counts inside the function of this name. clang
 * makes no clones, and has no word for that. */
#ifdef __clang__
#define ONE_FUNCTION __attribute__((noinline))
#else
#define ONE_FUNCTION __attribute__((noinline, noclone))
#endif

ONE_FUNCTION enum status count_work_run(struct count_work *w, size_t calls,
                                        struct err *err)
{
    return make_calls(w, calls, err);
}

void count_work_close(struct count_work *w)
{
    if (!w)
        return;
    measured_close(&w->measured);
    if (w->row && !kernel_product(w->row->op))
        parts_other_close(&w->other);
    free(w->weights);
    free(w->panels);
    free(w->product.y);
    free(w->x.data);
    free(w);
}

static enum status count_calls(struct count_work *w, int fd, size_t calls, uint64_t *n,
                               struct err *err)
{
    enum status st;

    ioctl(fd, PERF_EVENT_IOC_RESET, 0);
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    st = count_work_run(w, calls, err);
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    if (st == ST_OK && read(fd, n, sizeof *n) != sizeof *n)
        st = err_set(err, ST_UNSUPPORTED, "the CPU's counter has no figure");
    return st;
}

enum status count_work_pmu(struct count_work *w, size_t calls, uint64_t *instructions,
                           struct err *err)
{
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_HARDWARE,
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    uint64_t once = 0, twice = 0;
    enum status st;

    if (fd < 0)
        return err_set_errno(
            err, ST_UNSUPPORTED,
            "the CPU's counter of instructions cannot be used (the "
            "machine has none, or /proc/sys/kernel/perf_event_paranoid "
            "is above 2)");
    st = count_calls(w, fd, calls, &once, err);
    if (st == ST_OK)
        st = count_calls(w, fd, 2 * calls, &twice, err);
    close(fd);
    if (st == ST_OK)
        *instructions = twice - once;
    return st;
}
