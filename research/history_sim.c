/* SPDX-License-Identifier: MIT
 *
 * history_sim.c - change points and thresholds on histories whose change points are
 * known
 */
#include "research/history_sim.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/decide/history/change.h"
#include "research/variates.h"

#define MIN_RUNS  60
#define EDGE      10 /* runs between change points, and before the first */
#define LEVEL     0.01
#define MAX_FOUND 12

static const double bands[SIM_N_BANDS + 1] = {0.01, 0.02, 0.05, 0.1};

/* ---- histories ------------------------------------------------------------------- */

static const char *const noise_names[HISTORY_N_NOISES] = {
    [HISTORY_GAUSSIAN] = "gaussian",
    [HISTORY_HEAVY] = "heavy-tailed",
    [HISTORY_OUTLIERS] = "outliers",
    [HISTORY_TWO] = "two runners",
};

const char *history_noise_name(enum history_noise noise)
{
    return noise_names[noise];
}

double sim_history_noise(enum history_noise noise, double sigma, uint64_t *random)
{
    double squares = 0, v = random_normal(random);

    if (noise == HISTORY_HEAVY) {
        for (int i = 0; i < 3; i++) {
            const double z = random_normal(random);

            squares += z * z;
        }
        v /= sqrt(squares);
    }
    v *= sigma;
    if (noise == HISTORY_OUTLIERS && random_uniform(random) < 0.05)
        v += log1p(-0.05 - 0.2 * random_uniform(random));
    if (noise == HISTORY_TWO && random_bits(random) & 1)
        v += 0.03;
    return v;
}

/* Places at least EDGE apart, ascending. */
static void draw_places(struct sim_history *h, uint64_t *random)
{
    const size_t room = h->n - EDGE * (h->n_changes + 1) + 1;

    for (size_t i = 0; i < h->n_changes; i++) {
        size_t k = i, at = random_bits(random) % room;

        for (; k > 0 && h->at[k - 1] > at; k--)
            h->at[k] = h->at[k - 1];
        h->at[k] = at;
    }
    for (size_t i = 0; i < h->n_changes; i++)
        h->at[i] += EDGE * (i + 1);
}

void sim_history_make(struct sim_history *h, enum history_noise noise, size_t n_changes,
                      uint64_t seed)
{
    const double sigma = 0.01 + 0.01 * random_uniform(&seed);
    double level = log(10 + 20 * random_uniform(&seed));

    assert(n_changes <= SIM_MAX_CHANGES);
    h->n = MIN_RUNS + random_bits(&seed) % (SIM_MAX_RUNS - MIN_RUNS + 1);
    h->n_changes = n_changes;
    draw_places(h, &seed);
    for (size_t i = 0; i < n_changes; i++) {
        const double size = 0.01 * pow(10, random_uniform(&seed));

        h->size[i] = random_bits(&seed) & 1 ? size : -size;
    }
    for (size_t i = 0, b = 0; i < h->n; i++) {
        if (b < n_changes && i == h->at[b])
            level += log1p(h->size[b++]);
        h->v[i] = exp(level + sim_history_noise(noise, sigma, &seed));
    }
}

/* ---- finders --------------------------------------------------------------------- */

size_t sim_threshold_alarms(size_t *at, const double *v, size_t n, double threshold,
                            size_t n_mean)
{
    size_t n_alarms = 0;

    for (size_t i = n_mean; i < n; i++) {
        double sum = 0;

        for (size_t k = i - n_mean; k < i; k++)
            sum += v[k];
        if (fabs(v[i] * (double)n_mean / sum - 1) > threshold)
            at[n_alarms++] = i;
    }
    return n_alarms;
}

static const struct {
    const char *name;
    double threshold; /* 0: change points */
    size_t n_mean;
} finders[SIM_N_FINDERS] = {
    {"change points (ours)", 0, 0},       {"2 % from the run before", 0.02, 1},
    {"3 % from the run before", 0.03, 1}, {"5 % from the run before", 0.05, 1},
    {"10 % from the run before", 0.1, 1}, {"2 % from the mean of 5", 0.02, 5},
    {"3 % from the mean of 5", 0.03, 5},  {"5 % from the mean of 5", 0.05, 5},
    {"10 % from the mean of 5", 0.1, 5},
};

const char *sim_finder_name(size_t i)
{
    return finders[i].name;
}

static enum status find(size_t *at, size_t *n_alarms, size_t finder,
                        const struct sim_history *h, uint64_t seed, struct err *err)
{
    struct change c[MAX_FOUND];
    double logs[SIM_MAX_RUNS];
    enum status st;

    if (finders[finder].threshold > 0) {
        *n_alarms = sim_threshold_alarms(at, h->v, h->n, finders[finder].threshold,
                                         finders[finder].n_mean);
        return ST_OK;
    }
    for (size_t i = 0; i < h->n; i++)
        logs[i] = log(h->v[i]);
    st = change_points(c, MAX_FOUND, n_alarms, logs, h->n, LEVEL, seed, err);
    for (size_t i = 0; st == ST_OK && i < *n_alarms; i++)
        at[i] = c[i].at;
    return st;
}

