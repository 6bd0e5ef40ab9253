/* SPDX-License-Identifier: MIT
 *
 * gate_calibrate.c - `bench gate --calibrate`: what a gate can do on this machine
 *
 * The program is compared with itself with the turns of a gate of the whole budget, for
 * half of its time; gates of the budget, of half and of a quarter of it are then drawn
 * from these launches (gate_resample.c). A gate of less time has shorter turns and
 * more launches, so it detects as much or more.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/base/newfile.h"
#include "harness/base/parse.h"
#include "harness/stats/stats.h"
#include "harness/base/textfile.h"
#include "harness/decide/gate/gate_rule.h"
#include "harness/decide/gate/gate_session.h"

#define N_BUDGETS  3
#define N_ALIKE    4000 /* gates of equal builds */
#define N_SLOWER   600  /* of each slowdown that is tried */
#define SURELY     0.95
#define WORTH      0.05 /* a slowdown that a gate should detect, */
#define WORTH_X    2.5  /* ... or this multiple of the margin, if that is more */
#define SHARE      0.5  /* of the budget, for measuring */
#define MIN_RECORD 10   /* least number of launches to draw from */

struct calibrated {
    double budget_s;
    size_t n_launches; /* that it holds */
    struct gate_chances alike;
    double least[GATE_MAX_METRICS]; /* slowdowns found with SURELY; NAN: none */
    size_t slowest; /* of the speeds, the one that is found the latest */
    double worst;   /* its slowdown; infinite: none is found */
};

struct calibration {
    struct calibrated at[N_BUDGETS];
    double seconds, launch_s; /* all launches with the first timing; one */
    size_t n_launches, n_disturbed;
    struct gate_record record;
    struct gate_metric metric[GATE_MAX_METRICS]; /* names, units */
    struct gate_side side;
    char model[256], settings[256];
    char dir[512];
    char sentence[400];
    double wanted; /* the slowdown that should be seen */
    int advice;    /* the budget that does; -1: none is enough */
};

/* ---- measuring ------------------------------------------------------------------- */

static bool is_speed(const struct gate_metric *m)
{
    return !m->less_is_better;
}

/* Complete launches: a last one that was interrupted is cut off. */
static void keep(struct calibration *c, const struct gate_run *run)
{
    const struct gate_result *r = run->r;

    c->n_launches = r->n_launches;
    c->n_disturbed = r->n_disturbed;
    c->seconds = r->seconds;
    c->launch_s = run->launches_s / fmax(1, (double)r->n_launches);
    c->record.rule = r->rule;
    c->record.n_metrics = r->n_metrics;
    for (size_t i = 0; i < r->n_metrics; i++) {
        c->metric[i] = r->metric[i];
        c->record.margin[i] = r->metric[i].margin;
        c->record.series[i] = r->metric[i].series;
        c->record.series[i].n_launches = r->n_launches;
    }
}

/* Launches of a gate of s's budget, in half of its time. */
static enum status record(struct calibration *c, struct gate_session *x,
                          struct gate_result *r, struct err *err)
{
    const struct gate_settings *s = &x->s;
    struct gate_run *run = &x->run;
    struct err why = ERR_INIT;
    enum status st;

    r->rule = s->rule;
    st = gate_run_open(run, s, x->topo, x->program, r, err);
    if (st == ST_OK)
        st = dirs_make(c->dir, err);
    if (st == ST_OK)
        st = gate_rounds_open(&run->csv, c->dir, err);
    if (st)
        return st;
    while (st == ST_OK && r->n_launches < GATE_MAX_LAUNCHES &&
           gate_run_seconds(run) + run->next_launch_s < SHARE * s->budget_s)
        st = gate_run_launch(run, &why);
    gate_run_sum_up(run);
    c->side = r->side[0];
    if (*r->model) { /* a server's own */
        snprintf(c->model, sizeof c->model, "%s", r->model);
        snprintf(c->settings, sizeof c->settings, "%s", r->settings);
    }
    keep(c, run);
    if (st)
        return err_set(err, st, "%s", why.msg);
    if (r->n_launches < MIN_RECORD)
        return err_set(
            err, ST_USAGE,
            "--budget %s is too short to calibrate with: half of it held %zu launches "
            "of this model, and %d are needed; give it --budget %.0fs, or a smaller "
            "model",
            duration_text(s->budget_s).text, r->n_launches, MIN_RECORD,
            ceil(s->budget_s * (MIN_RECORD + 1) / (double)(r->n_launches + 1)));
    return ST_OK;
}

/* ---- what follows ---------------------------------------------------------------- */

static enum status work_out(struct calibration *c, struct calibrated *at, uint64_t seed,
                            struct err *err)
{
    const double start_s = c->seconds - c->launch_s * (double)c->n_launches;
    const double n = fmax(0, floor((at->budget_s - start_s) / c->launch_s));
    enum status st;

