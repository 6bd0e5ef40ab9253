/* SPDX-License-Identifier: MIT
 *
 * baseline.c - which past runs a new row is compared with, and what comes of it
 */
#include "harness/decide/history/baseline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/decide/history/baseline_rule.h"
#include "harness/decide/history/history_report.h"

/* What a new series is judged by. */
struct past {
    size_t n;                    /* values that count */
    double v[BASELINE_MAX_RUNS]; /* logarithms of speeds */
    double unit[BASELINE_MAX_RUNS];
    size_t run[BASELINE_MAX_RUNS]; /* indices into the history's */
    char first_utc[24], last_utc[24];
    bool changed;   /* the series has a change before them */
    size_t n_own;   /* stored values that are the new ones, and do not count */
    size_t n_later; /* nor do those that were measured after the new ones */
};

struct judging {
    struct gate_result *r;
    const struct result_set *old, *fresh;
    const struct baseline_margins *margins;
    struct series_set old_set, fresh_set;
    struct baseline_effect effect[GATE_MAX_METRICS];
    size_t n_fresh[GATE_MAX_METRICS], n_old[GATE_MAX_METRICS];
    char since[64]; /* commit and day that the least of them begin with */
    size_t n_refused;
    char refused[520];                  /* the first of them, and why */
    bool one_session[GATE_MAX_METRICS]; /* of the stored runs */
    size_t n_copies;                    /* the most of a series */
};

static double log_speed(const struct series *s, double v)
{
    return s->metric->less_is_better ? -log(v) : log(v);
}

/* ---- the past that counts -------------------------------------------------------- */

static bool is_fresh_run(const struct judging *j, const struct result_run *run)
{
    for (size_t i = 0; i < j->fresh->n_runs; i++)
        if (!strcmp(j->fresh->runs[i].id, run->id))
            return true;
    return false;
}

/* Values of s that are no newer than the first new one, and none of the new ones. Room
 * for all of them is in v. */
static size_t older_values(struct series_value *v, struct past *p,
                           const struct judging *j, const struct series *s,
                           const char *first_utc)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct series_value *value = &s->v[i];
        const bool own = is_fresh_run(j, &j->old->runs[value->run]);
        const bool later = !own && *first_utc && strcmp(value->utc, first_utc) > 0;

        p->n_own += own;
        p->n_later += later;
        if (!own && !later)
            v[n++] = *value;
    }
    return n;
}

static void take_segment(struct past *p, const struct series *s,
                         const struct series_value *v, size_t from, size_t n)
{
    p->changed = from > 0;
    from = n - from > BASELINE_MAX_RUNS ? n - BASELINE_MAX_RUNS : from;
    for (size_t i = from; i < n; i++) {
        p->unit[p->n] = v[i].v;
        p->run[p->n] = v[i].run;
        p->v[p->n++] = log_speed(s, v[i].v);
    }
    if (p->n) {
        memcpy(p->first_utc, v[from].utc, sizeof p->first_utc);
        memcpy(p->last_utc, v[n - 1].utc, sizeof p->last_utc);
    }
}

/* The part of s that counts for new values that begin at first_utc. */
static enum status find_past(struct past *p, const struct judging *j,
                             const struct series *s, const char *first_utc,
                             struct err *err)
{
    struct series_value *v = calloc(s->n + 1, sizeof *v);
    struct history_line line = {.s = s};
    enum status st = ST_OK;

    memset(p, 0, sizeof *p);
    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu runs", s->n);
    const size_t n = older_values(v, p, j, s, first_utc);
    const size_t skip = n > CHANGE_MAX_POINTS / 4 ? n - CHANGE_MAX_POINTS / 4 : 0;
    line.v = v + skip;
    line.n = n - skip;
    st = history_line_find(&line, err);
    if (st == ST_OK)
        take_segment(p, s, v,
                     line.n_changes ? skip + line.change[line.n_changes - 1].at.at : 0,
                     n);
    free(v);
    return st;
}

/* ---- why not --------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void
refuse(struct judging *j, const struct series *fresh, const char *format, ...)
{
    va_list args;

    if (j->n_refused++)
        return;
    snprintf(j->refused, sizeof j->refused, "%.100s: ", fresh->name);
    const size_t used = strlen(j->refused);
    va_start(args, format);
    vsnprintf(j->refused + used, sizeof j->refused - used, format, args);
    va_end(args);
}

static bool same_machine(const struct series *a, const struct series *b)
{
    return a->has_machine && b->has_machine &&
           machine_key_same(&a->machine, &b->machine, NULL, 0);
}

/* The stored series of the same machine and setting; without one the reason is
 * kept, from the closest one. */
