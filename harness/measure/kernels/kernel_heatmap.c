/* SPDX-License-Identifier: MIT
 *
 * kernel_heatmap.c - the heat map of shares of the roof, formats down, groups and
 * levels across
 */
#include "harness/measure/kernels/kernel_charts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/chart/chart_files.h"
#include "harness/chart/layout.h"

#define HEATMAP "kernels_heatmap"

/* Has it a roof, or would it have one if it had run? */
static bool is_cell(const struct kernel_line *l)
{
    struct kernel_case roof;

    return l->group >= 0 && kernel_case_roof(&roof, &l->c) &&
           (l->state != LINE_OK || isfinite(kernel_line_of_roof(l)));
}

#define COLUMN     94.0  /* the width of one, at most */
#define PANEL      970.0 /* and of all */
#define GROUP_LINE 16.0  /* the height of a group's name */

struct heatmap {
    struct kernel_names rows;    /* formats, or ways to read panels */
    struct kernel_names columns; /* "group/level" */
    struct kernel_names groups;  /* names of neighbouring columns */
    struct kernel_names notes;
    int first[KERNEL_MAX_NAMES]; /* column of a group */
    int line[KERNEL_MAX_NAMES];  /* where a group's name stands, 0: the lowest */
    int n_lines;
    char level[KERNEL_MAX_NAMES][16];
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
static int find_name(const struct kernel_names *names, const char *name)
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
    const int g = kernel_name_index(&h->groups, heat_group(name, l));
    const int at = kernel_name_index(&h->columns, column_name(column, l));

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
    *row = kernel_name_index(&h->rows, heat_row(name, l));
    return *row < 0 ? -1 : at;
}

/* The lines of group names: each on the lowest where it is clear of the one before. */
static void place_group_names(struct heatmap *h)
{
    const double width = fmin(COLUMN, PANEL / h->columns.n);
    double end[KERNEL_MAX_NAMES]; /* of a line, in pixels */

    for (int g = 0; g < h->groups.n; g++) {
        const int after = g + 1 < h->groups.n ? h->first[g + 1] : h->columns.n;
        const double middle = width * (h->first[g] + after) / 2;
        const double half = plot_text_width(h->groups.v[g], 12) / 2;
        int line = 0;

        while (line < h->n_lines && end[line] > middle - half - 10)
            line++;
        if (line == h->n_lines)
            h->n_lines++;
        end[line] = middle + half;
        h->line[g] = line;
    }
}

static int count_names_with(const struct kernel_names *names, const char *word)
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
    struct kernel_names left_out = {.n = 0};
    const int n_cold = count_names_with(&h->groups, " cold");

    for (size_t i = 0; i < r->n; i++)
        if (is_cell(&r->v[i]) &&
            find_name(&h->columns, column_name(more, &r->v[i])) < 0)
            kernel_name_index(&left_out, r->v[i].c.isa);
    if (count_names_with(&h->groups, " hot"))
        kernel_name_index(&h->notes, "hot: weights in the second-level cache");
    if (n_cold)
        kernel_name_index(&h->notes,
                          "cold: weights from memory, and the share is that of the "
                          "read bandwidth");
    if (n_cold < h->groups.n)
        kernel_name_index(
            &h->notes,
            n_cold ? "else the share is that of the arithmetic peak of the level"
                   : "the share is that of the arithmetic peak of the level");
    if (h->has_skipped)
        kernel_name_index(&h->notes,
                          "\xe2\x80\x93 not run here; an empty place: no such kernel");
    for (int i = 0; i < left_out.n; i++)
        text_append(text, sizeof text, "%s%s",
                    i ? ", " : "levels not run here: ", left_out.v[i]);
    if (*text)
        kernel_name_index(&h->notes, text);
}

