/* SPDX-License-Identifier: MIT
 *
 * kernel_compare.c - the test of every row, and the verdict
 */
#include "harness/base/format.h"
#include "harness/measure/kernels/kernel_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/json_number.h"
#include "harness/stats/stats.h"
#include "harness/measure/kernels/kernel_case.h"

#define LEVEL 0.05
#define MIN_EQUAL                                                       \
    0.02 /* what counts as no difference where no least change is given \
          */

static const char *const verdict_names[] = {
    [KERNEL_SAME] = "unchanged",      [KERNEL_UNDECIDED] = "undecided",
    [KERNEL_SMALL] = "small",         [KERNEL_WITH_ROOF] = "with roof",
    [KERNEL_FASTER] = "faster",       [KERNEL_SLOWER] = "slower",
    [KERNEL_NO_FIGURE] = "no figure",
};

static bool is_roof(const char *name)
{
    return !strncmp(name, "roof/", 5);
}

static __attribute__((format(printf, 2, 3))) void warn(struct kernel_comparison *c,
                                                       const char *fmt, ...)
{
    va_list args;

    if (c->n_warnings == (int)(sizeof c->warning / sizeof c->warning[0]))
        return;
    va_start(args, fmt);
    vsnprintf(c->warning[c->n_warnings++], sizeof c->warning[0], fmt, args);
    va_end(args);
}

/* ---- the roof of a row, in both files -------------------------------------------- */

/* The row of r that is the case's roof; a roof of reading may have any level. */
static const struct kernel_result *roof_row(const struct kernel_results *r,
                                            const struct kernel_case *roof)
{
    struct kernel_case other;

    if (strcmp(roof->what, "read") != 0)
        return kernel_results_find(r, kernel_case_name(roof).text);
    for (size_t i = 0; i < r->n; i++)
        if (kernel_case_parse(&other, r->v[i].name) && kernel_case_is_roof(&other) &&
            !strcmp(other.what, "read") && other.n_threads == roof->n_threads)
            return &r->v[i];
    return NULL;
}