static const struct series *find_series(struct judging *j, const struct series *fresh)
{
    const struct series *elsewhere = NULL, *nearest = NULL;
    size_t least = SIZE_MAX;
    char why[256];

    for (size_t i = 0; i < j->old_set.n; i++) {
        const struct series *s = &j->old_set.v[i];
        size_t n_differ;

        if (s->metric != fresh->metric)
            continue;
        const bool here = same_machine(s, fresh);
        const bool same =
            series_same_setting(&s->like, &fresh->like, &n_differ, NULL, 0);
        if (here && same)
            return s;
        if (here && n_differ < least) {
            least = n_differ;
            nearest = s;
        }
        if (!here && (same || !elsewhere))
            elsewhere = s;
    }
    if (nearest) {
        series_same_setting(&nearest->like, &fresh->like, NULL, why, sizeof why);
        refuse(j, fresh,
               "no stored run has this model and these settings; of the "
               "closest run, %s",
               why);
    } else if (!fresh->has_machine) {
        refuse(j, fresh,
               "the machine of the new rows is not known; add --here if it is this "
               "one");
    } else if (elsewhere && !elsewhere->has_machine) {
        refuse(j, fresh,
               "the machine of the stored rows is not known; add --here if it is "
               "this one");
    } else if (elsewhere) {
        machine_key_same(&elsewhere->machine, &fresh->machine, why, sizeof why);
        refuse(j, fresh, "no stored run is from this machine: %s", why);
    } else if (!j->old->n_runs) {
        refuse(
            j, fresh,
            "no run is stored yet, so nothing can fail; with %d stored runs, each of "
            "another commit or three hours apart, the next one is judged",
            BASELINE_MIN_RUNS);
    } else {
        refuse(j, fresh, "no stored row has a value of %s", fresh->metric->column);
    }
    return NULL;
}

static void refuse_thin(struct judging *j, const struct series *fresh,
                        const struct series *old, const struct past *p)
{
    const size_t missing = BASELINE_MIN_RUNS - p->n;
    struct shown_figure commit = {""};
    char later[160] = "";

    if (p->changed && p->n)
        commit = result_run_commit(&j->old->runs[p->run[0]]);
    if (p->n_later)
        snprintf(later, sizeof later,
                 " (%zu stored run%s later than the new rows, which are of %.10s, and "
                 "do not count; was a clock wrong?)",
                 p->n_later, p->n_later == 1 ? " is" : "s are", fresh->v[0].utc);
    refuse(j, fresh,
           "%zu stored run%s%s%s do%s not say how far runs scatter; add %zu more%s; "
           "nothing can fail before there are %d%s%s",
           p->n, p->n == 1 ? "" : "s", *commit.text ? " since it changed at " : "",
           commit.text, p->n == 1 ? "es" : "", missing,
           old->n_joined      ? " (runs of a commit within three hours count as one)"
           : old->n_disturbed ? " (disturbed runs do not count without --disturbed)"
                              : "",
           BASELINE_MIN_RUNS,
           p->n_own ? " (the new rows are stored already, and are no history of their "
                      "own)"
                    : "",
           later);
}

/* ---- a metric -------------------------------------------------------------------- */

static double median_of(const double *v, size_t n)
{
    double scratch[GATE_MAX_LAUNCHES];

    return stats_median(v, n, scratch);
}

/* One value for each session of v[n], whose times are those of s from `from` on; all
 * values are one session if there are fewer sessions than it takes to see that one of
 * them was disturbed. */
static size_t session_values(double *out, const struct series *s, size_t from,
                             const double *v, size_t n)
{
    size_t n_sessions = 0;

    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n; end++)
            if (!series_one_session(s->v[from + i].utc, s->v[from + end].utc))
                break;
        if (n_sessions < BASELINE_MAX_RUNS)
            out[n_sessions++] = median_of(v + i, end - i);
    }
    if (n_sessions >= BASELINE_FRESH)
        return n_sessions;
    out[0] = median_of(v, n);
    return 1;
}

static void fill_metric(struct gate_metric *m, const struct series *fresh,
                        const struct past *p, const struct gate_rule *rule,
                        struct baseline_effect *e, size_t *n_fresh)
{
    double v[GATE_MAX_LAUNCHES], unit[GATE_MAX_LAUNCHES], session[BASELINE_MAX_RUNS];
    const size_t n = fresh->n < GATE_MAX_LAUNCHES ? fresh->n : GATE_MAX_LAUNCHES;

    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < n; i++) {
        unit[i] = fresh->v[fresh->n - n + i].v;
        v[i] = log_speed(fresh, unit[i]);
    }
    const size_t n_sessions = session_values(session, fresh, fresh->n - n, v, n);
    baseline_judge(e, p->v, p->n, session, n_sessions, rule);
    snprintf(m->name, sizeof m->name, "%.127s", fresh->name);
    snprintf(m->unit, sizeof m->unit, "%.15s", fresh->metric->unit);
    m->less_is_better = fresh->metric->less_is_better;
    m->margin = rule->margin;
    m->a = median_of(p->unit, p->n);
    m->b = median_of(unit, n);
    m->effect = e->effect;
    m->n_launches = m->n_rounds = m->series.n_launches = *n_fresh = n;
    for (size_t i = 0; i < n; i++) {
        m->series.n_rounds[i] = 1;
        m->series.v[i][0] = v[i] - median_of(p->v, p->n);
    }
}

