/* SPDX-License-Identifier: MIT
 *
 * kernel_chart.c - the roofline with every kernel as a point, and the heat map of
 * shares of the roof
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/chart_files.h"
#include "harness/kernelbench/kernel_report.h"

#define ROOFLINE  "kernels_roofline"
#define HEATMAP   "kernels_heatmap"
#define MAX_NAMES 256

/* Distinct names in the order they come; an index for each. */
struct names {
    char v[MAX_NAMES][96];
    int n;
};

/* The index, or -1 when the list is full. */
static int index_of(struct names *names, const char *name)
{
    int i = 0;

    while (i < names->n && strcmp(names->v[i], name) != 0)
        i++;
    if (i == MAX_NAMES)
        return -1;
    if (i == names->n)
        snprintf(names->v[names->n++], sizeof names->v[0], "%s", name);
    return i;
}

static void write_names(FILE *f, const char *variable, const struct names *names)
{
    fprintf(f, "n_%s = %d\narray %s[%d]\n", variable, names->n, variable,
            names->n ? names->n : 1);
    for (int i = 0; i < names->n; i++) {
        fprintf(f, "%s[%d] = ", variable, i + 1);
        gnuplot_quote(f, names->v[i]);
        fputc('\n', f);
    }
}

/* ---- roofline
 * ------------------------------------------------------------------------ */

struct axes {
    double x_min, x_max, y_min, y_max;
};

static bool is_point(const struct kernel_line *l)
{
    const struct kern_entry *e = kernel_case_entry(&l->c);

    return l->group >= 0 && l->state == LINE_OK && e && kernel_product(e->op) &&
           l->gbps.median > 0 && l->gops.median > 0;
}

static bool find_axes(struct axes *a, const struct kernel_report *r)
{
    *a = (struct axes){INFINITY, 0, INFINITY, 0};
    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];

        if (l->state == LINE_OK && l->gops.n)
            a->y_max = fmax(a->y_max, l->gops.median); /* peaks, too */
        if (!is_point(l))
            continue;
        a->x_min = fmin(a->x_min, l->gops.median / l->gbps.median);
        a->x_max = fmax(a->x_max, l->gops.median / l->gbps.median);
        a->y_min = fmin(a->y_min, l->gops.median);
    }
    a->x_min /= 2;
    a->x_max *= 4;
    a->y_min /= 2;
    a->y_max *= 2;
    return a->x_max > 0;
}

static enum status write_points(const struct kernel_report *r, const char *dir,
                                struct names *groups, struct names *levels,
                                struct err *err)
{
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, ROOFLINE, "csv", err);
    char group[64], name[KERNEL_NAME_MAX];

    if (!f)
        return err->code;
    fprintf(f, "group,level,ops_per_byte,gops,name\n");
    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];

        if (!is_point(l))
            continue;
        fprintf(f, "%d,%d",
                index_of(groups, kernel_group_name(group, sizeof group, &l->c)),
                index_of(levels, l->c.isa));
        chart_file_number(f, l->gops.median / l->gbps.median);
        chart_file_number(f, l->gops.median);
        chart_file_text(f, kernel_case_name(&l->c, name));
        fputc('\n', f);
    }
    return chart_file_finish(&c, err);
}

/* Where the reading roofs end. */
static double highest_peak(const struct kernel_report *r)
{
    double most = 0;

    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].group < 0 && strcmp(r->v[i].c.what, "read") != 0)
            most = fmax(most, r->v[i].gops.median);
    return most;
}

