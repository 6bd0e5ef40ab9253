/* SPDX-License-Identifier: MIT
 *
 * kernel_chart.c - the roofline with every kernel as a point, and the heat map of
 * shares of the roof
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/measure/kernels/kernel_report.h"

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
    a->x_min /= 14; /* the names of slopes stand there */
    a->x_max *= 2;
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

/* Share of the axis' height that each name of a level needs: a line of text. */
#define LINE_SHARE (18.0 / 600)

struct roofs {
    struct names names;
    double slope[MAX_NAMES];   /* GB/s; 0: a level */
    double top[MAX_NAMES];     /* GOPS of a level, or where a slope ends */
    double label_y[MAX_NAMES]; /* of a level's name */
    double side[MAX_NAMES];    /* of a slope's name: factor on its height */
};

static void find_roofs(struct roofs *to, const struct kernel_report *r)
{
    const double highest = highest_peak(r);

    memset(to, 0, sizeof *to);
    for (size_t i = 0; i < r->n && to->names.n < MAX_NAMES; i++) {
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
        const int k = to->names.n;
        if (index_of(&to->names, name) != k)
            continue; /* the same again */
        to->slope[k] = is_read ? l->gbps.median : 0;
        to->top[k] = !is_read ? l->gops.median : highest > 0 ? highest : 1e9;
    }
}

/* Names are next to their levels, a line apart: pushed up from the lowest, and down
 * again from the upper end of the axis. */
static void place_level_names(struct roofs *r, const struct axes *a)
{
    const double line = pow(a->y_max / a->y_min, LINE_SHARE);
    int order[MAX_NAMES], n = 0;

    for (int i = 0; i < r->names.n; i++) {
        int at = n;

        if (r->slope[i] > 0)
            continue;
        for (; at > 0 && r->top[order[at - 1]] > r->top[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        n++;
    }
    for (int k = 0; k < n; k++)
        r->label_y[order[k]] =
            fmax(r->top[order[k]], k ? r->label_y[order[k - 1]] * line : 0);
    for (int k = n - 1; k >= 0; k--)
        r->label_y[order[k]] =
            fmin(r->label_y[order[k]],
                 k == n - 1 ? a->y_max : r->label_y[order[k + 1]] / line);
}

/* The name of the steeper of two slopes is above its line, the other's below. */
static void place_slope_names(struct roofs *r)
{
    double steepest = 0;

    for (int i = 0; i < r->names.n; i++)
        steepest = fmax(steepest, r->slope[i]);
    for (int i = 0; i < r->names.n; i++)
        r->side[i] = r->slope[i] == steepest ? 1.25 : 0.8;
}

static void write_roofs(FILE *f, const struct kernel_report *report,
                        const struct axes *a)
{
    struct roofs *r = malloc(sizeof *r);
    const char *const variables[] = {"slope", "top", "label_y", "side"};

    if (!r) { /* then there are points only */
        fprintf(f, "n_roofs = 0\n");
        return;
    }
    find_roofs(r, report);
    place_level_names(r, a);
    place_slope_names(r);
    write_names(f, "roofs", &r->names);
    for (int k = 0; k < 4; k++)
        fprintf(f, "array %s[%d]\n", variables[k], r->names.n ? r->names.n : 1);
    for (int i = 0; i < r->names.n; i++)
        fprintf(f,
                "slope[%d] = %.6g\ntop[%d] = %.6g\nlabel_y[%d] = %.6g\n"
                "side[%d] = %.6g\n",
                i + 1, r->slope[i], i + 1, r->top[i], i + 1, r->label_y[i], i + 1,
                r->side[i]);
    free(r);
}

/* Powers of ten; with fewer than three of them also 2 and 5 times each. */
static void write_ticks(FILE *f, const char *variable, double min, double max)
{
    static const int factors[] = {1, 2, 5};
    const int n = log10(max / min) < 3 ? 3 : 1;
    const char *lead = "";

    fprintf(f, "%s = \"", variable);
    for (int e = (int)floor(log10(min)); e <= (int)floor(log10(max)); e++)
        for (int k = 0; k < n; k++) {
            const double tick = factors[k] * pow(10, e);

            if (tick < min || tick > max)
                continue;
            fprintf(f, "%s%.6g", lead, tick);
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
    write_ticks(f, "x_ticks", a.x_min, a.x_max);
    write_ticks(f, "y_ticks", a.y_min, a.y_max);
    write_roofs(f, r, &a);
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
    struct names rows;    /* formats, or ways to read panels */
    struct names columns; /* "group/level" */
    struct names groups;  /* names of neighbouring columns */
    struct names notes;
    int first[MAX_NAMES]; /* column of a group */
    int line[MAX_NAMES];  /* where a group's name stands, 0: the lowest */
    int n_lines;
    char level[MAX_NAMES][16];
    bool has_levels; /* a group has more than one level */
    bool has_skipped;
};

/* A level that did not run at all is no column: its kernels are for another CPU, or
 * were not wanted. */
static bool ran_at_all(const struct kernel_report *r, int group, const char *isa)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].group == group && r->v[i].state != LINE_SKIPPED &&
            is_cell(&r->v[i]) && !strcmp(r->v[i].c.isa, isa))
            return true;
    return false;
}

/* Ways to read panels are many: they are rows, and each format has a column. */
static const char *heat_group(char buf[64], const struct kernel_line *l)
{
    const struct kernel_case *c = &l->c;

    if (!c->prefetch.n_panels)
        return kernel_group_name(buf, 64, c);
    snprintf(buf, 64, "%s %s cold", c->what, c->isa);
    if (c->n_threads != 1)
        text_append(buf, 64, ", %d threads", c->n_threads);
    return buf;
}

