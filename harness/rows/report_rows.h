/* SPDX-License-Identifier: MIT
 *
 * report_rows.h - the rows of a sweep, ordered and named for a reader
 *
 * Model of the world: a point is measured several times, by launches of its own; one
 * row represents it, with the combined figures of those that can be trusted most
 * (launches.h). Where all were disturbed it is the least disturbed one, of failed ones
 * the latest. Points that differ only in kind, threads, depth and prompt length belong
 * to one *setting*: a line of a chart. A setting is named by its quantisation, and by
 * whatever else differs between the settings of this sweep.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_ROWS_REPORT_ROWS_H
#define SLM_HARNESS_ROWS_REPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "harness/base/format.h"
#include "harness/rows/launches.h"
#include "harness/rows/row.h"

#define REPORT_NAME_MAX 400

/* How far a row can be trusted. */
enum row_trust {
    ROW_FAILED,    /* no figure: oom, no_fit, error, interrupted */
    ROW_PARTIAL,   /* the time budget ended it after a few samples */
    ROW_DISTURBED, /* complete, but something disturbed it */
    ROW_GOOD,
};

enum row_trust row_trust(const struct row *r);

/* Memory that a point needs: what was measured to stay resident, or else (rows of
 * versions without that column) the most that was charged, which counts page cache,
 * too. 0: not known. */
int64_t row_needed_bytes(const struct row *r);

/* What makes the figure doubtful, or the status without one; "": nothing. */
const char *row_doubt(const struct row *r);

/* "decode at 0", "prefill 512", "load, 4 users". */
void row_point_text(char *buf, size_t cap, const struct row *r);

/* The status of a row without a figure; "no figure" where it has none. */
const char *row_failure(const struct row *r);

/* The context that a decode row stands for: its depth, but no more than the model was
 * made for, since positions beyond that are only as fast. A window of the KV cache has
 * no such end. */
int64_t row_context(const struct row *r);

/* Whether the row was marked because it reached more than its roof: one of the two
 * figures is wrong then. */
bool row_above_roof(const struct row *r);

/* Time to first token of a prefill row with the model loaded; for a row of versions
 * without that column from the time with loading. NAN: not known. */
double row_ttft_warm_s(const struct row *r);

struct report_rows {
    const struct row **v;      /* [n], one per point: by setting, kind, threads, depth,
                                  prompt length; settings by size of the model file */
    struct launches *launches; /* [n] */
    size_t n;
    unsigned varies; /* columns that differ between settings: bits of report_rows.c */
};

/* The rows stay the caller's and must live as long. Error: ST_NO_MEMORY. */
enum status report_rows_pick(struct report_rows *p, const struct row *rows,
                             size_t n_rows, struct err *err);
void report_rows_free(struct report_rows *p);

/* Names of settings are without a column, as "mem_limit_bytes", from here on. */
void report_rows_ignore(struct report_rows *p, const char *column);

bool report_same_setting(const struct row *a, const struct row *b);

/* The same setting, kind and number of threads: they differ in depth or prompt, and
 * stand next to each other in report_rows. */
bool report_same_line(const struct row *a, const struct row *b);

struct report_name {
    char text[REPORT_NAME_MAX];
};

/* The model's label; in rows of versions without that column its name, for files called
 * "m-Q4_K_M" or "m.q4_k_m" just "m" where that is their quantisation, which stands next
 * to it anyway. */
struct report_name report_model_name(const struct row *r);

/* The order of these names. */
int report_compare_models(const struct row *a, const struct row *b);

/* "yi-1.5-9b", at most n_characters of it, or "3 models". Returns buf. */
const char *report_models_text(const struct report_rows *p, char *buf, size_t cap,
                               size_t n_characters);

/* "measured 2026-11-23 by slmbench 0.1.0 (792f2ee1a2)", as far as the rows have it; ""
 * where no row has a date. Returns buf. */
const char *report_origin(const struct row *rows, size_t n, char *buf, size_t cap);

/* "Q4_K_M", or "yi-1.5-9b Q4_K_M compact" where models and placements differ.
 * Returns buf. */
const char *report_setting_name(const struct report_rows *p, const struct row *r,
                                char *buf, size_t cap);

/* The setting's name without the model: the columns that differ and are known. The name
 * of the model stands for a quantisation that is not known, of a file that cannot be
 * read. Returns buf. */
const char *report_setting_label(const struct report_rows *p, const struct row *r,
                                 char *buf, size_t cap);

/* Least depth of the decode points of the setting [begin, end); -1: it has none. */
int64_t report_min_depth(const struct report_rows *p, size_t begin, size_t end);

/* The setting's ([begin, end)) decode row at that depth with the fastest thread count;
 * if no row has a figure, the one with the most threads. NULL: no row. */
const struct row *report_fastest_at(const struct report_rows *p, size_t begin,
                                    size_t end, int64_t depth);

/* Index after the last row of the setting that begins at index begin. */
size_t report_setting_end(const struct report_rows *p, size_t begin);

/* Decimals that show three digits or all before the point; the same within a range
 * of ten, so that a column lines up. */
int report_decimals(double v);

/* A figure with these decimals. */
struct shown_figure report_figure(double v);

#endif