/* roof[i]: slope in GB/s, or 0 and a level in GOPS; top[i]: where a slope ends. */
static void write_roofs(FILE *f, const struct kernel_report *r)
{
    struct names names = {.n = 0};
    double slope[MAX_NAMES], top[MAX_NAMES];

    for (size_t i = 0; i < r->n && names.n < MAX_NAMES; i++) {
        const struct kernel_line *l = &r->v[i];
        const bool is_read = !strcmp(l->c.what, "read");
        char name[96], threads[32] = "";

        if (l->group >= 0 || l->state != LINE_OK)
            continue;
        if (l->c.n_threads > 1)
            snprintf(threads, sizeof threads, ", %d threads", l->c.n_threads);
        if (is_read)
            snprintf(name, sizeof name, "read %.1f GB/s%s", l->gbps.median, threads);
        else
            snprintf(name, sizeof name, "%s %s %.0f GOPS%s", l->c.what, l->c.isa,
                     l->gops.median, threads);
        const double highest = highest_peak(r);
        slope[names.n] = is_read ? l->gbps.median : 0;
        top[names.n] = !is_read ? l->gops.median : highest > 0 ? highest : 1e9;
        index_of(&names, name);
    }
    write_names(f, "roofs", &names);
    fprintf(f, "array slope[%d]\narray top[%d]\n", names.n ? names.n : 1,
            names.n ? names.n : 1);
    for (int i = 0; i < names.n; i++)
        fprintf(f, "slope[%d] = %.6g\ntop[%d] = %.6g\n", i + 1, slope[i], i + 1,
                top[i]);
}

static void write_decades(FILE *f, const char *variable, double min, double max)
{
    const char *lead = "";

    fprintf(f, "%s = \"", variable);
    for (int e = (int)ceil(log10(min)); e <= (int)floor(log10(max)); e++) {
        fprintf(f, "%s%.6g", lead, pow(10, e));
        lead = ",";
    }
    fprintf(f, "\"\n");
}

static enum status draw_roofline(const struct kernel_report *r, const char *dir,
                                 const char *again, struct err *err)
{
    struct names groups = {.n = 0}, levels = {.n = 0};
    struct axes a;
    struct chart_file c;
    FILE *f;

    if (!find_axes(&a, r)) {
        chart_files_remove(dir, ROOFLINE);
        return ST_OK;
    }
    if (write_points(r, dir, &groups, &levels, err))
        return err->code;
    f = chart_file_create(&c, dir, ROOFLINE, "gp", err);
    if (!f)
        return err->code;
    chart_file_head(f, ROOFLINE, "Every kernel under the machine's roofs", r->title);
    write_names(f, "groups", &groups);
    write_names(f, "levels", &levels);
    fprintf(f, "x_min = %.6g\nx_max = %.6g\ny_min = %.6g\ny_max = %.6g\nlog_y = 1\n",
            a.x_min, a.x_max, a.y_min, a.y_max);
    write_decades(f, "x_ticks", a.x_min, a.x_max);
    write_decades(f, "y_ticks", a.y_min, a.y_max);
    write_roofs(f, r);
    fputc('\n', f);
    return chart_file_draw(&c, again, err);
}

/* ---- heat map
 * ---------------------------------------------------------------------------- */

/* Has it a roof, or would it have one if it had run? */
static bool is_cell(const struct kernel_line *l)
{
    struct kernel_case roof;

    return l->group >= 0 && kernel_case_roof(&roof, &l->c) &&
           (l->state != LINE_OK || isfinite(kernel_line_of_roof(l)));
}

struct heatmap {
    struct names rows;    /* formats */
    struct names columns; /* "group/level" */
    struct names groups;  /* names of neighbouring columns */
    int first[MAX_NAMES]; /* column of a group */
    char level[MAX_NAMES][16];
    bool has_levels; /* a group has more than one level */
};

