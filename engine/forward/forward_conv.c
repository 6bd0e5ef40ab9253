/* SPDX-License-Identifier: MIT
 *
 * forward_conv.c - the gated short convolution of LFM2
 *
 * The matrix of inputs gives three parts B, C and x; each channel of B x is mixed with
 * its own last values, and C times the result is what the output matrix multiplies.
 * Products take the place of B, from where they become a sequence's past. A thread
 * takes some channels of a part of the pass, and its tokens in order.
 */
#include "engine/forward/forward_recur.h"

/* A thread's channels at a time: whole cache lines, and not so few that taking them
 * costs more than computing them. */
#define MIN_CHANNELS     ((size_t)64)
#define ITEMS_PER_THREAD ((size_t)4)

static size_t channels_of_item(const struct forward *f, size_t n)
{
    const size_t n_items = ITEMS_PER_THREAD * (size_t)thread_pool_size(f->pool);
    const size_t even = (n + n_items - 1) / n_items;

    return (even + MIN_CHANNELS - 1) / MIN_CHANNELS * MIN_CHANNELS;
}

static void run_channels(struct forward *f, const struct fwd_part *p,
                         const struct layer *y, size_t c, size_t n_channels)
{
    const size_t n_taps = (size_t)f->m->recur.n_conv, n = recur_values(&f->m->recur);
    const size_t stride = pad16(recur_in_rows(&f->m->recur)), row = pad16(n);
    float *rows[RECUR_TOKENS + RECUR_MAX_CONV - 1];

    for (size_t from = 0; from < p->n; from += RECUR_TOKENS) {
        const size_t some = p->n - from < RECUR_TOKENS ? p->n - from : RECUR_TOKENS;
        const float *in = f->rec_in + (p->first + from) * stride + c;

        recur_rows(f, p, y, c, from, some, rows);
        f->kern.short_conv(n_channels, n_taps, y->rec.conv + c * n_taps, some, rows,
                           in + 2 * n, in + n, stride,
                           f->mixed + (p->first + from) * row + c, row);
    }
}

void fwd_short_conv(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const size_t n = recur_values(&f->m->recur), each = channels_of_item(f, n);
    const size_t n_taps = (size_t)f->m->recur.n_conv;
    const size_t n_items = (n + each - 1) / each; /* of a part of the pass */

    for (size_t item;
         (item = thread_pool_next(f->pool, 1)) < n_items * (size_t)f->n_parts;) {
        const struct fwd_part *p = &f->parts[item / n_items];
        const size_t c = item % n_items * each;
        const size_t n_channels = n - c < each ? n - c : each;

        run_channels(f, p, y, c, n_channels);
        fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT,
                  (n_taps - 1) * n_channels * sizeof(float),
                  n_taps * n_channels * p->n);
    }
}
