/* SPDX-License-Identifier: MIT
 *
 * forward_products.c - columns in the layouts of the kernels, rows for the threads, and
 * what the two give
 */
#include "engine/forward/forward_impl.h"

void fwd_norm(const struct forward *f, float *dst, const float *src,
              const struct norm *norm, size_t n)
{
    const size_t each = norm->n_groups ? n / (size_t)norm->n_groups : n;

    if (f->m->arch->norm == NORM_LAYER)
        f->kern.layernorm(dst, src, norm->w, norm->b, n, f->m->norm_eps);
    else
        for (size_t i = 0; i < n; i += each)
            f->kern.rmsnorm(dst + i, src + i, norm->w + i, each, f->m->norm_eps);
    if (f->m->arch->norm != NORM_LAYER && norm->b)
        f->kern.add(dst, norm->b, n);
}

/* A statement for each of n elements, 16 at a time, which compilers make vectors of. */
#define FOR_EACH(i, n, ...)                                 \
    do {                                                    \
        size_t i = 0;                                       \
        for (; i + 16 <= (n);)                              \
            for (const size_t end_ = i + 16; i < end_; i++) \
                __VA_ARGS__;                                \
        for (; i < (n); i++)                                \
            __VA_ARGS__;                                    \
    } while (0)

static inline float min_of(float a, float b)
{
    return a < b ? a : b;
}

static inline float max_of(float a, float b)
{
    return a > b ? a : b;
}

static void relu_mul(float *gate, const float *up, size_t n)
{
    FOR_EACH(i, n, gate[i] = max_of(gate[i], 0.0f) * up[i]);
}

/* g * sigmoid(c g) * (u + 1) is silu(c g) * ((u + 1) / c). */
static void clamped_mul(const struct forward *f, float *gate, float *up, size_t n)
{
    static const float c = 1.702f, most = 7.0f;

    FOR_EACH(i, n, {
        gate[i] = c * min_of(gate[i], most);
        up[i] = (max_of(-most, min_of(up[i], most)) + 1.0f) / c;
    });
    f->kern.silu_mul(gate, gate, up, n);
}

void fwd_activate(const struct forward *f, const struct layer *y, float *gate,
                  float *up, size_t n)
{
    switch (f->m->arch->act) {
    case ACT_SILU:
        f->kern.silu_mul(gate, gate, up, n);
        break;
    case ACT_GELU:
        if (up)
            f->kern.gelu_mul(gate, gate, up, n);
        else
            f->kern.gelu(gate, gate, n);
        break;
    case ACT_RELU:
        relu_mul(gate, up, n);
        break;
    case ACT_RELU_SQUARED:
        f->kern.relu_squared(gate, n);
        break;
    case ACT_XIELU:
        f->kern.xielu(gate, n, y->xielu.pos, y->xielu.neg, y->xielu.beta);
        break;
    case ACT_CLAMPED:
        clamped_mul(f, gate, up, n);
        break;
    }
}

/* Where the columns of a product are in each layout: act is one thread's, or all's. */
static struct columns columns_in(unsigned char *const act[KERN_N_ACT], size_t n,
                                 size_t k)
{
    struct columns c = {.n = n};

    for (int a = 0; a < KERN_N_ACT; a++) {
        c.x[a] = act[a];
        c.stride[a] = kern_act_bytes((enum kern_act)a, k);
    }
    return c;
}

/* src[k] as column j of act, in the layouts of act_mask. */
static void convert(const struct forward *f, const struct fwd_thread *me,
                    const float *src, size_t k, const struct norm *norm,
                    uint32_t act_mask, unsigned char *const act[KERN_N_ACT], size_t j)
{
    if (norm) {
        fwd_norm(f, me->row, src, norm, k);
        src = me->row;
    }
    for (int a = 0; a < KERN_N_ACT; a++)
        if (act_mask & 1u << a)
            f->kern.quantize_act[a](
                src, act[a] + j * kern_act_bytes((enum kern_act)a, k), k);
}

