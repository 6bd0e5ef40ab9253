/* SPDX-License-Identifier: MIT
 *
 * chart_labels.h - where the labels of marks stand, so that they can be read
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_CHART_LABELS_H
#define SLM_HARNESS_SHOW_REPORT_CHART_LABELS_H

#include <stdbool.h>

#include "harness/show/report/report_chart.h"

/* Set label_x and label_y of every mark, the middle of its note, beside the mark and so
 * that no note covers another, a mark or the line of a frontier, as far as that can be
 * had. x is logarithmic, y is or not. */
void chart_place_labels(struct chart *c, double x_min, double x_max, double y_min,
                        double y_max, bool log_y);

#endif
