/* SPDX-License-Identifier: MIT
 *
 * gate_calibrate.c - `bench gate --calibrate`: what a gate can do on this machine
 *
 * Equal builds are compared with an eighth, a quarter and a half of the budget, each
 * with the turns of a gate of that budget and to its end; their launches
 * are then drawn again (gate_resample.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/base/program.h"
#include "harness/stats/stats.h"
#include "harness/base/newfile.h"
#include "harness/base/textfile.h"
#include "harness/decide/gate/gate_options.h"
#include "harness/decide/gate/gate_resample.h"
#include "harness/decide/gate/gate_run.h"
#include "harness/machine/measuring.h"

#define N_BUDGETS  3
#define N_ALIKE    4000 /* gates of equal builds */
#define N_SLOWER   600  /* of each slowdown that is tried */
#define SURELY     0.95
#define WORTH      0.05 /* a slowdown that a gate should detect, */
#define WORTH_X    2.5  /* ... or this multiple of the margin, if that is more */
#define MIN_RECORD 10   /* least number of launches to draw from */

struct calibrated {
    double budget_s, seconds; /* of all launches, first timing included */
    size_t n_launches, n_disturbed;
    char why_not[480]; /* it did not fit; "": it did */
    double need_s;     /* then: a budget that would do */
    struct gate_record record;
    struct gate_metric metric[GATE_MAX_METRICS]; /* names, units */
    struct gate_chances alike;
    double least[GATE_MAX_METRICS]; /* slowdowns found with SURELY; NAN: none */
    double worst;                   /* of the speeds */
};

struct calibration {
    struct calibrated at[N_BUDGETS];
    struct gate_side side;
    char model[256], settings[256];
    char dir[512];
    double wanted; /* the slowdown that should be seen */
    int advice;    /* the budget that does; -1: none is enough */
};

/* ---- measuring ------------------------------------------------------------------- */

static bool is_speed(const struct gate_metric *m)
{
    return !m->less_is_better;
}

/* Complete launches: a last one that was interrupted is cut off. */
static void keep(struct calibrated *c, const struct gate_result *r)
{
    c->n_launches = r->n_launches;
    c->n_disturbed = r->n_disturbed;
    c->seconds = r->seconds;
    c->record.rule = r->rule;
    c->record.n_metrics = r->n_metrics;
    for (size_t i = 0; i < r->n_metrics; i++) {
        c->metric[i] = r->metric[i];
        c->record.margin[i] = r->metric[i].margin;
        c->record.series[i] = r->metric[i].series;
        c->record.series[i].n_launches = r->n_launches;
    }
}

static enum status open_rounds(struct gate_run *run, const char *dir, double budget_s,
                               struct err *err)
{
    char path[600];
    enum status st;

    snprintf(path, sizeof path, "%s/budget-%.0fs", dir, budget_s);
    st = dirs_make(path, err);
    return st ? st : gate_rounds_open(&run->csv, path, err);
}

static enum status record(struct calibration *c, struct calibrated *at,
                          const struct gate_settings *s, struct topology *topo,
                          const char *program, struct gate_result *r, struct err *err)
{
    const char *const both[2] = {program, program};
    struct gate_run *run = calloc(1, sizeof *run);
    struct err why = ERR_INIT;
    enum status st;

    if (!run)
        return err_set(err, ST_NO_MEMORY, "no memory for a gate");
    memset(r, 0, sizeof *r);
    r->rule = s->rule;
    st = gate_run_open(run, s, topo, both, r, &why);
    if (st == ST_USAGE && run->plan.launch_s > 0) {
        /* the budget is too short for this model; a longer one follows */
        snprintf(at->why_not, sizeof at->why_not, "it holds %zu launch%s of this model",
                 run->plan.max_launches, run->plan.max_launches == 1 ? "" : "es");
        at->need_s = run->plan.need_s;
        gate_run_close(run);
        free(run);
        return ST_OK;
    }
    if (st == ST_OK)
        st = open_rounds(run, c->dir, s->budget_s, &why);
    while (st == ST_OK && r->n_launches < GATE_MAX_LAUNCHES && gate_run_has_time(run))
        st = gate_run_launch(run, &why);
    gate_run_sum_up(run);
    c->side = r->side[0];
    if (*r->model) { /* a server's own */
        snprintf(c->model, sizeof c->model, "%s", r->model);
        snprintf(c->settings, sizeof c->settings, "%s", r->settings);
    }
    gate_run_close(run);
    free(run);
    keep(at, r);
    if (st == ST_OK && r->n_launches < MIN_RECORD) {
        snprintf(at->why_not, sizeof at->why_not, "it held %zu launch%s of this model",
                 r->n_launches, r->n_launches == 1 ? "" : "es");
        at->need_s = s->budget_s * (MIN_RECORD + 1) / (double)(r->n_launches + 1);
        at->n_launches = 0;
    }
    return st ? err_set(err, st, "%s", why.msg) : ST_OK;
}

