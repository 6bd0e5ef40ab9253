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

#include <jansson.h>

#include "harness/machine/topology.h"
#include "harness/rows/point/point.h"
#include "harness/measure/tune/tuned_use.h"

/* Into p, where it has a profile that fits its model and machine, here; else the reason
 * into note. Errors: of tuned_find(). */
enum status point_take_tuned(struct point *p, const struct tuned_key *here, char *note,
                             size_t cap, struct err *err);

/* What the profile must fit, from the worker's answer. Error: ST_IO (not as expected).
 */
enum status point_key_from_json(struct tuned_key *key, const json_t *object,
                                struct err *err);

#endif
