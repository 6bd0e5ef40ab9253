/* SPDX-License-Identifier: MIT
 *
 * shares_measure.c - shares from the rows of sweeps and from timed kernels, as YAML
 */
#include "research/shares_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/machine/topology.h"
#include "harness/rows/report_rows.h"
#include "research/research.h"

/* Undisturbed launches below this many have no quantiles worth the name. */
#define MIN_LAUNCHES 3

/* ---- values ---------------------------------------------------------------------- */

/* A share of one launch or kernel; its median is all that counts. */
struct values {
    struct share *v;
    size_t n, cap;
};

static enum status add(struct values *values, const struct share *share,
                       struct err *err)
{
    if (values->n == values->cap) {
        const size_t cap = values->cap ? 2 * values->cap : 256;
        struct share *grown = realloc(values->v, cap * sizeof *grown);

        if (!grown)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu shares", cap);
        values->v = grown;
        values->cap = cap;
    }
    values->v[values->n++] = *share;
    return ST_OK;
}

/* A table may hold any number. */
static bool has_threads(const struct row *r)
{
    return r->n_threads > 0 && r->n_threads <= TOPO_MAX_CPUS;
}

static enum status add_rows(struct values *values, const struct result_part *part,
                            const char *machine, struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < part->n && st == ST_OK; i++) {
        const struct row *r = &part->rows[i];
        struct share s = {
            .format = share_format(r->quant), .n_threads = (int)r->n_threads, .n = 1};

        s.median = share_of_row(r, &s.kind);
        snprintf(s.machine, sizeof s.machine, "%s", machine);
        if (s.median > 0 && s.format != KERN_N_FMT && has_threads(r) &&
            row_trust(r) == ROW_GOOD)
            st = add(values, &s, err);
    }
    return st;
}

/* ---- kernels --------------------------------------------------------------------- */

enum { CELL_OP, CELL_FORMAT, CELL_WEIGHTS, CELL_SHARE, N_CELLS };

static const char *const cell_names[] = {[CELL_OP] = "op",
                                         [CELL_FORMAT] = "format",
                                         [CELL_WEIGHTS] = "weights",
                                         [CELL_SHARE] = "of_read_roof"};

/* One line of kernels.csv: a product with one column, of weights outside the caches. */
static enum status add_kernel(struct values *values, const struct row *r,
                              char *const *cell, const char *machine, struct err *err)
{
    struct share s = {.kind = SHARE_KERNEL, .n_threads = (int)r->n_threads, .n = 1};

    if (!cell[CELL_OP] || strcmp(cell[CELL_OP], "gemv_x16") || !cell[CELL_WEIGHTS] ||
        strcmp(cell[CELL_WEIGHTS], "cold") || !cell[CELL_FORMAT] || !cell[CELL_SHARE])
        return ST_OK;
    s.format = kern_format_by_name(cell[CELL_FORMAT]);
    s.median = strtod(cell[CELL_SHARE], NULL);
    snprintf(s.machine, sizeof s.machine, "%s", machine);
    return s.median > 0 && isfinite(s.median) && s.format != KERN_N_FMT &&
                   has_threads(r)
               ? add(values, &s, err)
               : ST_OK;
}

static enum status add_kernels(struct values *values, const char *dir,
                               const char *machine, struct err *err)
{
    struct row_extra extra = {.names = cell_names, .n = N_CELLS};
    struct row *rows = NULL;
    char path[4096];
    size_t n = 0;
    enum status st;

    snprintf(path, sizeof path, "%s/kernels.csv", dir);
    if (access(path, F_OK))
        return ST_OK;
    st = row_csv_read_extra(path, &rows, &n, &extra, err);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = add_kernel(values, &rows[i], extra.cells + i * N_CELLS, machine, err);
    row_extra_free(&extra, n);
    free(rows);
    return st;
}

/* ---- records --------------------------------------------------------------------- */

static int compare(const void *x, const void *y)
{
    const struct share *a = x, *b = y;
    const int by_name = strcmp(a->machine, b->machine);

    if (by_name)
        return by_name;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->format != b->format)
        return a->format < b->format ? -1 : 1;
    if (a->n_threads != b->n_threads)
        return a->n_threads < b->n_threads ? -1 : 1;
    return (a->median > b->median) - (a->median < b->median);
}

static bool same_group(const struct share *a, const struct share *b)
{
    return !strcmp(a->machine, b->machine) && a->kind == b->kind &&
           a->format == b->format && a->n_threads == b->n_threads;
}

