/* SPDX-License-Identifier: MIT
 *
 * gnuplot.h - a plot as CSV and as a gnuplot script that reads it
 *
 * The script is whole: texts, the style (plots/style.gp: colours, marks, fonts,
 * terminals), and what is drawn. `gnuplot NAME.gp` in its folder draws NAME.png and
 * NAME.svg again, also after an edit of either file.
 *
 * Threading: pure functions.
 * Source: gnuplot 5.4's manual.
 */
#ifndef SLM_HARNESS_CHART_GNUPLOT_H
#define SLM_HARNESS_CHART_GNUPLOT_H

#include <stdio.h>

#include "harness/chart/plot.h"

/* p is laid out for a file. style: the text of plots/style.gp. Errors: ST_NO_MEMORY.
 * Failed writes are left in f. */
enum status gnuplot_write(FILE *f, const struct plot *p, const char *style,
                          struct err *err);

/* The table, with a line of names. */
void gnuplot_write_table(FILE *f, const struct plot *p);

#endif
