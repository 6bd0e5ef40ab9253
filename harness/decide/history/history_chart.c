/* SPDX-License-Identifier: MIT
 *
 * history_chart.c - series over their runs, a panel each
 */
#include <math.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/decide/history/history_report.h"

#define MAX_PANELS 6
#define N_TICKS    9 /* commits named below a panel */

/* Series with a change first. */
static size_t choose(const struct history_line *panel[MAX_PANELS],
                     const struct history_report *r)
{
    size_t n = 0;

    for (int changed = 1; changed >= 0; changed--)
        for (size_t i = 0; i < r->n && n < MAX_PANELS; i++)
            if (r->v[i].n > 1 && (r->v[i].n_changes > 0) == changed)
                panel[n++] = &r->v[i];
    return n;
}

/* The change that begins at value i, or NULL. */
static const struct history_change *change_at(const struct history_line *line, size_t i)
{
    for (size_t k = 0; k < line->n_changes; k++)
        if (line->change[k].at.at == i)
            return &line->change[k];
    return NULL;
}

static double first_level(const struct history_line *line)
{
    double v[CHANGE_MAX_POINTS], scratch[CHANGE_MAX_POINTS];

    if (line->n_changes)
        return line->change[0].at.before;
    for (size_t i = 0; i < line->n; i++)
        v[i] = line->v[i].v;
    return stats_median(v, line->n, scratch);
}

static void write_panel(FILE *f, const struct history_report *r,
                        const struct history_line *line, size_t index)
{
    double level = first_level(line);
    int nth = 0;

    for (size_t i = 0; i < line->n; i++) {
        const struct result_run *run = &r->h->runs[line->v[i].run];
        const struct history_change *c = change_at(line, i);
        char label[96] = "", commit[32];

        result_run_commit(run, commit, sizeof commit);
        if (c) {
            level = c->at.after;
            nth++;
            snprintf(label, sizeof label, "%s %+.1f %%", commit,
                     100 * (c->size.ratio - 1));
        }
        fprintf(f, "%zu,%zu", index, i);
        chart_file_number(f, line->v[i].v);
        chart_file_number(f, level);
        fprintf(f, ",%d", !c ? 0 : c->worse ? 2 : 1);
        chart_file_text(f, label);
        chart_file_text(f, commit);
        chart_file_text(f, line->v[i].utc);
        fprintf(f, ",%d\n", nth);
    }
}

static enum status write_values(const struct history_report *r,
                                const struct history_line *const *panel, size_t n,
                                const char *dir, struct err *err)
{
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, HISTORY_CHART, "csv", err);

    if (!f)
        return err->code;
    fprintf(f, "panel,run,value,level,change,label,commit,utc,nth\n");
    for (size_t i = 0; i < n; i++)
        write_panel(f, r, panel[i], i);
    return chart_file_finish(&c, err);
}

/* Space above is for the labels. */
static void write_range(FILE *f, const struct history_line *line, size_t index)
{
    double lo = INFINITY, hi = 0;

    for (size_t i = 0; i < line->n; i++) {
        lo = fmin(lo, line->v[i].v);
        hi = fmax(hi, line->v[i].v);
    }
    const double range = fmax(hi - lo, 0.02 * hi);
    fprintf(f, "lo[%zu] = %.6g\nhi[%zu] = %.6g\nlast[%zu] = %zu\n", index + 1,
            fmax(0, lo - 0.1 * range), index + 1, hi + 0.25 * range, index + 1,
            line->n - 1);
}

static void write_ticks(FILE *f, const struct history_report *r,
                        const struct history_line *line, size_t index)
{
    const size_t step = (line->n + N_TICKS - 1) / N_TICKS;

    for (size_t k = 0; k < N_TICKS; k++) {
        char commit[32] = "";
        const size_t at = k * step < line->n ? k * step : 0;

        if (k * step < line->n)
            result_run_commit(&r->h->runs[line->v[at].run], commit, sizeof commit);
        fprintf(f, "tick_at[%zu] = %zu\ntick[%zu] = ", index * N_TICKS + k + 1, at,
                index * N_TICKS + k + 1);
        gnuplot_quote(f, commit);
        fputc('\n', f);
    }
}

static void write_settings(FILE *f, const struct history_report *r,
                           const struct history_line *const *panel, size_t n)
{
    const struct series *first = panel[0]->s;
    char subtitle[320], machine[256];

    snprintf(subtitle, sizeof subtitle, "%s  \xc2\xb7  %zu of %zu series, %zu change%s",
             first->has_machine
                 ? machine_key_name(&first->machine, machine, sizeof machine)
                 : "machine not known",
             n, r->n, r->n_changes, plural(r->n_changes, "s"));
    chart_file_head(f, HISTORY_CHART, "Where the history has changed", subtitle);
    fprintf(
        f,
        "x_min = 0\nx_max = 1\ny_min = 0\ny_max = 1\nlog_y = 0\ny_ticks = ''\n"
        "n_changes = %zu\nn_panels = %zu\nn_ticks = %d\narray lo[%zu]\narray hi[%zu]\n"
        "array last[%zu]\narray titles[%zu]\narray units[%zu]\narray tick_at[%zu]\n"
        "array tick[%zu]\n",
        r->n_changes, n, N_TICKS, n, n, n, n, n, n * N_TICKS, n * N_TICKS);
    for (size_t i = 0; i < n; i++) {
        write_range(f, panel[i], i);
        fprintf(f, "titles[%zu] = ", i + 1);
        gnuplot_quote(f, panel[i]->s->name);
        fprintf(f, "\nunits[%zu] = ", i + 1);
        gnuplot_quote(f, panel[i]->s->metric->unit);
        fputc('\n', f);
        write_ticks(f, r, panel[i], i);
    }
    fputc('\n', f);
}

enum status history_report_chart(const struct history_report *r, const char *dir,
                                 const char *again, struct err *err)
{
    const struct history_line *panel[MAX_PANELS];
    const size_t n = choose(panel, r);
    struct chart_file c;
    FILE *f;

    if (!n) {
        chart_files_remove(dir, HISTORY_CHART);
        return ST_OK;
    }
    if (write_values(r, panel, n, dir, err))
        return err->code;
    f = chart_file_create(&c, dir, HISTORY_CHART, "gp", err);
    if (!f)
        return err->code;
    write_settings(f, r, panel, n);
    return chart_file_draw(&c, again, err);
}
