/* SPDX-License-Identifier: MIT
 *
 * kernel_chart.c - the roofline with every kernel as a point
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/measure/kernels/kernel_report.h"

#define ROOFLINE  "kernels_roofline"
#define MAX_NAMES 256

/* Distinct names in the order they come; an index for each. */
struct names {
    char v[MAX_NAMES][96];
    int n;
};

/* The index of the name, which is added if it is new; -1: the list is full. */
static int name_index(struct names *names, const char *name)
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
    char group[64];

    plot_columns(p, "group,level,ops_per_byte,gops,name");
    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];

        if (!is_point(l))
            continue;
        PLOT_NUMBERS(p,
                     name_index(groups, kernel_group_name(group, sizeof group, &l->c)),
                     name_index(levels, l->c.isa), l->gops.median / l->gbps.median,
                     l->gops.median);
        plot_string(p, kernel_case_name(&l->c).text);
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
        if (name_index(&to->names, name) != k)
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
                           .style = plot_stroke(PLOT_GREY, 1.4, PLOT_DASHED)};

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
    plot_across(p, 0, false, r->top[i], true, plot_stroke(PLOT_GREY, 1.4, PLOT_DASHED));
    p->panel[0].right_room = NAME_WIDTH;
    plot_guide(p, (struct plot_guide){.form = PLOT_SEGMENT,
                                      .x = {1, true},
                                      .y = {r->top[i], false},
                                      .x2 = {1.03, true},
                                      .y2 = {r->label_y[i], false},
                                      .is_behind = true,
                                      .style = {.color = PLOT_GREY, .width = 0.7}});
    plot_words(p, 0, (struct plot_at){1.03, true},
               (struct plot_at){r->label_y[i], false}, 5, PLOT_GREY, r->names.v[i]);
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

    return plot_marked(group % PLOT_COLORS,
                       group % 14 >= PLOT_COLORS ? PLOT_HOLLOW : marks[level % 6], 1.1);
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
        plot_key(p, "roof", plot_stroke(PLOT_GREY, 1.4, PLOT_DASHED));
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

enum status kernel_report_chart(const struct kernel_report *report, const char *dir,
                                const char *again, struct err *err)
{
    struct axes a;

    if (find_axes(&a, report))
        return chart_files_draw(roofline_plot(report, &a), dir, again, err);
    chart_files_remove(dir, ROOFLINE);
    return ST_OK;
}
