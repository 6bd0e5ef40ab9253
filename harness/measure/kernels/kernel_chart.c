/* SPDX-License-Identifier: MIT
 *
 * kernel_chart.c - the roofline with every kernel as a point, and the heat map of
 * shares of the roof
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/chart/chart_files.h"
#include "harness/chart/layout.h"
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

static void put_points(struct plot *p, const struct kernel_report *r,
                       struct names *groups, struct names *levels)
{
    char group[64], name[KERNEL_NAME_MAX];

    plot_columns(p, "group,level,ops_per_byte,gops,name");
    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];

        if (!is_point(l))
            continue;
        plot_number(p, index_of(groups, kernel_group_name(group, sizeof group, &l->c)));
        plot_number(p, index_of(levels, l->c.isa));
        plot_number(p, l->gops.median / l->gbps.median);
        plot_number(p, l->gops.median);
        plot_string(p, kernel_case_name(&l->c, name));
    }
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

#define ROOFLINE_HEIGHT 515.0
#define NAME_WIDTH      190.0
/* Share of the axis' height that each name of a level needs: a line of text. */
#define LINE_SHARE (16.0 / ROOFLINE_HEIGHT)

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

/* A slope is named at its lower end, where no kernel is, along it. */
static void put_slope(struct plot *p, const struct roofs *r, int i,
                      const struct axes *a)
{
    const double x = fmax(a->x_min, a->y_min / r->slope[i]);
    const double end =
        fmin(fmin(a->x_max, r->top[i] / r->slope[i]), a->y_max / r->slope[i]);
    const double name_x = fmax(a->x_min * 1.15, a->y_min * 1.4 / r->slope[i]);
    struct plot_guide g = {.form = PLOT_SEGMENT,
                           .x = {x, false},
                           .y = {x * r->slope[i], false},
                           .x2 = {end, false},
                           .y2 = {end * r->slope[i], false},
                           .is_behind = true,
                           .style = {PLOT_GREY, 1.4, PLOT_DASHED, 0, 0, 0}};

    plot_guide(p, g);
    g = (struct plot_guide){.form = PLOT_TEXT,
                            .x = {name_x, false},
                            .y = {name_x * r->slope[i] * r->side[i], false},
                            .is_slope = true,
                            .anchor = PLOT_LEFT,
                            .text = r->names.v[i],
                            .style = {.color = PLOT_GREY}};
    plot_guide(p, g);
}

/* A level is named right of the panel, with a line from its end to its name. */
static void put_level(struct plot *p, const struct roofs *r, int i)
{
    struct plot_guide g = {.form = PLOT_SEGMENT,
                           .x = {0, true},
                           .x2 = {1, true},
                           .y = {r->top[i], false},
                           .y2 = {r->top[i], false},
                           .is_behind = true,
                           .style = {PLOT_GREY, 1.4, PLOT_DASHED, 0, 0, 0}};

    plot_guide(p, g);
    p->panel[0].right_room = NAME_WIDTH;
    g.x.v = 1;
    g.x2.v = 1.03;
    g.y2.v = r->label_y[i];
    g.style = (struct plot_style){.color = PLOT_GREY, .width = 0.7};
    plot_guide(p, g);
    g.form = PLOT_TEXT;
    g.x.v = 1.03;
    g.y = g.y2;
    g.dx = 5;
    g.anchor = PLOT_LEFT;
    g.text = r->names.v[i];
    g.is_behind = false;
    plot_guide(p, g);
}

/* Without memory for roofs there are points only. Returns how many roofs there are. */
static int put_roofs(struct plot *p, const struct kernel_report *report,
                     const struct axes *a)
{
    struct roofs *r = malloc(sizeof *r);
    int n = 0;

    if (!r)
        return 0;
    find_roofs(r, report);
    place_level_names(r, a);
    place_slope_names(r);
    for (; n < r->names.n; n++)
        if (r->slope[n] > 0)
            put_slope(p, r, n, a);
        else
            put_level(p, r, n);
    free(r);
    return n;
}

/* Colours are groups, marks levels; they come round after seven groups, then hollow. */
static struct plot_style point_style(int group, int level)
{
    static const enum plot_mark marks[] = {PLOT_DOT,      PLOT_SQUARE, PLOT_DIAMOND,
                                           PLOT_TRIANGLE, PLOT_CROSS,  PLOT_RING};