static void describe_side(struct gate_side *side, const struct result_run *run)
{
    snprintf(side->commit, sizeof side->commit, "%s",
             *run->commit ? result_run_commit(run).text : "");
    snprintf(side->version, sizeof side->version, "%s", run->version);
    snprintf(side->compiler, sizeof side->compiler, "%s", run->compiler);
}

static double margin_of(const struct judging *j, const char *column)
{
    return !strncmp(column, "mem_", 4)                              ? j->margins->memory
           : !strcmp(column, "load_s") || !strcmp(column, "ttft_s") ? j->margins->load
                                                                    : j->r->rule.margin;
}

static enum status judge_series(struct judging *j, const struct series *fresh,
                                struct err *err)
{
    struct gate_result *r = j->r;
    const size_t at = r->n_metrics;
    const struct series *old = find_series(j, fresh);
    struct gate_rule rule = r->rule;
    struct past p;

    if (!old)
        return ST_OK;
    if (find_past(&p, j, old, fresh->v[0].utc, err))
        return err->code;
    if (p.n < BASELINE_MIN_RUNS) {
        refuse_thin(j, fresh, old, &p);
        return ST_OK;
    }
    if (at == GATE_MAX_METRICS)
        return err_set(
            err, ST_USAGE,
            "there are more than %d series to judge; choose some with --only",
            GATE_MAX_METRICS);
    rule.margin = margin_of(j, fresh->metric->column);
    fill_metric(&r->metric[at], fresh, &p, &rule, &j->effect[at], &j->n_fresh[at]);
    if (gate_check_effect(&r->metric[at], err))
        return err->code;
    j->n_old[at] = p.n;
    j->n_copies = fresh->n_copies > j->n_copies ? fresh->n_copies : j->n_copies;
    r->n_metrics++;
    r->n_launches = fmax((double)r->n_launches, (double)j->n_fresh[at]);
    r->n_rounds += j->n_fresh[at];
    if (!*j->since)
        snprintf(j->since, sizeof j->since, "%s, %.10s",
                 result_run_commit(&j->old->runs[p.run[0]]).text, p.first_utc);
    describe_side(&r->side[0], &j->old->runs[p.run[p.n - 1]]);
    j->one_session[at] = series_one_session(p.first_utc, p.last_utc);
    return ST_OK;
}

/* ---- words ----------------------------------------------------------------------- */

static void describe(struct judging *j, const struct series *any)
{
    struct gate_result *r = j->r;
    size_t least = SIZE_MAX, most = 0;

    for (size_t i = 0; i < r->n_metrics; i++) {
        least = j->n_old[i] < least ? j->n_old[i] : least;
        most = j->n_old[i] > most ? j->n_old[i] : most;
    }
    machine_key_name(&any->machine, r->cpu, sizeof r->cpu);
    snprintf(r->model, sizeof r->model, "%.*s", (int)any->model_len - 2, any->name);
    for (size_t i = 0; i < r->n_metrics; i++)
        if (strncmp(r->metric[i].name, any->name, any->model_len) != 0)
            snprintf(r->model, sizeof r->model, "several models");
    if (least < most)
        snprintf(r->settings, sizeof r->settings, "%zu to %zu stored runs", least,
                 most);
    else
        snprintf(r->settings, sizeof r->settings, "%zu stored run%s since %s", most,
                 plural(most, "s"), j->since);
    if (strcmp(r->model, "several models") != 0)
        for (size_t i = 0; i < r->n_metrics; i++)
            memmove(r->metric[i].name, r->metric[i].name + any->model_len,
                    strlen(r->metric[i].name + any->model_len) + 1);
}

static void add_note(struct gate_result *r, const char *text)
{
    text_append(r->notes, sizeof r->notes, "%s%s", *r->notes ? " " : "", text);
}

