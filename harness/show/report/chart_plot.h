/* SPDX-License-Identifier: MIT
 *
 * chart_plot.h - a chart of rows as a plot: for its files and for a page
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_CHART_PLOT_H
#define SLM_HARNESS_SHOW_REPORT_CHART_PLOT_H

#include "harness/chart/plot.h"
#include "harness/show/report/report_chart.h"

/* Finds panels and axes of c. NULL: there is no figure to draw, or
 * (c->has_figure) no memory. in_page: texts are short, so that they fit a phone. */
struct plot *chart_plot(struct chart *c, bool in_page);

#endif
