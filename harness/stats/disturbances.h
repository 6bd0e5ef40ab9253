/* SPDX-License-Identifier: MIT
 *
 * disturbances.h - what has disturbed the rounds of a comparison, how often
 *
 * A disturbed round is left out and measured again. Where there is no time left for
 * that it counts, and the counts here show it.
 *
 * Threading: one thread per struct.
 */
#ifndef SLM_HARNESS_STATS_DISTURBANCES_H
#define SLM_HARNESS_STATS_DISTURBANCES_H

#include <stdbool.h>
#include <stddef.h>

#define DISTURBANCES_MAX 8

struct disturbances {
    char name[DISTURBANCES_MAX][24]; /* "steal" */
    size_t n[DISTURBANCES_MAX];
    size_t n_rounds, n_counted; /* disturbed rounds; those that were counted anyhow */
};

/* Counts what disturbed a round, "steal 4 %, waiting 12 %" (noise_disturbed()). */
void disturbances_add(struct disturbances *d, const char *why, bool counted);

/* "steal in 3, waiting in 2; 4 of these rounds were counted, ..." Returns buf. */
const char *disturbances_text(const struct disturbances *d, char *buf, size_t cap);

#endif
