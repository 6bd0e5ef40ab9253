/* SPDX-License-Identifier: MIT
 *
 * svg_chart.h - the charts of a sweep as pictures in a page
 *
 * The same struct chart that gnuplot's files are written from; legends are lists of
 * HTML, so that they wrap on a phone.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_PAGE_SVG_CHART_H
#define SLM_HARNESS_SHOW_PAGE_SVG_CHART_H

#include <stdio.h>

#include "harness/show/report/chart_axes.h"
#include "harness/show/report/report_chart.h"

/* Legend and picture; a is of chart_find_axes(). One function for each form. */
void svg_chart_lines(FILE *f, const struct chart *c, const struct chart_axes *a);
void svg_chart_bars(FILE *f, const struct chart *c);
void svg_chart_memory(FILE *f, const struct chart *c, const struct chart_axes *a);
void svg_chart_pareto(FILE *f, const struct chart *c, const struct chart_axes *a);

/* The legend's entries for what marks and lines mean, where the chart has such. */
void svg_chart_key_states(FILE *f, const struct chart *c);

/* What a pointer over the mark shows, as the title of its group. */
void svg_chart_hint(FILE *f, const struct chart *c, const struct mark *m);

/* The name of a series in a legend, cut to what a phone shows in a line. */
const char *svg_chart_series(const struct chart *c, int series, char *buf, size_t cap);

#endif
