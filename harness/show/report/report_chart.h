/* SPDX-License-Identifier: MIT
 *
 * report_chart.h - from marks to a chart's files
 *
 * Model of the world: a chart is a list of marks and a few words. chart_plot() makes it
 * a plot, for a page or as files (chart_files.h) in the sweep's directory.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_CHART_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/rows/report_rows.h"
#include "harness/chart/plot.h"

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
    bool may_split; /* into panels, see chart_choose_panels() */
    int panel[CHART_MAX_SERIES], n_panels;
    int max_threads;    /* that the machine has for this process; 0: not known */
    bool has_figure;    /* set by chart_plot() */
    bool is_incomplete; /* there was no memory for what it should have */
    struct mark spare;
    struct mark *v; /* malloc'ed */
    size_t n, cap;
};

/* A new mark, zeroed but for its NaNs. Without memory the chart is incomplete, and the
 * mark is none of its. */
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

/* ---- what charts show ------------------------------------------------------------ */

/* Adds the marks of a chart, which is incomplete without memory. */
typedef void report_fill_fn(struct chart *c, const struct report_rows *p);

/* Bars per setting and text, at the thread count that decodes the text fastest; no
 * marks where no point is of kind speculate. */
report_fill_fn report_fill_speculation;

/* A series per setting, at the number of threads that is recommended for it (with at
 * most c->max_threads); other is the roof of an undisturbed machine (roof_best());
 * a setting that pages has none. */
report_fill_fn report_fill_context;

/* mark.group of report_fill_pareto(). */
enum { PARETO_FITS, PARETO_TOO_LARGE };

/* One mark per setting whose divergence is known (quality_rows_join_dir()): x that, y
 * its speed, other the same where it is on the frontier, note its label. */
report_fill_fn report_fill_pareto;

/* Charts along a setting: each at the number of threads and the depth at which that
 * setting has the most values; no marks where it has fewer than two.
 *
 * Decode speed by memory limit: a line for each quantisation and each way to hold
 * weights that was requested; with auto, points of one line may differ in what was
 * chosen. */
report_fill_fn report_fill_limit;

/* Decode speed by number of sequences, with the roof of an undisturbed machine
 * (roof_best()): the speed of all together and of each, and the size of the KV cache. A
 * line for each setting, and for each number of tokens that sequences begin with. */
report_fill_fn report_fill_sequences, report_fill_each, report_fill_kv;

/* Steps that read a prompt in chunks, by tokens of a chunk: the time that each
 * sequence waits for its token, with that of a step without a chunk and the least that
 * the roofs allow; and the tokens per second of the prompt. */
report_fill_fn report_fill_step, report_fill_chunk;

/* ---- drawing it ------------------------------------------------------------------ */

/* Finds panels and axes of c. NULL: there is no figure to draw, or
 * (c->has_figure) no memory. in_page: texts are short, so that they fit a phone. */
struct plot *chart_plot(struct chart *c, bool in_page);

/* Ranges are computed and not left to a writer, because points without a figure have to
 * be put somewhere: on the lower edge, one above the other. Series that are far slower
 * than the others would make the axis logarithmic and press both into a band of it, so
 * they get a *panel*: axes of their own below, with the same x. The first panel has the
 * fastest series. */

struct chart_scale {
    double min, max;
    bool log;
    double cross, cross_step; /* first cross, and the next above it */
};

struct chart_axes {
    double x_min, x_max;
    double zero_x; /* where x = 0 stands on a logarithmic axis; NAN: nowhere */
    double gap_x;  /* where that axis is broken between 0 and the rest; or NAN */
    struct chart_scale y[CHART_MAX_PANELS];
};

/* Set c->panel and c->n_panels: one, unless the chart may be split and is better so. */
void chart_choose_panels(struct chart *c);

/* The height of a panel of lines, in pixels of a file's picture. */
double chart_panel_height(const struct chart *c, int panel);

/* After chart_choose_panels(). False when there is no figure to draw. Heights of panels
 * are shrunk by that factor. Marks at x = 0 of
 * a logarithmic axis are moved, roofs that would press a panel's figures together are
 * taken off, and crosses are put on the lower edge. */
bool chart_find_axes(struct chart *c, struct chart_axes *a, double shrink);

#endif