/* v[n] are of one group, in order of their medians. A kernel's fastest ISA level
 * counts. */
static void summarise(struct share *out, const struct share *v, size_t n,
                      double *scratch)
{
    *out = v[0];
    out->n = (int)n;
    for (size_t i = 0; i < n; i++)
        scratch[i] = v[i].median;
    out->lo = stats_quantile_sorted(scratch, n, 0.05);
    out->median = stats_quantile_sorted(scratch, n, 0.5);
    out->hi = stats_quantile_sorted(scratch, n, 0.95);
    if (out->kind != SHARE_KERNEL)
        return;
    out->n = 1;
    out->lo = out->median = out->hi = scratch[n - 1];
}

static enum status reduce(struct shares *s, struct values *values, struct err *err)
{
    struct share *out = calloc(values->n + 1, sizeof *out);
    double *scratch = calloc(values->n + 1, sizeof *scratch);
    size_t n = 0;

    if (!out || !scratch) {
        free(out);
        free(scratch);
        return err_set(err, ST_NO_MEMORY, "no memory for %zu shares", values->n);
    }
    if (values->n)
        qsort(values->v, values->n, sizeof *values->v, compare);
    for (size_t i = 0, end; i < values->n; i = end) {
        for (end = i + 1; end < values->n && same_group(&values->v[i], &values->v[end]);
             end++) {
        }
        if (values->v[i].kind == SHARE_KERNEL || end - i >= MIN_LAUNCHES)
            summarise(&out[n++], values->v + i, end - i, scratch);
    }
    free(scratch);
    *s = (struct shares){out, n};
    return ST_OK;
}

static enum status add_path(struct values *values, const char *path, struct err *err)
{
    struct result_set set;
    enum status st = result_set_open(&set, path, RESULT_BY_RUN, err);

    for (size_t i = 0; i < set.n_parts && st == ST_OK; i++) {
        const struct result_part *part = &set.parts[i];
        char machine[SHARES_MACHINE_MAX];

        st = share_machine_of_run(machine, sizeof machine, part->run, path, err);
        if (st == ST_OK)
            st = add_rows(values, part, machine, err);
        if (st == ST_OK && part->run->dir)
            st = add_kernels(values, part->run->dir, machine, err);
    }
    result_set_free(&set);
    return st;
}

enum status shares_measure(struct shares *s, const char *const *paths, size_t n,
                           struct err *err)
{
    struct values values = {NULL, 0, 0};
    enum status st = ST_OK;

    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = add_path(&values, paths[i], err);
    if (st == ST_OK)
        st = reduce(s, &values, err);
    free(values.v);
    return st;
}

/* ---- writing --------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [SHARE_DECODE] = "decode", [SHARE_PREFILL] = "prefill", [SHARE_KERNEL] = "kernel"};

/* YAML in single quotes, where nothing but the quote itself is special. */
static void print_quoted(FILE *f, const char *text)
{
    putc('\'', f);
    for (; *text; text++) {
        if (*text == '\'')
            putc('\'', f);
        putc(*text, f);
    }
    putc('\'', f);
}

void shares_print(FILE *f, const struct shares *s)
{
    fprintf(f, "# Shares of the read bandwidth (decode) and of the peak of arithmetic "
               "(prefill)\n# that launches reached, as quantiles 0.05, 0.5 and 0.95; "
               "kernel: a product alone.\n# Made by `bench-research shares`.\n"
               "shares:\n");
    for (size_t i = 0; i < s->n; i++) {
        const struct share *v = &s->v[i];

        fprintf(f, "- {machine: ");
        print_quoted(f, v->machine);
        fprintf(f,
                ", kind: %s, format: %s, threads: %d, n: %d, lo: %.4f, median: "
                "%.4f, hi: %.4f}\n",
                kind_names[v->kind], kern_format_info(v->format)->name, v->n_threads,
                v->n, v->lo, v->median, v->hi);
    }
}

enum status research_shares(const struct research_options *o, struct err *err)
{
    struct shares shares = {NULL, 0};
    enum status st = shares_measure(&shares, o->paths, o->n_paths, err);

    if (st == ST_OK && !shares.n)
        st = err_set(err, ST_INPUT,
                     "no format was measured in three undisturbed launches");
    if (st == ST_OK)
        shares_print(stdout, &shares);
    shares_free(&shares);
    return st;
}
