/* SPDX-License-Identifier: MIT
 *
 * point_profile_print.h - a token's time by operation, as a table
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_PROFILE_PRINT_H
#define SLM_HARNESS_MEASURE_POINT_POINT_PROFILE_PRINT_H

#include <stdio.h>

#include "harness/measure/worker/point_profile.h"
#include "harness/rows/row.h"

/* row: the point's. */
void point_profile_print(FILE *f, const struct point_profile *p, const struct row *row);

#endif
