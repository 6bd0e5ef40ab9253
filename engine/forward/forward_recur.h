/* SPDX-License-Identifier: MIT
 *
 * forward_recur.h - shared by forward_recur.c and the mechanisms of recurrent layers,
 * for these files only
 */
#ifndef SLM_ENGINE_FORWARD_FORWARD_RECUR_H
#define SLM_ENGINE_FORWARD_FORWARD_RECUR_H

#include "engine/forward/forward_impl.h"

/* What one call computes: tokens from .. from + n - 1 of a part, n <= RECUR_TOKENS, of
 * a group the heads of values first_head + i * step, i < n_heads. */
struct recur_run {
    const struct fwd_part *p;
    const struct layer *y;
    size_t from, n;
    size_t group, first_head, step, n_heads;
};

/* A sequence's past in a layer: [n_conv - 1][channels] inputs; and the state
 * [key_dim][value_dim] of a head of values. */
float *recur_past(const struct forward *f, const struct fwd_part *p,
                  const struct layer *y);
float *recur_state(const struct forward *f, const struct fwd_part *p,
                   const struct layer *y, size_t head);

/* Where the inputs of channel c are for n tokens of a part, from its `token` on:
 * rows[n + n_conv - 1], the first ones those of earlier tokens. */
void recur_rows(const struct forward *f, const struct fwd_part *p,
                const struct layer *y, size_t c, size_t token, size_t n, float **rows);

/* n_channels from c on, of n <= RECUR_TOKENS tokens of a part, from its `token` on,
 * after the convolution and SiLU: dst [n][stride]. */
void recur_convolve(const struct forward *f, const struct fwd_part *p,
                    const struct layer *y, size_t c, size_t n_channels, size_t token,
                    size_t n, float *dst, size_t stride);

/* ln(1 + e^x) */
float recur_softplus(float x);

/* From rec_in, rec_z, rec_beta, rec_alpha to mixed, by one thread. */
void delta_run(struct forward *f, struct fwd_thread *me, const struct recur_run *r);
void ssm_run(struct forward *f, struct fwd_thread *me, const struct recur_run *r);

/* All of a short convolution layer's channels, divided among the threads. */
void fwd_short_conv(struct forward *f, struct fwd_thread *me, const struct layer *y);

#endif
