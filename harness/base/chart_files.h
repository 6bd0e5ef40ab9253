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
#include "harness/base/gnuplot.h"
#include "harness/base/newfile.h"

/* A file that is being written. dir and name are the caller's. */
struct chart_file {
    struct newfile file;
    const char *dir, *name;
    char path[4096];
};

/* dir/name.ending for writing, which replaces what has that name; NULL with err of
 * newfile_replace(). */
FILE *chart_file_create(struct chart_file *c, const char *dir, const char *name,
                        const char *ending, struct err *err);

/* Error: ST_IO (a write failed). */
enum status chart_file_finish(struct chart_file *c, struct err *err);

/* Appends a comma and a cell to a CSV line. */
void chart_file_number(FILE *f, double v);
/* The same for text. gnuplot splits at commas within quotes and has no quoted quotes,
 * so they are replaced. */
void chart_file_text(FILE *f, const char *s);

/* First lines of <name>.gp: name, data, title and subtitle. */
void chart_file_head(FILE *f, const char *name, const char *title,
                     const char *subtitle);

/* Appends both templates to c, which holds the settings of <name>.gp, closes it and
 * draws. again: the command that redraws the chart. Errors: ST_UNSUPPORTED (a template
 * was not found), those of chart_file_finish() and gnuplot_draw(). */
enum status chart_file_draw(struct chart_file *c, const char *again, struct err *err);

/* Removes the files of an earlier run. */
void chart_files_remove(const char *dir, const char *name);

#endif
