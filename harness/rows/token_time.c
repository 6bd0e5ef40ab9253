/* SPDX-License-Identifier: MIT
 *
 * token_time.c - the longer of computing and reading, and what does not overlap
 */
#include "harness/rows/token_time.h"

#include <math.h>

static double seconds(double bytes, double gbps)
{
    return gbps > 0 ? bytes / (gbps * 1e9) : NAN;
}

/* Reading and computing from one streamed layer to the next: distances differ by one
 * layer at most, and what comes after the last layer is part of one of them. */
static double overlapped(const struct token_work *w, double compute_s, double disk_s)
{
    const double output_s = compute_s * w->output_bytes / w->memory_bytes;
    const double layer_s = (compute_s - output_s) / w->n_layers + w->layer_s;
    const double read_s = disk_s / w->n_streamed;
    const int least = w->n_layers / w->n_streamed;
    const int n_longer = w->n_layers % w->n_streamed;
    double sum = fmax(read_s, least * layer_s + output_s);

    sum += n_longer * fmax(read_s, (least + 1) * layer_s);
    return sum + (w->n_streamed - 1 - n_longer) * fmax(read_s, least * layer_s);
}

double token_time_layer_s(int n_threads)
{
    return TOKEN_TIME_LAYER_S + (n_threads > 1 ? TOKEN_TIME_MEET_S : 0);
}

struct token_roofs token_roofs_end(const struct token_roofs *r, bool upper)
{
    struct token_roofs end = *r;

    end.disk_gbps *= upper ? r->disk_hi > 0 ? r->disk_hi : TOKEN_TIME_LATER_HI
                     : r->disk_lo > 0 ? r->disk_lo
                                      : TOKEN_TIME_LATER_LO;
    return end;
}

/* not_hidden: part of the shorter of reading and computing that adds to the longer. */
static struct token_time time_at(const struct token_work *w,
                                 const struct token_roofs *r, double share,
                                 double not_hidden)
{
    const double products_s = seconds(w->memory_bytes, r->read_gbps * share);
    struct token_time t = {.own_s = w->n_layers * w->layer_s};
    double longer_s;

    t.compute_s = products_s + t.own_s;
    t.token_s = t.compute_s;
    if (!(w->streamed_bytes > 0))
        return t;
    t.disk_s = seconds(w->streamed_bytes, r->disk_gbps);
    if (isnan(t.compute_s) || isnan(t.disk_s)) {
        t.token_s = NAN;
        return t;
    }
    longer_s = fmax(t.compute_s, t.disk_s);
    t.token_s = w->on_demand ? t.compute_s + t.disk_s
                : w->n_streamed > 0 && w->n_streamed <= w->n_layers
                    ? overlapped(w, products_s, t.disk_s)
                    : longer_s;
    if (!w->on_demand)
        t.token_s += not_hidden * fmin(t.compute_s, t.disk_s);
    t.alone_s = t.token_s - longer_s;
    return t;
}

struct token_time token_time_at(const struct token_work *w, const struct token_roofs *r,
                                double share)
{
    return time_at(w, r, share, TOKEN_TIME_NOT_HIDDEN);
}

struct token_time token_time_min(const struct token_work *w,
                                 const struct token_roofs *r)
{
    struct token_work whole = *w;

    whole.n_streamed = 0;
    whole.on_demand = false;
    whole.layer_s = 0;
    return time_at(&whole, r, 1, 0);
}

struct token_time token_time_predict(const struct token_work *w,
                                     const struct token_roofs *r)
{
    return token_time_at(w, r, TOKEN_TIME_USUAL_SHARE);
}
