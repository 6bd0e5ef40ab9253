/* SPDX-License-Identifier: MIT
 *
 * forward_pool.c - the end of a pass over texts: one vector of each
 *
 * The last norm of every token, the vectors of a text's tokens pooled to one, and the
 * matrices that this goes through.
 */
#include "engine/forward/forward_impl.h"

#include <string.h>

/* Each stage ends in a barrier, which also begins the counter of work items anew. */
static void end_stage(struct forward *f, struct fwd_thread *me, enum slm_op op,
                      enum kern_format fmt)
{
    fwd_lap(me, op, fmt);
    fwd_barrier(f, me, op, fmt);
}

static void finish_tokens(struct forward *f, struct fwd_thread *me)
{
    const size_t n_embd = (size_t)f->m->n_embd;

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *x = f->x + j * pad16(n_embd);

        if (f->m->output_norm.w)
            fwd_norm(f, x, x, &f->m->output_norm, n_embd);
        me->no_number |= !fwd_is_finite(x, n_embd);
    }
    end_stage(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

static void mean(const struct forward *f, const struct fwd_part *p, float *out)
{
    const size_t n_embd = (size_t)f->m->n_embd, stride = pad16(n_embd);

    memset(out, 0, n_embd * sizeof *out);
    for (size_t j = 0; j < p->n; j++)
        f->kern.add(out, f->x + (p->first + j) * stride, n_embd);
    for (size_t i = 0; i < n_embd; i++)
        out[i] /= (float)p->n;
}

/* Vector i to y, from part i. */
static void pool_parts(struct forward *f, struct fwd_thread *me)
{
    const size_t n_embd = (size_t)f->m->n_embd, stride = pad16(n_embd);

    for (size_t i; (i = thread_pool_next(f->pool, 1)) < (size_t)f->n_parts;) {
        const struct fwd_part *p = &f->parts[i];
        const size_t at =
            f->pooling == SLM_POOLING_LAST ? p->first + p->n - 1 : p->first;

        if (f->pooling == SLM_POOLING_MEAN)
            mean(f, p, f->y + i * stride);
        else
            memcpy(f->y + i * stride, f->x + at * stride, n_embd * sizeof *f->y);
    }
    end_stage(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

/* Multiplies all parts from src to dst. */
static void multiply(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                     const float *src, float *dst)
{
    if (f->hook)
        fwd_hook_rows(f, me, w, src, pad16(w->k), (size_t)f->n_parts, NULL);

    const struct columns c = fwd_prepare(f, me, src, pad16(w->k), (size_t)f->n_parts,
                                         w->k, NULL, act_bit(f, w));
    struct fwd_rows rows = fwd_rows_of(f, w->n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);)
        fwd_biased_product(f, me, SLM_OP_OUTPUT, w, NULL, begin, end, &c, dst,
                           pad16(w->n_rows));
    end_stage(f, me, SLM_OP_OUTPUT, w->fmt);
}

void fwd_pool(struct forward *f, struct fwd_thread *me)
{
    const float *src = f->y;

    finish_tokens(f, me);
    if (f->pooling == SLM_POOLING_NONE)
        return;
    pool_parts(f, me);
    for (int i = 0; i < MODEL_MAX_DENSE; i++)
        if (f->m->dense[i].n_rows) {
            multiply(f, me, &f->m->dense[i], src, f->dense[i]);
            src = f->dense[i];
        }
}

void forward_embed(struct forward *f, const struct forward_part *parts, int n_parts,
                   enum slm_pooling pooling)
{
    f->pools = true;
    f->pooling = pooling;
    forward_run(f, parts, n_parts);
    f->pools = false;
}

const float *forward_vector(const struct forward *f, size_t i)
{
    const struct model *m = f->m;
    const float *rows = f->pooling == SLM_POOLING_NONE ? f->x : f->y;
    size_t n = (size_t)m->n_embd;

    for (int d = 0; f->pooling != SLM_POOLING_NONE && d < MODEL_MAX_DENSE; d++)
        if (m->dense[d].n_rows) {
            rows = f->dense[d];
            n = m->dense[d].n_rows;
        }
    return rows + i * pad16(n);
}
