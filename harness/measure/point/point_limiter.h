/* SPDX-License-Identifier: MIT
 *
 * point_limiter.h - what limits the speed of a point, and the evidence
 *
 * Threading: pure function.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_LIMITER_H
#define SLM_HARNESS_MEASURE_POINT_POINT_LIMITER_H

#include "harness/measure/point/point_measure.h"

/* Fill in the columns limiter and limiter_why from the other columns and facts; both
 * stay empty where too little is known. */
void point_limit(struct row *row, const struct point_facts *facts);

#endif
