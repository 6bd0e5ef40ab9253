/* SPDX-License-Identifier: MIT
 *
 * history_report.c - changes of series, tables of them, a page
 */
#include "harness/decide/history/history_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/json_number.h"
#include "harness/base/progress.h"
#include "harness/rows/report_rows.h"
#include "harness/base/textfile.h"
#include "harness/show/page/html.h"

#define MAX_GATHERED 1000 /* changes that are searched for equal commits */

#define SEED 1 /* of the shuffles: the same history has the same changes */

/* ---- finding --------------------------------------------------------------------- */

/* v[n] in the unit; edges are the ends of the segments around change i. */
static enum status measure(struct history_line *line, const double *v, size_t i,
                           size_t from, size_t to, struct err *err)
{
    struct history_change *c = &line->change[i];
    const size_t at = c->at.at;
    const enum status st =
        rank_ratio(&c->size, v + from, at - from, v + at, to - at, err);

    c->worse = (c->size.ratio < 1) != line->s->metric->less_is_better;
    return st;
}

enum status history_line_find(struct history_line *line, struct err *err)
{
    struct change found[HISTORY_MAX_CHANGES];
    double *v = malloc(2 * line->n * sizeof *v + 1);
    enum status st;

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for a history of %zu values",
                       line->n);
    double *logs = v + line->n;

    for (size_t i = 0; i < line->n; i++) {
        v[i] = line->v[i].v;
        logs[i] = log(v[i]);
    }
    st = change_points(found, HISTORY_MAX_CHANGES, &line->n_changes, logs, line->n,
                       HISTORY_LEVEL, SEED, err);
    for (size_t i = 0; i < line->n_changes && st == ST_OK; i++) {
        line->change[i].at = found[i];
        line->change[i].at.before = exp(found[i].before);
        line->change[i].at.after = exp(found[i].after);
        st = measure(line, v, i, i ? found[i - 1].at : 0,
                     i + 1 < line->n_changes ? found[i + 1].at : line->n, err);
    }
    free(v);
    return st;
}

enum status history_report_make(struct history_report *r, const struct result_set *h,
                                const struct series_set *set, size_t last,
                                struct err *err)
{
    struct history_report new = {.h = h, .n = set->n};
    struct progress progress;
    enum status st = ST_OK;

    last = last < CHANGE_MAX_POINTS ? last : CHANGE_MAX_POINTS;
    new.v = calloc(set->n + 1, sizeof *new.v);
    if (!new.v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu series", set->n);
    progress_begin(&progress, "change points");
    for (size_t i = 0; i < set->n && st == ST_OK; i++) {
        const struct series *s = &set->v[i];
        struct history_line *line = &new.v[i];

        line->s = s;
        line->n = s->n < last ? s->n : last;
        line->v = s->v + (s->n - line->n);
        st = interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                           : history_line_find(line, err);
        new.n_changes += line->n_changes;
        new.n_thin += line->n < 2 * CHANGE_MIN_SEGMENT;
        progress_update(&progress, (double)i / (double)set->n, s->name);
    }
    progress_end(&progress);
    if (st)
        free(new.v);
    else
        *r = new;
    return st;
}

void history_report_free(struct history_report *r)
{
    free(r->v);
    memset(r, 0, sizeof *r);
}

/* ---- words ----------------------------------------------------------------------- */

/* "-5.1 % (-5.6 to -4.5)"; a series too short for an interval has none. */
static struct size_text {
    char text[64];
} size_text(const struct history_change *c)
{
    const double percent = 100 * (c->size.ratio - 1);
    struct size_text shown;

    if (c->size.lo > 0 && isfinite(c->size.hi))
        snprintf(shown.text, sizeof shown.text, "%+.1f %% (%+.1f to %+.1f)", percent,
                 100 * (c->size.lo - 1), 100 * (c->size.hi - 1));
    else
        snprintf(shown.text, sizeof shown.text, "%+.1f %%", percent);
    return shown;
}

static const struct result_run *run_at(const struct history_report *r,
                                       const struct history_line *line, size_t i)
{
    return &r->h->runs[line->v[i].run];
}

/* The commit of value i, cut for people. */
static struct shown_figure commit_text(const struct history_report *r,
                                       const struct history_line *line, size_t i)
{
    return result_run_commit(run_at(r, line, i));
}

static void print_counts(FILE *f, const struct history_report *r)
{
    size_t n_changed = 0;

    for (size_t i = 0; i < r->n; i++)
        n_changed += r->v[i].n_changes > 0;
    fprintf(f, "%zu series, %zu with a change", r->n, n_changed);
    if (r->n_thin)
        fprintf(f, "; %zu with fewer than the %d values that a change needs", r->n_thin,
                2 * CHANGE_MIN_SEGMENT);
    fputs(".\n", f);
}

/* All changes that came with one commit. */
struct commit_changes {
    const char *commit;
    size_t n, n_worse;
    double least, most; /* ratios */
};

static struct commit_changes gather(const struct history_report *r, const char *commit)
{
    struct commit_changes all = {commit, 0, 0, INFINITY, 0};

    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->v[i].n_changes; k++) {
            const struct history_change *c = &r->v[i].change[k];

            if (strcmp(run_at(r, &r->v[i], c->at.at)->commit, commit) != 0)
                continue;
            all.n++;
            all.n_worse += c->worse;
            all.least = fmin(all.least, c->size.ratio);
            all.most = fmax(all.most, c->size.ratio);
        }
    return all;
}

