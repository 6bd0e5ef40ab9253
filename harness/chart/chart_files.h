/* SPDX-License-Identifier: MIT
 *
 * chart_files.h - the files of a chart, <name>.csv, .gp, .svg and .png in a directory,
 * and drawing it: with gnuplot or, without gnuplot, as SVG (svg.h)
 *
 * `gnuplot <name>.gp` in that directory redraws it from its CSV.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_CHART_CHART_FILES_H
#define SLM_HARNESS_CHART_CHART_FILES_H

#include <stdio.h>

#include "engine/base/status.h"
#include "harness/base/newfile.h"
#include "harness/base/pathlist.h"
#include "harness/chart/plot.h"

/* Where charts go, what all of them have below their titles and at the bottom, and the
 * command that redraws them; again NULL: `bench plot DIR`. */
struct chart_place {
    const char *dir, *subtitle, *origin, *again;
};

/* Lays p out, writes its files in dir and frees it; NULL is a plot without memory. With
 * gnuplot there are both pictures; without, the SVG alone, and the first time a line on
 * stderr explains how to get PNG. gnuplot opens the files that it writes by name, and
 * would follow a link of that name: so it draws in a folder that nobody else may enter,
 * made for it in dir, and what it has drawn is renamed. again: the command that redraws
 * the chart; NULL: `bench plot DIR`. Errors: ST_UNSUPPORTED (SLMBENCH_PLOTS names a
 * folder without style.gp), ST_IO (gnuplot failed, with its first message; a file could
 * not be read or written), ST_NO_MEMORY, ST_INTERRUPTED, ST_USAGE (the path is too
 * long). */
enum status chart_files_draw(struct plot *p, const char *dir, const char *again,
                             struct err *err);

/* Whether no file of a chart of these names (the last is NULL) in dir is one of the
 * inputs. Errors: path_list_check_output()'s. */
enum status chart_files_check(const struct path_list *inputs, const char *dir,
                              const char *const *names, struct err *err);

/* Removes the files of an earlier run. */
void chart_files_remove(const char *dir, const char *name);

/* ---- as CSV and as a gnuplot script that reads it -------------------------------- */

/* The script is whole: texts, the style (plots/style.gp: colours, marks, fonts,
 * terminals), and what is drawn. `gnuplot NAME.gp` in its folder draws NAME.png and
 * NAME.svg again, also after an edit of either file. */

/* p is laid out for a file. style: the text of plots/style.gp. Errors: ST_NO_MEMORY.
 * Failed writes are left in f. */
enum status gnuplot_write(FILE *f, const struct plot *p, const char *style,
                          struct err *err);

/* The table, with a line of names. */
void gnuplot_write_table(FILE *f, const struct plot *p);

#endif
