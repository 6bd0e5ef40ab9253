/* SPDX-License-Identifier: MIT
 *
 * forward_recur.c - what recurrent layers have in common: projections, the convolution
 * that mixes each channel with its own last inputs, the division among threads
 *
 * A sequence's past in such a layer has a fixed size instead of keys and values: the
 * convolution's last inputs, and behind them a state [key_dim][value_dim] per head,
 * which the rule of forward_delta.c or forward_ssm.c changes with every token.
 *
 * A thread takes a group, a head of queries and keys, with some of the heads of values
 * that share it, so that its convolutions are computed once for these, and processes a
 * pass's tokens in order, RECUR_TOKENS at a time: what belongs to them then lies in the
 * second-level cache next to the states.
 */
#include "engine/forward/forward_recur.h"

#include <math.h>
#include <string.h>

float *recur_past(const struct forward *f, const struct fwd_part *p,
                  const struct layer *y)
{
    return kvcache_state(f->kv, p->seq, y->state);
}

float *recur_state(const struct forward *f, const struct fwd_part *p,
                   const struct layer *y, size_t head)
{
    const struct recur_sizes *s = &f->m->recur;

    return recur_past(f, p, y) + recur_past_floats(s) +
           head * (size_t)s->key_dim * (size_t)s->value_dim;
}

void recur_rows(const struct forward *f, const struct fwd_part *p,
                const struct layer *y, size_t c, size_t token, size_t n, float **rows)
{
    const size_t n_kept = (size_t)f->m->recur.n_conv - 1;
    const size_t n_all = recur_channels(&f->m->recur);
    const size_t stride = pad16(recur_in_rows(&f->m->recur));
    float *past = recur_past(f, p, y), *in = f->rec_in + p->first * stride;

    for (size_t r = 0; r < n + n_kept; r++) {
        const size_t at = token + r; /* counted from the first input kept */

        rows[r] = at < n_kept ? past + at * n_all + c : in + (at - n_kept) * stride + c;
    }
}

void recur_convolve(const struct forward *f, const struct fwd_part *p,
                    const struct layer *y, size_t c, size_t n_channels, size_t token,
                    size_t n, float *dst, size_t stride)
{
    const size_t n_taps = (size_t)f->m->recur.n_conv;
    const float *bias = y->rec.conv_bias ? y->rec.conv_bias + c : NULL;
    float *rows[RECUR_TOKENS + RECUR_MAX_CONV - 1];

    recur_rows(f, p, y, c, token, n, rows);
    f->kern.conv_silu(n_channels, n_taps, y->rec.conv + c * n_taps, bias, n,
                      (const float *const *)rows, dst, stride);
}

float recur_softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

/* Into how many parts the heads of values of a group are split: the fewest with which
 * no thread has more of them to compute than with the most. */
static size_t splits_of(const struct forward *f)
{
    const struct recur_sizes *s = &f->m->recur;
    const size_t n_threads = (size_t)thread_pool_size(f->pool);
    const size_t n_groups = (size_t)s->n_groups * (size_t)f->n_parts;
    const size_t each = (size_t)s->n_heads / (size_t)s->n_groups;
    const size_t least = (n_groups * each + n_threads - 1) / n_threads;
    size_t parts = 1;

    while (parts < each &&
           (each % parts ||
            (n_groups * parts + n_threads - 1) / n_threads * (each / parts) > least))
        parts++;
    return parts;
}

/* Where the i-th copy of a part's states has those of a layer, and the tokens of the
 * part before it; NULL: there is no such copy. */
static float *copy_of(const struct forward *f, const struct fwd_part *p,
                      const struct layer *y, int i, size_t *n)
{
    const struct forward_part *part = &p->part;

    *n = (size_t)part->n_again;
    if (i == part->n_saves)
        return part->n_again
                   ? kvcache_state(f->kv, p->seq, f->kv->shape.n_states + y->state)
                   : NULL;
    *n = (size_t)part->saves[i].n;
    return part->saves[i].states + (size_t)y->state * f->kv->shape.state_floats;
}

/* Copy the states of a run's heads behind its last token. */
static void save_heads(const struct forward *f, const struct recur_run *r)
{
    const struct recur_sizes *s = &f->m->recur;
    const size_t d = (size_t)s->key_dim * (size_t)s->value_dim;
    const float *past = recur_past(f, r->p, r->y);

    for (int c = 0; c <= r->p->part.n_saves; c++) {
        size_t n;
        float *copy = copy_of(f, r->p, r->y, c, &n);

        for (size_t i = 0; copy && n == r->from + r->n && i < r->n_heads; i++) {
            const float *state =
                recur_state(f, r->p, r->y, r->first_head + i * r->step);

            memcpy(copy + (state - past), state, d * sizeof *state);
        }
    }
}

