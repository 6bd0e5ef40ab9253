/* SPDX-License-Identifier: MIT
 *
 * figures.c - times of requests, and what follows from them
 */
#include "harness/serve/load/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/stats/stats.h"

#define N_PARTS    10
#define MANY_TIMES 2 /* a window of this many requests' time gives the throughput */

/* ---- times of a request, INFINITY of one that failed ----------------------------- */

static double since(const struct load_record *r, uint64_t at_ns)
{
    return r->end == LOAD_OK ? (double)(at_ns - r->scheduled_ns) * 1e-9 : INFINITY;
}

static double ttft_of(const struct load_record *r)
{
    return since(r, r->first_ns);
}

/* For the SLO: an answer that shows nothing keeps its reader waiting. */
static double visible_of(const struct load_record *r)
{
    return r->visible_ns ? since(r, r->visible_ns) : INFINITY;
}

static double e2e_of(const struct load_record *r)
{
    return since(r, r->last_ns);
}

/* NAN: an answer of one token, or in one piece, has none. */
static double tpot_of(const struct load_record *r)
{
    const int64_t n = load_record_tokens(r);

    if (r->end != LOAD_OK)
        return INFINITY;
    return n > 1 && r->n_pieces > 1
               ? (double)(r->last_ns - r->first_ns) * 1e-6 / (double)(n - 1)
               : NAN;
}

static double finite_or_nan(double v)
{
    return isfinite(v) ? v : NAN;
}

void load_request_cells(const struct load_record *r, double cells[REQUEST_CELLS])
{
    cells[REQUEST_TTFT_S] = finite_or_nan(ttft_of(r));
    cells[REQUEST_TPOT_MS] = finite_or_nan(tpot_of(r));
    cells[REQUEST_E2E_S] = finite_or_nan(e2e_of(r));
    cells[REQUEST_VISIBLE_S] = r->end == LOAD_OK ? visible_of(r) : NAN;
    cells[REQUEST_TURN] = r->turn ? r->turn : NAN;
    cells[REQUEST_CACHED_TOKENS] = r->n_cached >= 0 ? (double)r->n_cached : NAN;
}

/* ---- series ---------------------------------------------------------------------- */

struct work {
    const struct load_record *v; /* that count */
    size_t n;
    double *a, *scratch; /* [n of all], and what stats need */
};

static struct load_three three(double *v, size_t n)
{
    struct load_three out;

    stats_sort(v, n);
    out.p50 = load_quantile(v, n, 0.5);
    out.p90 = load_quantile(v, n, 0.9);
    out.p99 = load_quantile(v, n, 0.99);
    return out;
}

static struct load_three of_each(struct work *w,
                                 double (*time)(const struct load_record *))
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        const double t = time(&w->v[i]);

        if (!isnan(t))
            w->a[n++] = t;
    }
    return three(w->a, n);
}

/* In an open loop all connections may be in use when a request is due. */
static double sent_late_ms(struct work *w)
{
    for (size_t i = 0; i < w->n; i++)
        w->a[i] = (double)(w->v[i].sent_ns - w->v[i].scheduled_ns) * 1e-6;
    stats_sort(w->a, w->n);
    return stats_quantile_sorted(w->a, w->n, 0.99);
}

/* NAN where it is no first turn, or no later one. */
static double turn1_of(const struct load_record *r)
{
    return r->turn == 1 ? ttft_of(r) : NAN;
}

static double later_of(const struct load_record *r)
{
    return r->turn > 1 ? ttft_of(r) : NAN;
}

/* What the server had of prompts, by its own count and by ours; requests that have
 * both, or, where the server has none, ours. */
static void prefixes(struct load_figures *f, const struct work *w)
{
    double prompt = 0, cached = 0, counted = 0, known = 0;

    for (size_t i = 0; i < w->n; i++) {
        const struct load_record *r = &w->v[i];
        const bool is_counted = r->n_known >= 0 || !r->turn;

        if (r->end != LOAD_OK || r->n_prompt <= 0 || !is_counted)
            continue;
        prompt += r->n_cached >= 0 ? (double)r->n_prompt : 0;
        cached += r->n_cached >= 0 ? (double)r->n_cached : 0;
        counted += r->n_known >= 0 ? (double)r->n_prompt : 0;
        known += r->n_known >= 0 ? fmin((double)r->n_known, (double)r->n_prompt) : 0;
    }
    f->prefix_hit = prompt > 0 ? cached / prompt : NAN;
    f->prefix_known = counted > 0 ? known / counted : NAN;
}

