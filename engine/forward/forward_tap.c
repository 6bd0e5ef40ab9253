/* SPDX-License-Identifier: MIT
 *
 * forward_tap.c - a listener is told of every row that a matrix is multiplied with
 *
 * Before a stage prepares its input, which is where the values are still floats. Each
 * member tells of some rows; nothing is written that others read.
 */
#include "engine/forward/forward_impl.h"

void forward_tap(struct forward *f, slm_tap_fn *tap, void *arg)
{
    f->tap = tap;
    f->tap_arg = arg;
}

/* Row src, normalised unless norm is NULL, to one slice of w. */
static void tell(struct forward *f, struct fwd_member *me, const struct matrix *w,
                 size_t slice, const float *src, const struct norm *norm)
{
    if (norm) {
        fwd_norm(f, me->row, src, norm, w->k);
        src = me->row;
    }
    if (w->slices)
        f->tap(f->tap_arg, w->slices[slice].name, 1, 0, src, w->k);
    else
        f->tap(f->tap_arg, w->name, w->n_slices, slice, src, w->k);
}

void fwd_tap_rows(struct forward *f, struct fwd_member *me, const struct matrix *w,
                  const float *src, size_t stride, size_t n, const struct norm *norm)
{
    for (size_t j = (size_t)(me - f->members); j < n; j += (size_t)team_size(f->team))
        tell(f, me, w, 0, src + j * stride, norm);
}

void fwd_tap_pairs(struct forward *f, struct fwd_member *me, const struct matrix *w,
                   const struct norm *norm)
{
    const size_t n_used = (size_t)f->m->n_experts_used, n = (size_t)f->n * n_used;

    for (size_t i = (size_t)(me - f->members); i < n; i += (size_t)team_size(f->team)) {
        const size_t pair = (size_t)me->pair[i], expert = (size_t)f->expert[pair];
        const float *src = norm ? f->x + pair / n_used * pad16((size_t)f->m->n_embd)
                                : f->gate + i * pad16((size_t)f->m->n_ff);

        tell(f, me, w, expert, src, norm);
    }
}