    at->n_launches = (size_t)fmin(n, GATE_MAX_LAUNCHES);
    if (!at->n_launches)
        return ST_OK;
    st = gate_resample(&at->alike, &c->record, N_ALIKE, at->n_launches, GATE_NO_METRIC,
                       0, seed, err);
    for (size_t i = 0; i < c->record.n_metrics && st == ST_OK; i++) {
        st = gate_resample_min_slowdown(&at->least[i], &c->record, N_SLOWER,
                                        at->n_launches, i, SURELY, seed, err);
        if (st || !is_speed(&c->metric[i]))
            continue;
        const double least = isfinite(at->least[i]) ? at->least[i] : INFINITY;
        at->slowest = least > at->worst ? i : at->slowest;
        at->worst = fmax(at->worst, least);
    }
    return st;
}

static double share_passed(const struct calibrated *at)
{
    return (double)at->alike.n_passed / (double)at->alike.n_gates;
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

/* What a line of the table has for each budget. */
enum line { LAUNCHES, FAILED, FAILED_BOUND, PASSED, MEAN_TIME, MIN_LOSS };

static void put_cell(char *buf, size_t cap, const struct calibration *c,
                     const struct calibrated *at, enum line line, size_t metric)
{
    const struct gate_chances *alike = &at->alike;

    switch (line) {
    case LAUNCHES:
        snprintf(buf, cap, "%zu", at->n_launches);
        break;
    case FAILED:
        snprintf(buf, cap, "%.2f %%",
                 100 * (double)alike->n_failed / (double)alike->n_gates);
        break;
    case FAILED_BOUND:
        snprintf(buf, cap, "%.2f %%",
                 100 * stats_binomial_upper(alike->n_failed, alike->n_gates));
        break;
    case PASSED:
        percent(buf, cap, share_passed(at));
        break;
    case MEAN_TIME:
        format_duration(buf, cap,
                        c->seconds +
                            c->launch_s * (alike->launches - (double)c->n_launches));
        break;
    case MIN_LOSS:
        percent(buf, cap, at->least[metric]);
        break;
    }
}

static void print_line(const char *label, const struct calibration *c, enum line line,
                       size_t metric)
{
    printf("%-46s", label);
    for (int i = 0; i < N_BUDGETS; i++) {
        char text[32] = "-";

        if (c->at[i].n_launches)
            put_cell(text, sizeof text, c, &c->at[i], line, metric);
        printf(" %12s", text);
    }
    putchar('\n');
}

/* What a gate of the whole budget does here. */
static void write_sentence(struct calibration *c)
{
    const struct calibrated *at = &c->at[N_BUDGETS - 1];
    char least[32], time[32];

    format_duration(time, sizeof time, at->budget_s);
    if (!isfinite(at->worst))
        snprintf(c->sentence, sizeof c->sentence,
                 "In %s this machine detects no slowdown of %.100s with certainty.",
                 time, c->metric[at->slowest].name);
    else
        snprintf(c->sentence, sizeof c->sentence,
                 "In %s this machine detects a slowdown of %s (%.100s) in 95 of 100 "
                 "gates; equal builds pass in %.0f of 100.",
                 time, percent(least, sizeof least, at->worst),
                 c->metric[at->slowest].name, floor(100 * share_passed(at)));
}

static void print_advice(const struct calibration *c, const struct gate_rule *rule)
{
    char least[32];

    printf("\n%s\n", c->sentence);
    if (c->advice >= 0 && c->advice < N_BUDGETS - 1)
        printf("--budget %.0fs is enough to detect %s.\n",
               ceil(c->at[c->advice].budget_s),
               percent(least, sizeof least, c->wanted));
    else if (c->advice < 0)
        printf(
            "A gate should detect %.3g %% and pass equal builds, each in 95 of 100 "
            "gates. With a margin\nof %.3g %% that takes a longer --budget, a larger "
            "--margin, fewer threads, a quieter machine,\nor metrics that vary less "
            "(see above).\n",
            100 * c->wanted, 100 * rule->margin);
}

static void print(const struct calibration *c, const struct gate_settings *s)
{
    printf("%s%s%s%s%s%s, against itself: %zu launches in %s\n",
           format_path(c->side.name).text, *c->side.version ? ", " : "",
           c->side.version, *c->side.commit ? " (" : "", c->side.commit,
           *c->side.commit ? ")" : "", c->n_launches, duration_text(c->seconds).text);
    printf("%s, %s\n\n%-46s", format_path(c->model).text, c->settings, "budget");
    for (int i = 0; i < N_BUDGETS; i++)
        printf(" %12s", duration_text(c->at[i].budget_s).text);
    putchar('\n');
    print_line("launches", c, LAUNCHES, 0);
    print_line("equal builds fail", c, FAILED, 0);
    print_line("  at most (95 % bound)", c, FAILED_BOUND, 0);
    print_line("equal builds pass", c, PASSED, 0);
    print_line("  after, on average", c, MEAN_TIME, 0);
    printf("\nsmallest loss that fails with a probability of 95 %%\n");
    for (size_t m = 0; m < c->record.n_metrics; m++) {
        char label[160];

        snprintf(label, sizeof label, "  %s (margin %.3g %%)", c->metric[m].name,
                 100 * c->metric[m].margin);
        print_line(label, c, MIN_LOSS, m);
    }
    print_advice(c, &s->rule);
    printf("results: %s\n", format_path(c->dir).text);
}

static json_t *one_json(const struct calibration *c, const struct calibrated *at)
{
    json_t *metrics = json_array();

    for (size_t i = 0; i < c->record.n_metrics; i++)
        json_array_append_new(
            metrics, json_pack("{s:s, s:f, s:o}", "name", c->metric[i].name, "margin",
                               c->metric[i].margin, "smallest_loss_seen",
                               json_number(at->n_launches ? at->least[i] : NAN)));
    return json_pack("{s:f, s:I, s:I, s:I, s:f, s:I, s:f, s:o}", "budget_s",
                     at->budget_s, "n_launches", (json_int_t)at->n_launches, "n_gates",
                     (json_int_t)at->alike.n_gates, "n_false_failures",
                     (json_int_t)at->alike.n_failed, "false_failures_at_most",
                     at->alike.n_gates
                         ? stats_binomial_upper(at->alike.n_failed, at->alike.n_gates)
                         : 1,
                     "n_passed", (json_int_t)at->alike.n_passed, "mean_launches",
                     at->alike.launches, "metrics", metrics);
}

static json_t *to_json(const struct calibration *c, const struct gate_settings *s)
{
    json_t *budgets = json_array();

    for (int i = 0; i < N_BUDGETS; i++)
        json_array_append_new(budgets, one_json(c, &c->at[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:o, s:f, s:I, s:I, s:o}", "program",
        c->side.name, "commit", c->side.commit, "model", c->model, "settings",
        c->settings, "sentence", c->sentence, "margin", s->rule.margin, "wanted",
        c->wanted, "recommended_budget_s",
        c->advice < 0 ? json_null() : json_real(ceil(c->at[c->advice].budget_s)),
        "seconds", c->seconds, "n_launches", (json_int_t)c->n_launches, "n_disturbed",
        (json_int_t)c->n_disturbed, "budgets", budgets);
}

/* ---- all ------------------------------------------------------------------------- */

static enum status measure(struct calibration *c, struct gate_session *x,
                           struct err *err)
{
    struct gate_result *r = calloc(1, sizeof *r);
    enum status st = r ? gate_session_begin(x, err)
                       : err_set(err, ST_NO_MEMORY, "no memory to calibrate");

    if (st == ST_OK)
        st = record(c, x, r, err);
    free(r);
    return st;
}

static enum status calibrate(struct calibration *c, struct gate_session *x,
                             struct err *err)
{
    const struct gate_options *o = x->o;
    const struct gate_settings *s = &x->s;
    char path[600];
    enum status st = gate_session_dir(c->dir, o, "calibrate-", err);

    c->wanted = fmax(WORTH, WORTH_X * s->rule.margin);
    snprintf(c->model, sizeof c->model, "%.255s", s->setup.model.text);
    gate_settings_text(s, c->settings, sizeof c->settings);
    if (st == ST_OK && o->detect)
        st = parse_percent(o->detect, "--detect", 0.001, 0.9, &c->wanted, err);
    if (st == ST_OK)
        st = measure(c, x, err);
    for (int i = 0; i < N_BUDGETS && st == ST_OK; i++) {
        c->at[i].budget_s = s->budget_s / (1 << (N_BUDGETS - 1 - i));
        st = work_out(c, &c->at[i], s->setup.seed, err);
    }
    if (st)
        return st;
    c->advice = -1;
    for (int i = N_BUDGETS - 1; i >= 0; i--)
        if (c->at[i].n_launches && c->at[i].worst <= c->wanted &&
            share_passed(&c->at[i]) >= SURELY)
            c->advice = i;
    write_sentence(c);
    print(c, s);
    snprintf(path, sizeof path, "%s/calibration.json", c->dir);
    newfile_clear(path);
    st = textfile_write_json(path, to_json(c, s), JSON_INDENT(2), err);
    if (st == ST_OK && o->outputs.json)
        st = textfile_write_json(o->outputs.json, to_json(c, s), JSON_INDENT(2), err);
    if (st == ST_OK && o->detect && !(c->at[N_BUDGETS - 1].worst <= c->wanted))
        st = err_set(err, ST_UNSUPPORTED,
                     "--detect %.32s: this machine cannot. %s Take a longer --budget, "
                     "fewer threads or a quieter machine",
                     o->detect, c->sentence);
    return st;
}

enum status gate_calibrate(const struct gate_options *o, struct err *err)
{
    struct gate_session *x;
    struct calibration *c;
    enum status st;

    if (o->b || o->inject || o->since)
        return err_set(err, ST_USAGE,
                       "--calibrate compares a program with itself: name it with --a, "
                       "without --b, --since and --inject-slowdown");
    st = gate_session_open(&x, o, err);
    c = calloc(1, sizeof *c);
    if (st == ST_OK)
        st = c ? calibrate(c, x, err)
               : err_set(err, ST_NO_MEMORY, "no memory to calibrate");
    gate_session_close(x);
    free(c);
    return st;
}
