/* SPDX-License-Identifier: MIT
 *
 * figures.h - the requests of one run as figures
 *
 * Model of the world (docs/serving.md has the definitions): every time is counted from
 * when a request was due, which in a closed loop is when it was sent.
 *   TTFT  to the first piece of text that is not empty, also of a thought
 *   ITL   each gap between two pieces
 *   TPOT  (E2E - TTFT) / (n - 1), n tokens by the server's usage
 *   E2E   to the last piece
 * A failed request takes forever: it is in the number of requests, its times are
 * infinite, and it misses every limit. The first requests of all users, sent at once,
 * and then what MSER-5 cuts are warm-up, and nothing is counted of them.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_FIGURES_H
#define SLM_HARNESS_SERVE_LOAD_FIGURES_H

#include "engine/base/status.h"
#include "harness/client/client.h"
#include "harness/serve/load/load_stats.h"
#include "harness/rows/samples.h"
#include "harness/judge/users/slo.h"

struct load_three {
    struct load_quantile p50, p90, p99;
};

struct load_figures {
    size_t n, n_failed, n_warm_up; /* n: that count, failed ones included */
    bool settled;                  /* MSER-5 found an end of the warm-up */
    double sent_late_ms; /* how late they were sent: 99th percentile; 0: no open loop */
    double backlog, backlog_p; /* of an open loop: growth of the requests in flight, a
                                  share of those that came, and as drift_p; NAN */
    double drift, drift_p;     /* of the end-to-end times (stats_drift_test()) */
    double window_s;  /* from the first that counts to the last that was sent */
    double tok_per_s; /* of all users: tokens that came in the window; where that is
                         short compared with a request, the tokens of the users'
                         requests over their mean time */
    double tok_per_s_lo, tok_per_s_hi; /* from means of ten parts of the window, or from
                                          the times of the requests */
    double req_per_s;                  /* sent in the window */
    double in_flight;                  /* mean number of requests in the window */
    double little; /* requests a second times their mean time over in_flight: about 1;
                      NAN: the window is short */
    struct load_three ttft_s, visible_s, tpot_ms, itl_ms, e2e_s;
    struct load_three turn1_s, later_s; /* TTFT of first turns, of later ones */
    double prefix_hit, prefix_known;    /* shares of prompts; NAN: not known */
    double ttft_cold_s, ttft_cached_s;  /* medians of cold and of cached prompts; NAN */
    size_t n_cached;                    /* requests with a cached prompt */
    size_t n_invisible;                 /* answers without a visible piece */
    size_t n_calls;                     /* answers with calls of tools */
    size_t n_too_many;                  /* answers whose `usage` is not believed */
    int64_t prompt_tokens, tokens, pieces, cached_tokens; /* sums; -1: never reported */
    double prompt_mean, output_mean, reasoning_mean;
    size_t n_ttft_met, n_tpot_met, n_met; /* of the SLO: each, and both */
    enum row_slo_verdict verdict;
    const char *why; /* of the first failure; within the records; NULL: none */
};

/* The cells of requests.csv for a request that has ended; NAN: unknown (samples.h). */
void load_request_cells(const struct load_record *r, double cells[REQUEST_CELLS]);

/* n_users 0: an open loop. slo may be NULL. cold_tokens: a prompt with no more cached
 * tokens is cold, since each begins with the server's template
 * (load_prompts_cold()). Errors: ST_NO_MEMORY. */
enum status load_figures_make(struct load_figures *f, const struct load_result *r,
                              int n_users, const struct slo *slo, double cold_tokens,
                              struct err *err);

#endif
