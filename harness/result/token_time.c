/* SPDX-License-Identifier: MIT
 *
 * token_time.c - the longer of computing and reading, and what does not overlap
 */
#include "harness/result/token_time.h"

#include <math.h>

static double seconds(double bytes, double gbps)
{
    return gbps > 0 ? bytes / (gbps * 1e9) : NAN;
}

struct token_time token_time_at(const struct token_work *w, const struct token_roofs *r,
                                double share)
{
    struct token_time t = {.compute_s = seconds(w->memory_bytes, r->read_gbps * share)};

    if (!(w->streamed_bytes > 0)) {
        t.token_s = t.compute_s;
        return t;
    }
    t.disk_s = seconds(w->streamed_bytes, r->disk_gbps);
    if (w->n_slots == 1 && w->n_layers > 0 && share < 1)
        t.alone_s = t.compute_s * w->n_streamed / w->n_layers;
    t.token_s = isnan(t.compute_s) || isnan(t.disk_s)
                    ? NAN
                    : fmax(t.compute_s, t.disk_s + t.alone_s);
    return t;
}

struct token_time token_time_predict(const struct token_work *w,
                                     const struct token_roofs *r)
{
    return token_time_at(w, r, TOKEN_TIME_USUAL_SHARE);
}