/* Tokens of the run that begins at `from`: it ends where states are copied. */
static size_t run_length(const struct fwd_part *p, size_t from)
{
    const struct forward_part *part = &p->part;
    size_t end = from + RECUR_TOKENS < p->n ? from + RECUR_TOKENS : p->n;

    if (from < (size_t)part->n_again && (size_t)part->n_again < end)
        end = (size_t)part->n_again;
    for (int i = 0; i < part->n_saves; i++)
        if (from < (size_t)part->saves[i].n && (size_t)part->saves[i].n < end)
            end = (size_t)part->saves[i].n;
    return end - from;
}

/* Heads begin .. end-1 of a group's. */
static void run_heads(struct forward *f, struct fwd_thread *me,
                      const struct fwd_part *p, const struct layer *y, size_t group,
                      size_t begin, size_t end)
{
    const struct recur_sizes *s = &f->m->recur;
    const size_t each = (size_t)s->n_heads / (size_t)s->n_groups;
    const size_t d = (size_t)s->key_dim * (size_t)s->value_dim;
    const size_t n_macs = s->kind == RECUR_DELTA ? 3 : 2;

    for (size_t from = 0, n; from < p->n; from += n) {
        n = run_length(p, from);
        const struct recur_run r = {
            p,
            y,
            from,
            n,
            group,
            s->neighbours ? group * each + begin : group + begin * (size_t)s->n_groups,
            s->neighbours ? 1 : (size_t)s->n_groups,
            end - begin,
        };

        if (s->kind == RECUR_DELTA)
            delta_run(f, me, &r);
        else
            ssm_run(f, me, &r);
        save_heads(f, &r);
    }
    fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT, (end - begin) * 2 * d * sizeof(float),
              (end - begin) * n_macs * d * p->n);
}

static void run_groups(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const size_t n_groups = (size_t)f->m->recur.n_groups, parts = splits_of(f);
    const size_t each = (size_t)f->m->recur.n_heads / n_groups / parts;
    const size_t n_items = n_groups * parts; /* of a part of the pass */

    for (size_t item;
         (item = thread_pool_next(f->pool, 1)) < n_items * (size_t)f->n_parts;) {
        const size_t i = item % n_items;

        run_heads(f, me, &f->parts[item / n_items], y, i % n_groups,
                  i / n_groups * each, (i / n_groups + 1) * each);
    }
}

/* The last inputs of a part's convolution behind its first n_tokens, to `to`. */
static void copy_inputs(struct forward *f, const struct fwd_part *p,
                        const struct layer *y, size_t n_tokens, float *to)
{
    const size_t n_kept = (size_t)f->m->recur.n_conv - 1;
    const size_t n = recur_channels(&f->m->recur);
    const size_t stride = pad16(recur_in_rows(&f->m->recur));
    const float *in = f->rec_in + p->first * stride, *past = recur_past(f, p, y);

    /* Ascending: the source lies after the values already written. */
    for (size_t r = 0; r < n_kept; r++) {
        const size_t at = n_tokens + r; /* counted from the first input kept */
        const float *src = at < n_kept ? past + at * n : in + (at - n_kept) * stride;

        memmove(to + r * n, src, n * sizeof *to);
    }
}

/* For the next pass, and for a return. */
static void keep_inputs(struct forward *f, const struct fwd_part *p,
                        const struct layer *y)
{
    for (int c = 0; c <= p->part.n_saves; c++) {
        size_t n;
        float *copy = copy_of(f, p, y, c, &n);

        if (copy)
            copy_inputs(f, p, y, n, copy);
    }
    copy_inputs(f, p, y, p->n, recur_past(f, p, y));
}

void fwd_recurrent(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const struct fwd_target all[] = {
        {&y->rec.in, NULL, f->rec_in},
        {&y->rec.gate, NULL, f->rec_z},
        {&y->rec.beta, NULL, f->rec_beta},
        {&y->rec.alpha, NULL, f->rec_alpha},
    };
    struct fwd_target targets[sizeof all / sizeof all[0]];
    size_t n_targets = 0;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].w->n_rows)
            targets[n_targets++] = all[i];
    fwd_project(f, me, f->x, targets, n_targets, &y->attn_norm);
    if (f->m->recur.kind == RECUR_SHORT_CONV)
        fwd_short_conv(f, me, y);
    else
        run_groups(f, me, y);
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
    /* The next stage has a barrier before any thread returns here. */
    for (int i = 0; me == &f->threads[0] && i < f->n_parts; i++)
        keep_inputs(f, &f->parts[i], y);
}

void fwd_recurrent_out(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const struct matrix *w = &y->rec.out;
    const bool normalised = f->m->recur.kind == RECUR_SSM && y->rec.norm.w;
    const struct norm *norm = normalised ? &y->rec.norm : NULL;
    const size_t n = (size_t)f->n, stride = pad16(w->k);

    if (f->hook)
        fwd_hook_rows(f, me, w, f->mixed, stride, n, norm);

    const struct columns c =
        fwd_prepare_few(f, me, f->mixed, stride, n, w->k, norm, act_bit(f, w));

    fwd_add_product(f, me, SLM_OP_ATTN_OUT, w, NULL, &y->attn_post_norm, NULL, &c);
}