/* ---- what follows ---------------------------------------------------------------- */

static enum status work_out(struct calibrated *at, uint64_t seed, struct err *err)
{
    enum status st = gate_resample(&at->alike, &at->record, N_ALIKE, at->n_launches,
                                   GATE_NO_METRIC, 0, seed, err);

    at->worst = 0;
    for (size_t i = 0; i < at->record.n_metrics && st == ST_OK; i++) {
        st = gate_resample_min_slowdown(&at->least[i], &at->record, N_SLOWER,
                                        at->n_launches, i, SURELY, seed, err);
        if (st == ST_OK && is_speed(&at->metric[i]))
            at->worst =
                isfinite(at->least[i]) ? fmax(at->worst, at->least[i]) : INFINITY;
    }
    return st;
}

static double share_passed(const struct calibrated *at)
{
    return (double)at->alike.n_passed / (double)at->alike.n_gates;
}

static void choose(struct calibration *c)
{
    c->advice = -1;
    for (int i = N_BUDGETS - 1; i >= 0; i--)
        if (c->at[i].n_launches && c->at[i].worst <= c->wanted &&
            share_passed(&c->at[i]) >= SURELY)
            c->advice = i;
}

/* ---- printing -------------------------------------------------------------------- */

static const char *percent(char *buf, size_t cap, double share)
{
    if (isfinite(share))
        snprintf(buf, cap, "%.1f %%", 100 * share);
    else
        snprintf(buf, cap, "none");
    return buf;
}

static void print_line(const char *label, const struct calibration *c,
                       void (*cell)(char *buf, size_t cap, const struct calibrated *at,
                                    size_t metric),
                       size_t metric)
{
    printf("%-46s", label);
    for (int i = 0; i < N_BUDGETS; i++) {
        char text[32] = "-";

        if (c->at[i].n_launches)
            cell(text, sizeof text, &c->at[i], metric);
        printf(" %12s", text);
    }
    putchar('\n');
}

static void put_launches(char *buf, size_t cap, const struct calibrated *at, size_t m)
{
    (void)m;
    snprintf(buf, cap, "%zu", at->n_launches);
}

static void put_false(char *buf, size_t cap, const struct calibrated *at, size_t m)
{
    (void)m;
    snprintf(buf, cap, "%.2f %%",
             100 * (double)at->alike.n_failed / (double)at->alike.n_gates);
}

static void put_bound(char *buf, size_t cap, const struct calibrated *at, size_t m)
{
    (void)m;
    snprintf(buf, cap, "%.2f %%",
             100 * stats_binomial_upper(at->alike.n_failed, at->alike.n_gates));
}

static void put_passed(char *buf, size_t cap, const struct calibrated *at, size_t m)
{
    (void)m;
    percent(buf, cap, share_passed(at));
}

static void put_mean(char *buf, size_t cap, const struct calibrated *at, size_t m)
{
    (void)m;
    format_duration(buf, cap,
                    at->seconds * at->alike.launches / (double)at->n_launches);
}