/* Each thread all columns, for itself. */
static struct columns prepare_alone(struct forward *f, struct fwd_thread *me,
                                    const float *src, size_t src_stride, size_t n,
                                    size_t k, const struct norm *norm,
                                    uint32_t act_mask)
{
    for (size_t j = 0; j < n; j++)
        convert(f, me, src + j * src_stride, k, norm, act_mask, me->act, j);
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    return columns_in(me->act, n, k);
}

struct columns fwd_prepare(struct forward *f, struct fwd_thread *me, const float *src,
                           size_t src_stride, size_t n, size_t k,
                           const struct norm *norm, uint32_t act_mask)
{
    if (n == 1)
        return prepare_alone(f, me, src, src_stride, n, k, norm, act_mask);
    for (size_t j; (j = thread_pool_next(f->pool, 1)) < n;)
        convert(f, me, src + j * src_stride, k, norm, act_mask, f->act, j);
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
    return columns_in(f->act, n, k);
}

struct columns fwd_prepare_few(struct forward *f, struct fwd_thread *me,
                               const float *src, size_t src_stride, size_t n, size_t k,
                               const struct norm *norm, uint32_t act_mask)
{
    const size_t n_threads = (size_t)thread_pool_size(f->pool);
    const size_t more = n - (n + n_threads - 1) / n_threads;

    return n <= ALONE_COLUMNS && more * k <= ALONE_ELEMS
               ? prepare_alone(f, me, src, src_stride, n, k, norm, act_mask)
               : fwd_prepare(f, me, src, src_stride, n, k, norm, act_mask);
}

struct fwd_rows fwd_rows_of(const struct forward *f, size_t n_rows)
{
    const int n_threads = thread_pool_size(f->pool);

    return (struct fwd_rows){
        .chunks = f->n == 1 ? row_chunks_of(n_rows, n_threads, f->tuning.chunks_decode,
                                            KERN_PANEL_ROWS)
                            : row_chunks_of(n_rows, n_threads, f->tuning.chunks_prefill,
                                            ROW_UNIT)};
}

bool fwd_next_rows(struct forward *f, const struct fwd_thread *me,
                   struct fwd_rows *rows, size_t *begin, size_t *end)
{
    size_t i = (size_t)(me - f->threads);

    if (rows->has_begun)
        i = (size_t)thread_pool_size(f->pool) + thread_pool_next(f->pool, 1);
    rows->has_begun = true;
    return row_chunks_get(&rows->chunks, i, begin, end);
}

static void scale_rows(float scale, size_t n_rows, size_t n, float *y, size_t y_stride)
{
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n_rows; i++)
            y[j * y_stride + i] *= scale;
}

/* many: the kernels for n columns where that is not one. */
static void multiply(const struct forward *f, const struct matrix *w, size_t s,
                     size_t begin, size_t end, size_t n, const struct fwd_tiles *many,
                     const void *x, size_t x_stride, float *y, size_t y_stride)
{
    const size_t in_panels = end < w->panel_rows ? end : w->panel_rows;

    if (begin < in_panels) {
        const size_t n_panels = (in_panels - begin) / KERN_PANEL_ROWS;
        const void *panels = matrix_row(w, s, begin);

        if (n == 1)
            f->kern.gemv_x16[w->fmt](n_panels, w->k, panels, x, y,
                                     f->tuning.prefetch[w->fmt]);
        else
            many->gemm_x16(n_panels, w->k, panels, n, x, x_stride, y, y_stride,
                           f->tuning.prefetch[w->fmt]);
        y += in_panels - begin;
        begin = in_panels;
    }
    if (begin == end)
        return;
    const void *rows = matrix_row(w, s, begin);

    if (n == 1)
        f->kern.gemv[w->fmt](end - begin, w->k, rows, w->row_bytes, x, y);
    else
        many->gemm(end - begin, w->k, rows, w->row_bytes, n, x, x_stride, y, y_stride);
}

