/* SPDX-License-Identifier: MIT
 *
 * draw.h - a chart's gnuplot script drawn as SVG, without gnuplot
 *
 * Model of the world: a chart is described once, by its CSV and its script (settings
 * and two templates of plots/). gnuplot draws that, and so does this room where there
 * is no gnuplot: it reads the part of gnuplot's language that plots/ uses, and refuses
 * what it does not know with the line it stands in, so that no chart silently lacks
 * something. Sizes and distances are those of gnuplot's own SVG, within a few pixels;
 * tests/support/same_charts.py holds texts and places of both against each other.
 *
 * Scripts may hold anything: recursion, loops, memory and the picture have limits.
 *
 * Threading: one thread; no global state.
 * Source: gnuplot 5.4's manual, and the pictures that it makes.
 */
#ifndef SLM_HARNESS_CHART_DRAW_H
#define SLM_HARNESS_CHART_DRAW_H

#include <stdio.h>

#include "engine/base/status.h"

/* Draws what script makes of data (CSV with a line of names) on gnuplot's terminal
 * "svg" to f; other terminals are passed over. Errors: ST_INPUT (a statement that is
 * not known, with its line; no picture; a limit), ST_NO_MEMORY. Failed writes are left
 * in f. */
enum status draw_svg(const char *script, const char *data, FILE *f, struct err *err);

#endif
