/* SPDX-License-Identifier: MIT
 *
 * gate_quality.c - how far B's answers diverge from A's
 */
#include "harness/decide/gate/gate_quality.h"

#include "harness/base/apart.h"
#include "harness/measure/quality/quality.h"

#define N_CHUNKS 8    /* of the text that comes with the program */
#define Z        1.96 /* 95 % */

struct work {
    const struct gate_settings *s;
    const char *dir;
};

/* The process that opens a model can start no program afterwards. */
static enum status measure(void *result, const void *arg, struct err *err)
{
    const struct work *work = arg;
    const struct gate_settings *s = work->s;
    const char *const b = s->b_model.text;
    struct quality_report report = {.rows = NULL};
    struct quality_settings q = {
        .models = &b,
        .n_models = 1,
        .reference = s->setup.model.text,
        .n_chunks = N_CHUNKS,
        .session = {.setup = {.n_threads = s->threads.n ? s->threads.v[0] : 0,
                              .placement = s->setup.placement}},
        .out = work->dir};
    const enum status st = quality_run(&report, &q, err);
    if (st)
        return st;
    const struct row *of_b = &report.rows[report.n - 1];

    *(struct gate_divergence *)result =
        (struct gate_divergence){.max = s->max_kl,
                                 .kl = of_b->kl_mean,
                                 .se = of_b->kl_se,
                                 .top1_pct = of_b->top1_pct,
                                 .n_tokens = report.n_scored};
    quality_report_free(&report);
    return ST_OK;
}

enum status gate_quality(struct gate_result *r, const struct gate_settings *s,
                         struct err *err)
{
    return apart_run(measure, &r->divergence, sizeof r->divergence,
                     &(struct work){s, r->dir}, err);
}

void gate_quality_judge(struct gate_result *r)
{
    struct gate_divergence *d = &r->divergence;

    if (!(d->max > 0))
        return;
    d->verdict = d->kl - Z * d->se > d->max    ? GATE_FAIL
                 : d->kl + Z * d->se <= d->max ? GATE_PASS
                                               : GATE_UNCLEAR;
    if (d->verdict == GATE_FAIL)
        r->verdict = GATE_FAIL;
    else if (d->verdict == GATE_UNCLEAR && r->verdict == GATE_PASS)
        r->verdict = GATE_UNCLEAR;
}
