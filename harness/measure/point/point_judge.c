/* SPDX-License-Identifier: MIT
 *
 * point_judge.c - figures from samples; point_limiter.c finds what limits them
 */
#include "harness/measure/point/point_measure.h"

#include <math.h>
#include <stdlib.h>

#include "harness/stats/stats.h"
#include "harness/rows/token_time.h"

/* A drift is one if so few series without a trend have the like. */
#define DRIFT_MAX_P 0.01
/* A result may lie this far above its roof, or as far as the probe's own passes differ,
 * before it is invalid. */
#define ROOF_MIN_TOLERANCE 0.03
/* Weights of up to this many times the cache's size may still be served in part: a
 * cache does not always drop the oldest lines. */
#define SERVED_CACHES 4

static double per(double amount, double n)
{
    return n > 0 ? amount / n : NAN;
}

/* The lower of the roofs of memory and disk; NaN for weights that are streamed from a
 * disk that could not be probed. *is_disk: it is that of the disk. */
static double roof_of(const struct row *row, bool *is_disk)
{
    const double streamed = fmax(0, (double)row->disk_bytes_per_token);
    const struct token_work work = {.memory_bytes = (double)row->bytes_per_token,
                                    .streamed_bytes = streamed};
    const struct token_roofs roofs = {.read_gbps = row->roof_gbps,
                                      .disk_gbps = row->roof_disk_gbps};
    const struct token_time t = token_time_min(&work, &roofs);

    *is_disk = t.disk_s > t.compute_s;
    return 1 / t.token_s;
}

/* The share of the roof and its interval: the relative errors of speed and roof, taken
 * as independent. NaN where one of them has none; the disk's is of too few passes. */
static void fill_share(struct row *row)
{
    const double arithmetic = row_arithmetic_roof(row);
    double lo, hi; /* of the roof, as logarithms */
    bool is_disk;

    row->roof_tok_per_s = roof_of(row, &is_disk);
    lo = is_disk ? 0 : log(row->roof_gbps / row->roof_gbps_lo);
    hi = is_disk ? 0 : log(row->roof_gbps_hi / row->roof_gbps);
    if (arithmetic < row->roof_tok_per_s) {
        row->roof_tok_per_s = arithmetic;
        lo = log(row->roof_gops / row->roof_gops_lo);
        hi = log(row->roof_gops_hi / row->roof_gops);
    }
    row->mbu = row->tok_per_s / row->roof_tok_per_s;
    row->mbu_lo = row->mbu * exp(-hypot(log(row->tok_per_s / row->tok_per_s_lo), hi));
    row->mbu_hi = row->mbu * exp(hypot(log(row->tok_per_s_hi / row->tok_per_s), lo));
}

/* A quota stops all threads for the rest of a period, so that few of many short samples
 * have all the stops, and a median of samples has none. Samples are therefore taken
 * together until they last several periods; the rest at the end is left out.
 */
#define BLOCK_MS        500
#define THROTTLED_SHARE 0.02

static size_t make_blocks(const struct point_samples *samples, double *blocks)
{
    double sum = 0;
    size_t n = 0, n_together = 0;

    for (size_t i = 0; i < samples->n; i++) {
        sum += samples->ms[i];
        n_together++;
        if (sum < BLOCK_MS && (n || i + 1 < samples->n))
            continue;
        blocks[n++] = sum / (double)n_together;
        sum = 0;
        n_together = 0;
    }
    return n;
}

/* scratch has room for twice the samples. */
static void fill_speed(struct row *row, const struct point_samples *samples,
                       const struct point_facts *facts, bool throttled, double *scratch)
{
    double *blocks = scratch + samples->n;
    struct stats s, of_samples;

    stats_summary(&of_samples, samples->ms, samples->n, scratch);
    s = of_samples;
    if (throttled) {
        const size_t n = make_blocks(samples, blocks);

        stats_summary(&s, blocks, n, scratch);
        stats_series_interval(blocks, n, scratch, &s.lo, &s.hi);
    } else {
        stats_series_interval(samples->ms, samples->n, scratch, &s.lo, &s.hi);
    }
    row->n_samples = (int64_t)samples->n;
    row->tok_per_s = per(facts->tokens_per_sample * 1e3, s.median);
    row->tok_per_s_lo = per(facts->tokens_per_sample * 1e3, s.hi);
    row->tok_per_s_hi = per(facts->tokens_per_sample * 1e3, s.lo);
    row->lat_p50_ms = of_samples.p50;
    row->lat_p95_ms = of_samples.p95;
    row->lat_p99_ms = of_samples.p99;
    row->gops = per(facts->ops_per_sample * 1e-6, s.median);
    if (row->n_chunk > 0)
        row->chunk_tok_per_s = per((double)row->n_chunk * 1e3, s.median);
    if (row->kind == POINT_PREFILL) {
        row->ttft_warm_s = s.median * 1e-3;
        row->ttft_s = row->load_s + row->ttft_warm_s;
        row->ttft_s_lo = row->load_s + s.lo * 1e-3;
        row->ttft_s_hi = row->load_s + s.hi * 1e-3;
    }
    if (row->roof_gbps > 0 && row->bytes_per_token > 0)
        fill_share(row);
    if (row->roof_disk_gbps > 0 && row->disk_bytes_per_token > 0)
        row->disk_share = (double)row->disk_bytes_per_token * row->tok_per_s /
                          (row->roof_disk_gbps * 1e9);
}