static void write_notes(struct judging *j)
{
    struct gate_result *r = j->r;
    bool one_session = false;

    if (j->n_refused)
        snprintf(r->notes, sizeof r->notes, "%zu series not judged. %s.", j->n_refused,
                 j->refused);
    for (size_t i = 0; i < r->n_metrics; i++)
        one_session |= j->one_session[i];
    if (one_session)
        add_note(r, "The stored runs are from within three hours, or have no time that "
                    "can be read, and do not show how days differ; therefore nothing "
                    "fails.");
    if (j->n_copies) {
        char text[120];

        snprintf(text, sizeof text, "%zu new row%s another row and %s not count.",
                 j->n_copies, j->n_copies == 1 ? " repeats" : "s repeat",
                 j->n_copies == 1 ? "does" : "do");
        add_note(r, text);
    }
}

/* What to do where the verdict is open. */
static void write_advice(struct judging *j)
{
    struct gate_result *r = j->r;
    double worst = 0, spread = 0;
    bool once = false, one_session = false;

    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct baseline_effect *e = &j->effect[i];

        if (r->metric[i].verdict == GATE_UNCLEAR &&
            e->effect.p_fail <= r->rule.alpha_fail) {
            once |= j->n_fresh[i] < BASELINE_FRESH;
            one_session |= j->one_session[i];
        }
        if (e->min_margin > worst) {
            worst = e->min_margin;
            spread = e->spread;
        }
    }
    if (once)
        snprintf(
            r->advice, sizeof r->advice,
            "So few new runs may all have been disturbed: measure %d times or more, "
            "with -m, or with --rows for each run.",
            BASELINE_FRESH);
    else if (one_session)
        snprintf(r->advice, sizeof r->advice,
                 "Add runs of other hours and days, or interleave two builds "
                 "(`bench gate`).");
    else
        snprintf(
            r->advice, sizeof r->advice,
            "Runs of this history scatter by %.2g %%: an unchanged program passes at a "
            "--margin of %.2g %% or more. `bench gate`, which interleaves two builds, "
            "detects smaller changes.",
            100 * spread, 100 * worst);
}

/* ---- all of it ------------------------------------------------------------------- */

static enum status judge_all(struct judging *j, struct err *err)
{
    struct gate_result *r = j->r;
    enum gate_verdict verdicts[GATE_MAX_METRICS];
    size_t n_for_failing[GATE_MAX_METRICS];
    const struct series *any = NULL;
    enum status st = ST_OK;

    for (size_t i = 0; i < j->fresh_set.n && st == ST_OK; i++) {
        const size_t before = r->n_metrics;

        if (!j->fresh_set.v[i].n)
            continue; /* disturbed */
        st = judge_series(j, &j->fresh_set.v[i], err);
        any = !any && r->n_metrics > before ? &j->fresh_set.v[i] : any;
    }
    if (st)
        return st;
    if (!r->n_metrics && !j->n_refused)
        return err_set(err, ST_INPUT,
                       "no new row is complete and undisturbed; measure again, or take "
                       "disturbed ones, too, with --disturbed");
    if (!r->n_metrics)
        return err_set(err, ST_UNSUPPORTED, "cannot judge %s%s", j->refused,
                       j->n_refused > 1 ? " (nor any other series)" : "");
    for (size_t i = 0; i < r->n_metrics; i++)
        n_for_failing[i] = j->one_session[i] ? 0 : j->n_fresh[i];
    st = baseline_decide(&r->verdict, verdicts, &r->rule, j->effect, n_for_failing,
                         r->n_metrics, err);
    for (size_t i = 0; i < r->n_metrics; i++)
        r->metric[i].verdict = verdicts[i];
    describe(j, any);
    describe_side(&r->side[1], &j->fresh->runs[any->v[any->n - 1].run]);
    write_notes(j);
    write_advice(j);
    r->mode = GATE_MODE_BASELINE;
    r->end = r->verdict == GATE_UNCLEAR ? GATE_END_INTERIM : GATE_END_CLEAR;
    r->n_interim = 1;
    return st;
}

enum status baseline_compare(struct gate_result *r, const struct result_set *old,
                             const struct result_set *fresh,
                             const struct series_choice *choice,
                             const struct baseline_margins *margins, struct err *err)
{
    const struct series_choice each = {.metrics = choice->metrics,
                                       .only = choice->only,
                                       .disturbed = choice->disturbed,
                                       .each_row = true};
    struct judging *j = calloc(1, sizeof *j);
    enum status st = ST_OK;

    if (!j)
        return err_set(err, ST_NO_MEMORY, "no memory for a gate");
    j->r = r;
    j->old = old;
    j->fresh = fresh;
    j->margins = margins;
    if (series_make(&j->old_set, old, choice, err) ||
        series_make(&j->fresh_set, fresh, &each, err) || judge_all(j, err))
        st = err->code;
    series_free(&j->old_set);
    series_free(&j->fresh_set);
    free(j);
    return st;
}
