/* SPDX-License-Identifier: MIT
 *
 * load_row.c - figures of a level as columns
 */
#include <math.h>
#include <stdio.h>

#include "harness/base/format.h"
#include "harness/serve/load/load.h"
#include "harness/judge/users/users.h"

#define MAX_STEAL      0.02
#define MAX_PRESSURE   0.05 /* of the time somebody waited for memory (PSI) */
#define MAX_DRIFT_P    0.05
#define MIN_DRIFT      0.1
#define MIN_BACKLOG    0.02
#define MAX_CLIENT_PCT 50.0

static void fill_times(struct row *row, const struct load_figures *f)
{
    row->ttft_p50_s = f->ttft_s.p50.value;
    row->ttft_p90_s = f->ttft_s.p90.value;
    row->ttft_p90_s_lo = f->ttft_s.p90.lo;
    row->ttft_p90_s_hi = f->ttft_s.p90.hi;
    row->ttft_p99_s = f->ttft_s.p99.value;
    row->ttft_visible_p50_s = f->visible_s.p50.value;
    row->ttft_visible_p90_s = f->visible_s.p90.value;
    row->ttft_visible_p90_s_lo = f->visible_s.p90.lo;
    row->ttft_visible_p90_s_hi = f->visible_s.p90.hi;
    row->ttft_visible_p99_s = f->visible_s.p99.value;
    row->ttft_turn1_p50_s = f->turn1_s.p50.value;
    row->ttft_turn1_p90_s = f->turn1_s.p90.value;
    row->ttft_turn1_p90_s_lo = f->turn1_s.p90.lo;
    row->ttft_turn1_p90_s_hi = f->turn1_s.p90.hi;
    row->ttft_later_p50_s = f->later_s.p50.value;
    row->ttft_later_p90_s = f->later_s.p90.value;
    row->ttft_later_p90_s_lo = f->later_s.p90.lo;
    row->ttft_later_p90_s_hi = f->later_s.p90.hi;
    row->tpot_p50_ms = f->tpot_ms.p50.value;
    row->tpot_p90_ms = f->tpot_ms.p90.value;
    row->tpot_p90_ms_lo = f->tpot_ms.p90.lo;
    row->tpot_p90_ms_hi = f->tpot_ms.p90.hi;
    row->tpot_p99_ms = f->tpot_ms.p99.value;
    row->itl_p50_ms = f->itl_ms.p50.value;
    row->itl_p90_ms = f->itl_ms.p90.value;
    row->itl_p99_ms = f->itl_ms.p99.value;
    row->e2e_p50_s = f->e2e_s.p50.value;
    row->e2e_p90_s = f->e2e_s.p90.value;
    row->e2e_p99_s = f->e2e_s.p99.value;
    row->ttft_uncached_s = f->cached_tokens >= 0 ? f->ttft_cold_s : NAN;
    row->ttft_cached_s = f->ttft_cached_s;
}

static void fill_counts(struct row *row, const struct load_settings *s,
                        const struct load_figures *f)
{
    const size_t n_ok = f->n - f->n_failed;

    row->n_requests = row->n_samples = (int64_t)f->n;
    row->n_failed = (int64_t)f->n_failed;
    row->n_warm_up = (int64_t)f->n_warm_up;
    row->window_s = f->window_s;
    row->req_per_s = f->req_per_s;
    row->tok_per_s = f->tok_per_s;
    row->tok_per_s_lo = f->tok_per_s_lo;
    row->tok_per_s_hi = f->tok_per_s_hi;
    row->prompt_tokens = f->prompt_mean;
    row->output_tokens = f->output_mean;
    row->reasoning_tokens = f->reasoning_mean;
    row->n_invisible = (int64_t)f->n_invisible;
    row->output_pieces = n_ok ? (double)f->pieces / (double)n_ok : NAN;
    if (f->cached_tokens >= 0)
        row->n_cached_requests = (int64_t)f->n_cached;
    row->prefix_hit_pct = 100 * f->prefix_hit;
    row->prefix_known_pct = 100 * f->prefix_known;
    if (s->sessions.tools_pct > 0)
        row->n_tool_calls = (int64_t)f->n_calls;
    row->slo_met_pct = f->n ? 100.0 * (double)f->n_met / (double)f->n : NAN;
    if (f->n && f->req_per_s > 0) {
        double lo, hi;

        slo_binomial(f->n_met, f->n, &lo, &hi);
        row->goodput_per_s = f->req_per_s * (double)f->n_met / (double)f->n;
        row->goodput_per_s_lo = f->req_per_s * lo;
        row->goodput_per_s_hi = f->req_per_s * hi;
    }
    row->n_ttft_met = (int64_t)f->n_ttft_met;
    row->n_tpot_met = (int64_t)f->n_tpot_met;
    row->slo_verdict = (int)f->verdict;
    row->in_flight = f->in_flight;
    row->little = f->little;
}