static void put_min(char *buf, size_t cap, const struct calibrated *at, size_t m)
{
    percent(buf, cap, at->least[m]);
}

static void print_advice(const struct calibration *c, const struct gate_rule *rule)
{
    char least[32];

    if (c->advice >= 0) {
        const struct calibrated *at = &c->at[c->advice];

        printf("\nUse --budget %.0fs: it misses a slowdown of %s in at most one of 20 "
               "gates, and lets equal\nbuilds pass in %.0f of 100.\n",
               ceil(at->budget_s), percent(least, sizeof least, at->worst),
               floor(100 * share_passed(at)));
        return;
    }
    printf(
        "\nNone of these budgets detects a slowdown of %.1f %% and lets equal builds "
        "pass, each in 95 of 100\ngates with a margin of %.3g %%. Calibrate with a "
        "longer --budget, or choose a larger --margin,\nfewer threads, a quieter "
        "machine, or metrics that vary less (see above).\n",
        100 * c->wanted, 100 * rule->margin);
}

static void print(const struct calibration *c, const struct gate_settings *s)
{
    const struct calibrated *any = NULL;
    char text[64];

    printf("%s%s%s%s%s%s, against itself\n", format_path(c->side.name).text,
           *c->side.version ? ", " : "", c->side.version, *c->side.commit ? " (" : "",
           c->side.commit, *c->side.commit ? ")" : "");
    printf("%s, %s\n\n%-46s", format_path(c->model).text, c->settings, "budget");
    for (int i = 0; i < N_BUDGETS; i++) {
        printf(" %12s", format_duration(text, sizeof text, c->at[i].budget_s));
        if (c->at[i].n_launches)
            any = &c->at[i];
    }
    putchar('\n');
    print_line("launches", c, put_launches, 0);
    print_line("equal builds fail", c, put_false, 0);
    print_line("  at most (95 % bound)", c, put_bound, 0);
    print_line("equal builds pass", c, put_passed, 0);
    print_line("  after, on average", c, put_mean, 0);
    printf("\nsmallest loss that fails with a probability of 95 %%\n");
    for (size_t m = 0; any && m < any->record.n_metrics; m++) {
        char label[160];

        snprintf(label, sizeof label, "  %s (margin %.3g %%)", any->metric[m].name,
                 100 * any->metric[m].margin);
        print_line(label, c, put_min, m);
    }
    for (int i = 0; i < N_BUDGETS; i++)
        if (*c->at[i].why_not)
            printf("\n%s is too short: %s\n",
                   format_duration(text, sizeof text, c->at[i].budget_s),
                   c->at[i].why_not);
    print_advice(c, &s->rule);
    printf("results: %s\n", format_path(c->dir).text);
}

static json_t *one_json(const struct calibrated *at)
{
    json_t *metrics = json_array();

    for (size_t i = 0; i < at->record.n_metrics; i++)
        json_array_append_new(
            metrics, json_pack("{s:s, s:f, s:o}", "name", at->metric[i].name, "margin",
                               at->metric[i].margin, "smallest_loss_seen",
                               json_number(at->least[i])));
    return json_pack(
        "{s:f, s:s, s:f, s:I, s:I, s:I, s:I, s:f, s:I, s:f, s:o}", "budget_s",
        at->budget_s, "why_not", at->why_not, "seconds", at->seconds, "n_launches",
        (json_int_t)at->n_launches, "n_disturbed", (json_int_t)at->n_disturbed,
        "n_gates", (json_int_t)at->alike.n_gates, "n_false_failures",
        (json_int_t)at->alike.n_failed, "false_failures_at_most",
        at->alike.n_gates ? stats_binomial_upper(at->alike.n_failed, at->alike.n_gates)
                          : 1,
        "n_passed", (json_int_t)at->alike.n_passed, "mean_launches", at->alike.launches,
        "metrics", metrics);
}