/* ---- scores ---------------------------------------------------------------------- */

static bool near(size_t a, size_t b)
{
    return a <= b + SIM_NEAR && b <= a + SIM_NEAR;
}

void sim_score_add(struct sim_score *s, const struct sim_history *h, const size_t *at,
                   size_t n_alarms)
{
    for (size_t k = 0; k < n_alarms; k++) {
        bool is_true = false;

        for (size_t b = 0; b < h->n_changes; b++)
            is_true |= near(at[k], h->at[b]);
        s->n_true += is_true;
    }
    for (size_t b = 0; b < h->n_changes; b++) {
        bool found = false;
        size_t band = 0;

        for (size_t k = 0; k < n_alarms; k++)
            found |= near(at[k], h->at[b]);
        while (band + 1 < SIM_N_BANDS && fabs(h->size[b]) > bands[band + 1])
            band++;
        s->band_changes[band]++;
        s->band_found[band] += found;
        s->n_found += found;
    }
    s->n_alarms += n_alarms;
    s->n_changes += h->n_changes;
    s->n_runs += h->n;
    s->n_quiet += !h->n_changes;
    s->n_quiet_alarmed += !h->n_changes && n_alarms;
}

double sim_precision(const struct sim_score *s)
{
    return s->n_alarms ? (double)s->n_true / (double)s->n_alarms : 1;
}

double sim_recall(const struct sim_score *s)
{
    return s->n_changes ? (double)s->n_found / (double)s->n_changes : 1;
}

enum status sim_histories_run(struct sim_histories *s, size_t n, uint64_t seed,
                              struct err *err)
{
    struct progress progress;
    enum status st = ST_OK;

    memset(s, 0, sizeof *s);
    progress_begin(&progress, "histories");
    for (; s->n < n && st == ST_OK; s->n++) {
        const enum history_noise noise = (enum history_noise)(s->n % HISTORY_N_NOISES);
        const size_t n_changes = s->n / HISTORY_N_NOISES % (SIM_MAX_CHANGES + 1);
        struct sim_history h;

        sim_history_make(&h, noise, n_changes, random_bits(&seed));
        for (size_t f = 0; f < SIM_N_FINDERS && st == ST_OK; f++) {
            size_t at[SIM_MAX_RUNS], n_alarms = 0;

            st = find(at, &n_alarms, f, &h, seed, err);
            sim_score_add(&s->all[f], &h, at, n_alarms);
            sim_score_add(&s->of[noise][f], &h, at, n_alarms);
        }
        if (interrupted())
            st = err_set(err, ST_INTERRUPTED, "interrupted");
        progress_update(&progress, (double)s->n / (double)n, NULL);
    }
    progress_end(&progress);
    return st;
}

/* ---- as a table ------------------------------------------------------------------ */

static double percent(size_t k, size_t n)
{
    return n ? 100 * (double)k / (double)n : 100;
}

static void print_score(FILE *f, const struct sim_histories *s, size_t i)
{
    const struct sim_score *a = &s->all[i];

    fprintf(f, "| %s | %.0f %% (%zu of %zu) | %.0f %% (%zu of %zu) |",
            sim_finder_name(i), 100 * sim_precision(a), a->n_true, a->n_alarms,
            100 * sim_recall(a), a->n_found, a->n_changes);
    for (int b = 0; b < SIM_N_BANDS; b++)
        fprintf(f, " %.0f %% |", percent(a->band_found[b], a->band_changes[b]));
    fprintf(f, " %zu of %zu |", a->n_quiet_alarmed, a->n_quiet);
    for (int k = 0; k < HISTORY_N_NOISES; k++)
        fprintf(f, " %.0f / %.0f |", 100 * sim_precision(&s->of[k][i]),
                100 * sim_recall(&s->of[k][i]));
    fputc('\n', f);
}

void sim_histories_print(FILE *f, const struct sim_histories *s)
{
    fprintf(f,
            "| rule | precision | recall | of 1–2 %% | of 2–5 %% | of 5–10 %% | alarm "
            "without any |");
    for (int k = 0; k < HISTORY_N_NOISES; k++)
        fprintf(f, " %s |", noise_names[k]);
    fprintf(f, "\n|---|---|---|---|---|---|---|");
    for (int k = 0; k < HISTORY_N_NOISES; k++)
        fputs("---|", f);
    fputc('\n', f);
    for (size_t i = 0; i < SIM_N_FINDERS; i++)
        print_score(f, s, i);
}