static bool is_cached(const struct load_record *r, double cold_tokens)
{
    return (double)r->n_cached > cold_tokens;
}

static double median_ttft(struct work *w, double cold_tokens, bool cached)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        if (w->v[i].end == LOAD_OK && w->v[i].n_cached >= 0 &&
            is_cached(&w->v[i], cold_tokens) == cached)
            w->a[n++] = ttft_of(&w->v[i]);
    stats_sort(w->a, n);
    return load_quantile(w->a, n, 0.5).value;
}

static enum status gaps(struct load_figures *f, const struct work *w, struct err *err)
{
    size_t n = 0, at = 0;
    double *v;

    for (size_t i = 0; i < w->n; i++)
        n += (size_t)w->v[i].n_pieces;
    v = malloc((n + 1) * sizeof *v);
    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu times", n);
    for (size_t i = 0; i < w->n; i++) {
        for (int k = 0; k + 1 < w->v[i].n_pieces; k++)
            v[at++] = (double)w->v[i].gap_ms[k];
        if (w->v[i].end != LOAD_OK && w->v[i].n_pieces)
            v[at++] = INFINITY; /* the one that nothing ended */
    }
    f->itl_ms = three(v, at);
    free(v);
    return ST_OK;
}

/* ---- the window ------------------------------------------------------------------ */

/* Tokens of all requests that came within [from, to): each gap's share of the tokens of
 * its answer, at its end. What a failed request has sent is no answer. */
static double tokens_within(const struct load_result *r, uint64_t from, uint64_t to)
{
    double sum = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct load_record *q = &r->records[i];
        const int n = q->end == LOAD_OK ? q->n_pieces : 0;
        const double each = n ? (double)load_record_tokens(q) / n : 0;
        double at = (double)q->first_ns;

        for (int k = 0; k < n; k++) {
            at += k ? (double)q->gap_ms[k - 1] * 1e6 : 0;
            if (at >= (double)from && at < (double)to)
                sum += each;
        }
    }
    return sum;
}

static double seconds_of(const struct load_record *q)
{
    return (double)(q->done_ns - q->sent_ns) * 1e-9;
}

/* From when it was sent until its user sends the next one. */
static double seconds_to_next(const struct load_record *q)
{
    return seconds_of(q) + client_pause_s(q);
}

/* What a failed request has sent is no answer. */
static double tokens_of(const struct load_record *q)
{
    return q->end == LOAD_OK ? (double)load_record_tokens(q) : 0;
}

static double seconds_within(const struct load_record *q, uint64_t from, uint64_t to)
{
    const uint64_t a = q->sent_ns > from ? q->sent_ns : from;
    const uint64_t b = q->done_ns < to ? q->done_ns : to;

    return b > a ? (double)(b - a) * 1e-9 : 0;
}

/* Throughput from the times of requests, in a closed loop: by Little's law n_users
 * requests are sent in the mean time from one of a user's to the next. For levels of so
 * few requests that hardly any time is between the first that counts and the last that
 * was sent. The interval is that of a ratio: each answer has tokens and a time.
 */
static void throughput_of_times(struct load_figures *f, const struct work *w,
                                int n_users, double mean_s)
{
    const double n = (double)w->n;
    double tokens = 0, to_next_s = 0, squares = 0;

    for (size_t i = 0; i < w->n; i++) {
        tokens += tokens_of(&w->v[i]) / n;
        to_next_s += seconds_to_next(&w->v[i]) / n;
    }
    f->req_per_s = n_users / to_next_s;
    f->in_flight = n_users * mean_s / to_next_s;
    f->tok_per_s = f->req_per_s * tokens;
    if (w->n < 2)
        return;
    for (size_t i = 0; i < w->n; i++) {
        const double off =
            tokens_of(&w->v[i]) - tokens / to_next_s * seconds_to_next(&w->v[i]);

        squares += off * off;
    }
    const double half =
        f->req_per_s * stats_t_quantile(n - 1) * sqrt(squares / (n - 1) / n);

    f->tok_per_s_lo = fmax(0, f->tok_per_s - half);
    f->tok_per_s_hi = f->tok_per_s + half;
}

