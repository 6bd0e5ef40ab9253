/* SPDX-License-Identifier: MIT
 *
 * forward_altup.c - several streams a token (AltUp: Baykal et al. 2023, arXiv
 * 2301.13310; LAuReL: Menghani et al. 2024, arXiv 2411.07501), as Gemma 3n has them
 *
 * A layer's blocks run on one stream, the first. Before them a few numbers that depend
 * on it say how all streams are mixed, which predicts what they become; behind them all
 * predictions are corrected by how far the first one was off. Next to attention its
 * input goes through a matrix of low rank.
 *
 * The vectors of a token are short, so each is one thread's.
 */
#include <math.h>
#include <string.h>

#include "engine/forward/forward_impl.h"

/* Nothing is shorter than this: what has no length is not scaled to one. */
#define MIN_SQUARE 1e-5f

/* Elements that are mixed at a time. */
#define CHUNK ((size_t)16)

/* out[n_rows] = rows [n_rows][n] times x. */
static void multiply_rows(const struct forward *f, const float *rows, size_t n_rows,
                          const float *x, size_t n, float *out)
{
    f->kern.gemv[KERN_FMT_f32](n_rows, n, rows, n * sizeof *rows, x, out);
}

/* The few numbers of a mixture: those of row k of [rows][n_streams], by the modes. */
static float weight_of(const struct forward *f, const float *rows, size_t k,
                       const float *modes)
{
    const size_t n = (size_t)f->m->n_streams;
    float sum = 0.0f;

    for (size_t i = 0; i < n; i++)
        sum += rows[k * n + i] * modes[i];
    return sum;
}

/* Row j of stream i. */
static float *stream(const struct forward *f, int i, size_t j)
{
    return f->streams[i] + j * pad16((size_t)f->m->n_embd);
}

/* How streams are mixed, by the first one or what becomes of it: tanh of a router. */
static void modes_of(const struct forward *f, struct fwd_thread *me,
                     const struct layer *y, const float *x, float *modes)
{
    const size_t n = (size_t)f->m->n_embd;

    fwd_norm(f, me->row, x, &y->altup.router_norm, n);
    multiply_rows(f, y->altup.router, (size_t)f->m->n_streams, me->row, n, modes);
    for (int i = 0; i < f->m->n_streams; i++)
        modes[i] = tanhf(modes[i] / (float)n);
}

/* n <= CHUNK elements of each stream, to what c makes of all. */
static void mix(float *const *x, int s, const float (*c)[MODEL_MAX_STREAMS], size_t at,
                size_t n)
{
    float old[MODEL_MAX_STREAMS][CHUNK];

    for (int i = 0; i < s; i++)
        memcpy(old[i], x[i] + at, n * sizeof **old);
    for (int k = 0; k < s; k++)
        for (int i = 0; i < s; i++)
            for (size_t e = 0; e < n; e++)
                x[k][at + e] += c[k][i] * old[i][e];
}

static void predict(struct forward *f, struct fwd_thread *me, const struct layer *y,
                    size_t j)
{
    const size_t n = (size_t)f->m->n_embd;
    const int s = f->m->n_streams;
    float modes[MODEL_MAX_STREAMS], c[MODEL_MAX_STREAMS][MODEL_MAX_STREAMS];
    float *x[MODEL_MAX_STREAMS];

    modes_of(f, me, y, stream(f, 0, j), modes);
    for (int k = 0; k < s; k++) {
        x[k] = stream(f, k, j);
        for (int i = 0; i < s; i++)
            c[k][i] = weight_of(f, y->altup.predict, (size_t)(k * s + i), modes);
    }
    size_t at = 0;

    for (; at + CHUNK <= n; at += CHUNK)
        mix(x, s, c, at, CHUNK);
    mix(x, s, c, at, n - at);
    memcpy(f->x + j * pad16(n), x[0], n * sizeof *f->x);
}

void fwd_streams_predict(struct forward *f, struct fwd_thread *me,
                         const struct layer *y)
{
    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;)
        predict(f, me, y, j);
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

/* Rows of w times columns to y, with a barrier. */
static void multiply(struct forward *f, struct fwd_thread *me, enum slm_op op,
                     const struct matrix *w, const struct columns *c)
{
    struct fwd_rows rows = fwd_rows_of(f, w->n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);)
        fwd_biased_product(f, me, op, w, NULL, begin, end, c, f->y, pad16(w->n_rows));
    fwd_lap(me, op, w->fmt);
    fwd_barrier(f, me, op, w->fmt);
}

