/* SPDX-License-Identifier: MIT
 *
 * history_point.h - the point that a stored row was measured at
 *
 * A row may come from a foreign file: each column is checked before it becomes a
 * setting. Rows of older versions lack some columns; history_point.c has the values
 * that replace them.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_HISTORY_HISTORY_POINT_H
#define SLM_HARNESS_HISTORY_HISTORY_POINT_H

#include "harness/point/point.h"

/* The settings of r's point into *p, to be measured with this model on this machine.
 * Errors: ST_INPUT, ST_USAGE (a column is out of range, or the machine lacks what it
 * names; says which). */
enum status history_point(struct point *p, const struct row *r,
                          const struct modelref *model, const struct topology *topo,
                          struct err *err);

#endif