static json_t *to_json(const struct calibration *c, const struct gate_settings *s)
{
    json_t *budgets = json_array();

    for (int i = 0; i < N_BUDGETS; i++)
        json_array_append_new(budgets, one_json(&c->at[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:f, s:f, s:o, s:o}", "program", c->side.name, "commit",
        c->side.commit, "model", c->model, "settings", c->settings, "margin",
        s->rule.margin, "wanted", c->wanted, "recommended_budget_s",
        c->advice < 0 ? json_null() : json_real(ceil(c->at[c->advice].budget_s)),
        "budgets", budgets);
}

/* ---- all ------------------------------------------------------------------------- */

static enum status measure(struct calibration *c, const struct gate_options *o,
                           const struct gate_settings *s, struct topology *topo,
                           struct err *err)
{
    struct gate_result *r = malloc(sizeof *r);
    enum status st = r ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a gate");
    char text[32], part[32];
    bool any = false;

    for (int i = 0; i < N_BUDGETS && st == ST_OK; i++) {
        struct gate_settings own = *s;

        own.budget_s = c->at[i].budget_s = s->budget_s / (1 << (N_BUDGETS - i));
        own.slower = 0;
        st = record(c, &c->at[i], &own, topo, o->a ? o->a : self_path(), r, err);
        any = any || c->at[i].n_launches;
    }
    free(r);
    if (st == ST_OK && !any) {
        const struct calibrated *half = &c->at[N_BUDGETS - 1];

        st = err_set(err, ST_USAGE,
                     "--budget %s is too short to calibrate with: a gate of half of it "
                     "has %s, %s, and needs %d at least; give it --budget %.0fm, or a "
                     "smaller model",
                     format_duration(text, sizeof text, s->budget_s),
                     format_duration(part, sizeof part, half->budget_s), half->why_not,
                     MIN_RECORD, ceil(2 * half->need_s / 60));
    }
    return st;
}

static enum status calibrate(struct calibration *c, const struct gate_options *o,
                             const struct gate_settings *s, struct topology *topo,
                             struct err *err)
{
    char path[600];
    enum status st;

    c->wanted = fmax(WORTH, WORTH_X * s->rule.margin);
    snprintf(c->model, sizeof c->model, "%.255s", s->setup.model.text);
    gate_settings_text(s, c->settings, sizeof c->settings);
    if (o->out)
        snprintf(c->dir, sizeof c->dir, "%s", o->out);
    else
        dirs_results(c->dir, sizeof c->dir, "calibrate-");
    st = measure(c, o, s, topo, err);
    for (int i = 0; i < N_BUDGETS && st == ST_OK; i++)
        if (c->at[i].n_launches)
            st = work_out(&c->at[i], s->setup.seed, err);
    if (st)
        return st;
    choose(c);
    print(c, s);
    snprintf(path, sizeof path, "%s/calibration.json", c->dir);
    newfile_clear(path);
    st = textfile_write_json(path, to_json(c, s), JSON_INDENT(2), err);
    if (st == ST_OK && o->outputs.json)
        st = textfile_write_json(o->outputs.json, to_json(c, s), JSON_INDENT(2), err);
    return st;
}

enum status gate_calibrate(const struct gate_options *o, struct err *err)
{
    struct topology *topo = NULL;
    struct calibration *c = calloc(1, sizeof *c);
    struct gate_settings s = {0};
    enum status st;

    if (!c)
        st = err_set(err, ST_NO_MEMORY, "no memory to calibrate");
    else if (o->b || o->inject)
        st = err_set(err, ST_USAGE,
                     "--calibrate compares a program with itself: name it with --a, "
                     "without --b and --inject-slowdown");
    else if (o->out && strlen(o->out) >= sizeof c->dir)
        st = err_set(err, ST_USAGE, "--output: the name of the directory is too long");
    else
        st = topology_open(&topo, "", err);
    if (st == ST_OK)
        st = gate_settings_make(&s, o, topo, err);
    if (st == ST_OK)
        st = gate_options_check_outputs(o, &s.setup.model, err);
    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK)
        st = calibrate(c, o, &s, topo, err);
    gate_settings_free(&s);
    free(c);
    free(topo);
    return st;
}
