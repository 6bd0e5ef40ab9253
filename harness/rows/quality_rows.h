/* SPDX-License-Identifier: MIT
 *
 * quality_rows.h - quality.csv: its rows, and joining them to a sweep's rows
 *
 * Model of the world: <dir>/quality.csv has a sweep's columns, one row per model, type
 * of KV cache, text, chunk length, number of positions and reference. A row of a sweep
 * belongs to the row whose model, quantisation, file size and type of KV cache are its
 * own; the latest if there are several.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_ROWS_QUALITY_ROWS_H
#define SLM_HARNESS_ROWS_QUALITY_ROWS_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/rows/row.h"

#define QUALITY_CSV "quality.csv"

/* Put rows into dir/quality.csv, each in the place of the one it replaces, through a
 * temporary file. Errors: ST_IO, ST_INPUT (the existing file is no table). */
enum status quality_rows_write(const char *dir, const struct row *rows, size_t n,
                               struct err *err);

/* The rows of dir/quality.csv, malloc'ed; *rows NULL and *n 0 without that file.
 * Errors: as row_csv_read(). */
enum status quality_rows_read(const char *dir, struct row **rows, size_t *n,
                              struct err *err);

/* Fills the columns of group "quality" of each row that has a match in
 * dir/quality.csv; other rows keep theirs. Errors: as row_csv_read(). */
enum status quality_rows_join_dir(struct row *rows, size_t n_rows, const char *dir,
                                  struct err *err);

/* Copy quality.csv of a directory, or the file itself, into dir. Errors: ST_IO,
 * ST_INPUT (it is no such table, or holds no figure). */
enum status quality_rows_copy(const char *from, const char *dir, struct err *err);

/* Prints quality tables as text. */
void quality_rows_print(FILE *f, const struct row *rows, size_t n);

#endif
