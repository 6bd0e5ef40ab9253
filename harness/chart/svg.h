/* SPDX-License-Identifier: MIT
 *
 * svg.h - a plot as SVG: a file, or a part of a page
 *
 * A file has its colours in it. In a page colours are classes of page.css (s0 to s6 for
 * series, ink, dim, rule, paper, bad, warn), light and dark, and the legend is a
 * list of HTML before the picture, so that it wraps on a phone. Sizes and distances of
 * a file are those of gnuplot's own SVG, within a few pixels;
 * tests/support/same_charts.py compares texts and places of both.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_CHART_SVG_H
#define SLM_HARNESS_CHART_SVG_H

#include <stdio.h>

#include "harness/chart/layout.h"

/* p is laid out for that look. Failed writes are left in f. */
void svg_write(FILE *f, const struct plot *p, const struct plot_look *look);

#endif