static void throughput_of_window(struct load_figures *f, const struct load_result *r,
                                 const struct work *w, uint64_t from, uint64_t to,
                                 double mean_s)
{
    double part[N_PARTS], mean = 0, squares = 0, inside = 0;

    for (int i = 0; i < N_PARTS; i++) {
        const uint64_t length = (to - from) / N_PARTS;

        part[i] =
            tokens_within(r, from + (uint64_t)i * length,
                          i + 1 < N_PARTS ? from + (uint64_t)(i + 1) * length : to) *
            N_PARTS / f->window_s;
        mean += part[i] / N_PARTS;
    }
    for (int i = 0; i < N_PARTS; i++)
        squares += (part[i] - mean) * (part[i] - mean);
    const double half =
        stats_t_quantile(N_PARTS - 1) * sqrt(squares / (N_PARTS - 1) / N_PARTS);

    f->tok_per_s = mean;
    f->tok_per_s_lo = fmax(0, mean - half);
    f->tok_per_s_hi = mean + half;
    for (size_t i = 0; i < r->n; i++)
        inside += seconds_within(&r->records[i], from, to);
    f->req_per_s = (double)(w->n - 1) / f->window_s;
    f->in_flight = inside / f->window_s;
    f->little = f->in_flight > 0 ? f->req_per_s * mean_s / f->in_flight : NAN;
}

/* n_users 0: an open loop. */
static void throughput(struct load_figures *f, const struct load_result *r,
                       const struct work *w, int n_users)
{
    const uint64_t from = w->v[0].sent_ns, to = r->end_ns;
    double mean_s = 0, longest_s = 0;

    f->window_s = to > from ? (double)(to - from) * 1e-9 : 0;
    for (size_t i = 0; i < w->n; i++) {
        mean_s += seconds_of(&w->v[i]) / (double)w->n;
        longest_s = fmax(longest_s, seconds_of(&w->v[i]));
    }
    if (n_users && f->window_s < MANY_TIMES * longest_s)
        throughput_of_times(f, w, n_users, mean_s);
    else if (f->window_s > 0)
        throughput_of_window(f, r, w, from, to, mean_s);
}

/* Whether requests pile up, from how many were in flight when each that counts was due:
 * their trend (Theil and Sen's slope) is what comes beyond what is answered. */
static void backlog(struct load_figures *f, const struct load_result *r, struct work *w)
{
    double *done = malloc((r->n + 1) * sizeof *done);
    const size_t first = (size_t)(w->v - r->records);
    size_t n_done = 0;
    struct stats_drift trend;

    f->backlog = f->backlog_p = NAN;
    if (!done)
        return;
    for (size_t i = 0; i < r->n; i++)
        done[i] = (double)r->records[i].done_ns;
    stats_sort(done, r->n);
    for (size_t i = 0; i < w->n; i++) {
        while (n_done < r->n && done[n_done] <= (double)w->v[i].scheduled_ns)
            n_done++;
        w->a[i] = (double)(first + i + 1) - (double)n_done; /* itself included */
    }
    free(done);
    stats_drift_test(&trend, w->a, w->n, w->scratch);
    f->backlog = trend.drift * stats_median(w->a, w->n, w->scratch) / (double)w->n;
    f->backlog_p = trend.p;
}

/* ---- counts ---------------------------------------------------------------------- */

static void add_reported(int64_t *sum, int64_t v)
{
    if (v >= 0)
        *sum = (*sum > 0 ? *sum : 0) + v;
}

