/* SPDX-License-Identifier: MIT
 *
 * tuned_check.c - both ways to run a model, sample by sample
 */
#include "harness/measure/worker/tuned_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/stats/ranktest.h"
#include "harness/measure/worker/measured.h"

#define CHECK_PROMPT 16 /* tokens */
#define CHECK_ROUNDS 40 /* at most, of a phase */
#define CHECK_SEED   1  /* of the tokens */
#define MIN_ROUNDS   3
#define MUCH_SLOWER  0.9 /* in every round, where they are too few for an interval */

struct check {
    struct slm *m;
    struct measured measured; /* m, borrowed */
    struct tuned_side sides[2];
    int placed; /* side whose CPUs the threads are on */
    int depth;
};

static bool same_cpus(const struct check *c)
{
    const int *a = c->sides[0].cpus, *b = c->sides[1].cpus;
    const size_t n = (size_t)thread_pool_capacity(slm_thread_pool(c->m));

    return a == b || (a && b && !memcmp(a, b, n * sizeof *a));
}

static enum status take(struct check *c, int side, struct err *err)
{
    const struct tuned_side *s = &c->sides[side];
    enum status st = ST_OK;

    if (side != c->placed && !same_cpus(c))
        st = slm_place(c->m, s->cpus, err);
    c->placed = side;
    return st ? st
              : slm_tune(c->m, s->n_threads, s->n_threads_prefill, &s->tuning, err);
}

/* Without a profile, the prefetch is measured. */
static enum status measure_default(struct check *c, struct err *err)
{
    struct slm_tuning measured;
    enum status st = take(c, 0, err);

    if (st == ST_OK)
        st = slm_measure_prefetch(c->m, SLM_PREFETCH_BUDGET_S, c->sides[0].cache_bytes,
                                  err);
    slm_get_tuning(c->m, &measured);
    memcpy(c->sides[0].tuning.prefetch, measured.prefetch, sizeof measured.prefetch);
    return st;
}

/* Both sides get the same tokens; new threads get an uncounted one before. */
static enum status time_side(struct check *c, int side, int n_tokens, double *seconds,
                             struct err *err)
{
    struct measured_step step = {.kind =
                                     n_tokens > 1 ? MEASURED_PREFILL : MEASURED_DECODE,
                                 .depth = c->depth,
                                 .n_tokens = n_tokens,
                                 .again = true};
    const bool moved = side != c->placed;
    enum status st = take(c, side, err);
    uint64_t ns = 0;

    if (st == ST_OK && moved)
        st = measured_wake(&c->measured, NULL, err);
    if (st == ST_OK)
        st = measured_sample(&c->measured, &step, &ns, err);
    *seconds = (double)ns * 1e-9;
    return st;
}

/* Clearly slower: the interval lies below 1, or every round is much slower. */
static bool lost(const double *v, size_t n, struct rank_ratio *r)
{
    double best = -INFINITY;

    if (rank_paired(r, v, n, 0.95, NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        best = fmax(best, v[i]);
    return r->hi < 1 || best < log(MUCH_SLOWER);
}

static enum status compare(struct check *c, int n_tokens, double seconds, bool *slower,
                           struct rank_ratio *ratio, struct err *err)
{
    const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);
    double log_ratio[CHECK_ROUNDS], warm;
    enum status st = time_side(c, 0, n_tokens, &warm, err);
    size_t n = 0;

    while (st == ST_OK && n < CHECK_ROUNDS && (n < MIN_ROUNDS || clock_ns() < end)) {
        double took[2] = {1, 1};

        for (size_t i = 0; i < 2 && st == ST_OK; i++) {
            const int side = (int)((i + n) % 2);

            st = time_side(c, side, n_tokens, &took[side], err);
        }
        log_ratio[n++] = log(took[0] / took[1]);
        if (interrupted())
            return err_set(err, ST_INTERRUPTED, "interrupted");
    }
    *slower = st == ST_OK && lost(log_ratio, n, ratio);
    return st;
}

/* Phase after phase, until one is slower. */
static enum status compare_phases(struct check *c, enum tune_phase phase, bool *slower,
                                  struct rank_ratio *ratio, struct err *err)
{
    const int room = slm_info(c->m)->n_ctx - c->depth;
    const double seconds = phase == TUNE_BOTH ? TUNED_CHECK_S / 2 : TUNED_CHECK_S;
    enum status st = ST_OK;

    if (phase != TUNE_PREFILL)
        st = measure_default(c, err);
    if (st == ST_OK && phase != TUNE_PREFILL && room >= 1)
        st = compare(c, 1, seconds, slower, ratio, err);
    if (st == ST_OK && !*slower && phase != TUNE_DECODE && room >= 2)
        st = compare(c, room < CHECK_PROMPT ? room : CHECK_PROMPT, seconds, slower,
                     ratio, err);
    return st ? st : take(c, *slower ? 0 : 1, err);
}

enum status tuned_check(struct slm *m, const struct tuned_side sides[2], int placed,
                        enum tune_phase phase, bool *slower, char *note, size_t cap,
                        struct err *err)
{
    struct check c = {.m = m,
                      .sides = {sides[0], sides[1]},
                      .placed = placed,
                      .depth = slm_n_past(m)};
    struct rank_ratio ratio = {1, 0, 0};
    enum status st = measured_borrow(&c.measured, m, CHECK_SEED, err);
    bool worse = false;
    char text[64];

    if (st == ST_OK)
        st = compare_phases(&c, phase, &worse, &ratio, err);
    measured_close(&c.measured);
    if (st)
        return st;
    if (worse)
        snprintf(note, cap,
                 "the profile is not used: interleaved with the default it had %s of "
                 "its speed; tune again",
                 rank_ratio_text(&ratio, text, sizeof text));
    *slower = worse;
    return ST_OK;
}