/* x = (x + h + norm(high * low h)) / sqrt(2), h being the input of attention. */
void fwd_streams_low(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const struct matrix *w = &y->altup.high;
    const size_t n = (size_t)f->m->n_embd, stride = pad16(n);
    const float half = 1.0f / sqrtf(2.0f);

    if (f->hook)
        fwd_hook_rows(f, me, w, f->low, pad16(w->k), (size_t)f->n, NULL);

    const struct columns c = fwd_prepare_few(f, me, f->low, pad16(w->k), (size_t)f->n,
                                             w->k, NULL, act_bit(f, w));

    multiply(f, me, SLM_OP_ATTN_OUT, w, &c);
    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *x = f->x + j * stride, *low = f->y + j * stride;

        fwd_norm(f, low, low, &y->altup.low_norm, n);
        fwd_norm(f, me->row, stream(f, 0, j), &y->attn_norm, n);
        for (size_t i = 0; i < n; i++)
            x[i] = (x[i] + me->row[i] + low[i]) * half;
    }
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

static void correct(struct forward *f, struct fwd_thread *me, const struct layer *y,
                    size_t j)
{
    const size_t n = (size_t)f->m->n_embd;
    const int s = f->m->n_streams;
    float modes[MODEL_MAX_STREAMS], *x = f->x + j * pad16(n), *first = stream(f, 0, j);

    modes_of(f, me, y, x, modes);
    for (size_t i = 0; i < n; i++)
        me->row[i] = x[i] - first[i];
    for (int k = 0; k < s; k++)
        f->kern.add_scaled(stream(f, k, j), me->row,
                           1.0f + weight_of(f, y->altup.correct, (size_t)k, modes), n);
    for (size_t i = 0; i < n; i++)
        x[i] = first[i] * y->altup.correct_scale[i];
}

void fwd_streams_correct(struct forward *f, struct fwd_thread *me,
                         const struct layer *y)
{
    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;)
        correct(f, me, y, j);
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

void fwd_streams_add(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                     const struct norm *norm, const struct columns *c)
{
    const size_t n = (size_t)f->m->n_embd;

    multiply(f, me, SLM_OP_DOWN, w, c);
    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        fwd_norm(f, me->row, f->y + j * pad16(n), norm, n);
        for (int i = 1; i < f->m->n_streams; i++)
            f->kern.add(stream(f, i, j), me->row, n);
    }
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

/* ---- the ends -------------------------------------------------------------------- */

/* x[n], scaled to the length of `like`. */
static void scale_to(const struct forward *f, float *x, const float *like, size_t n)
{
    float square, want;

    multiply_rows(f, x, 1, x, n, &square);
    multiply_rows(f, like, 1, like, n, &want);
    square /= (float)n;
    const float scale =
        sqrtf(want / (float)n / (square > MIN_SQUARE ? square : MIN_SQUARE));

    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
}

/* Slice i - 1 of w times rows src to dst, for all tokens; ends in a barrier. */
static void project(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                    int i, const float *src, float *dst)
{
    const size_t stride = pad16((size_t)f->m->n_embd), n = (size_t)f->n;
    const struct columns c =
        fwd_prepare_few(f, me, src, stride, n, w->k, NULL, act_bit(f, w));
    struct fwd_rows rows = fwd_rows_of(f, w->n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        fwd_columns_product(f, w, (size_t)i - 1, begin, end, n, &c, 0, dst + begin,
                            stride);
        fwd_count_product(me, SLM_OP_EMBED, w, end - begin, n);
    }
    fwd_lap(me, SLM_OP_EMBED, w->fmt);
    fwd_barrier(f, me, SLM_OP_EMBED, w->fmt);
}

void fwd_streams_begin(struct forward *f, struct fwd_thread *me)
{
    const size_t n = (size_t)f->m->n_embd, stride = pad16(n);

    for (int i = 1; i < f->m->n_streams; i++)
        project(f, me, &f->m->stream_in, i, f->x, f->streams[i]);
    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        memcpy(stream(f, 0, j), f->x + j * stride, n * sizeof *f->x);
        for (int i = 1; i < f->m->n_streams; i++)
            scale_to(f, stream(f, i, j), f->x + j * stride, n);
    }
    fwd_lap(me, SLM_OP_EMBED, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_EMBED, KERN_N_FMT);
}

/* Joins the streams of all tokens, though few may have logits: it is little of a pass.
 */
void fwd_streams_end(struct forward *f, struct fwd_thread *me)
{
    const size_t n = (size_t)f->m->n_embd, stride = pad16(n);
    const float share = 1.0f / (float)f->m->n_streams;

    for (int i = 1; i < f->m->n_streams; i++)
        project(f, me, &f->m->stream_out, i, f->streams[i],
                i == 1 ? f->y : f->streams[i - 1]);
    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *x = f->x + j * stride;

        memcpy(x, stream(f, 0, j), n * sizeof *x);
        for (int i = 1; i < f->m->n_streams; i++) {
            float *more = i == 1 ? f->y + j * stride : stream(f, i - 1, j);

            scale_to(f, more, stream(f, 0, j), n);
            f->kern.add(x, more, n);
        }
        for (size_t i = 0; i < n; i++)
            x[i] *= share;
    }
    fwd_lap(me, SLM_OP_EMBED, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_EMBED, KERN_N_FMT);
}
