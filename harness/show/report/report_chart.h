/* SPDX-License-Identifier: MIT
 *
 * report_chart.h - from marks to a chart's files
 *
 * Model of the world: a chart is a list of marks and a few words. chart_plot.h makes it
 * a plot, for a page or as files (chart_files.h) in the sweep's directory.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_CHART_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "harness/rows/report_rows.h"

#define CHART_MAX_SERIES 64
#define CHART_MAX_PANELS 3

enum mark_state {
    MARK_SOLID,  /* a good figure */
    MARK_HOLLOW, /* partial or disturbed: to be taken with care */
    MARK_CROSS,  /* no figure */
};

struct mark {
    int series;       /* index into chart.series */
    int group;        /* of bars: which of a series */
    double x;         /* threads, depth, or position of a bar */
    double y, lo, hi; /* lo and hi NaN: no interval */
    double other;     /* roof, or planned memory; NaN: none */
    double extra;     /* of chart.extra_name; NaN: none */
    double limit;     /* NaN: none */
    enum mark_state state;
    char note[48]; /* what happened, where the state is MARK_CROSS; of a chart with
                      log_x the mark's label */
    double label_x, label_y; /* middle of that label */
    bool doubtful;           /* other is a roof of disturbed rows only */
};

struct chart {
    const char *name;    /* of the files, without ending */
    const char *x_name;  /* columns of the CSV */
    const char *x_title; /* of the axis; NULL: memory's and divergence's own */
    const char *y_name, *other_name;
    const char *y_title;    /* of the axis of lines; NULL: tokens per second */
    const char *unit;       /* of y, with y_title; NULL: tok/s */
    const char *roof;       /* what it is; NULL: bandwidth / bytes */
    const char *extra_name; /* a further column, also on the y axis; NULL: none */
    char title[160], subtitle[320];
    char series[CHART_MAX_SERIES][REPORT_NAME_MAX];
    char legend[CHART_MAX_SERIES][REPORT_NAME_MAX]; /* the same, shorter; "": cut */
    int n_series, n_left_out;         /* settings beyond CHART_MAX_SERIES */
    char group[CHART_MAX_SERIES][32]; /* names of bars */
    int n_groups;
    bool bars;      /* x is a position, y begins at 0 and is never logarithmic */
    bool log_x;     /* x is a quantity >= 0, and marks have labels */
    bool may_split; /* into panels, see chart_axes.h */
    int panel[CHART_MAX_SERIES], n_panels;
    int max_threads; /* that the machine has for this process; 0: not known */
    bool has_figure; /* set by chart_plot() */
    struct mark *v;  /* malloc'ed */
    size_t n, cap;
};

/* A new mark, zeroed but for its NaNs; NULL when there is no memory. */
struct mark *chart_mark(struct chart *c);

/* The next series, named after the row's setting; -1 when the chart is full: then it is
 * counted, and the subtitle has the number. */
int chart_add_series(struct chart *c, const struct report_rows *p, const struct row *r);

/* Take speed, interval, roof and state from a row. */
void mark_set_speed(struct mark *m, const struct row *r);

/* Set the roof to that of an undisturbed machine (roof_best()), or to that of
 * arithmetic where it is lower; a row that streams keeps its own. */
void mark_set_best_roof(struct mark *m, const struct row *r,
                        const struct report_rows *p);

/* The least x of a mark that is greater than x; INFINITY: no such mark. */
double chart_next_x(const struct chart *c, double x);

/* What the roofs of a chart of lines are. */
const char *chart_roof(const struct chart *c);

void chart_free(struct chart *c);

#endif
