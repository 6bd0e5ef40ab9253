/* SPDX-License-Identifier: MIT
 *
 * chart_files.h - the files of a chart, <name>.csv, .gp, .svg and .png in a directory,
 * and drawing it with gnuplot
 *
 * The script consists of settings followed by the templates plots/style.gp and
 * plots/<name>.gp, so that `gnuplot <name>.gp` there redraws it.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_BASE_CHART_FILES_H
#define SLM_HARNESS_BASE_CHART_FILES_H

#include <stdio.h>

#include "engine/base/status.h"

/* dir/name.ending for writing, or NULL with ST_IO in err. */
FILE *chart_file_create(const char *dir, const char *name, const char *ending,
                        struct err *err);

/* Closes f. Error: ST_IO (a write failed). */
enum status chart_file_finish(FILE *f, const char *dir, const char *name,
                              struct err *err);

/* Appends a comma and a cell to a CSV line. */
void chart_file_number(FILE *f, double v);
/* The same for text. gnuplot splits at commas within quotes and has no quoted quotes,
 * so they are replaced. */
void chart_file_text(FILE *f, const char *s);

/* Append plots/<name>.gp. Error: ST_UNSUPPORTED (not found). */
enum status chart_file_template(FILE *to, const char *name, struct err *err);

/* First lines of <name>.gp: name, data, title and subtitle. */
void chart_file_head(FILE *f, const char *name, const char *title,
                     const char *subtitle);

/* Appends both templates to f, which holds the settings of <name>.gp, closes it and
 * draws. again: the command that redraws the chart. Errors: those of
 * chart_file_template(), chart_file_finish() and gnuplot_run(). */
enum status chart_file_draw(FILE *f, const char *dir, const char *name,
                            const char *again, struct err *err);

/* Removes the files of an earlier run. */
void chart_files_remove(const char *dir, const char *name);

/* ---- gnuplot --------------------------------------------------------------------- */

/* Run `gnuplot script` with dir as its working directory. again: the command that
 * redraws the chart. Errors: ST_UNSUPPORTED (no gnuplot; the message says how to
 * install it), ST_IO (gnuplot failed; the message is its first one). */
enum status gnuplot_run(const char *dir, const char *script, const char *again,
                        struct err *err);

/* Write s as a gnuplot string in single quotes, where nothing but the quote
 * itself is special; control characters become blanks. */
void gnuplot_quote(FILE *f, const char *s);

#endif