/* Times of an open loop that is saturated depend on how long it lasts. */
static bool is_saturated(const struct load_figures *f)
{
    return f->backlog_p < MAX_DRIFT_P && f->backlog > MIN_BACKLOG;
}

/* What speaks against the row, the worst first. */
static void fill_validity(struct row *row, const struct load_settings *s,
                          const struct load_figures *f, const struct load_result *r,
                          const struct noise *noise)
{
    char why[200] = "";

    if (noise->suspended_ns)
        text_append(why, sizeof why, ", slept %.3g s",
                    (double)noise->suspended_ns * 1e-9);
    if (r->late_p99_ms > s->max_late_ms)
        text_append(why, sizeof why, ", client late by %.1f ms", r->late_p99_ms);
    if (f->sent_late_ms > s->max_late_ms)
        text_append(why, sizeof why, ", requests sent late by %.0f ms",
                    f->sent_late_ms);
    if (row->client_cpu_pct > MAX_CLIENT_PCT)
        text_append(why, sizeof why, ", client takes %.0f %% of a CPU",
                    row->client_cpu_pct);
    if (row->steal_pct > 100 * MAX_STEAL)
        text_append(why, sizeof why, ", steal %.0f %%", row->steal_pct);
    if (noise->wall_ns &&
        (double)noise->pressure_ns > MAX_PRESSURE * (double)noise->wall_ns)
        text_append(why, sizeof why, ", memory pressure %.0f %%",
                    100 * (double)noise->pressure_ns / (double)noise->wall_ns);
    if (!f->settled)
        text_append(why, sizeof why, ", not settled");
    if (is_saturated(f))
        text_append(why, sizeof why,
                    ", saturated, the backlog grows by %.0f %% of the "
                    "requests",
                    100 * f->backlog);
    else if (f->drift_p < MAX_DRIFT_P && fabs(f->drift) > MIN_DRIFT)
        text_append(why, sizeof why, ", drift %.0f %%", 100 * f->drift);
    if (users_doubts_little(row))
        text_append(why, sizeof why, ", Little's law off by %.0f %%",
                    100 * (f->little - 1));
    snprintf(row->validity, sizeof row->validity, "%s%.80s",
             *why ? "disturbed: " : "valid", *why ? why + 2 : "");
}

/* Appends "N of M WHAT" to the row's detail, unless N is 0. */
static void add_detail(struct row *row, size_t n, size_t of, const char *what)
{
    if (n)
        text_append(row->detail, sizeof row->detail, "%s%zu of %zu %s",
                    *row->detail ? "; " : "", n, of, what);
}

const char *load_arrivals(const struct row *row)
{
    return *row->sessions ? "sessions" : "requests";
}

void load_row_fill(struct row *row, const struct load_settings *s,
                   const struct load_figures *f, const struct load_result *r,
                   const struct noise *noise)
{
    fill_times(row, f);
    fill_counts(row, s, f);
    row->client_cpu_pct = r->wall_s > 0 ? 100 * r->cpu_s / r->wall_s : NAN;
    row->client_late_p99_ms = r->late_p99_ms;
    row->client_late_max_ms = r->late_max_ms;
    row->steal_pct = 100 * noise_steal_share(noise);
    row->backlog_pct = 100 * f->backlog;
    row->drift_pct = 100 * f->drift;
    row->status = r->is_interrupted                      ? ROW_STATUS_INTERRUPTED
                  : f->n == f->n_failed                  ? ROW_STATUS_ERROR
                  : !isfinite(row->window_s) || f->n < 5 ? ROW_STATUS_PARTIAL
                                                         : ROW_STATUS_OK;
    if (f->n_failed)
        snprintf(row->detail, sizeof row->detail, "%zu of %zu requests failed: %.120s",
                 f->n_failed, f->n, f->why ? f->why : "they were cut off");
    add_detail(
        row, f->n_invisible, f->n,
        "answers had no visible token before they ended: a larger --output gives "
        "thoughts room");
    add_detail(row, f->n_too_many, f->n,
               "answers had more tokens by the server's usage than were requested: "
               "their pieces are counted");
    noise_remark(noise, row->detail, sizeof row->detail);
    fill_validity(row, s, f, r, noise);
}
