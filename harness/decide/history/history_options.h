/* SPDX-License-Identifier: MIT
 *
 * history_options.h - the options of `bench history`, and its commands
 *
 * cmd_history.c parses; every command is one function below, which reads what it needs.
 * An option that was not given is NULL, 0 or false; its default is named next to it.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_HISTORY_OPTIONS_H
#define SLM_HARNESS_DECIDE_HISTORY_HISTORY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/base/options.h"
#include "harness/decide/gate/gate_report.h"
#include "harness/rows/result_set.h"

struct history_options {
    const char *path;     /* the history: database, directory, or CSV of many runs */
    struct str_list rows; /* the new rows: directories, CSV or JSON files */
    bool here;            /* rows without a machine are this one's */
    const char *commit;   /* name for what was measured; NULL: that of the rows */

    /* which values */
    const char *metrics; /* columns, separated by commas; NULL: tok_per_s */
    const char *only;    /* series whose name has this text */
    bool disturbed;      /* disturbed rows count, too */
    uint64_t last;       /* latest runs of a series that count; 0: 500. For
                            gates: those listed; 0: all */

    /* of a comparison */
    const char *add_to; /* database that the new rows are added to afterwards */
    const char *config, *margin;
    const char *exit_codes; /* "0,1,4" */
    int *codes; /* [3] the same, of pass, fail, inconclusive; if the configuration has
                   others they are put here */

    /* what comes out */
    const char *out; /* directory; NULL: none */
    struct gate_outputs outputs;
};

/* o->rows into the database o->path. Errors: those of result_set_read() and
 * history_db_record(), ST_USAGE (no rows), ST_INPUT (no machine is known of them). */
enum status history_add(const struct history_options *o, struct err *err);

/* New rows against the stored ones; fills *r (zeroed before). Errors: ST_UNSUPPORTED
 * (nothing can be compared, with the reason), those of result_set_read() and
 * baseline_compare(). */
enum status history_compare(const struct history_options *o, struct gate_result *r,
                            struct err *err);

/* Change points of o->path, printed and written. Errors: those of result_set_read(),
 * ST_INPUT (no such series), ST_IO, ST_NO_MEMORY. */
enum status history_changes(const struct history_options *o, struct err *err);

/* The gates of o->path, printed, and as JSON with o->json. Errors: those of
 * history_gates_read(), ST_INPUT (no gate). */
enum status history_list_gates(const struct history_options *o, struct err *err);

/* o->rows, into h (zeroed before). Errors: result_set_read()'s; ST_USAGE
 * (nothing is named). */
enum status history_rows_read(struct result_set *h, const struct history_options *o,
                              struct err *err);

/* One history, or what one of o->rows names; with o->here rows that name no machine are
 * this one's. Errors: result_set_read()'s. */
enum status history_path_read(struct result_set *h, const struct history_options *o,
                              const char *path, struct err *err);

#endif
