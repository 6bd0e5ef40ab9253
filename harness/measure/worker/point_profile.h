/* SPDX-License-Identifier: MIT
 *
 * point_profile.h - a token's time by operation, from the worker to its parent
 *
 * The rows and what was outside of them add up to the mean sample. An operation's
 * roof is the time in which the machine could read its bytes, or do its
 * multiply-adds, whichever is longer: products of quantised weights at the int8 peak,
 * the others and attention at the f32 peak, all probed in the same run.
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_POINT_PROFILE_H
#define SLM_HARNESS_MEASURE_WORKER_POINT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "engine/forward/profile.h"
#include "harness/measure/worker/messages.h"

struct point_profile_row {
    char op[24], weights[12]; /* weights "": without weights */
    double work_ms, wait_ms;  /* per sample, mean of the threads */
    double bytes, macs;       /* per sample, all threads */
    bool is_int8;             /* the peak that its multiply-adds have */
};

struct point_profile {
    size_t n_samples, n_rows; /* n_rows 0: no profile */
    double sample_ms;         /* mean */
    double int8_gops, f32_gops;
    struct point_profile_row rows[SLM_PROFILE_ROWS];
};

/* Summarises a profile of n_samples samples, sample_ms long in the mean. */
void point_profile_make(struct point_profile *p, const struct slm_profile *from,
                        size_t n_samples, double sample_ms, double int8_gops,
                        double f32_gops);

json_t *point_profile_json(const struct point_profile *p);
/* Rows that are not as expected are left out. */
void point_profile_from_json(struct point_profile *p, const json_t *object);

/* Milliseconds that the roofs allow, and which of them it is: "memory", "compute" or
 * "" (nothing is read or multiplied; then 0). */
double point_profile_roof_ms(const struct point_profile *p,
                             const struct point_profile_row *row, double roof_gbps,
                             const char **bound);

/* Milliseconds of a sample: all of it; at barriers; working at operations that
 * multiply, unpacking included; and what its multiply-adds take at the peaks. */
void point_profile_facts(const struct point_profile *p, struct point_facts *facts);

#endif
