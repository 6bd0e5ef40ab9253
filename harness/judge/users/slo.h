/* SPDX-License-Identifier: MIT
 *
 * slo.h - limits of a request's times, and whether enough requests keep them
 *
 * Threading: pure functions.
 * Source: Clopper and Pearson 1934.
 */
#ifndef SLM_HARNESS_JUDGE_USERS_SLO_H
#define SLM_HARNESS_JUDGE_USERS_SLO_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/rows/row_enum.h"

#define SLO_SHARE 0.9 /* of the requests must meet a limit */

struct slo {
    char name[32];
    double ttft_s, tpot_ms;
};

/* "interactive", "reading", "batch", or TTFT and TPOT as "2s/200ms". Error: ST_USAGE.
 */
enum status slo_parse(struct slo *slo, const char *text, struct err *err);

/* Whose limits they are, of one or several: "user who reads the stream", "interactive
 * users", "users". */
const char *slo_users(const struct slo *slo, int n);

/* Ends of the one-sided 95 % intervals of a probability that k of n events were seen
 * of: the truth is below lo with 5 % probability, and above hi with 5 %. n 0: 0 and 1.
 */
void slo_binomial(size_t k, size_t n, double *lo, double *hi);

/* Whether at least the share q of requests meets a limit, from k of n that did: both
 * errors at 5 %. */
enum row_slo_verdict slo_judge(size_t k, size_t n, double q);

/* Whether n requests meet both limits, each judged by itself with SLO_SHARE. */
enum row_slo_verdict slo_judge_both(size_t n_ttft_met, size_t n_tpot_met, size_t n);

#endif
