/* SPDX-License-Identifier: MIT
 *
 * load_servers.h - load on one server, or on several that are started, in turn
 *
 * Model of the world: without launches the server at a URL is measured (load.h).
 * With them, each is started, measured and ended: round by round and, where numbers of
 * users are given, level by level, in an order drawn for each. Rows go to a directory,
 * with the times of their requests, and a run that ended early can be continued.
 *
 * Threading: the main thread.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_LOAD_SERVERS_H
#define SLM_HARNESS_SERVE_LOAD_LOAD_SERVERS_H

#include <stdio.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/base/options.h"
#include "harness/serve/load/load.h"

#define LOAD_MAX_SERVERS 8

struct load_plan {
    struct load_settings s;   /* of each; name, round, roof, and of launches url, are
                                 set here */
    struct str_list launches; /* NAME=COMMAND; none: the server at s.url */
    uint64_t mem_limit;       /* of each, in bytes; 0: none */
    double quota_cpus;        /* CPU time per time of each; 0: none */
    const char *cpus;         /* of each, as "0,2-3"; NULL: launch_place_find()'s */
    double start_s;           /* until it must be ready */
    int n_rounds;
    bool no_roof;
    const char *dir_path; /* NULL: rows are not kept */
    bool resume;
    int argc; /* of the command, for machine.json */
    char **argv;
};

struct load_found {
    struct load_answer *a; /* [n], one for each server; malloc'ed */
    size_t n;
    struct row *rows; /* [n_rows], also those that were in the directory; malloc'ed */
    size_t n_rows;
    bool is_kept; /* they are in a directory */
};

/* *out is for load_found_free() in any case, and where it ends early, what was measured
 * until then. A directory without a row is not left behind. Errors: those of
 * load_run(), launch_start() and sweep_dir_create(); ST_USAGE (rows of other settings
 * are there). */
enum status load_servers_run(struct load_found *out, const struct load_plan *plan,
                             struct err *err);
void load_found_free(struct load_found *f);

/* The answer of all servers, if there are several, then that and the table of each. */
enum status load_found_print(FILE *f, const struct load_found *found,
                             const struct load_plan *plan, struct err *err);

/* As JSON: answer, carries, misses, undecided and rows; for several servers their
 * answer, and servers, an array of such objects with a name each. NULL: no memory. */
json_t *load_found_json(const struct load_found *found, const struct load_plan *plan,
                        struct err *err);

/* Draws the charts (users.h) of the directory; prints where, or why it has no charts,
 * on f (NULL: nowhere) and stderr. Errors: those of users_charts(). */
enum status load_found_draw(FILE *f, const struct load_plan *plan, struct err *err);

#endif
