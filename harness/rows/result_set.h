/* SPDX-License-Identifier: MIT
 *
 * result_set.h - the rows at a path: for every command that reads results
 *
 * Model of the world: a *run* is one sweep: its rows, the machine, the commit of the
 * program that measured, and when. A result set is runs from the directory of a sweep,
 * from a tree of such directories, from an SQLite database (history_db.h writes it),
 * from a CSV, or one row as JSON. A CSV holds several runs where it has the columns of
 * a database (its two tables joined), or where they stand one after the other: a point
 * and attempt that come again begin the next one. All of these may be foreign or
 * damaged.
 *
 * Whatever they were read from, rows of a run stand next to each other, in the order in
 * which they were read; rows that cannot be count as failed, copies are left out
 * (row_check.c), and a line on stderr reports it; low roofs within a run are marked
 * (roofs.h); and rows of a directory have what its quality.csv knows of them
 * (quality_rows.h).
 *
 * result_set_open() also gives rows of one model one label (model_rows.h). Whoever
 * compares the rows of several paths joins them once more.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_ROWS_RESULT_SET_H
#define SLM_HARNESS_ROWS_RESULT_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/json_read.h"
#include "engine/base/status.h"
#include "harness/base/format.h"
#include "harness/base/pathlist.h"
#include "harness/machine/machine_key.h"
#include "harness/rows/row.h"

#define RESULT_SET_MAX_ROWS     200000
#define RESULT_SET_MAX_RUNS     20000
#define RESULT_SET_MAX_MACHINES 64 /* in parts by machine */

/* Limits of a machine.json: enough for thousands of CPUs. */
#define MACHINE_JSON_LIMIT ((struct json_limit){.bytes = 8u << 20, .values = 200000})

/* What a reader shows of a machine; missing fields are "" or 0. */
struct report_machine {
    char host[80];
    char cpu_model[96];
    int n_cpus;      /* in the affinity mask */
    int max_threads; /* within affinity and quota; 0: unknown */
    double quota_cpus;
};

struct result_run {
    char id[24];  /* the same however often it is read */
    char utc[24]; /* when it began, ISO 8601 */
    char commit[64], version[64], compiler[64], host[65]; /* "": not known */
    bool has_machine;
    struct machine_key machine;
    struct report_machine about;
    double product_share[KERN_N_FMT]; /* result_products_read() */
    char *dir; /* malloc'ed: the sweep's, with its samples and machine.json; NULL: it
                  was not read from one */
};

/* Rows for one reader: those of a run, or the latest of each point on a machine. */
struct result_part {
    char name[128]; /* of the directory; else host and time of the run, or
                       what the machine is called among the others */
    const struct result_run
        *run;         /* one of the set; for a machine the last that has rows */
    struct row *rows; /* malloc'ed [n] */
    size_t n;
};

struct result_set {
    struct result_part *parts; /* malloc'ed, by result_set_open() */
    size_t n_parts;
    struct result_run *runs; /* malloc'ed */
    size_t n_runs, cap_runs;
    struct row *rows; /* malloc'ed */
    size_t *run_of;   /* malloc'ed: index of each row's run */
    size_t n_rows, cap_rows;
    struct path_list files; /* that were read, or are where readers look */
    struct err unread;      /* why a machine.json could not be read; ST_OK: all could */
};

/* Add what is at path to set, which begins zeroed: a directory (its sweep.csv, or all
 * that are below it, links not followed), a database, a CSV, or one row as `bench
 * decode --json` prints it. machine.json next to a CSV describes the machine of its
 * rows; without it, here is taken, which may be NULL: not known. Errors:
 * ST_IO, ST_INPUT (not such a file, damaged, no row in a directory, too many rows),
 * ST_NO_MEMORY, ST_INTERRUPTED. */
enum status result_set_read(struct result_set *set, const char *path,
                            const struct machine_key *here, struct err *err);
void result_set_free(struct result_set *set);

/* model_rows_join() for all rows of sets[n] that have not been handed out. Error:
 * ST_NO_MEMORY. */
enum status result_set_join_models(struct result_set *const *sets, size_t n,
                                   struct err *err);

enum result_by {
    RESULT_BY_RUN,
    RESULT_BY_MACHINE, /* runs of one profile and host; for each point the rows of the
                          latest run that has it */
    RESULT_LAST /* the machine whose rows are the latest, as one part; which it is
                   among others, or among several runs, is reported on stderr */
};

/* Read what is at path and hand its rows out in parts; set->rows is NULL then. A part
 * at least, but none by run where a database is empty. set is for result_set_free() in
 * any case, and not for more rows. Errors: those of result_set_read(); ST_INPUT (no
 * rows), ST_USAGE (too many machines). */
enum status result_set_open(struct result_set *set, const char *path, enum result_by by,
                            struct err *err);

/* model_rows_join() for the parts of several sets together. */
enum status result_parts_join_models(struct result_set *sets, size_t n,
                                     struct err *err);

/* Among several paths, as of a pattern like "results/" with a star, leaves out those
 * that exist and hold no rows: folders without a sweep, other files; reports them on
 * stderr. Returns how many of paths[n] are kept, in order; all, where none holds rows.
 */
size_t result_paths_keep(char **paths, size_t n);

/* The directory of the sweep that was written last, in the folder of results
 * (dirs_results_root()). Error: ST_USAGE: there is no sweep. */
enum status result_newest(char *path, size_t cap, struct err *err);

/* One more run, zeroed, and one more row of the run last added. Errors: ST_NO_MEMORY,
 * ST_INPUT (more than there may be; path is named). */
enum status result_set_add_run(struct result_set *set, const char *path,
                               struct result_run **run, struct err *err);
enum status result_set_add_row(struct result_set *set, const char *path,
                               const struct row *row, struct err *err);

/* All of a run but its rows, from its machine.json (foreign text). */
void result_run_describe(struct result_run *run, const json_t *machine);

/* "products" of a probe in machine.json: the share of the arithmetic peak that products
 * of a format reach, by its name; 0: not there. */
#define RESULT_PRODUCTS "products"
void result_products_read(double share[KERN_N_FMT], const json_t *probe);

/* The last part of a directory's path, which may end in slashes, cut to cap bytes and
 * made harmless. cap >= 8. */
void result_dir_name(char *name, size_t cap, const char *path);

/* The start of the commit, as `git log --oneline` has it; "?" where it is not known. */
struct shown_figure result_run_commit(const struct result_run *run);

/* Columns that name the run of a row, in a database and in tables made of one:
 * name, and where in struct result_run the text is. The first is the run's id. */
#define RESULT_RUN_COLUMNS 6
extern const char *const result_run_columns[RESULT_RUN_COLUMNS];
const char *result_run_text(const struct result_run *run, size_t column);

#endif
