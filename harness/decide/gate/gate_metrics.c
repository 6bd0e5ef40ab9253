/* SPDX-License-Identifier: MIT
 *
 * gate_metrics.c - a gate's result as a file of metrics, which node_exporter reads
 */
#include <math.h>
#include <string.h>

#include "harness/base/openmetrics.h"
#include "harness/decide/gate/gate_report.h"

#define N_COMMON 4

/* Families with a sample per metric of the gate that has the figure. */
static const struct family {
    const char *name, *help;
} families[] = {
    {"gate_change_ratio", "Change of speed from A to B; below 0, B is worse."},
    {"gate_change_low_ratio", "Lower end of its 95 % interval."},
    {"gate_change_high_ratio", "Upper end of its 95 % interval."},
    {"gate_margin_ratio", "Slowdown that may pass."},
    {"gate_metric_failed", "1: the metric failed."},
};
#define N_FAMILIES (sizeof families / sizeof families[0])

static void put_family(FILE *f, const struct gate_result *r, size_t family,
                       const struct openmetrics_label *common)
{
    struct openmetrics_label labels[N_COMMON + 1];
    bool has_head = false;

    memcpy(labels, common, N_COMMON * sizeof *labels);
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct gate_metric *m = &r->metric[i];
        const double v[N_FAMILIES] = {m->effect.ratio - 1, m->effect.lo - 1,
                                      m->effect.hi - 1, m->margin,
                                      gate_metric_verdict(m) == GATE_FAIL};

        if (!isfinite(v[family]))
            continue;
        if (!has_head)
            openmetrics_head(f, families[family].name, families[family].help);
        has_head = true;
        labels[N_COMMON] = (struct openmetrics_label){"metric", m->name};
        openmetrics_sample(f, families[family].name, labels, N_COMMON + 1, v[family]);
    }
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
    for (size_t i = 0; i < N_FAMILIES; i++)
        put_family(f, r, i, common);
    openmetrics_head(f, "gate_seconds", "How long the gate took.");
    openmetrics_sample(f, "gate_seconds", common, N_COMMON, r->seconds);
    openmetrics_finish(f);
}
