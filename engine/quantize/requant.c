/* SPDX-License-Identifier: MIT
 *
 * requant.c - a gguf in another mix: other types, rows quantised as they are read
 */
#include "engine/quantize/requant_impl.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gguf/own_scale.h"
#include "kernels/isa.h"

#define PIECE      65536        /* values at a time, or one longer row */
#define NVFP4_FULL (6 * 448.0f) /* the largest weight of nvfp4 */

struct requant {
    struct gguf *from;
    pthread_mutex_t scale_lock;
    bool *is_scaled; /* [tensors of from] requant_needs_scale() */
    float **scales;  /* [tensors of from], under the lock: for each slice of those, once
                        they have been read */
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
    float *divided; /* v by the result's scales, if it has some */
    float *own;     /* of each slice, what the file's weights are multiplied with */
    const float *scales; /* the same of the result's; NULL: nothing */
};

static uint64_t n_slices(const struct gguf_tensor *t)
{
    return t->ne[2] * t->ne[3];
}

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

static void measure(struct requant *q, const struct work *k, uint64_t row,
                    const float *v, const void *made, size_t n)
{
    struct requant_measure m = {.n = n};

    q->kern.dequantize[k->t->fmt](made, k->back, n);
    if (k->scales)
        for (size_t i = 0; i < n; i++)
            k->back[i] *= k->scales[(row + i / k->t->ne[0]) / k->t->ne[1]];
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

/* ---- values that are no numbers -------------------------------------------------- */

/* Whether v[n] are numbers; formats of blocks are looked at when they are floats. */
static bool are_numbers(enum kern_format fmt, const void *v, size_t n)
{
    const uint16_t exponent = fmt == KERN_FMT_f16 ? 0x7c00 : 0x7f80;
    bool numbers = true;

    if (fmt == KERN_FMT_f32)
        for (size_t i = 0; i < n; i++)
            numbers &= isfinite(((const float *)v)[i]) != 0;
    if (fmt == KERN_FMT_f16 || fmt == KERN_FMT_bf16)
        for (size_t i = 0; i < n; i++)
            numbers &= (((const uint16_t *)v)[i] & exponent) != exponent;
    return numbers;
}

static enum status no_number(const struct requant *q, const struct gguf_tensor *t,
                             uint64_t row, uint64_t n_rows, struct err *err)
{
    return err_set(err, ST_INPUT,
                   "%s: the weight %s has a value that is not a number (NaN or "
                   "infinity) in its rows %llu to %llu; the file is damaged or was "
                   "converted wrongly",
                   gguf_path(q->from), t->name, (unsigned long long)row,
                   (unsigned long long)(row + n_rows - 1));
}

/* ---- rows ------------------------------------------------------------------------ */

/* The weights of n_rows rows from `row` on, as the model has them. */
static enum status read_floats(struct requant *q, struct work *k, uint64_t row,
                               uint64_t n_rows, const float **out, struct err *err)
{
    const size_t n = (size_t)(n_rows * k->from->ne[0]);
    const enum status st =
        gguf_read_rows(q->from, k->from, row, n_rows, true, k->raw, err);

    if (st)
        return st;
    *out = k->v;
    if (k->from->fmt != KERN_FMT_f32)
        q->kern.dequantize[k->from->fmt](k->raw, k->v, n);
    else
        *out = k->raw;
    if (k->own) {
        for (size_t i = 0; i < n; i++)
            k->v[i] = (*out)[i] * k->own[(row + i / k->from->ne[0]) / k->from->ne[1]];
        *out = k->v;
    }
    return ST_OK;
}

static enum status convert(struct requant *q, struct work *k, uint64_t row,
                           uint64_t n_rows, void *dst, struct err *err)
{
    const size_t n = (size_t)(n_rows * k->t->ne[0]);
    const float *v = NULL, *scaled;
    const enum status st = read_floats(q, k, row, n_rows, &v, err);

    if (st)
        return st;
    if (!are_numbers(KERN_FMT_f32, v, n))
        return no_number(q, k->from, row, n_rows, err);
    if (k->importance)
        weigh(k, row, n_rows, v);
    scaled = v;
    if (k->scales) {
        for (size_t i = 0; i < n; i++)
            k->divided[i] = v[i] / k->scales[(row + i / k->t->ne[0]) / k->t->ne[1]];
        scaled = k->divided;
    }
    q->kern.quantize[k->t->fmt](scaled, k->importance ? k->w : NULL, dst, n);
    if (k->back)
        measure(q, k, row, v, dst, n);
    return ST_OK;
}

static void work_close(struct work *k)
{
    free(k->raw);
    free(k->v);
    free(k->w);
    free(k->columns);
    free(k->back);
    free(k->own);
    free(k->divided);
}

/* k->own, if the file has such a scale. */
static enum status take_own(struct work *k, const struct requant *q, struct err *err)
{
    const uint64_t n = n_slices(k->from);

    if (!gguf_own_scale(q->from, k->from))
        return ST_OK;
    k->own = calloc((size_t)n, sizeof(float));
    if (!k->own)
        return err_set(err, ST_NO_MEMORY, "no memory for the scales of %s",
                       k->from->name);
    return gguf_read_own_scale(q->from, k->from, k->own, err);
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
    if (!k->raw || !k->v || !k->w != !k->importance || !k->columns != !k->importance ||
        !k->back != !q->measures)
        err_set(err, ST_NO_MEMORY, "cannot allocate memory to quantise %s", t->name);
    else if (!take_own(k, q, err))
        return ST_OK;
    work_close(k);
    return err->code;
}

/* ---- scales of the result -------------------------------------------------------- */

/* The largest finite magnitude of each slice. */
static enum status find_largest(struct requant *q, const struct gguf_tensor *from,
                                float *largest, struct err *err)
{
    const uint64_t n_rows = from->n_elems / from->ne[0];
    const uint64_t most = from->ne[0] < PIECE ? PIECE / from->ne[0] : 1;
    struct work k;
    enum status st = work_open(&k, q, from, from, (size_t)(most * from->ne[0]), err);

    if (st)
        return st;
    for (uint64_t row = 0; row < n_rows && !st; row += most) {
        const uint64_t part = n_rows - row < most ? n_rows - row : most;
        const float *v = NULL;

        st = read_floats(q, &k, row, part, &v, err);
        for (size_t i = 0; !st && i < part * from->ne[0]; i++) {
            float *of = &largest[(row + i / from->ne[0]) / from->ne[1]];

            if (fabsf(v[i]) > *of && isfinite(v[i]))
                *of = fabsf(v[i]);
        }
    }
    work_close(&k);
    return st;
}

/* The scales of what `from` becomes, which are found when they are first needed. */
static enum status find_scales(struct requant *q, const struct gguf_tensor *from,
                               const float **out, struct err *err)
{
    const size_t n = (size_t)n_slices(from);
    float **scales = &q->scales[from - gguf_tensor_at(q->from, 0)], *found;
    enum status st = ST_OK;

    pthread_mutex_lock(&q->scale_lock);
    if (!*scales) {
        found = calloc(n, sizeof *found);
        st = found ? find_largest(q, from, found, err)
                   : err_set(err, ST_NO_MEMORY, "no memory for the scales of %s",
                             from->name);
        for (size_t i = 0; !st && i < n; i++)
            found[i] = found[i] > NVFP4_FULL * FLT_MIN ? found[i] / NVFP4_FULL : 1;
        if (st)
            free(found);
        else
            *scales = found;
    }
    *out = *scales;
    pthread_mutex_unlock(&q->scale_lock);
    return st;
}

/* Rows of a new X.scale. */
static enum status read_scales(struct requant *q, const struct gguf_tensor *t,
                               uint64_t row, uint64_t n_rows, float *dst,
                               struct err *err)
{
    const size_t n = strlen(t->name) - strlen(REQUANT_SCALE_END);
    const float *scales = NULL;
    enum status st;
    char name[256];

    snprintf(name, sizeof name, "%.*s" REQUANT_MATRIX_END, (int)n, t->name);
    st = find_scales(q, gguf_tensor_find(q->from, name), &scales, err);
    if (!st)
        memcpy(dst, scales + row * t->ne[0],
               (size_t)(n_rows * t->ne[0]) * sizeof *scales);
    return st;
}

/* Whether t is an X.scale that the result has got, not one that was kept. */
static bool is_new_scale(const struct requant *q, const struct gguf_tensor *t)
{
    const size_t n = strlen(t->name), n_end = strlen(REQUANT_SCALE_END);
    const struct gguf_tensor *from;
    char name[256];

    if (n <= n_end || n >= sizeof name ||
        strcmp(t->name + n - n_end, REQUANT_SCALE_END) != 0)
        return false;
    snprintf(name, sizeof name, "%.*s" REQUANT_MATRIX_END, (int)(n - n_end), t->name);
    from = gguf_tensor_find(q->from, name);
    return from && q->is_scaled[from - gguf_tensor_at(q->from, 0)];
}

static enum status read_rows(void *arg, const struct gguf_tensor *t, uint64_t row,
                             uint64_t n_rows, bool drop, void *dst, struct err *err)
{
    struct requant *q = arg;
    const struct gguf_tensor *from = gguf_tensor_find(q->from, t->name);
    const uint64_t most = t->ne[0] < PIECE ? PIECE / t->ne[0] : 1;
    const size_t n = (size_t)((most < n_rows ? most : n_rows) * t->ne[0]);
    const float *scales = NULL;
    struct work k;
    enum status st = ST_OK;

    if (is_new_scale(q, t))
        return read_scales(q, t, row, n_rows, dst, err);
    if (from->fmt == t->fmt) {
        st = gguf_read_rows(q->from, from, row, n_rows, drop, dst, err);
        if (!st && !are_numbers(t->fmt, dst, (size_t)(n_rows * t->ne[0])))
            st = no_number(q, from, row, n_rows, err);
        return st;
    }
    if (requant_needs_scale(from, t->fmt))
        st = find_scales(q, from, &scales, err);
    if (!st)
        st = work_open(&k, q, from, t, n, err);
    if (st)
        return st;
    k.scales = scales;
    k.divided = scales ? malloc(n * sizeof(float)) : NULL;
    if (scales && !k.divided)
        st = err_set(err, ST_NO_MEMORY, "no memory to quantise %s", t->name);
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
    pthread_mutex_destroy(&q->scale_lock);
    for (size_t i = 0; i < gguf_n_tensors(q->from); i++)
        free(q->scales[i]);
    free(q->scales);
    free(q->is_scaled);
    gguf_close(q->from);
    free(q);
}

enum status requant_open(struct gguf **out, struct gguf *g,
                         const struct requant_params *p, struct err *err)
{
    struct requant *q = calloc(1, sizeof *q);
    const size_t n = gguf_n_tensors(g);
    float **scales = calloc(n + 1, sizeof *scales);
    bool *is_scaled = calloc(n + 1, sizeof *is_scaled);
    struct gguf_bytes head = {.n = 0};
    enum status st =
        q && scales && is_scaled
            ? requant_head(&head, g, p, err)
            : err_set(err, ST_NO_MEMORY, "no memory to quantise %s", gguf_path(g));

    if (st) {
        free(head.data);
        free(is_scaled);
        free(scales);
        free(q);
        gguf_close(g);
        return st;
    }
    q->from = g;
    q->imatrix = p->imatrix;
    q->measures = p->measures;
    q->scales = scales;
    q->is_scaled = is_scaled;
    for (size_t i = 0; i < n; i++)
        is_scaled[i] = requant_needs_scale(gguf_tensor_at(g, i),
                                           requant_format(p, g, gguf_tensor_at(g, i)));
    pthread_mutex_init(&q->scale_lock, NULL);
    pthread_mutex_init(&q->lock, NULL);
    kern_select(&q->kern, isa_usable());
    return gguf_assemble(
        out, head.data, head.n, gguf_path(g),
        &(struct gguf_source){.read = read_rows, .close = close_source, .arg = q}, err);
}