/* Is change k of line i the first, in the order of lines, that came with its commit? */
static bool is_first(const struct history_report *r, size_t i, size_t k)
{
    const char *commit = run_at(r, &r->v[i], r->v[i].change[k].at.at)->commit;

    for (size_t l = 0; l <= i; l++)
        for (size_t m = 0; m < (l == i ? k : r->v[l].n_changes); m++)
            if (!strcmp(run_at(r, &r->v[l], r->v[l].change[m].at.at)->commit, commit))
                return false;
    return true;
}

/* Commits with which more than one series has changed. */
static void print_commits(FILE *f, const struct history_report *r, bool markdown)
{
    if (r->n_changes > MAX_GATHERED)
        return;
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->v[i].n_changes; k++) {
            const struct result_run *run = run_at(r, &r->v[i], r->v[i].change[k].at.at);

            if (!*run->commit || !is_first(r, i, k))
                continue;
            const struct commit_changes all = gather(r, run->commit);
            if (all.n < 2)
                continue;
            if (markdown) {
                fputs("- ", f);
                markdown_put(f, result_run_commit(run).text);
            } else {
                fputs(result_run_commit(run).text, f);
            }
            fprintf(f, " changed %zu series, by %+.1f to %+.1f %%: %zu worse.\n", all.n,
                    100 * (all.least - 1), 100 * (all.most - 1), all.n_worse);
        }
}

static void print_line(FILE *f, const struct history_report *r,
                       const struct history_line *line)
{
    char machine[256];

    fprintf(f, "%s\n", line->s->name);
    if (line->s->has_machine)
        fprintf(f, "  %s\n",
                machine_key_name(&line->s->machine, machine, sizeof machine));
    fprintf(f, "  %-11s %-11s %-26s %-6s %-7s %-16s %s\n", "commit", "last before",
            "change", "", "p", line->s->metric->unit, "first run");
    for (size_t i = 0; i < line->n_changes; i++) {
        const struct history_change *c = &line->change[i];
        const size_t at = c->at.at;
        char values[60];

        snprintf(values, sizeof values, "%s to %s", report_figure(c->at.before).text,
                 report_figure(c->at.after).text);
        fprintf(f, "  %-11s %-11s %-26s %-6s %-7.3f %-16s %s\n",
                commit_text(r, line, at).text, commit_text(r, line, at - 1).text,
                size_text(c).text, c->worse ? "worse" : "better", c->at.p, values,
                line->v[at].utc);
    }
    fputc('\n', f);
}

void history_report_print(FILE *f, const struct history_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].n_changes)
            print_line(f, r, &r->v[i]);
    print_commits(f, r, false);
    print_counts(f, r);
}

static void print_cell(FILE *f, const char *text)
{
    fputs("| ", f);
    markdown_put(f, text);
    fputc(' ', f);
}

void history_report_markdown(FILE *f, const struct history_report *r)
{
    print_counts(f, r);
    fputc('\n', f);
    print_commits(f, r, true);
    if (!r->n_changes)
        return;
    fputs(
        "\n| series | commit | last before | change (95 % interval) | p | from | to | "
        "|\n|---|---|---|---|---|---|---|---|\n",
        f);
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->v[i].n_changes; k++) {
            const struct history_line *line = &r->v[i];
            const struct history_change *c = &line->change[k];
            const size_t at = c->at.at;

            print_cell(f, line->s->name);
            print_cell(f, commit_text(r, line, at).text);
            print_cell(f, commit_text(r, line, at - 1).text);
            fprintf(f, "| %s | %.3f | %s | %s %s | %s |\n", size_text(c).text, c->at.p,
                    report_figure(c->at.before).text, report_figure(c->at.after).text,
                    line->s->metric->unit, c->worse ? "worse" : "better");
        }
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *run_json(const struct history_report *r, const struct history_line *line,
                        size_t i)
{
    const struct result_run *run = run_at(r, line, i);

    return json_pack("{s:o, s:o, s:o}", "run", json_text_or_null(run->id), "commit",
                     json_text_or_null(run->commit), "utc",
                     json_text_or_null(line->v[i].utc));
}

