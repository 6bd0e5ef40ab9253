/* SPDX-License-Identifier: MIT
 *
 * result_set_impl.h - shared by the readers of result_set.h: directories and single
 * rows (result_set.c), tables (result_set_table.c), databases (result_set_db.c)
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_ROWS_RESULT_SET_IMPL_H
#define SLM_HARNESS_ROWS_RESULT_SET_IMPL_H

#include "harness/rows/result_set.h"

/* Room for n rows more. Errors: result_set_add_row()'s. */
enum status result_set_reserve(struct result_set *set, const char *path, size_t n,
                               struct err *err);

/* The run's text of that column of result_run_columns, which is foreign. */
void result_run_set(struct result_run *run, size_t column, const char *text);

/* The profile of a run's machine: foreign text, or NULL. False: it is none. */
bool result_run_set_machine(struct result_run *run, const char *profile);

/* The machine of a run that names none; NULL: it is not known. */
void result_run_set_here(struct result_run *run, const struct machine_key *here);

/* Add the CSV at path: the sweep.csv of dir, or (NULL) one that was named itself.
 * Errors: result_set_read()'s. */
enum status result_set_read_table(struct result_set *set, const char *path,
                                  const char *dir, const struct machine_key *here,
                                  struct err *err);

/* Add rows[n] without a machine.json, of one run or of those that are found. Errors:
 * result_set_read()'s. */
enum status result_set_add_rows(struct result_set *set, const char *path,
                                const struct row *rows, size_t n,
                                const struct machine_key *here, struct err *err);

/* Add all rows of a database. Errors: result_set_read()'s. */
enum status result_set_read_db(struct result_set *set, const char *path,
                               struct err *err);

/* Check the rows from index first on, which were read from path, and mark low roofs.
 * Error: ST_NO_MEMORY. */
enum status result_set_settle(struct result_set *set, const char *path, size_t first,
                              struct err *err);

/* ---- rows that cannot be, and rows that are there twice -------------------------- */

/* A table may have been edited, joined or converted by others. Held against each row
 * are the ranges of its settings (settings.def), its roof, the share of the roof that
 * it has itself, its interval and its times; and against all of them their key: a
 * launch has one point, attempt and time. */

struct row_check {
    size_t n_impossible, n_copies;
    char first[200]; /* why the first one cannot be; "" */
};

/* Rows that cannot be become failed ones, with the reason as their detail; a row above
 * its roof without a reason becomes a disturbed one (row_above_roof()). Copies are
 * taken out: rows[*n] keep their order, and each launch its first row. Error:
 * ST_NO_MEMORY. */
enum status row_check_all(struct row_check *c, struct row *rows, size_t *n,
                          struct err *err);

#endif