static const char *heat_row(char buf[32], const struct kernel_line *l)
{
    char name[16];

    if (l->c.prefetch.n_panels)
        snprintf(buf, 32, "%s x%u",
                 kernel_prefetch_name(l->c.prefetch, name, sizeof name),
                 (unsigned)l->c.prefetch.n_panels);
    else
        snprintf(buf, 32, "%s", l->c.what);
    return buf;
}

static const char *column_name(char buf[96], const struct kernel_line *l)
{
    char name[64];

    snprintf(buf, 96, "%s/%s", heat_group(name, l), l->c.isa);
    return buf;
}

/* The index of a name that is there; -1: it is not. */
static int find_name(const struct names *names, const char *name)
{
    int i = names->n - 1;

    while (i >= 0 && strcmp(names->v[i], name) != 0)
        i--;
    return i;
}

static void add_column(struct heatmap *h, const struct kernel_line *l)
{
    const int n_groups = h->groups.n, n_columns = h->columns.n;
    char name[64], column[96];
    const int g = index_of(&h->groups, heat_group(name, l));
    const int at = index_of(&h->columns, column_name(column, l));

    if (g < 0 || at < 0)
        return;
    if (h->groups.n > n_groups)
        h->first[g] = at;
    else if (h->columns.n > n_columns)
        h->has_levels = true;
    snprintf(h->level[at], sizeof h->level[0], "%s", l->c.isa);
}

static void find_columns(struct heatmap *h, const struct kernel_report *r)
{
    for (int group = 0; group < r->n_groups; group++)
        for (int isa = 0; isa < KERN_N_ISA; isa++) {
            const char *level = isa_name((enum kern_isa)isa);

            if (!ran_at_all(r, group, level))
                continue;
            for (size_t i = 0; i < r->n; i++)
                if (r->v[i].group == group && is_cell(&r->v[i]) &&
                    !strcmp(r->v[i].c.isa, level))
                    add_column(h, &r->v[i]);
        }
}

/* The column of a cell to draw, and its row in the order of the lines; -1: none.
 */
static int find_cell(struct heatmap *h, const struct kernel_line *l, int *row)
{
    char column[96], name[32];
    const int at = is_cell(l) ? find_name(&h->columns, column_name(column, l)) : -1;

    if (at < 0)
        return -1;
    *row = index_of(&h->rows, heat_row(name, l));
    return *row < 0 ? -1 : at;
}

/* The lines of group names: each on the lowest where it is clear of the one before. */
static void place_group_names(struct heatmap *h)
{
    const double width = fmin(110, 1134.0 / h->columns.n); /* as in the template */
    double end[MAX_NAMES];                                 /* of a line, in pixels */

    for (int g = 0; g < h->groups.n; g++) {
        const int after = g + 1 < h->groups.n ? h->first[g + 1] : h->columns.n;
        const double middle = width * (h->first[g] + after) / 2;
        const double half = 4.3 * (double)strlen(h->groups.v[g]);
        int line = 0;

        while (line < h->n_lines && end[line] > middle - half - 10)
            line++;
        if (line == h->n_lines)
            h->n_lines++;
        end[line] = middle + half;
        h->line[g] = line;
    }
}

static int count_names_with(const struct names *names, const char *word)
{
    int n = 0;

    for (int i = 0; i < names->n; i++)
        n += strstr(names->v[i], word) != NULL;
    return n;
}

/* What the words and marks of this chart mean. */
static void add_notes(struct heatmap *h, const struct kernel_report *r)
{
    char text[96] = "", more[96];
    struct names left_out = {.n = 0};
    const int n_cold = count_names_with(&h->groups, " cold");

    for (size_t i = 0; i < r->n; i++)
        if (is_cell(&r->v[i]) &&
            find_name(&h->columns, column_name(more, &r->v[i])) < 0)
            index_of(&left_out, r->v[i].c.isa);
    if (count_names_with(&h->groups, " hot"))
        index_of(&h->notes, "hot: weights in the second-level cache");
    if (n_cold)
        index_of(&h->notes, "cold: weights from memory, and the share is that of the "
                            "read bandwidth");
    if (n_cold < h->groups.n)
        index_of(&h->notes,
                 n_cold ? "else the share is that of the arithmetic peak of the level"
                        : "the share is that of the arithmetic peak of the level");
    if (h->has_skipped)
        index_of(&h->notes,
                 "\xe2\x80\x93 not run here; an empty place: no such kernel");
    for (int i = 0; i < left_out.n; i++)
        text_append(text, sizeof text, "%s%s",
                    i ? ", " : "levels not run here: ", left_out.v[i]);
    if (*text)
        index_of(&h->notes, text);
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
        char name[64], way[32];
        int row = -1;
        const int column = find_cell(h, l, &row);

        if (column < 0)
            continue;
        h->has_skipped |= l->state == LINE_SKIPPED;
        fprintf(f, "%d,%d", column, row);
        chart_file_number(f, l->state == LINE_OK ? 100 * kernel_line_of_roof(l) : NAN);
        fprintf(f, ",%d", (int)l->state);
        chart_file_text(f, words[l->state]);
        chart_file_text(f, heat_row(way, l));
        chart_file_text(f, heat_group(name, l));
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
    write_names(f, "notes", &h->notes);
    fprintf(f, "n_group_lines = %d\narray group_line[%d]\n", h->n_lines, h->groups.n);
    for (int i = 0; i < h->groups.n; i++)
        fprintf(f, "group_line[%d] = %d\n", i + 1, h->line[i]);
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
    place_group_names(h);
    add_notes(h, r);
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