static json_t *change_json(const struct history_report *r,
                           const struct history_line *line,
                           const struct history_change *c)
{
    const bool has_interval = c->size.lo > 0 && isfinite(c->size.hi);

    return json_pack(
        "{s:I, s:o, s:o, s:f, s:o, s:o, s:f, s:f, s:f, s:b}", "index",
        (json_int_t)c->at.at, "first", run_json(r, line, c->at.at), "last_before",
        run_json(r, line, c->at.at - 1), "ratio", c->size.ratio, "ratio_lo",
        json_number(has_interval ? c->size.lo : NAN), "ratio_hi",
        json_number(has_interval ? c->size.hi : NAN), "p", c->at.p, "before",
        c->at.before, "after", c->at.after, "worse", (int)c->worse);
}

static json_t *line_json(const struct history_report *r,
                         const struct history_line *line)
{
    json_t *values = json_array(), *changes = json_array();
    char machine[256];

    for (size_t i = 0; i < line->n; i++) {
        json_t *value = run_json(r, line, i);

        json_object_set_new(value, "value", json_number(line->v[i].v));
        json_array_append_new(values, value);
    }
    for (size_t i = 0; i < line->n_changes; i++)
        json_array_append_new(changes, change_json(r, line, &line->change[i]));
    machine_key_name(&line->s->machine, machine, sizeof machine);
    return json_pack("{s:o, s:o, s:s, s:s, s:b, s:o, s:o, s:I, s:o, s:o}", "name",
                     json_text_or_null(line->s->name), "machine",
                     json_text_or_null(line->s->has_machine ? machine : ""), "column",
                     line->s->metric->column, "unit", line->s->metric->unit,
                     "less_is_better", (int)line->s->metric->less_is_better, "model",
                     json_text_or_null(line->s->like.model), "quant",
                     json_text_or_null(line->s->like.quant), "disturbed_runs",
                     (json_int_t)line->s->n_disturbed, "changes", changes, "values",
                     values);
}

json_t *history_report_json(const struct history_report *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(list, line_json(r, &r->v[i]));
    return json_pack("{s:f, s:o}", "level", HISTORY_LEVEL, "series", list);
}

/* ---- as a page ------------------------------------------------------------------- */

static void put_cell(FILE *f, const char *text)
{
    html_put_in(f, "<td>", text, "</td>");
}

static void put_changes(FILE *f, const struct history_report *r)
{
    char machine[256];

    fputs(
        "<div><table>\n<tr><th>series</th><th>machine</th><th>commit</th><th>last "
        "before</th><th>change (95 % interval)</th><th>p</th><th>first run</th></tr>\n",
        f);
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->v[i].n_changes; k++) {
            const struct history_line *line = &r->v[i];
            const struct history_change *c = &line->change[k];
            const size_t at = c->at.at;

            fputs(c->worse ? "<tr class=\"worse\">" : "<tr>", f);
            put_cell(f, line->s->name);
            put_cell(f, line->s->has_machine ? machine_key_name(&line->s->machine,
                                                                machine, sizeof machine)
                                             : "");
            put_cell(f, commit_text(r, line, at).text);
            put_cell(f, commit_text(r, line, at - 1).text);
            fputs("<td>", f);
            html_printf(f, "%s, %s", size_text(c).text, c->worse ? "worse" : "better");
            fprintf(f, "</td><td>%.3f</td>", c->at.p);
            put_cell(f, line->v[at].utc);
            fputs("</tr>\n", f);
        }
    fputs("</table></div>\n", f);
}

static void write_page(FILE *f, const void *arg)
{
    const struct history_report *r = arg;

    struct plot *p;

    html_begin(f, "Where the history has changed");
    fputs("<p>", f);
    print_counts(f, r);
    fputs("</p>\n", f);
    if (r->n_changes)
        put_changes(f, r);
    for (size_t part = 0; history_report_plot(&p, r, part); part++)
        html_put_plot(f, p);
    html_end(f, "bench history changes");
}

enum status history_report_page(const struct history_report *r, const char *path,
                                struct err *err)
{
    return textfile_write(path, write_page, r, err);
}
