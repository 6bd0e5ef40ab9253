/* SPDX-License-Identifier: MIT
 *
 * forward_per_layer.c - per-layer embeddings (Gemma 3n, 4): every token has a row for
 * each layer, which that layer adds to the stream through a gate
 *
 * A token's input of a layer is the mean of two parts, (e + f) / sqrt(2): e is looked
 * up, a part of the row that a token has of all layers, and f projected from the
 * token's embedding. The table of rows is as large as all matrices together, and a pass
 * reads a row of it for each token. Where the table is left in the mapped file, the
 * pass begins by reading these ahead, while embeddings are projected.
 */
#include <math.h>
#include <string.h>

#include "engine/forward/forward_impl.h"

/* The rows of w times all columns to out. Rows are activated as they come, by their
 * factors at `by`, unless that is NULL: a row of floats for each token. Ends in a
 * barrier. */
static void multiply(struct forward *f, struct fwd_thread *me, const struct layer *y,
                     const struct matrix *w, enum slm_op op, float *out, float *by,
                     size_t by_stride)
{
    const size_t n_embd = (size_t)f->m->n_embd, n = (size_t)f->n;
    const size_t stride = pad16(w->n_rows);

    if (f->hook)
        fwd_hook_rows(f, me, w, f->x, pad16(n_embd), n, NULL);

    const struct columns c =
        fwd_prepare_few(f, me, f->x, pad16(n_embd), n, n_embd, NULL, act_bit(f, w));
    struct fwd_rows rows = fwd_rows_of(f, w->n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        fwd_biased_product(f, me, op, w, NULL, begin, end, &c, out, stride);
        for (size_t j = 0; by && j < n; j++)
            fwd_activate(f, y, out + j * stride + begin, by + j * by_stride + begin,
                         end - begin);
    }
    fwd_lap(me, op, w->fmt);
    fwd_barrier(f, me, op, w->fmt);
}

void fwd_read_ahead(const struct forward *f, size_t j)
{
    const struct matrix *w = &f->m->per_layer_embd;

    if (f->tokens[j] >= f->m->n_per_layer_rows)
        return;
    weights_read_ahead(matrix_row(w, 0, (size_t)f->tokens[j]), w->row_bytes);
}

/* The looked-up part of token j's input, added to the projected one. */
static void join(struct forward *f, struct fwd_thread *me, size_t j)
{
    const struct model *m = f->m;
    const size_t d = (size_t)m->n_per_layer, n = d * (size_t)m->n_layers;
    const float e_scale = sqrtf((float)d), f_scale = 1.0f / sqrtf((float)m->n_embd);
    const float half = 1.0f / sqrtf(2.0f);
    float *x = f->per_layer + j * pad16(n);

    if (f->tokens[j] < m->n_per_layer_rows)
        fwd_look_up(f, me, &m->per_layer_embd, (size_t)f->tokens[j], me->row);
    else
        memset(me->row, 0, n * sizeof *me->row);
    for (size_t i = 0; i < n; i++)
        x[i] *= f_scale;
    for (size_t i = 0; i < n; i += d)
        fwd_norm(f, x + i, x + i, &m->per_layer_norm, d);
    for (size_t i = 0; i < n; i++)
        x[i] = (x[i] + e_scale * me->row[i]) * half;
}

void fwd_per_layer_inputs(struct forward *f, struct fwd_thread *me)
{
    multiply(f, me, NULL, &f->m->per_layer_proj, SLM_OP_EMBED, f->per_layer, NULL, 0);
    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;)
        join(f, me, j);
    fwd_lap(me, SLM_OP_EMBED, f->m->per_layer_embd.fmt);
    fwd_barrier(f, me, SLM_OP_EMBED, f->m->per_layer_embd.fmt);
}

void fwd_per_layer(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const struct per_layer *p = &y->per_layer;
    const size_t d = p->gate.n_rows, stride = pad16(d);
    const size_t all = pad16(d * (size_t)f->m->n_layers);

    multiply(f, me, y, &p->gate, SLM_OP_GATE_UP, f->gate,
             f->per_layer + (size_t)(y - f->m->layers) * d, all);
    if (f->hook)
        fwd_hook_rows(f, me, &p->out, f->gate, stride, (size_t)f->n, NULL);

    const struct columns c = fwd_prepare_few(f, me, f->gate, stride, (size_t)f->n, d,
                                             NULL, act_bit(f, &p->out));

    if (f->m->n_streams == 0)
        fwd_add_product(f, me, SLM_OP_DOWN, &p->out, NULL, &p->norm, y->out_scale, &c);
    else
        fwd_streams_add(f, me, &p->out, &p->norm, &c);
}
