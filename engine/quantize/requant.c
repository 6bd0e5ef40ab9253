/* SPDX-License-Identifier: MIT
 *
 * requant.c - a gguf in another mix: other types, rows quantised as they are read
 */
#include "engine/quantize/requant_impl.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "kernels/isa.h"

#define PIECE 65536 /* values at a time, or one longer row */

struct requant {
    struct gguf *from;
    struct kern_set kern;
    const struct imatrix *imatrix;
    pthread_mutex_t lock; /* of measures */
    struct requant_measure *measures;
};

/* Buffers for rows: raw rows of `from`, floats, and importances. */
struct work {
    const struct gguf_tensor *from, *t;
    const struct imatrix_entry *importance; /* NULL: no buffer w either */
    void *raw;
    float *v, *w;
    float *columns; /* importances of the columns of one slice */
    uint64_t slice; /* the slice of columns */
    float *back;    /* v after quantising, to measure; or NULL */
};

/* ---- importances ----------------------------------------------------------------- */

/* Importances w[n_rows][n] of n_rows rows from `row` on. */
static void weigh(struct work *k, uint64_t row, uint64_t n_rows, const float *v)
{
    const size_t n = (size_t)k->t->ne[0];

    for (uint64_t r = 0; r < n_rows; r++, v += n) {
        float *w = k->w + r * n;
        float square = 0;

        if ((row + r) / k->t->ne[1] != k->slice) {
            k->slice = (row + r) / k->t->ne[1];
            imatrix_weights(k->importance, n, k->slice, k->columns);
        }
        for (size_t i = 0; i < n; i++)
            square += v[i] * v[i];
        square /= (float)n;
        for (size_t i = 0; i < n; i++)
            w[i] = k->columns[i] * sqrtf(square + v[i] * v[i]);
        /* Only ratios matter; a row of zeros has none. */
        for (size_t i = 0; i < n && !(square > 0); i++)
            w[i] = 1;
    }
}

static void measure(struct requant *q, const struct work *k, const float *v,
                    const void *made, size_t n)
{
    struct requant_measure m = {.n = n};

    q->kern.dequantize[k->t->fmt](made, k->back, n);
    for (size_t i = 0; i < n; i++) {
        const double x = (double)v[i], e = (double)k->back[i] - x;
        const double w = k->importance ? (double)k->w[i] : 1;

        m.error2 += e * e;
        m.square2 += x * x;
        m.weighed_error2 += w * e * e;
        m.weighed_square2 += w * x * x;
    }
    pthread_mutex_lock(&q->lock);
    struct requant_measure *sum = &q->measures[k->t->fmt];

    sum->n += m.n;
    sum->error2 += m.error2;
    sum->square2 += m.square2;
    sum->weighed_error2 += m.weighed_error2;
    sum->weighed_square2 += m.weighed_square2;
    pthread_mutex_unlock(&q->lock);
}

/* ---- rows -------------------------------------------------------------------- */

static enum status convert(struct requant *q, struct work *k, uint64_t row,
                           uint64_t n_rows, void *dst, struct err *err)
{
    const size_t n = (size_t)(n_rows * k->t->ne[0]);
    const float *v = k->v;
    const enum status st =
        gguf_read_rows(q->from, k->from, row, n_rows, true, k->raw, err);

    if (st)
        return st;
    if (k->from->fmt == KERN_FMT_f32)
        v = k->raw;
    else
        q->kern.dequantize[k->from->fmt](k->raw, k->v, n);
    if (k->importance)
        weigh(k, row, n_rows, v);
    q->kern.quantize[k->t->fmt](v, k->importance ? k->w : NULL, dst, n);
    if (k->back)
        measure(q, k, v, dst, n);
    return ST_OK;
}

static void work_close(struct work *k)
{
    free(k->raw);
    free(k->v);
    free(k->w);
    free(k->columns);
    free(k->back);
}

static enum status work_open(struct work *k, const struct requant *q,
                             const struct gguf_tensor *from,
                             const struct gguf_tensor *t, size_t n, struct err *err)
{
    const size_t floats = n * sizeof(float);

    *k = (struct work){.from = from, .t = t, .slice = UINT64_MAX};
    if (q->imatrix && kern_format_info(t->fmt)->block_elems > 1)
        k->importance = imatrix_find(q->imatrix, t->name);
    k->raw = malloc(kern_format_bytes(from->fmt, n));
    k->v = malloc(floats);
    k->w = k->importance ? malloc(floats) : NULL;
    k->columns = k->importance ? malloc((size_t)t->ne[0] * sizeof(float)) : NULL;
    k->back = q->measures ? malloc(floats) : NULL;
    if (k->raw && k->v && !k->w == !k->importance && !k->columns == !k->importance &&
        !k->back == !q->measures)
        return ST_OK;
    work_close(k);
    return err_set(err, ST_NO_MEMORY, "cannot allocate memory to quantise %s", t->name);
}

static enum status read_rows(void *arg, const struct gguf_tensor *t, uint64_t row,
                             uint64_t n_rows, bool drop, void *dst, struct err *err)
{
    struct requant *q = arg;
    const struct gguf_tensor *from = gguf_tensor_find(q->from, t->name);
    const uint64_t most = t->ne[0] < PIECE ? PIECE / t->ne[0] : 1;
    const size_t n = (size_t)((most < n_rows ? most : n_rows) * t->ne[0]);
    struct work k;

    if (from->fmt == t->fmt)
        return gguf_read_rows(q->from, from, row, n_rows, drop, dst, err);

    enum status st = work_open(&k, q, from, t, n, err);

    if (st)
        return st;
    for (uint64_t done = 0; done < n_rows && !st; done += most) {
        const uint64_t part = n_rows - done < most ? n_rows - done : most;

        st = convert(q, &k, row + done, part,
                     (char *)dst + done * kern_format_bytes(t->fmt, (size_t)t->ne[0]),
                     err);
    }
    work_close(&k);
    return st;
}

static void close_source(void *arg)
{
    struct requant *q = arg;

    pthread_mutex_destroy(&q->lock);
    gguf_close(q->from);
    free(q);
}

enum status requant_open(struct gguf **out, struct gguf *g,
                         const struct requant_params *p, struct err *err)
{
    struct requant *q = calloc(1, sizeof *q);
    struct gguf_bytes head = {.n = 0};
    enum status st =
        q ? requant_head(&head, g, p, err)
          : err_set(err, ST_NO_MEMORY, "no memory to quantise %s", gguf_path(g));

    if (st) {
        free(head.data);
        free(q);
        gguf_close(g);
        return st;
    }
    q->from = g;
    q->imatrix = p->imatrix;
    q->measures = p->measures;
    pthread_mutex_init(&q->lock, NULL);
    kern_select(&q->kern, isa_usable());
    return gguf_assemble(
        out, head.data, head.n, gguf_path(g),
        &(struct gguf_source){.read = read_rows, .close = close_source, .arg = q}, err);
}
