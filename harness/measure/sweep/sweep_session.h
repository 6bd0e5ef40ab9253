/* SPDX-License-Identifier: MIT
 *
 * sweep_session.h - a whole sweep: a new one, or one that is continued
 *
 * What can fail without a measurement fails before the first one. It prints what a
 * person must know, and each row as it is measured.
 *
 * Threading: one sweep at a time.
 */
#ifndef SLM_HARNESS_MEASURE_SWEEP_SWEEP_SESSION_H
#define SLM_HARNESS_MEASURE_SWEEP_SWEEP_SESSION_H

#include "harness/measure/sweep/sweep.h"

/* What its user wants; it borrows. Texts that are not given are NULL. */
struct sweep_request {
    struct setting_request settings;
    struct str_list models, engines;
    const char *config, *out, *resume, *cache_dir;
    bool no_probe, dry_run;
    int argc; /* the command line, for machine.json */
    char **argv;
};

/* Zeroed before; for sweep_session_close() in any case. */
struct sweep_session {
    struct topology topo;
    struct sweep_settings settings;
    struct sweep_models models;
    struct sweep_plan plan;
    struct sweep_dir *dir; /* NULL: it got none */
    bool one_at_a_time;    /* models, as the disk does not hold the files of all */
};

/* Measures all points that are due; with dry_run prints them. Errors: ST_USAGE,
 * ST_UNSUPPORTED, ST_INTERRUPTED, those of sweep_dir_create() and sweep_run(). */
enum status sweep_session_run(struct sweep_session *x, const struct sweep_request *q,
                              struct err *err);
void sweep_session_close(struct sweep_session *x);

#endif
