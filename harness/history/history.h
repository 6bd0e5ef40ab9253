/* SPDX-License-Identifier: MIT
 *
 * history.h - rows of many runs, and where they came from
 *
 * Model of the world: a *run* is one sweep: its rows, the machine, the commit of the
 * program that measured, and when. A history is runs from an SQLite database
 * (history_db.h), from a tree of sweeps' directories, or from a CSV. A CSV
 * holds several runs where it has the columns of a database (its two tables joined), or
 * where they stand one after the other: a point and attempt that come again begin the
 * next one. All of these may be foreign or damaged.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_HISTORY_HISTORY_H
#define SLM_HARNESS_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "harness/base/pathlist.h"
#include "harness/machine/machine_key.h"
#include "harness/result/row.h"

#define HISTORY_MAX_ROWS 200000
#define HISTORY_MAX_RUNS 20000

struct history_run {
    char id[24];  /* the same however often it is read */
    char utc[24]; /* when it began, ISO 8601 */
    char commit[64], version[64], compiler[64], host[65]; /* "": not known */
    bool has_machine;
    struct machine_key machine;
};

struct history {
    struct history_run *runs; /* malloc'ed */
    size_t n_runs, cap_runs;
    struct row *rows; /* malloc'ed */
    size_t *run_of;   /* malloc'ed: index of each row's run */
    size_t n_rows, cap_rows;
    struct path_list files; /* that were read */
};

/* Add what is at path to h, which begins zeroed: a database, a directory (searched for
 * sweep.csv, links not followed), a CSV, or one row as `bench decode --json` prints it.
 * machine.json beside a CSV says where its rows are from; where there is none, here is
 * taken, which may be NULL: not known. Errors: ST_IO, ST_INPUT (not such a file,
 * damaged, too many rows), ST_NO_MEMORY. */
enum status history_read(struct history *h, const char *path,
                         const struct machine_key *here, struct err *err);
void history_free(struct history *h);

/* One more run, zeroed, and one more row of the run last added. Errors: ST_NO_MEMORY,
 * ST_INPUT (more than there may be; path is named). */
enum status history_add_run(struct history *h, const char *path,
                            struct history_run **run, struct err *err);
enum status history_add_row(struct history *h, const char *path, const struct row *row,
                            struct err *err);

/* Columns that say which run a row is of, as the database has them; the first is the
 * run's id. */
#define HISTORY_N_COLUMNS 7
extern const char *const history_columns[HISTORY_N_COLUMNS];

/* Rows with such columns, cells[n][HISTORY_N_COLUMNS], NULL or foreign text each; here
 * and errors as for history_read(). A run's rows need not stand together. */
enum status history_add_identified(struct history *h, const char *path,
                                   const struct row *rows, size_t n, char *const *cells,
                                   const struct machine_key *here, struct err *err);

/* What machine.json (foreign text) says of a run: all but the rows. */
void history_run_describe(struct history_run *run, const json_t *machine);

/* The start of it, as `git log --oneline` has it; "?" where it is not known. Returns
 * buf. */
const char *history_commit(const struct history_run *run, char *buf, size_t cap);

#endif