static void fill_noise(struct row *row, const struct noise *noise, double n_tokens,
                       const struct stats_drift *drift)
{
    const bool is_significant = drift->p < DRIFT_MAX_P;
    struct noise own;
    char verdict[sizeof row->validity];

    row->drift_pct = 100 * drift->drift;
    if (!noise) {
        snprintf(row->validity, sizeof row->validity,
                 "disturbed: ended before it could tell");
        return;
    }
    own = *noise;
    row->major_faults_per_token = per((double)noise->n_major_faults, n_tokens);
    row->refaults_per_token = per((double)noise->n_refaults, n_tokens);
    row->steal_pct = 100 * noise_steal_share(noise);
    row->others_pct = 100 * noise_others_share(noise);
    row->involuntary = (int64_t)noise->n_involuntary;
    row->throttled_ms = (double)noise->throttled_ns * 1e-6;
    row->throttled_pct = 100 * noise_throttled_share(noise);
    own.expects_throttling = row->cpus_quota > 0;
    noise_verdict(&own, is_significant ? drift->drift : 0, verdict, sizeof verdict);
    snprintf(row->validity, sizeof row->validity, "%s", verdict);
}

/* A result above its roof is wrong, or the roof is. Memory is no roof where the
 * last-level cache serves the weights, or some of them: the roof's passes find none of
 * them there. And a quota stops the probe as well, as often as it will.
 */
static void check_roof(struct row *row, const struct point_facts *facts)
{
    const double tolerance =
        fmax(ROOF_MIN_TOLERANCE, fmax(facts->roof_spread, facts->disk_spread));
    /* of a step of several tokens the nearer roof */
    const int compute =
        row->roof_gops > 0 && !(row->mbu > row->gops / row->roof_gops * (1 + 1e-9));
    const double share = compute ? row->gops / row->roof_gops : row->mbu;

    if (!(share > 1 + tolerance) || row->throttled_pct > 100 * THROTTLED_SHARE)
        return;
    if (!compute && facts->bytes_per_sample < SERVED_CACHES * facts->llc_bytes) {
        snprintf(row->detail, sizeof row->detail,
                 facts->bytes_per_sample < facts->llc_bytes
                     ? "above the memory roof: the %.1f MB of a token fit the "
                       "last-level cache"
                     : "above the memory roof: of the %.1f MB of a token the "
                       "last-level cache serves a part",
                 facts->bytes_per_sample * 1e-6);
        return;
    }
    snprintf(row->validity, sizeof row->validity, "disturbed: %.0f %% above its roof",
             100 * (share - 1));
    snprintf(row->detail, sizeof row->detail,
             "the probed %s and this speed cannot both be right",
             compute ? "peak" : "roof");
}

void point_judge(struct row *row, const struct point_samples *samples,
                 const struct point_facts *facts, const struct noise *noise)
{
    const size_t n =
        2 * samples->n > STATS_DRIFT_SCRATCH ? 2 * samples->n : STATS_DRIFT_SCRATCH;
    struct stats_drift drift;
    double *scratch;

    row->n_samples = (int64_t)samples->n;
    if (!samples->n)
        return;
    scratch = malloc(n * sizeof *scratch);
    if (!scratch) {
        snprintf(row->detail, sizeof row->detail, "no memory to evaluate %zu samples",
                 samples->n);
        return;
    }
    fill_speed(row, samples, facts,
               noise && noise_throttled_share(noise) > THROTTLED_SHARE, scratch);
    stats_drift_test(&drift, samples->ms, samples->n, scratch);
    fill_noise(row, noise, (double)samples->n * facts->tokens_per_sample, &drift);
    free(scratch);
    check_roof(row, facts);
    point_limit(row, facts);
}
