/* SPDX-License-Identifier: MIT
 *
 * forward_hook.c - call the activation hook with every input row of a matrix
 *
 * The calls come before a stage prepares its input, where the values are still floats.
 * Each thread reports some rows; it writes nothing that others read.
 */
#include "engine/forward/forward_impl.h"

void forward_set_hook(struct forward *f, slm_activation_hook_fn *hook, void *arg)
{
    f->hook = hook;
    f->hook_arg = arg;
}

/* Row src, normalised unless norm is NULL, to one slice of w. */
static void report_row(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                       size_t slice, const float *src, const struct norm *norm)
{
    if (norm) {
        fwd_norm(f, me->row, src, norm, w->k);
        src = me->row;
    }
    if (w->slices)
        f->hook(f->hook_arg, w->slices[slice].name, 1, 0, src, w->k);
    else
        f->hook(f->hook_arg, w->name, w->n_slices, slice, src, w->k);
}

void fwd_hook_rows(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                   const float *src, size_t stride, size_t n, const struct norm *norm)
{
    for (size_t j = (size_t)(me - f->threads); j < n;
         j += (size_t)thread_pool_size(f->pool))
        report_row(f, me, w, 0, src + j * stride, norm);
}

void fwd_hook_heads(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                    const float *src, size_t stride, size_t each, size_t n)
{
    for (size_t j = (size_t)(me - f->threads); j < n;
         j += (size_t)thread_pool_size(f->pool))
        for (size_t h = 0; h < w->n_slices; h++)
            report_row(f, me, w, h, src + j * stride + h * each, NULL);
}

void fwd_hook_pairs(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                    const struct norm *norm)
{
    const size_t n_used = (size_t)f->m->n_experts_used, n = (size_t)f->n * n_used;

    for (size_t i = (size_t)(me - f->threads); i < n;
         i += (size_t)thread_pool_size(f->pool)) {
        const size_t pair = (size_t)me->pair[i], expert = (size_t)me->expert[pair];
        const float *src = norm ? f->x + pair / n_used * pad16((size_t)f->m->n_embd)
                                : f->gate + i * pad16(w->k);

        report_row(f, me, w, expert, src, norm);
    }
}
