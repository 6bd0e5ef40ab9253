/* SPDX-License-Identifier: MIT
 *
 * chart_axes.h - ranges and panels of a chart
 *
 * Model of the world: ranges are computed here and not left to a writer, because points
 * without a figure have to be put somewhere: on the lower edge, one above the other.
 * Series that are far slower than the others would make the axis logarithmic and press
 * both into a band of it, so they get a *panel*: axes of their own below, with the same
 * x. The first panel has the fastest series.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_CHART_AXES_H
#define SLM_HARNESS_SHOW_REPORT_CHART_AXES_H

#include <stdbool.h>

#include "harness/show/report/report_chart.h"

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
