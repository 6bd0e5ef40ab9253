/* SPDX-License-Identifier: MIT
 *
 * point_tuned.h - a point with a profile of `bench tune`
 *
 * The deciding side finds the profile and takes from it what the user has not set.
 * Choices that are no settings of a point are sent to the worker, which opens its model
 * with them and, once it is loaded, checks them against the default.
 *
 * Threading: as point.h.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_TUNED_H
#define SLM_HARNESS_MEASURE_POINT_POINT_TUNED_H

#include "engine/engine.h"
#include "harness/machine/topology.h"
#include "harness/rows/point/point.h"
#include "harness/measure/tune/tuned_use.h"

/* Into p, where it has a profile that fits its model and machine, here; else the reason
 * into note. Errors: of tuned_find(). */
enum status point_take_tuned(struct point *p, const struct tuned_key *here, char *note,
                             size_t cap, struct err *err);

/* The parameters with which the model can run both ways: params has those of the point,
 * and is changed where it has a profile. */
void point_tuned_params(const struct point *p, struct slm_params *params);

/* CPUs of as many threads: cpus [TOPO_MAX_CPUS] to fill, *chosen NULL for none. */
enum status point_tuned_cpus(const struct point *p, const struct topology *topo,
                             int *cpus, const int **chosen, struct err *err);

/* The worker's check: afterwards model, p and row have the side that is used. Errors:
 * of
 * tuned_check(). */
enum status point_check_tuned(struct slm *m, struct point *p,
                              const struct topology *topo, struct row *row,
                              struct err *err);

#endif