    return (struct plot_style){.color = group % PLOT_COLORS,
                               .mark = group % 14 >= PLOT_COLORS ? PLOT_HOLLOW
                                                                 : marks[level % 6],
                               .size = 1.1};
}

static void put_point_layers(struct plot *p, const struct names *groups,
                             const struct names *levels, int n_roofs)
{
    for (int g = 0; g < groups->n; g++) {
        for (int l = 0; l < levels->n; l++)
            plot_layer(p,
                       (struct plot_layer){.form = PLOT_MARKS,
                                           .x = {"ops_per_byte", 0},
                                           .y = {"gops", 0},
                                           .only = {{"group", g, g}, {"level", l, l}},
                                           .style = point_style(g, l),
                                           .text = "name"});
        plot_key(p, groups->v[g], point_style(g, 0));
    }
    for (int l = 0; l < levels->n && levels->n > 1; l++) {
        struct plot_style style = point_style(0, l);

        style.color = PLOT_GREY;
        plot_key(p, levels->v[l], style);
    }
    if (n_roofs)
        plot_key(p, "roof", (struct plot_style){PLOT_GREY, 1.4, PLOT_DASHED, 0, 0, 0});
    plot_note(p,
              "hot: weights in the second-level cache, so above the slopes of memory; "
              "cold: weights from memory");
}

static struct plot *roofline_plot(const struct kernel_report *r, const struct axes *a)
{
    struct names *names = calloc(2, sizeof *names);
    struct plot *p =
        names ? plot_new(ROOFLINE, "Every kernel under the machine's roofs", r->title)
              : NULL;

    if (p) {
        struct plot_panel *to =
            plot_panel(p, ROOFLINE_HEIGHT, a->x_min, a->x_max, a->y_min, a->y_max);

        to->x.is_log = to->y.is_log = true;
        to->x.title = "operations per byte of weights";
        to->y.title = "giga-operations per second";
        put_points(p, r, &names[0], &names[1]);
        put_point_layers(p, &names[0], &names[1], put_roofs(p, r, a));
    }
    free(names);
    return p;
}

static enum status draw_roofline(const struct kernel_report *r, const char *dir,
                                 const char *again, struct err *err)
{
    struct axes a;

    if (find_axes(&a, r))
        return chart_files_draw(roofline_plot(r, &a), dir, again, err);
    chart_files_remove(dir, ROOFLINE);
    return ST_OK;
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

#define COLUMN     94.0  /* the width of one, at most */
#define PANEL      970.0 /* and of all */
#define GROUP_LINE 16.0  /* the height of a group's name */

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
    const double width = fmin(COLUMN, PANEL / h->columns.n);
    double end[MAX_NAMES]; /* of a line, in pixels */

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
        plot_number(p, column);
        plot_number(p, row);
        plot_number(p, percent);
        plot_number(p, l->state);
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
    l.style = (struct plot_style){.color = PLOT_FAINT, .opacity = 0.5};
    plot_layer(p, l);
    l = (struct plot_layer){.form = PLOT_TEXT,
                            .x = {"column", 0},
                            .y = {"row", 0},
                            .heat = "percent",
                            .text = "label"};
    plot_layer(p, l);
}

/* Names of groups, above their columns, and lines between them. */
static void put_groups(struct plot *p, const struct heatmap *h)
{
    for (int i = 0; i < h->groups.n && h->has_levels; i++) {
        const int after = i + 1 < h->groups.n ? h->first[i + 1] : h->columns.n;
        struct plot_guide g = {.form = PLOT_TEXT,
                               .x = {(h->first[i] + after - 1) / 2.0, false},
                               .y = {1, true},
                               .dy = -10 - GROUP_LINE * h->line[i],
                               .text = h->groups.v[i],
                               .style = {.color = PLOT_INK}};

        plot_guide(p, g);
        if (i == 0)
            continue;
        g.form = PLOT_SEGMENT;
        g.x.v = h->first[i] - 0.5;
        g.x2 = g.x;
        g.y2 = (struct plot_at){0, true};
        g.text = NULL;
        g.style = (struct plot_style){.color = PLOT_GREY, .width = 1};
        plot_guide(p, g);
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

static enum status draw_heatmap(const struct kernel_report *r, const char *dir,
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

enum status kernel_report_charts(const struct kernel_report *report, const char *dir,
                                 const char *again, struct err *err)
{
    const enum status st = draw_roofline(report, dir, again, err);

    return st ? st : draw_heatmap(report, dir, again, err);
}
