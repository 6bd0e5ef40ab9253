/* SPDX-License-Identifier: MIT
 *
 * choose_state.h - finished steps, in one file of JSON
 *
 * Model of the world: a step has a name and a result, which stays the same whoever runs
 * it. The file is replaced as a whole after each step. It also has what all steps have
 * in common; a directory of other settings is refused, not mixed. It may be damaged or
 * foreign: a result that its reader does not understand is a step to be done again.
 *
 * Threading: one process at a time, by a lock.
 */
#ifndef SLM_HARNESS_DECIDE_CHOOSE_CHOOSE_STATE_H
#define SLM_HARNESS_DECIDE_CHOOSE_CHOOSE_STATE_H

#include <jansson.h>

#include "engine/base/status.h"

struct choose_state {
    char dir[3000];
    json_t *root; /* {"settings": .., "steps": {..}} */
    int lock;     /* -1: none */
};

/* Open or begin dir/choose.json; settings is released. Errors: ST_USAGE (its steps are
 * of other settings, which are named; another run has it), ST_INPUT, ST_IO. */
enum status choose_state_open(struct choose_state *s, const char *dir, json_t *settings,
                              struct err *err);
void choose_state_close(struct choose_state *s);

/* A finished step; NULL: it is not finished. Borrowed. */
const json_t *choose_state_get(const struct choose_state *s, const char *step);

/* Finish a step; result is released. It is on disk on return. Errors: those of
 * textfile_write_json(). */
enum status choose_state_put(struct choose_state *s, const char *step, json_t *result,
                             struct err *err);

#endif