static void count(struct load_figures *f, const struct work *w, const struct slo *slo,
                  double cold_tokens)
{
    size_t n_ok = 0, n_tokens = 0, n_thoughts = 0;

    f->prompt_tokens = f->tokens = f->cached_tokens = -1;
    for (size_t i = 0; i < w->n; i++) {
        const struct load_record *r = &w->v[i];
        const double tpot = tpot_of(r);
        bool first, each;

        f->n_failed += r->end != LOAD_OK;
        if (r->end == LOAD_FAILED && !f->why)
            f->why = r->why;
        if (slo) {
            first = visible_of(r) <= slo->ttft_s;
            each = isnan(tpot) || tpot <= slo->tpot_ms;
            f->n_ttft_met += first;
            f->n_tpot_met += each;
            f->n_met += first && each;
        }
        if (r->end != LOAD_OK)
            continue;
        n_ok++;
        n_tokens += (size_t)load_record_tokens(r);
        add_reported(&f->prompt_tokens, r->n_prompt);
        add_reported(&f->tokens, r->n_tokens);
        add_reported(&f->cached_tokens, r->n_cached);
        f->pieces += r->n_pieces;
        f->n_cached += is_cached(r, cold_tokens);
        f->n_too_many += r->has_too_many;
        f->n_calls += r->has_calls;
        f->n_invisible += !r->visible_ns;
        n_thoughts += (size_t)(r->n_reasoning > 0 ? r->n_reasoning : r->n_thoughts);
    }
    f->output_mean = n_ok ? (double)n_tokens / (double)n_ok : NAN;
    f->reasoning_mean = n_ok ? (double)n_thoughts / (double)n_ok : NAN;
    f->prompt_mean =
        n_ok && f->prompt_tokens >= 0 ? (double)f->prompt_tokens / (double)n_ok : NAN;
}

/* ---- all of it ------------------------------------------------------------------- */

/* Records at the beginning that do not count. */
static size_t warm_up(struct load_figures *f, const struct load_result *r, int n_users,
                      double *v, double *scratch)
{
    size_t first = (size_t)n_users, n = 0;
    struct stats_drift drift;

    for (size_t i = first; i < r->n && n_users; i++) /* some begin later */
        first = r->records[i].is_first ? i + 1 : first;
    f->settled = true;
    if (first * 2 > r->n)
        first = r->n / 2;
    for (size_t i = first; i < r->n; i++)
        if (r->records[i].end == LOAD_OK)
            v[n++] = e2e_of(&r->records[i]);
    if (n_users && n == r->n - first)
        first += load_mser5(v, n, &f->settled);
    n = 0;
    for (size_t i = first; i < r->n; i++)
        if (r->records[i].end == LOAD_OK)
            v[n++] = e2e_of(&r->records[i]);
    stats_drift_test(&drift, v, n, scratch);
    f->drift = drift.drift;
    f->drift_p = drift.p;
    return first;
}

enum status load_figures_make(struct load_figures *f, const struct load_result *r,
                              int n_users, const struct slo *slo, double cold_tokens,
                              struct err *err)
{
    struct work w = {.a = malloc((r->n + 1) * sizeof *w.a),
                     .scratch = malloc((STATS_DRIFT_SCRATCH + r->n) * sizeof *w.a)};
    enum status st = ST_OK;

    memset(f, 0, sizeof *f);
    f->tok_per_s = f->tok_per_s_lo = f->tok_per_s_hi = f->little = NAN;
    f->verdict = SLO_UNDECIDED;
    if (!w.a || !w.scratch)
        st = err_set(err, ST_NO_MEMORY, "no memory for %zu requests", r->n);
    if (st == ST_OK && r->n) {
        f->n_warm_up = warm_up(f, r, n_users, w.a, w.scratch);
        w.v = r->records + f->n_warm_up;
        w.n = f->n = r->n - f->n_warm_up;
        throughput(f, r, &w, n_users);
        if (!n_users && w.n)
            f->sent_late_ms = sent_late_ms(&w);
        f->backlog = f->backlog_p = NAN;
        if (!n_users && w.n)
            backlog(f, r, &w);
        f->ttft_s = of_each(&w, ttft_of);
        f->visible_s = of_each(&w, visible_of);
        f->turn1_s = of_each(&w, turn1_of);
        f->later_s = of_each(&w, later_of);
        prefixes(f, &w);
        f->tpot_ms = of_each(&w, tpot_of);
        f->e2e_s = of_each(&w, e2e_of);
        f->ttft_cold_s = median_ttft(&w, cold_tokens, false);
        f->ttft_cached_s = median_ttft(&w, cold_tokens, true);
        count(f, &w, slo, cold_tokens);
        if (slo)
            f->verdict = slo_judge_both(f->n_ttft_met, f->n_tpot_met, f->n);
        st = gaps(f, &w, err);
    }
    free(w.a);
    free(w.scratch);
    return st;
}
