/* SPDX-License-Identifier: MIT
 *
 * point_profile_show.h - a token's time by operation, as a table and as a chart
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_PROFILE_SHOW_H
#define SLM_HARNESS_MEASURE_POINT_POINT_PROFILE_SHOW_H

#include <stdio.h>

#include "harness/machine/topology.h"
#include "harness/measure/worker/point_profile.h"
#include "harness/rows/row.h"

/* The table. row: the point's. */
void point_profile_print(FILE *f, const struct point_profile *p, const struct row *row);

/* profile.csv, .gp, .svg and .png in dir, which is there; topo: that of the
 * profiled machine. Errors: those of chart_files.h. */
enum status point_profile_draw(const struct point_profile *p, const struct row *row,
                               const struct topology *topo, const char *dir,
                               struct err *err);

#endif
