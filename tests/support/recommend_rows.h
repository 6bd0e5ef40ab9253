/* SPDX-License-Identifier: MIT
 *
 * recommend_rows.h - rows to choose among, for the tests of the recommendation
 */
#ifndef SLM_TESTS_RECOMMEND_ROWS_H
#define SLM_TESTS_RECOMMEND_ROWS_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/judge/recommend/recommend.h"
#include "harness/rows/report_rows.h"

#define GIB ((int64_t)1 << 30)

/* A good decode row; the interval is 2 % to either side. */
static inline struct row point(const char *quant, int64_t file_bytes, int threads,
                               int ctx, double tps)
{
    struct row r;

    row_init(&r);
    r.kind = POINT_DECODE;
    strcpy(r.model, "m");
    snprintf(r.quant, sizeof r.quant, "%s", quant);
    r.status = ROW_STATUS_OK;
    strcpy(r.validity, "valid");
    r.placement = PLACEMENT_SPREAD;
    r.file_bytes = file_bytes;
    r.n_threads = threads;
    r.ctx = ctx;
    r.tok_per_s = tps;
    r.tok_per_s_lo = tps * 0.98;
    r.tok_per_s_hi = tps * 1.02;
    r.mem_limit_bytes = 6 * GIB;
    r.mem_peak_bytes = 5 * GIB;
    return r;
}

static struct recommendation rec;
static struct err err;

static inline enum status choose(const struct row *rows, size_t n,
                                 struct recommend_params p)
{
    err_clear(&err);
    return recommend(&rec, rows, n, &p, &err);
}

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static inline struct row with_interval(struct row r, double lo, double hi)
{
    r.tok_per_s_lo = lo;
    r.tok_per_s_hi = hi;
    return r;
}

static inline struct row disturbed(struct row r, const char *by)
{
    snprintf(r.validity, sizeof r.validity, "disturbed: %s", by);
    return r;
}

#endif
