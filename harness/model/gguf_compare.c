/* SPDX-License-Identifier: MIT
 *
 * gguf_compare.c - two files' weights side by side, piece by piece
 */
#include "harness/model/gguf_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/gguf/own_scale.h"
#include "engine/quantize/dequant.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"

struct sums {
    uint64_t n_tensors, n, bytes; /* n: weights */
    double error2, square2;       /* square2: the reference's */
};

/* One tensor: g's values arrive in pieces, and the same pieces of ref are read. */
struct pair {
    const struct gguf *ref;
    const struct gguf_tensor *with;
    kern_dequantize_fn *to_floats;
    uint64_t row;         /* of the next piece */
    float *own, *ref_own; /* [slices] factors of all weights */
    void *raw;
    float *v;
    size_t cap; /* capacity in values */
    struct sums *sum;
};

static enum status make_room(struct pair *p, size_t n, struct err *err)
{
    if (n <= p->cap)
        return ST_OK;
    free(p->raw);
    free(p->v);
    p->raw = malloc(kern_format_bytes(p->with->fmt, n));
    p->v = malloc(n * sizeof *p->v);
    p->cap = p->raw && p->v ? n : 0;
    return p->cap ? ST_OK
                  : err_set(err, ST_NO_MEMORY, "no memory to compare %zu weights", n);
}

static enum status add_piece(void *arg, const float *v, size_t n, struct err *err)
{
    struct pair *p = arg;
    const uint64_t n_rows = n / p->with->ne[0]; /* pieces are whole rows */
    enum status st = make_room(p, n, err);

    if (!st && interrupted())
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    if (!st)
        st = gguf_read_rows(p->ref, p->with, p->row, n_rows, false, p->raw, err);
    if (st)
        return st;
    p->row += n_rows;
    p->to_floats(p->raw, p->v, n);
    for (size_t i = 0; i < n; i++) {
        const uint64_t slice = (p->row - n_rows + i / p->with->ne[0]) / p->with->ne[1];
        const double x = (double)p->v[i] * (double)p->ref_own[slice];
        const double e = (double)v[i] * (double)p->own[slice] - x;

        p->sum->error2 += e * e;
        p->sum->square2 += x * x;
    }
    p->sum->n += n;
    return ST_OK;
}

static enum status check_pair(const struct gguf *ref, const struct gguf_tensor *t,
                              const struct gguf_tensor *with, struct err *err)
{
    char name[96];

    utf8_printable(name, sizeof name, t->name, strlen(t->name));
    if (!with)
        return err_set(err, ST_INPUT, "%s has no tensor '%s' to compare with",
                       gguf_path(ref), name);
    if (memcmp(t->ne, with->ne, sizeof t->ne))
        return err_set(err, ST_INPUT,
                       "'%s' has another shape in %s; it is of another model", name,
                       gguf_path(ref));
    if (with->fmt == KERN_N_FMT)
        return err_set(err, ST_UNSUPPORTED,
                       "'%s' of %s has a type that this program cannot dequantise",
                       name, gguf_path(ref));
    return ST_OK;
}

static enum status read_scales(float **out, const struct gguf *g,
                               const struct gguf_tensor *t, struct err *err)
{
    *out = calloc((size_t)(t->ne[2] * t->ne[3]), sizeof **out);
    return *out ? gguf_read_own_scale(g, t, *out, err)
                : err_set(err, ST_NO_MEMORY, "no memory for the scales of %s", t->name);
}

/* Adds the tensor's bytes and errors to *sum. */
static enum status compare(struct sums *sum, const struct gguf *g,
                           const struct gguf_tensor *t, const struct gguf *ref,
                           struct err *err)
{
    struct pair p = {.ref = ref, .with = gguf_tensor_find(ref, t->name), .sum = sum};
    enum status st = check_pair(ref, t, p.with, err);

    if (!st)
        st = read_scales(&p.own, g, t, err);
    if (!st)
        st = read_scales(&p.ref_own, ref, p.with, err);
    if (st) {
        free(p.own);
        free(p.ref_own);
        return st;
    }
    p.to_floats =
        kern_best(KERN_OP_dequantize, p.with->fmt, isa_usable())->fn.dequantize;
    st = dequant_tensor(g, t, isa_usable(), add_piece, &p, err);
    sum->n_tensors++;
    sum->bytes += t->bytes;
    free(p.raw);
    free(p.v);
    free(p.own);
    free(p.ref_own);
    return st;
}

static void print_error(const struct sums *s)
{
    if (!(s->error2 > 0)) /* also where nothing can be a share of nothing */
        printf("%12s\n", "as it was");
    else
        printf("%12.5g  %8.4f %%\n", sqrt(s->error2 / (double)s->n),
               100 * sqrt(s->error2 / s->square2));
}

static void print_tensor(const struct gguf_tensor *t, const struct gguf *ref,
                         const struct sums *s)
{
    char name[96];

    printf("%-36s %-8s %-8s ", text_harmless(name, sizeof name, t->name),
           kern_format_info(t->fmt)->name,
           kern_format_info(gguf_tensor_find(ref, t->name)->fmt)->name);
    print_error(s);
}

static void print_formats(const struct sums *by_format)
{
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const struct sums *s = &by_format[fmt];

        if (!s->n_tensors)
            continue;
        printf("%-8s %4" PRIu64 " tensor%s %10s ",
               kern_format_info((enum kern_format)fmt)->name, s->n_tensors,
               s->n_tensors == 1 ? " " : "s", bytes_text(s->bytes).text);
        print_error(s);
    }
}

enum status gguf_compare_print(const struct gguf *g, const struct gguf *ref,
                               bool tensors, struct err *err)
{
    const size_t n = gguf_n_tensors(g);
    struct sums by_format[KERN_N_FMT] = {{0}}, *each = calloc(n + 1, sizeof *each);
    struct progress bar;
    enum status st = each ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for sums");

    progress_begin(&bar, "comparing");
    for (size_t i = 0; i < n && !st; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        progress_update(&bar, (double)i / (double)n, t->name);
        if (gguf_scaled_by(g, t)) /* goes with its matrix */
            continue;
        st = compare(&each[i], g, t, ref, err);
        if (st)
            break;
        by_format[t->fmt].n_tensors++;
        by_format[t->fmt].bytes += t->bytes;
        by_format[t->fmt].n += each[i].n;
        by_format[t->fmt].error2 += each[i].error2;
        by_format[t->fmt].square2 += each[i].square2;
    }
    progress_end(&bar);
    if (!st && tensors) {
        printf("%-36s %-8s %-8s %12s  %10s\n", "tensor", "type", "of", "RMSE",
               "of weights'");
        for (size_t i = 0; i < n; i++)
            if (!gguf_scaled_by(g, gguf_tensor_at(g, i)))
                print_tensor(gguf_tensor_at(g, i), ref, &each[i]);
        putchar('\n');
    }
    if (!st)
        print_formats(by_format);
    free(each);
    return st;
}
