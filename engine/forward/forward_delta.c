/* SPDX-License-Identifier: MIT
 *
 * forward_delta.c - the gated delta rule
 *
 * Per head, with S [key_dim][value_dim] the state, k and q of length 1:
 *
 *     S <- g S;   S <- S + k (b (v - k'S));   o = q'S / sqrt(key_dim)
 *
 * so that the output of S for k moves towards v by the factor b, between 0 and 1 for
 * each token and head, while S decays by g (Yang et al. 2024, arXiv 2412.06464).
 * Several heads of values may share one of queries and keys.
 */
#include "engine/forward/forward_recur.h"

#include <math.h>

/* Queries and keys of the run's group: q, k [n][stride]. */
static void make_keys(const struct forward *f, const struct recur_run *r, float *q,
                      float *k, size_t stride)
{
    const size_t d = (size_t)f->m->recur.key_dim, n_k = recur_keys(&f->m->recur);

    recur_convolve(f, r->p, r->y, r->group * d, d, r->from, r->n, q, stride);
    recur_convolve(f, r->p, r->y, n_k + r->group * d, d, r->from, r->n, k, stride);
    for (size_t j = 0; j < r->n; j++) {
        f->kern.l2norm(q + j * stride, d, 1.0f / sqrtf((float)d), f->m->norm_eps);
        f->kern.l2norm(k + j * stride, d, 1.0f, f->m->norm_eps);
    }
}

/* What each token keeps of a head's state, and how fast it learns: keep, rate [n]. */
static void make_factors(const struct forward *f, const struct recur_run *r,
                         size_t head, float *keep, float *rate)
{
    const struct recurrent *rec = &r->y->rec;
    const size_t n = (size_t)f->m->recur.n_heads;
    const size_t each = n / (size_t)f->m->recur.n_groups;
    const bool apart = rec->alpha.n_rows > 0;
    const size_t beta_stride = pad16(rec->beta.n_rows);
    const size_t at = apart ? head : head / each * 2 * each + head % each;
    const float *beta = f->rec_beta + (r->p->first + r->from) * beta_stride + at;
    const float *alpha =
        apart ? f->rec_alpha + (r->p->first + r->from) * pad16(n) + head : beta + each;

    for (size_t j = 0; j < r->n; j++) {
        rate[j] = 1.0f / (1.0f + expf(-beta[j * beta_stride]));
        keep[j] =
            expf(rec->a[head] * recur_softplus(alpha[j * beta_stride] + rec->dt[head]));
    }
}

/* One head of values, with its group's queries and keys; v: the caller's buffer [n]. */
static void run_values(struct forward *f, const struct recur_run *r, size_t head,
                       const float *q, const float *k, float *v, size_t stride)
{
    const size_t d = (size_t)f->m->recur.value_dim;
    const size_t row = pad16(recur_values(&f->m->recur));
    const size_t first = (r->p->first + r->from) * row + head * d;
    const size_t n_k = recur_keys(&f->m->recur);
    float keep[RECUR_TOKENS], rate[RECUR_TOKENS];

    recur_convolve(f, r->p, r->y, 2 * n_k + head * d, d, r->from, r->n, v, stride);
    make_factors(f, r, head, keep, rate);
    f->kern.delta_rule(d, r->n, recur_state(f, r->p, r->y, head), q, k, v, stride, keep,
                       rate, f->mixed + first, row);
    for (size_t j = 0; j < r->n; j++) {
        float *out = f->mixed + first + j * row;

        fwd_norm(f, out, out, &r->y->rec.norm, d);
        f->kern.silu_mul(out, f->rec_z + first + j * row, out, d);
    }
}

void delta_run(struct forward *f, struct fwd_thread *me, const struct recur_run *r)
{
    const size_t stride = pad16((size_t)f->m->recur.key_dim);
    float *q = me->rec, *k = q + r->n * stride, *v = k + r->n * stride;

    make_keys(f, r, q, k, stride);
    for (size_t i = 0; i < r->n_heads; i++)
        run_values(f, r, r->first_head + i * r->step, q, k, v, stride);
}
