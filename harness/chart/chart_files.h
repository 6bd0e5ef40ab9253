/* SPDX-License-Identifier: MIT
 *
 * chart_files.h - the files of a chart, <name>.csv, .gp, .svg and .png in a directory,
 * and drawing it: with gnuplot or, without gnuplot, as SVG (harness/chart)
 *
 * The script consists of settings followed by the templates plots/style.gp and
 * plots/<form>.gp, so that `gnuplot <name>.gp` there redraws it.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_CHART_CHART_FILES_H
#define SLM_HARNESS_CHART_CHART_FILES_H

#include <stdio.h>

#include "engine/base/status.h"
#include "harness/base/newfile.h"
#include "harness/base/pathlist.h"

/* A file that is being written. dir and name are the caller's. */
struct chart_file {
    struct newfile file;
    const char *dir, *name;
    const char
        *form; /* of the template plots/<form>.gp; chart_file_create(): as name */
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

/* All of it: <name>.csv of put_data(), <name>.gp of put_settings() behind the head, and
 * the pictures by plots/<form>.gp. Errors: ST_IO, those of chart_file_draw(). */
struct chart_text {
    const char *dir, *name, *form, *title, *subtitle;
    const char *again; /* the command that redraws it; NULL: `bench plot DIR` */
};
typedef void chart_put_fn(FILE *f, const void *what);
enum status chart_files_make(const struct chart_text *t, chart_put_fn *put_data,
                             chart_put_fn *put_settings, const void *what,
                             struct err *err);

/* The setting <name>, an array of n texts, each cut beyond most characters, and their
 * number, n_<name>. */
void chart_file_texts(FILE *f, const char *name, const char *const *v, int n,
                      size_t most);

/* What plots/style.gp requires of every chart, where axes are linear or the template's.
 */
void chart_file_ranges(FILE *f, double x_min, double x_max, double y_min, double y_max);

/* Whether no file of a chart of these names (the last is NULL) in dir is one of the
 * inputs. Errors: path_list_check_output()'s. */
enum status chart_files_check(const struct path_list *inputs, const char *dir,
                              const char *const *names, struct err *err);

/* Removes the files of an earlier run. */
void chart_files_remove(const char *dir, const char *name);

/* ---- gnuplot ---------------------------------------------------------------------
 *
 * It opens the files that it writes by name, and would follow a link of that name. So
 * it draws in a folder that nobody else may enter, made for it next to the results, and
 * what it has drawn is renamed. */

/* Draws dir/<name>.gp with its dir/<name>.csv as dir/<name>.svg and .png. Without
 * gnuplot: as .svg alone, and the first time a line on stderr explains how to get PNG.
 * again: the command that redraws the chart. Errors: ST_UNSUPPORTED (no gnuplot, and a
 * template of the user has what draw.h does not know), ST_IO (gnuplot failed, with its
 * first message; a file could not be read or written). */
enum status gnuplot_draw(const char *dir, const char *name, const char *again,
                         struct err *err);

/* Write s as a gnuplot string in single quotes, where nothing but the quote itself is
 * special. It becomes U+2019: gnuplot takes a doubled one for the end of the string
 * where that comes first, or behind another. Control characters become blanks. */
void gnuplot_quote(FILE *f, const char *s);

#endif
