/* SPDX-License-Identifier: MIT
 *
 * export.h - rows of results in the formats that other tools read
 *
 * Model of the world: a *source* is the rows of one sweep, with their samples where the
 * directory has them, or one run of a database. A table has a row for each point, with
 * the combined figures of its launches (launches.h), or one for each launch as it was
 * stored. llama-bench's JSON Lines have a line for each point, whose launches are that
 * program's repetitions.
 *
 * Texts of rows are harmless for a terminal; each format escapes them in its own way.
 * Commands are made again of the columns, never those found (point_row.h).
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_EXPORT_EXPORT_H
#define SLM_HARNESS_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/base/choice.h"
#include "harness/base/pathlist.h"
#include "harness/result/row.h"
#include "harness/result/samples.h"

enum export_format {
    EXPORT_MARKDOWN,
    EXPORT_CSV,
    EXPORT_JSONL,
    EXPORT_LLAMA_BENCH_JSONL,
};
extern const struct choices choices_export;

struct export_source {
    char name[128];   /* of the directory, or host and time of a run */
    char cpu[96];     /* its model; "": not known */
    struct row *rows; /* [n], malloc'ed */
    size_t n;
    struct samples samples;
};

struct export_sources {
    struct export_source *v; /* [n], malloc'ed */
    size_t n;
    struct path_list files; /* that were read */
};

/* More columns cannot be asked for. */
#define EXPORT_MAX_COLUMNS 256

struct export_params {
    int format;    /* enum export_format */
    bool launches; /* a row for each launch */
    const struct field *column[EXPORT_MAX_COLUMNS];
    size_t n_columns; /* 0: those of the format */
};

/* Add what is at path to s, which begins zeroed: a directory of a sweep, one above
 * such directories, a database, a CSV, or a row as JSON. Errors: those of
 * report_rows_read(), samples_read() and history_read(). s is to be freed in any case.
 */
enum status export_read(struct export_sources *s, const char *path, struct err *err);
void export_sources_free(struct export_sources *s);

/* Names of columns, separated by commas, into p. Error: ST_USAGE (an unknown one, with
 * the one probably meant; none; too many). */
enum status export_columns_parse(struct export_params *p, const char *text,
                                 struct err *err);

/* Print them. Where there are several sources the first column says which. *n_left_out:
 * rows that the format has no place for. Error: ST_NO_MEMORY. */
enum status export_write(FILE *f, const struct export_sources *s,
                         const struct export_params *p, size_t *n_left_out,
                         struct err *err);

/* The format EXPORT_LLAMA_BENCH_JSONL of one source, for export_write(). A prompt's
 * passes and the runs of n tokens that launches decoded are samples; runs of
 * speculative decoding and rows without a figure are left out, and disturbed launches
 * of points that have others. Error: ST_NO_MEMORY. */
enum status export_llama_bench(FILE *f, const struct export_source *s,
                               size_t *n_left_out, struct err *err);

#endif
