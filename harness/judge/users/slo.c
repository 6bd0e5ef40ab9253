/* SPDX-License-Identifier: MIT
 *
 * slo.c - presets, and shares of requests
 */
#include "harness/judge/users/slo.h"

#include <stdio.h>
#include <string.h>

#include "harness/stats/stats.h"

static const struct {
    struct slo slo;
    const char *one, *several;
} presets[] = {
    {{"interactive", 2, 200}, "interactive user", "interactive users"},
    {{"reading", 5, 250}, "user who reads the stream", "users who read the stream"},
    {{"batch", 60, 1000},
     "user who waits for whole answers",
     "users who wait for whole answers"},
};
#define N_PRESETS (sizeof presets / sizeof presets[0])

enum status slo_parse(struct slo *slo, const char *text, struct err *err)
{
    struct slo own = {.name = ""};
    int end = 0;

    for (size_t i = 0; i < N_PRESETS; i++)
        if (!strcmp(text, presets[i].slo.name)) {
            *slo = presets[i].slo;
            return ST_OK;
        }
    if (sscanf(text, "%lfs/%lfms%n", &own.ttft_s, &own.tpot_ms, &end) != 2 || !end ||
        text[end] || !(own.ttft_s > 0 && own.ttft_s < 1e6) ||
        !(own.tpot_ms > 0 && own.tpot_ms < 1e6))
        return err_set(
            err, ST_USAGE,
            "--slo: '%.40s' is not interactive, reading, batch, or times to the "
            "first token and per token as in 2s/200ms",
            text);
    snprintf(own.name, sizeof own.name, "%gs/%gms", own.ttft_s, own.tpot_ms);
    *slo = own;
    return ST_OK;
}

const char *slo_users(const struct slo *slo, int n)
{
    for (size_t i = 0; i < N_PRESETS; i++)
        if (!strcmp(slo->name, presets[i].slo.name))
            return n == 1 ? presets[i].one : presets[i].several;
    return n == 1 ? "user" : "users";
}

void slo_binomial(size_t k, size_t n, double *lo, double *hi)
{
    *hi = n ? stats_binomial_upper(k, n) : 1;
    *lo = n ? 1 - stats_binomial_upper(n - k, n) : 0;
}

enum row_slo_verdict slo_judge(size_t k, size_t n, double q)
{
    double lo, hi;

    slo_binomial(k, n, &lo, &hi);
    return lo >= q ? SLO_MEETS : hi < q ? SLO_MISSES : SLO_UNDECIDED;
}

enum row_slo_verdict slo_judge_both(size_t n_ttft_met, size_t n_tpot_met, size_t n)
{
    const enum row_slo_verdict a = slo_judge(n_ttft_met, n, SLO_SHARE);
    const enum row_slo_verdict b = slo_judge(n_tpot_met, n, SLO_SHARE);

    return a < b ? a : b;
}
