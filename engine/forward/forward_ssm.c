/* SPDX-License-Identifier: MIT
 *
 * forward_ssm.c - Mamba-2
 *
 * Per head, with S [key_dim][value_dim] the state, dt > 0 of each token and head, A < 0
 * and D of each head:
 *
 *     S <- exp(dt A) S + B (dt x)';   y = S'C + D x
 *
 * (Dao and Gu 2024, arXiv 2405.21060). The heads of a group share B and C. y times
 * silu(z) is what the output matrix multiplies, after a norm of each group's values if
 * the model has one: fwd_recurrent_out().
 */
#include "engine/forward/forward_recur.h"

#include <math.h>

/* One head, with its group's B and C; x: the caller's buffer [n]. */
static void run_head(struct forward *f, const struct recur_run *r, size_t head,
                     const float *b, const float *c, size_t key_stride, float *x,
                     size_t x_stride)
{
    const struct recurrent *rec = &r->y->rec;
    const size_t d_key = (size_t)f->m->recur.key_dim;
    const size_t d = (size_t)f->m->recur.value_dim;
    const size_t row = pad16(recur_values(&f->m->recur));
    const size_t first = (r->p->first + r->from) * row + head * d;
    const size_t dt_stride = pad16((size_t)f->m->recur.n_heads);
    const float *dt = f->rec_alpha + (r->p->first + r->from) * dt_stride + head;
    float keep[RECUR_TOKENS], rate[RECUR_TOKENS];

    recur_convolve(f, r->p, r->y, head * d, d, r->from, r->n, x, x_stride);
    for (size_t j = 0; j < r->n; j++) {
        rate[j] = recur_softplus(dt[j * dt_stride] + rec->dt[head]);
        keep[j] = expf(rate[j] * rec->a[head]);
    }
    f->kern.ssm_scan(d_key, d, r->n, recur_state(f, r->p, r->y, head), b, c, key_stride,
                     x, x_stride, keep, rate, rec->skip[head], f->mixed + first, row);
    for (size_t j = 0; j < r->n; j++) {
        float *out = f->mixed + first + j * row;

        f->kern.silu_mul(out, f->rec_z + first + j * row, out, d);
    }
}

void ssm_run(struct forward *f, struct fwd_thread *me, const struct recur_run *r)
{
    const struct recur_sizes *s = &f->m->recur;
    const size_t d = (size_t)s->key_dim, stride = pad16(d);
    const size_t values = recur_values(s), at = values + r->group * d;
    float *b = me->rec, *c = b + r->n * stride, *x = c + r->n * stride;

    recur_convolve(f, r->p, r->y, at, d, r->from, r->n, b, stride);
    recur_convolve(f, r->p, r->y, at + recur_keys(s), d, r->from, r->n, c, stride);
    for (size_t i = 0; i < r->n_heads; i++)
        run_head(f, r, r->first_head + i * r->step, b, c, stride, x,
                 pad16((size_t)s->value_dim));
}
