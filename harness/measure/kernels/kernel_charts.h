/* SPDX-License-Identifier: MIT
 *
 * kernel_charts.h - what both charts of kernels have in common
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_CHARTS_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_CHARTS_H

#include "harness/measure/kernels/kernel_report.h"

#define KERNEL_MAX_NAMES 256

/* Distinct names in the order they come; an index for each. */
struct kernel_names {
    char v[KERNEL_MAX_NAMES][96];
    int n;
};

/* The index of the name, which is added if it is new; -1: the list is full. */
int kernel_name_index(struct kernel_names *names, const char *name);

/* kernels_heatmap as kernel_report_charts() draws it. */
enum status kernel_heatmap_draw(const struct kernel_report *r, const char *dir,
                                const char *again, struct err *err);

#endif
