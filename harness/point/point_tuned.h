/* SPDX-License-Identifier: MIT
 *
 * point_tuned.h - a point that asks for a profile of `bench tune`
 *
 * The deciding side finds the profile and takes from it what nobody asked for; choices
 * that are no settings of a point travel to the measuring side, which opens its model
 * with them and, once it is loaded, checks them against the default.
 *
 * Threading: as point.h.
 */
#ifndef SLM_HARNESS_POINT_POINT_TUNED_H
#define SLM_HARNESS_POINT_POINT_TUNED_H

#include <jansson.h>

#include "engine/engine.h"
#include "harness/machine/topology.h"
#include "harness/point/point.h"

/* Into p, where p->tuned asks for a profile and it fits; else the reason into note.
 * Errors: of tuned_find(). */
enum status point_take_tuned(struct point *p, const struct topology *topo, char *note,
                             size_t cap, struct err *err);

/* To the child and back; JSON null without a profile. Error: ST_USAGE. */
json_t *point_tuning_json(const struct point_tuning *t);
enum status point_tuning_from_json(struct point_tuning *t, const json_t *object,
                                   struct err *err);

/* What the model is opened with, so that it can run both ways: params has what the
 * point wants, and is changed where it has a profile. */
void point_tuned_params(const struct point *p, struct slm_params *params);

/* CPUs of as many threads: cpus [TOPO_MAX_CPUS] to fill, *chosen NULL for none. */
enum status point_tuned_cpus(const struct point *p, const struct topology *topo,
                             int *cpus, const int **chosen, struct err *err);

/* The child's look: afterwards model, p and row say how it runs. Errors: of
 * tuned_check(). */
enum status point_check_tuned(struct slm *m, struct point *p,
                              const struct topology *topo, struct row *row,
                              struct err *err);

#endif