static void put_cells(struct plot *p, struct heatmap *h, const struct kernel_report *r)
{
    static const char *const words[] = {"", "wrong", "failed", "stopped",
                                        "\xe2\x80\x93"};

    plot_columns(p, "column,row,percent,state,note,format,group,level,label");
    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];
        const double percent = l->state == LINE_OK ? 100 * kernel_line_of_roof(l) : NAN;
        char name[64], way[32];
        int row = -1;
        const int column = find_cell(h, l, &row);

        if (column < 0)
            continue;
        h->has_skipped |= l->state == LINE_SKIPPED;
        PLOT_NUMBERS(p, column, row, percent, l->state);
        plot_string(p, words[l->state]);
        plot_string(p, heat_row(way, l));
        plot_string(p, heat_group(name, l));
        plot_string(p, l->c.isa);
        plot_string(p, l->state == LINE_OK ? plot_printf(p, "%.0f", percent)
                                           : words[l->state]);
    }
}

static void put_cell_layers(struct plot *p)
{
    struct plot_layer l = {.form = PLOT_BOX,
                           .x = {"column", -0.48},
                           .x2 = {"column", 0.48},
                           .y = {"row", -0.46},
                           .y2 = {"row", 0.46},
                           .only = {{"state", LINE_OK, LINE_OK}},
                           .heat = "percent"};

    plot_layer(p, l);
    l.heat = NULL;
    l.only[0] = (struct plot_only){"state", LINE_OK + 1, INFINITY};
    l.style = plot_filled(PLOT_FAINT, 0.5);
    plot_layer(p, l);
    plot_heat_texts(p);
}

/* Names of groups, above their columns, and lines between them. */
static void put_groups(struct plot *p, const struct heatmap *h)
{
    for (int i = 0; i < h->groups.n && h->has_levels; i++) {
        const int after = i + 1 < h->groups.n ? h->first[i + 1] : h->columns.n;

        plot_guide(p, (struct plot_guide){.form = PLOT_TEXT,
                                          .x = {(h->first[i] + after - 1) / 2.0, false},
                                          .y = {1, true},
                                          .dy = -10 - GROUP_LINE * h->line[i],
                                          .text = h->groups.v[i],
                                          .style = {.color = PLOT_INK}});
        if (i)
            plot_across(p, 0, true, h->first[i] - 0.5, false,
                        plot_stroke(PLOT_GREY, 1, PLOT_WHOLE));
    }
}

static struct plot *heatmap_plot(struct heatmap *h, const struct kernel_report *r)
{
    struct plot *p =
        plot_new(HEATMAP, "Per cent of the roof that bounds each kernel", r->title);

    if (!p)
        return NULL;
    put_cells(p, h, r);
    place_group_names(h);
    add_notes(h, r);
    struct plot_panel *a =
        plot_panel(p, 31, -0.5, h->columns.n - 0.5, h->rows.n - 0.5, -0.5);

    a->column = COLUMN;
    a->top_room = h->has_levels ? GROUP_LINE * h->n_lines : 0;
    a->x.has_names = a->y.has_names = true;
    for (int i = 0; i < h->rows.n; i++)
        plot_tick(p, &a->y, i, h->rows.v[i]);
    for (int i = 0; i < h->columns.n; i++)
        plot_tick(p, &a->x, i,
                  h->has_levels ? h->level[i] : h->groups.v[i < h->groups.n ? i : 0]);
    put_cell_layers(p);
    put_groups(p, h);
    plot_heat_keys(p);
    for (int i = 0; i < h->notes.n; i++)
        plot_note(p, h->notes.v[i]);
    return p;
}

enum status kernel_heatmap_draw(const struct kernel_report *r, const char *dir,
                                const char *again, struct err *err)
{
    struct heatmap *h = calloc(1, sizeof *h);
    enum status st = ST_OK;

    if (!h)
        return err_set(err, ST_NO_MEMORY, "no memory for a chart");
    find_columns(h, r);
    if (h->columns.n)
        st = chart_files_draw(heatmap_plot(h, r), dir, again, err);
    else
        chart_files_remove(dir, HEATMAP);
    free(h);
    return st;
}
