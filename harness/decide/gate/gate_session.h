/* SPDX-License-Identifier: MIT
 *
 * gate_session.h - what a gate and a calibration begin and end with: settings, the
 * programs of both sides, the machine
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_SESSION_H
#define SLM_HARNESS_DECIDE_GATE_GATE_SESSION_H

#include <limits.h>

#include "harness/decide/gate/gate_commits.h"
#include "harness/decide/gate/gate_run.h"

struct gate_session {
    const struct gate_options *o;
    struct topology *topo;
    struct gate_settings s;
    struct gate_commits commits;
    struct gate_run run;
    const char *program[2];  /* the sides as they are run */
    char found[2][PATH_MAX]; /* programs of $PATH */
};

/* Settings and machine, and whether outputs are none of the inputs. *x is for
 * gate_session_close() in any case. Errors: gate_settings_make()'s, ST_USAGE,
 * ST_NO_MEMORY. */
enum status gate_session_open(struct gate_session **x, const struct gate_options *o,
                              struct err *err);

/* The directory of the results, which is not made yet: that of --output, or a new one
 * below the results whose name begins with prefix. Errors: ST_USAGE (no name, or a gate
 * is in it), ST_IO (it cannot be made). */
enum status gate_session_dir(char dir[512], const struct gate_options *o,
                             const char *prefix, struct err *err);

/* Finds or builds the programs (both A's where a program is calibrated), and waits
 * until nothing else measures. Errors: gate_commits_find()'s, gate_commits_build()'s,
 * ST_INTERRUPTED. */
enum status gate_session_begin(struct gate_session *x, struct err *err);

/* NULL: nothing to do. */
void gate_session_close(struct gate_session *x);

#endif