static void product(const struct forward *f, const struct matrix *w, size_t s,
                    size_t begin, size_t end, size_t n, const struct fwd_tiles *many,
                    const void *x, size_t x_stride, float *y, size_t y_stride)
{
    multiply(f, w, s, begin, end, n, many, x, x_stride, y, y_stride);
    if (w->scale)
        scale_rows(matrix_scale(w, s), end - begin, n, y, y_stride);
}

void fwd_product(const struct forward *f, const struct matrix *w, size_t s,
                 size_t begin, size_t end, size_t n, const void *x, size_t x_stride,
                 float *y, size_t y_stride)
{
    const struct fwd_tiles *tiles = &f->tiles[w->fmt];
    const struct fwd_tiles vectors = {0, f->kern.gemm[w->fmt],
                                      f->kern.gemm_x16[w->fmt]};

    product(f, w, s, begin, end, n, n >= tiles->from ? tiles : &vectors, x, x_stride, y,
            y_stride);
}

void fwd_columns_product(const struct forward *f, const struct matrix *w, size_t s,
                         size_t begin, size_t end, size_t n, const struct columns *c,
                         size_t j, float *y, size_t y_stride)
{
    const struct fwd_tiles *int8 = &f->int8[w->fmt];

    if (n >= int8->from && fwd_sums_int8(f, w))
        product(f, w, s, begin, end, n, int8, columns_at(c, KERN_ACT_q8_256, j),
                c->stride[KERN_ACT_q8_256], y, y_stride);
    else
        fwd_product(f, w, s, begin, end, n, columns_at(c, w->act, j), c->stride[w->act],
                    y, y_stride);
}

void fwd_biased_product(const struct forward *f, struct fwd_thread *me, enum slm_op op,
                        const struct matrix *w, const float *bias, size_t begin,
                        size_t end, const struct columns *c, float *y, size_t y_stride)
{
    fwd_columns_product(f, w, 0, begin, end, c->n, c, 0, y + begin, y_stride);
    for (size_t j = 0; bias && j < c->n; j++)
        f->kern.add(y + j * y_stride + begin, bias + begin, end - begin);
    fwd_count_product(me, op, w, end - begin, c->n);
}

static void scale_by(float *x, size_t n, float factor)
{
    FOR_EACH(i, n, x[i] *= factor);
}

/* x = (x + norm(y)) * scale, or x = norm(x + y) * scale, for all tokens, divided among
 * the threads. */
static void add_normalised(struct forward *f, struct fwd_thread *me,
                           const struct norm *norm, const float *scale)
{
    const size_t n = (size_t)f->m->n_embd, stride = pad16(n);

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *x = f->x + j * stride, *y = f->y + j * stride;

        if (f->m->norms_sum) {
            fwd_add(f, x, y, n);
            fwd_norm(f, x, x, norm, n);
        } else {
            fwd_norm(f, me->row, y, norm, n);
            fwd_add(f, x, me->row, n);
        }
        if (scale)
            scale_by(x, n, *scale);
    }
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

void fwd_add_product(struct forward *f, struct fwd_thread *me, enum slm_op op,
                     const struct matrix *w, const float *bias, const struct norm *norm,
                     const float *scale, const struct columns *c)
{
    const size_t stride = pad16((size_t)f->m->n_embd);
    struct fwd_rows rows = fwd_rows_of(f, w->n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        fwd_biased_product(f, me, op, w, bias, begin, end, c, f->y, stride);
        for (size_t j = 0; !norm->w && j < c->n; j++) {
            float *x = f->x + j * stride + begin;

            fwd_add(f, x, f->y + j * stride + begin, end - begin);
            if (scale)
                scale_by(x, end - begin, *scale);
        }
    }
    fwd_lap(me, op, w->fmt);
    fwd_barrier(f, me, op, w->fmt);
    if (norm->w)
        add_normalised(f, me, norm, scale);
}
