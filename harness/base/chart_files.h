/* SPDX-License-Identifier: MIT
 *
 * chart_files.h - the files of a chart: <name>.csv, .gp, .svg and .png in a directory
 *
 * The script is settings of ours followed by the templates plots/style.gp and
 * plots/<name>.gp, so that `gnuplot <name>.gp` there draws it again.
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

/* Closes f; ST_IO when anything could not be written. */
enum status chart_file_finish(FILE *f, const char *dir, const char *name,
                              struct err *err);

/* One more cell of a CSV line, its comma first. */
void chart_file_number(FILE *f, double v);
/* gnuplot cuts a text at a comma even within quotes, and knows no quoted quotes. */
void chart_file_text(FILE *f, const char *s);

/* Append plots/<name>.gp. Error: ST_UNSUPPORTED (not found, where it was looked for).
 */
enum status chart_file_template(FILE *to, const char *name, struct err *err);

/* First lines of <name>.gp: its own name, its data, and the two texts over it. */
void chart_file_head(FILE *f, const char *name, const char *title,
                     const char *subtitle);

/* Settings of <name>.gp are written to f: close it with both templates and draw. again
 * is the command that draws it again. Errors: those of chart_file_template(),
 * chart_file_finish() and gnuplot_run(). */
enum status chart_file_draw(FILE *f, const char *dir, const char *name,
                            const char *again, struct err *err);

/* Those of an earlier run, as far as they are there. */
void chart_files_remove(const char *dir, const char *name);

#endif
