/* SPDX-License-Identifier: MIT
 *
 * point_tuning.h - a profile's choices of a point as JSON, for the worker and for
 * point_json()
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_POINT_POINT_TUNING_H
#define SLM_HARNESS_ROWS_POINT_POINT_TUNING_H

#include <jansson.h>

#include "harness/rows/point/point.h"

/* JSON null without a profile. */
json_t *point_tuning_json(const struct point_tuning *t);

/* Error: ST_USAGE. */
enum status point_tuning_from_json(struct point_tuning *t, const json_t *object,
                                   struct err *err);

#endif