static enum status roof_change(double *ratio, const struct kernel_comparison *c,
                               const char *name, struct err *err)
{
    struct kernel_case this, roof;
    struct rank_ratio speed;

    *ratio = 1;
    if (!kernel_case_parse(&this, name) || !kernel_case_roof(&roof, &this))
        return ST_OK;
    const struct kernel_result *old = roof_row(c->old, &roof);
    const struct kernel_result *new = roof_row(c->new, &roof);
    if (!old || !new || !old->n || !new->n)
        return ST_OK;
    if (rank_ratio(&speed, new->ns, new->n, old->ns, old->n, err))
        return err->code;
    *ratio = speed.ratio;
    return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------ */

static double median(const struct kernel_result *r)
{
    double *scratch = malloc(r->n * sizeof *scratch + 1);
    const double m = scratch ? stats_median(r->ns, r->n, scratch) : NAN;

    free(scratch);
    return m;
}

static enum status compare_row(struct kernel_comparison *c, struct kernel_change *row,
                               struct err *err)
{
    const struct kernel_result *old = row->old, *new = row->new;

    row->is_roof = is_roof(old->name);
    row->speed = (struct rank_ratio){NAN, NAN, NAN};
    row->roof = row->p = 1;
    if (!old->n || !new->n) {
        row->verdict = KERNEL_NO_FIGURE;
        return ST_OK;
    }
    row->old_ns = median(old);
    row->new_ns = median(new);
    row->p = rank_test(old->ns, old->n, new->ns, new->n);
    /* speed is one over time, so the quotient is turned round */
    if (rank_ratio(&row->speed, new->ns, new->n, old->ns, old->n, err))
        return err->code;
    return row->is_roof ? ST_OK : roof_change(&row->roof, c, old->name, err);
}

/* Holm's correction over the rows that have figures; the machine's own roofs are not
 * among what is judged. */
static enum status correct(struct kernel_comparison *c, struct err *err)
{
    double *p = malloc(c->n * sizeof *p + 1);
    size_t n = 0;

    if (!p)
        return err_set(err, ST_NO_MEMORY, "no memory to compare %zu rows", c->n);
    for (size_t i = 0; i < c->n; i++)
        if (!c->v[i].is_roof && c->v[i].verdict != KERNEL_NO_FIGURE)
            p[n++] = c->v[i].p;
    const enum status st = rank_holm(p, n, err);
    n = 0;
    for (size_t i = 0; i < c->n && st == ST_OK; i++)
        if (!c->v[i].is_roof && c->v[i].verdict != KERNEL_NO_FIGURE)
            c->v[i].p = p[n++];
    free(p);
    return st;
}

static enum kernel_verdict judge(const struct kernel_change *row, double least)
{
    const double speed = row->speed.ratio, relative = speed / row->roof;
    const double equal = fmax(least, MIN_EQUAL);

    if (row->verdict == KERNEL_NO_FIGURE)
        return KERNEL_NO_FIGURE;
    if (row->p > LEVEL)
        return row->speed.lo > 1 - equal && row->speed.hi < 1 + equal
                   ? KERNEL_SAME
                   : KERNEL_UNDECIDED;
    if (speed > 1 - least && speed < 1 + least)
        return KERNEL_SMALL;
    if (speed < 1)
        return relative <= 1 - least && row->speed.hi / row->roof < 1
                   ? KERNEL_SLOWER
                   : KERNEL_WITH_ROOF;
    return relative >= 1 + least && row->speed.lo / row->roof > 1 ? KERNEL_FASTER
                                                                  : KERNEL_WITH_ROOF;
}

/* ---- doubts ---------------------------------------------------------------------- */

static void warn_if_different(struct kernel_comparison *c, const char *what,
                              const char *old, const char *new)
{
    if (old[0] && new[0] && strcmp(old, new) != 0)
        warn(c, "the %s differs: %s before, %s now", what, old, new);
}

static void add_warnings(struct kernel_comparison *c)
{
    size_t n_judged = 0, n_blind = 0, min_n = 0;

    warn_if_different(c, "CPU", c->old->cpu_model, c->new->cpu_model);
    if (c->old->n_cpus && c->new->n_cpus && c->old->n_cpus != c->new->n_cpus)
        warn(c, "the number of CPUs differs: %d before, %d now", c->old->n_cpus,
             c->new->n_cpus);
    warn_if_different(c, "compiler or build", c->old->compiler, c->new->compiler);
    for (size_t i = 0; i < c->n; i++)
        n_judged += !c->v[i].is_roof && c->v[i].verdict != KERNEL_NO_FIGURE;
    for (size_t i = 0; i < c->n; i++) {
        const struct kernel_change *row = &c->v[i];

        if (row->is_roof || row->verdict == KERNEL_NO_FIGURE)
            continue;
        n_blind += rank_test_min_p(row->old->n, row->new->n) * (double)n_judged > LEVEL;
    }
    if (!n_blind)
        return;
    while (rank_test_min_p(min_n, min_n) * (double)n_judged > LEVEL)
        min_n++;
    warn(c,
         "too few repetitions: in %zu of %zu rows no difference, however large, could "
         "be distinguished from chance; %zu in each run are enough (--repetitions %zu, "
         "or fewer rows)",
         n_blind, n_judged, min_n, min_n);
}

static size_t count_missing(const struct kernel_results *of,
                            const struct kernel_results *in)
{
    size_t n = 0;

    for (size_t i = 0; i < of->n; i++)
        n += !is_roof(of->v[i].name) && !kernel_results_find(in, of->v[i].name);
    return n;
}

enum status kernel_compare(struct kernel_comparison *c,
                           const struct kernel_results *old,
                           const struct kernel_results *new, double min_change,
                           struct err *err)
{
    struct kernel_comparison made = {.old = old, .new = new, .min_change = min_change};
    enum status st = ST_OK;

    made.v = calloc(old->n + 1, sizeof *made.v);
    if (!made.v)
        return err_set(err, ST_NO_MEMORY, "no memory to compare %zu rows", old->n);
    for (size_t i = 0; i < old->n && st == ST_OK; i++) {
        const struct kernel_result *other = kernel_results_find(new, old->v[i].name);

        if (!other)
            continue;
        made.v[made.n].old = &old->v[i];
        made.v[made.n].new = other;
        st = compare_row(&made, &made.v[made.n++], err);
    }
    made.n_only_old = count_missing(old, new);
    made.n_only_new = count_missing(new, old);
    if (st == ST_OK && made.n == 0)
        st = err_set(err, ST_INPUT, "%.200s and %.200s have no row in common",
                     old->path, new->path);
    if (st == ST_OK)
        st = correct(&made, err);
    if (st) {
        free(made.v);
        return st;
    }
    for (size_t i = 0; i < made.n; i++) {
        made.v[i].verdict = judge(&made.v[i], min_change);
        made.n_verdict[made.v[i].verdict] += !made.v[i].is_roof;
        made.n_broken += made.v[i].old->n &&
                         !made.v[i].new->n &&made.v[i].new->error[0] &&
                         !made.v[i].is_roof;
    }
    add_warnings(&made);
    *c = made;
    return ST_OK;
}

void kernel_compare_free(struct kernel_comparison *c)
{
    free(c->v);
    *c = (struct kernel_comparison){.n = 0};
}

/* ---- output ---------------------------------------------------------------------- */

static void print_file(FILE *f, const char *which, const struct kernel_results *r)
{
    fprintf(f, "%s  %s", which, format_path(r->path).text);
    if (r->version[0])
        fprintf(f, ", slmbench %s", r->version);
    if (r->date[0])
        fprintf(f, ", %.16s", r->date);
    fputc('\n', f);
}

static void print_change(FILE *f, const struct kernel_change *row, int width)
{
    char interval[40] = "none", p[16];

    if (isfinite(row->speed.hi))
        snprintf(interval, sizeof interval, "%+.1f .. %+.1f", 100 * row->speed.lo - 100,
                 100 * row->speed.hi - 100);
    snprintf(p, sizeof p, row->p < 0.001 ? "<0.001" : "%.3f", row->p);
    fprintf(f, "  %-*s  %+6.1f %%  %15s  %6s\n", width, row->old->name,
            100 * row->speed.ratio - 100, interval, p);
}

static int name_width(const struct kernel_comparison *c, bool roofs)
{
    size_t width = 3;

    for (size_t i = 0; i < c->n; i++) {
        const struct kernel_change *row = &c->v[i];
        const bool shown = roofs ? row->is_roof && row->verdict != KERNEL_NO_FIGURE
                                 : !row->is_roof && (row->verdict == KERNEL_SLOWER ||
                                                     row->verdict == KERNEL_FASTER);
        if (shown && strlen(row->old->name) > width)
            width = strlen(row->old->name);
    }
    return (int)width;
}

static void print_roofs(FILE *f, const struct kernel_comparison *c)
{
    const int width = name_width(c, true);
    bool any = false;

    for (size_t i = 0; i < c->n; i++) {
        const struct kernel_change *row = &c->v[i];

        if (!row->is_roof || row->verdict == KERNEL_NO_FIGURE)
            continue;
        if (!any)
            fprintf(f, "\nThe machine itself\n  %-*s  %8s  %15s  %6s\n", width, "roof",
                    "speed", "95 % interval", "p");
        any = true;
        print_change(f, row, width);
    }
}

static void print_verdicts(FILE *f, const struct kernel_comparison *c,
                           enum kernel_verdict verdict)
{
    const int width = name_width(c, false);

    if (!c->n_verdict[verdict])
        return;
    fprintf(f, "\n%s\n  %-*s  %8s  %15s  %6s\n",
            verdict == KERNEL_SLOWER ? "Slower" : "Faster", width, "row", "speed",
            "95 % interval", "p");
    for (size_t i = 0; i < c->n; i++)
        if (!c->v[i].is_roof && c->v[i].verdict == verdict)
            print_change(f, &c->v[i], width);
}

static void print_no_figure(FILE *f, const struct kernel_comparison *c)
{
    if (!c->n_verdict[KERNEL_NO_FIGURE])
        return;
    fprintf(f, "\nWithout a figure\n");
    for (size_t i = 0; i < c->n; i++) {
        const struct kernel_change *row = &c->v[i];
        const struct kernel_result *bad = row->new->n ? row->old : row->new;

        if (row->verdict == KERNEL_NO_FIGURE && !row->is_roof)
            fprintf(f, "  %s: %s: %s\n", bad->name, row->new->n ? "before" : "now",
                    bad->error[0] ? bad->error : "not finished");
    }
}

bool kernel_compare_is_empty(const struct kernel_comparison *c)
{
    size_t n_decided = 0;

    for (int i = 0; i <= KERNEL_NO_FIGURE; i++)
        n_decided += i == KERNEL_UNDECIDED ? 0 : c->n_verdict[i];
    return c->n_verdict[KERNEL_UNDECIDED] && !n_decided;
}

void kernel_compare_print(FILE *f, const struct kernel_comparison *c)
{
    const size_t *n = c->n_verdict;
    const size_t n_unchanged = n[KERNEL_SAME] + n[KERNEL_SMALL] + n[KERNEL_WITH_ROOF];
    const size_t n_rows =
        n_unchanged + n[KERNEL_SLOWER] + n[KERNEL_FASTER] + n[KERNEL_UNDECIDED];

    print_file(f, "before", c->old);
    print_file(f, "now   ", c->new);
    for (int i = 0; i < c->n_warnings; i++)
        fprintf(f, "warning: %s\n", c->warning[i]);
    print_roofs(f, c);
    print_verdicts(f, c, KERNEL_SLOWER);
    print_verdicts(f, c, KERNEL_FASTER);
    print_no_figure(f, c);

    fprintf(f, "\n%zu row%s: %zu slower, %zu faster, %zu unchanged, %zu undecided\n",
            n_rows, n_rows == 1 ? "" : "s", n[KERNEL_SLOWER], n[KERNEL_FASTER],
            n_unchanged, n[KERNEL_UNDECIDED]);
    if (n[KERNEL_UNDECIDED])
        fprintf(f, "  undecided: neither a change nor its absence is shown; more "
                   "--repetitions or a quieter machine decide\n");
    if (n[KERNEL_SMALL])
        fprintf(f, "  %zu of the unchanged differ by less than %.3g %%\n",
                n[KERNEL_SMALL], 100 * c->min_change);
    if (n[KERNEL_WITH_ROOF])
        fprintf(f, "  %zu of the unchanged moved, but no more than their roof did\n",
                n[KERNEL_WITH_ROOF]);
    if (c->n_only_old)
        fprintf(f, "  %zu only before\n", c->n_only_old);
    if (c->n_only_new)
        fprintf(f, "  %zu only now\n", c->n_only_new);
}

json_t *kernel_compare_json(const struct kernel_comparison *c)
{
    json_t *rows = json_array(), *warnings = json_array();

    for (size_t i = 0; i < c->n; i++) {
        const struct kernel_change *row = &c->v[i];

        json_array_append_new(
            rows,
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:I, s:I}", "name",
                      row->old->name, "verdict",
                      row->is_roof ? "roof" : verdict_names[row->verdict], "old_ns",
                      json_number(row->old_ns), "new_ns", json_number(row->new_ns),
                      "speed", json_number(row->speed.ratio), "speed_lo",
                      json_number(row->speed.lo), "speed_hi",
                      json_number(row->speed.hi), "roof_speed", json_number(row->roof),
                      "p", row->p, "n_old", (json_int_t)row->old->n, "n_new",
                      (json_int_t)row->new->n));
    }
    for (int i = 0; i < c->n_warnings; i++)
        json_array_append_new(warnings, json_string(c->warning[i]));
    return json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "old",
                     c->old->path, "new", c->new->path, "least_change", c->min_change,
                     "n_slower", (json_int_t)c->n_verdict[KERNEL_SLOWER], "n_faster",
                     (json_int_t)c->n_verdict[KERNEL_FASTER], "n_undecided",
                     (json_int_t)c->n_verdict[KERNEL_UNDECIDED], "n_broken",
                     (json_int_t)c->n_broken, "n_only_old", (json_int_t)c->n_only_old,
                     "n_only_new", (json_int_t)c->n_only_new, "warnings", warnings,
                     "rows", rows);
}
