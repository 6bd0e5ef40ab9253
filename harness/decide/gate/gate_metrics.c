/* SPDX-License-Identifier: MIT
 *
 * gate_metrics.c - a gate's result as a file of metrics, which node_exporter reads
 */
#include <math.h>

#include "harness/base/openmetrics.h"
#include "harness/decide/gate/gate_report.h"

#define N_COMMON 4

/* One family: a sample per metric of the gate that has the figure. */
static void put_family(FILE *f, const struct gate_result *r, const char *name,
                       const char *help, double (*figure)(const struct gate_metric *),
                       const struct openmetrics_label *common)
{
    bool has_head = false;

    for (size_t i = 0; i < r->n_metrics; i++) {
        const double v = figure(&r->metric[i]);
        struct openmetrics_label labels[N_COMMON + 1];

        if (!isfinite(v))
            continue;
        if (!has_head)
            openmetrics_head(f, name, help);
        has_head = true;
        for (size_t k = 0; k < N_COMMON; k++)
            labels[k] = common[k];
        labels[N_COMMON] = (struct openmetrics_label){"metric", r->metric[i].name};
        openmetrics_sample(f, name, labels, N_COMMON + 1, v);
    }
}

static double change(const struct gate_metric *m)
{
    return m->effect.ratio - 1;
}

static double change_low(const struct gate_metric *m)
{
    return m->effect.lo - 1;
}

static double change_high(const struct gate_metric *m)
{
    return m->effect.hi - 1;
}

static double margin(const struct gate_metric *m)
{
    return m->margin;
}

static double failed(const struct gate_metric *m)
{
    return gate_metric_verdict(m) == GATE_FAIL;
}

void gate_metrics_write(FILE *f, const struct gate_result *r)
{
    const struct openmetrics_label common[N_COMMON] = {
        {"model", r->model},
        {"settings", r->settings},
        {"commit_a", r->side[0].commit},
        {"commit_b", r->side[1].commit},
    };

    openmetrics_head(f, "gate_failed", "1: the gate failed.");
    openmetrics_sample(f, "gate_failed", common, N_COMMON, r->verdict == GATE_FAIL);
    openmetrics_head(f, "gate_passed",
                     "1: the gate passed; where neither is 1 it is inconclusive.");
    openmetrics_sample(f, "gate_passed", common, N_COMMON, r->verdict == GATE_PASS);
    put_family(f, r, "gate_change_ratio",
               "Change of speed from A to B; below 0, B is worse.", change, common);
    put_family(f, r, "gate_change_low_ratio", "Lower end of its 95 % interval.",
               change_low, common);
    put_family(f, r, "gate_change_high_ratio", "Upper end of its 95 % interval.",
               change_high, common);
    put_family(f, r, "gate_margin_ratio", "Slowdown that may pass.", margin, common);
    put_family(f, r, "gate_metric_failed", "1: the metric failed.", failed, common);
    openmetrics_head(f, "gate_seconds", "How long the gate took.");
    openmetrics_sample(f, "gate_seconds", common, N_COMMON, r->seconds);
    openmetrics_finish(f);
}
