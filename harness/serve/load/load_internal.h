/* SPDX-License-Identifier: MIT
 *
 * load_internal.h - a run of bench load between its files
 *
 * Threading: the main thread.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_LOAD_INTERNAL_H
#define SLM_HARNESS_SERVE_LOAD_LOAD_INTERNAL_H

#include "harness/base/progress.h"
#include "harness/client/client.h"
#include "harness/serve/load/load.h"
#include "harness/serve/load/server_counts.h"

struct load_run {
    struct load_answer *a;
    struct load_settings own; /* url and roof of a server that is started come later */
    const struct load_settings *s; /* these */
    const struct row *done;
    size_t n_done;
    load_row_fn *fn;
    void *arg;
    struct load_prompts prompts;
    struct load_target target;
    char url[600], base[560];
    char *model; /* that requests name; malloc'ed. NULL: not known yet */
    struct progress progress;
    char doing[80];
    size_t n_wanted;
    double limit_s;
    double *cells; /* [n_cells][REQUEST_CELLS] of all tries of a level; malloc'ed */
    size_t n_cells;
    bool no_metrics; /* the server has no /metrics */
};

/* The server is there from now on, its model is known, and how many tokens it makes of
 * a word. Each user of the server calls it; the first call connects. Errors:
 * those of load_run(). */
enum status load_connect(struct load_run *x, struct err *err);

/* n_users at once, in as many tries as it takes to decide, two at most; or the row that
 * is known from a run that ended early. Errors: those of load_run(). */
enum status load_level_users(struct load_run *x, int n_users, struct load_level **out,
                             struct err *err);

/* An open loop of `rate` requests a second; share is that of the
 * capacity's rate, 0 if it was not requested. Errors: those of load_run(). */
enum status load_level_open(struct load_run *x, double rate, double share,
                            struct err *err);

#endif