static void find_columns(struct heatmap *h, const struct kernel_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (is_cell(&r->v[i]))
            index_of(&h->rows, r->v[i].c.what);
    for (int group = 0; group < r->n_groups; group++)
        for (int isa = 0; isa < KERN_N_ISA; isa++)
            for (size_t i = 0; i < r->n; i++) {
                const struct kernel_line *l = &r->v[i];
                char name[64], column[96];

                if (l->group != group || !is_cell(l) ||
                    strcmp(l->c.isa, isa_name((enum kern_isa)isa)) != 0)
                    continue;
                kernel_group_name(name, sizeof name, &l->c);
                snprintf(column, sizeof column, "%s/%s", name, l->c.isa);
                const int n_before = h->groups.n, n_columns = h->columns.n;
                const int g = index_of(&h->groups, name);
                const int at = index_of(&h->columns, column);
                if (g < 0 || at < 0)
                    return;
                if (h->groups.n > n_before)
                    h->first[g] = at;
                else if (h->columns.n > n_columns)
                    h->has_levels = true;
                snprintf(h->level[at], sizeof h->level[0], "%s", l->c.isa);
            }
}

static enum status write_cells(struct heatmap *h, const struct kernel_report *r,
                               const char *dir, struct err *err)
{
    static const char *const words[] = {"", "wrong", "failed", "stopped",
                                        "\xe2\x80\x93"};
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, HEATMAP, "csv", err);

    if (!f)
        return err->code;
    fprintf(f, "column,row,percent,state,note,format,group,level\n");
    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];
        char name[64], column[96];

        if (!is_cell(l))
            continue;
        kernel_group_name(name, sizeof name, &l->c);
        snprintf(column, sizeof column, "%s/%s", name, l->c.isa);
        fprintf(f, "%d,%d", index_of(&h->columns, column),
                index_of(&h->rows, l->c.what));
        chart_file_number(f, l->state == LINE_OK ? 100 * kernel_line_of_roof(l) : NAN);
        fprintf(f, ",%d", (int)l->state);
        chart_file_text(f, words[l->state]);
        chart_file_text(f, l->c.what);
        chart_file_text(f, name);
        chart_file_text(f, l->c.isa);
        fputc('\n', f);
    }
    return chart_file_finish(&c, err);
}

static void write_heatmap_settings(FILE *f, const struct heatmap *h,
                                   const struct kernel_report *r)
{
    struct names levels = {.n = h->columns.n};

    memset(levels.v, 0, sizeof levels.v);
    for (int i = 0; i < h->columns.n; i++)
        snprintf(levels.v[i], sizeof levels.v[i], "%s", h->level[i]);
    chart_file_head(f, HEATMAP, "Per cent of the roof that bounds each kernel",
                    r->title);
    write_names(f, "formats", &h->rows);
    write_names(f, "columns", &levels);
    write_names(f, "groups", &h->groups);
    fprintf(f, "array begin[%d]\n", h->groups.n + 1);
    for (int i = 0; i <= h->groups.n; i++)
        fprintf(f, "begin[%d] = %d\n", i + 1,
                i < h->groups.n ? h->first[i] : h->columns.n);
    fprintf(f, "has_levels = %d\nlog_y = 0\ny_ticks = ''\n", h->has_levels);
    fprintf(f, "x_min = -0.5\nx_max = %d.5\ny_min = %d.5\ny_max = -0.5\n\n",
            h->columns.n - 1, h->rows.n - 1);
}

static enum status draw_heatmap(const struct kernel_report *r, const char *dir,
                                const char *again, struct err *err)
{
    struct heatmap *h = calloc(1, sizeof *h);
    enum status st;
    struct chart_file c;
    FILE *f;

    if (!h)
        return err_set(err, ST_NO_MEMORY, "no memory for a chart");
    find_columns(h, r);
    if (h->columns.n == 0) {
        chart_files_remove(dir, HEATMAP);
        free(h);
        return ST_OK;
    }
    st = write_cells(h, r, dir, err);
    f = st ? NULL : chart_file_create(&c, dir, HEATMAP, "gp", err);
    if (f) {
        write_heatmap_settings(f, h, r);
        st = chart_file_draw(&c, again, err);
    } else {
        st = err->code;
    }
    free(h);
    return st;
}

enum status kernel_report_charts(const struct kernel_report *report, const char *dir,
                                 const char *again, struct err *err)
{
    const enum status st = draw_roofline(report, dir, again, err);

    return st ? st : draw_heatmap(report, dir, again, err);
}
