/* SPDX-License-Identifier: MIT
 *
 * export.h - rows of results in the formats that other tools read
 *
 * Model of the world: a source is a run of a result set, with its samples where it has
 * a directory. A table has a row for each point, with the combined figures of its
 * launches (launches.h), or one for each launch as it was stored. llama-bench's JSON
 * Lines have a line for each point, whose launches are that program's repetitions. A
 * file of metrics has a sample per point for each figure.
 *
 * Texts of rows are harmless for a terminal; each format escapes them in its own way.
 * Commands are made again of the columns, never those found (point_row.h).
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_SHOW_EXPORT_EXPORT_H
#define SLM_HARNESS_SHOW_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/base/choice.h"
#include "harness/rows/result_set.h"

enum export_format {
    EXPORT_MARKDOWN,
    EXPORT_CSV,
    EXPORT_JSONL,
    EXPORT_LLAMA_BENCH_JSONL,
    EXPORT_OPENMETRICS,
};
extern const struct choices choices_export;

/* More columns cannot be requested. */
#define EXPORT_MAX_COLUMNS 256

struct export_params {
    int format;    /* enum export_format */
    bool launches; /* a row for each launch */
    const struct field *column[EXPORT_MAX_COLUMNS];
    size_t n_columns; /* 0: those of the format */
};

/* Names of columns, separated by commas, into p. Error: ST_USAGE (an unknown one, with
 * the one probably meant; none; too many). */
enum status export_columns_parse(struct export_params *p, const char *text,
                                 struct err *err);

/* Print the parts of sets[n_sets], which are by run (result_set_open()); commands of
 * their rows are made again. Where there are several parts the first column names them.
 * *n_left_out: rows that the format has no place for. Errors: those of samples_read(),
 * ST_NO_MEMORY. */
enum status export_write(FILE *f, const struct result_set *sets, size_t n_sets,
                         const struct export_params *p, size_t *n_left_out,
                         struct err *err);

/* The format EXPORT_LLAMA_BENCH_JSONL of one part, for export_write(). A prompt's
 * passes and the runs of n tokens that launches decoded are samples; runs of
 * speculative decoding and rows without a figure are left out, and disturbed launches
 * of points that have others. Errors: as export_write(). */
enum status export_llama_bench(FILE *f, const struct result_part *part,
                               size_t *n_left_out, struct err *err);

/* The format EXPORT_OPENMETRICS of all parts, for export_write(). Errors: as there. */
enum status export_openmetrics(FILE *f, const struct result_set *sets, size_t n_sets,
                               struct err *err);

#endif
