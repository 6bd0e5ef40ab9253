/* SPDX-License-Identifier: MIT
 *
 * history_gates.h - verdicts of gates, kept in the database of the rows of sweeps
 *
 * Table `gates` of a database (history_db.h): a row for each measure of a gate, with
 * the gate's own columns in each. A gate is known by its time, machine, model and
 * sides, so that one that is stored again changes nothing.
 *
 * Threading: any number of processes, as for history_db.h.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_HISTORY_GATES_H
#define SLM_HARNESS_DECIDE_HISTORY_HISTORY_GATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/decide/gate/gate_result.h"

/* A row of the table; unknown numbers are NAN, unknown texts "". */
struct history_gate {
    char gate[24], utc[32], mode[16], end[16], verdict[16]; /* of the whole gate */
    char machine[24], host[65], model[256], settings[256];
    char a_name[512], a_version[64], a_commit[64], a_compiler[64];
    char b_name[512], b_version[64], b_commit[64], b_compiler[64];
    double injected, seconds;
    char measure[128], unit[16], measure_verdict[16];
    double less_is_better; /* 0 or 1 */
    double margin, a, b, ratio, ratio_lo, ratio_hi, p_fail, p_pass;
    double n_launches, n_rounds;
    char machine_name[256]; /* of the other table */
};

struct history_gates {
    struct history_gate *v; /* malloc'ed [n]: by time, a gate's rows side by side */
    size_t n;
};

/* More rows are not read; the latest are. */
#define HISTORY_MAX_GATES 20000

/* Store r in the database at path, which is made if it is not there: all its measures,
 * or nothing. *n_new (may be NULL): rows that were not there yet. Errors: those of
 * history_db_record(). */
enum status history_gates_add(const char *path, const struct gate_result *r,
                              size_t *n_new, struct err *err);

/* The rows of the database at path, which may be foreign or damaged; none where it has
 * no such table. *gates is for history_gates_free() in any case. Errors: ST_INPUT,
 * ST_IO, ST_NO_MEMORY. */
enum status history_gates_read(struct history_gates *gates, const char *path,
                               struct err *err);
void history_gates_free(struct history_gates *gates);

/* ---- history_gates_print.c ------------------------------------------------------- */

/* The latest gates (0: all) that have a measure, a model or a machine named like only
 * (NULL: any), the oldest first. Returns how many. */
size_t history_gates_print(FILE *f, const struct history_gates *gates, const char *only,
                           uint64_t last);
json_t *history_gates_json(const struct history_gates *gates, const char *only,
                           uint64_t last);

/* ---- the columns ----------------------------------------------------------------- */

struct history_gate_column {
    const char *name;
    bool is_text;
    size_t offset, cap; /* cap: a text's */
};
extern const struct history_gate_column history_gate_columns[];
extern const size_t history_n_gate_columns;

#endif
