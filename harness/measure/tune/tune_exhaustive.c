/* SPDX-License-Identifier: MIT
 *
 * tune_exhaustive.c - every combination of the settings that matter to decoding,
 * against what was tuned
 *
 * Setting by setting can miss a pair that is good only together. Here all combinations
 * of threads, chunks, one prefetch and one level for all formats run interleaved; the
 * best of them is compared with the tuned choice in a duel of new rounds.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/measure/tune/tuner.h"

#define USUAL_ROUNDS     9   /* of all, as screening halves them */
#define MAX_COMBINATIONS 512 /* a round of them fits TUNER_MAX_SAMPLES */

struct grid {
    struct tune_setup *setup; /* [0]: as tuned */
    size_t n;
};

static void add(struct grid *g, const struct tune_setup *s)
{
    if (g->n < MAX_COMBINATIONS)
        g->setup[g->n++] = *s;
}

static void set_all(const struct tune_params *p, struct tune_setup *s,
                    enum tune_setting setting, long long value)
{
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        if (p->space.formats[fmt])
            tune_set(s, setting, (enum kern_format)fmt, value);
}

/* Values of all formats together: those of the first format that has the most. */
static size_t values_of_all(const struct tune_params *p, const struct tune_setup *s,
                            enum tune_setting setting, long long *value)
{
    long long v[TUNE_MAX_VALUES];
    size_t most = 0;

    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const size_t n = p->space.formats[fmt] ? tune_values(&p->space, s, setting,
                                                             (enum kern_format)fmt, v)
                                               : 0;

        if (n > most) {
            most = n;
            memcpy(value, v, n * sizeof *v);
        }
    }
    return most;
}

/* base: the default, with the residency as chosen. */
static void make_grid(struct grid *g, const struct tune_params *p,
                      const struct tune_setup *base)
{
    long long threads[TUNE_MAX_VALUES], chunks[TUNE_MAX_VALUES],
        prefetch[TUNE_MAX_VALUES], level[TUNE_MAX_VALUES];
    const size_t n_threads =
        tune_values(&p->space, base, TUNE_THREADS, KERN_N_FMT, threads);
    const size_t n_chunks =
        tune_values(&p->space, base, TUNE_CHUNKS, KERN_N_FMT, chunks);
    const size_t n_prefetch = values_of_all(p, base, TUNE_PREFETCH, prefetch);
    const size_t n_level = values_of_all(p, base, TUNE_LEVEL, level);

    for (size_t a = 0; a < n_level; a++)
        for (size_t b = 0; b < n_threads; b++)
            for (size_t c = 0; c < n_chunks; c++)
                for (size_t d = 0; d < n_prefetch; d++) {
                    struct tune_setup s = *base;

                    tune_set(&s, TUNE_THREADS, KERN_N_FMT, threads[b]);
                    tune_set(&s, TUNE_CHUNKS, KERN_N_FMT, chunks[c]);
                    set_all(p, &s, TUNE_LEVEL, level[a]);
                    set_all(p, &s, TUNE_PREFETCH, prefetch[d]);
                    add(g, &s);
                }
}

static enum status sequential_all(struct tuner *t, struct sequential *comparison,
                                  const struct grid *g, struct grid *round,
                                  size_t *order, struct tune_sample *got,
                                  struct err *err)
{
    const struct tuner_work work = {TUNE_DECODE, 0};
    enum status st = ST_OK;
    size_t n_done = 0;

    t->what = "all combinations, without a time limit";
    t->tried = 1e-6;
    while (st == ST_OK && (round->n = sequential_round(comparison, order)) > 0) {
        bool counts = false;

        for (size_t i = 0; i < round->n; i++)
            round->setup[i] = g->setup[order[i]];
        st = tuner_round(t, &work, round->setup, round->n, 1, got, &counts, err);
        n_done += round->n;
        t->tried = (double)n_done / (double)(USUAL_ROUNDS * g->n);
        for (size_t i = 0; i < round->n && st == ST_OK && counts; i++)
            sequential_record(comparison, order[i], got[i].seconds);
        if (st == ST_OK && counts)
            st = sequential_round_end(comparison, err);
    }
    return st;
}

enum status tuner_exhaust(struct tuner *t, struct err *err)
{
    struct tune_result *r = t->r;
    struct grid g = {calloc(MAX_COMBINATIONS, sizeof *g.setup), 0};
    struct grid round = {calloc(MAX_COMBINATIONS, sizeof *g.setup), 0};
    size_t *order = calloc(MAX_COMBINATIONS, sizeof *order);
    struct tune_sample *got = calloc(MAX_COMBINATIONS, sizeof *got);
    struct tune_setup base = r->base;
    struct sequential comparison = {0};
    enum status st = ST_OK;

    if (!g.setup || !round.setup || !order || !got) {
        st = err_set(err, ST_NO_MEMORY, "no memory for %d combinations",
                     MAX_COMBINATIONS);
    } else {
        base.residency = r->chosen.residency;
        base.tuning.pages = r->chosen.tuning.pages;
        base.placement = r->chosen.placement;
        add(&g, &r->chosen);
        make_grid(&g, t->p, &base);
        st = sequential_open(&comparison, g.n, t->p->seed ^ 0x5bd1e995, err);
    }
    if (st == ST_OK) {
        comparison.always_duel = true;
        st = sequential_all(t, &comparison, &g, &round, order, got, err);
    }
    if (st == ST_OK && comparison.best) {
        r->exhaustive.n_combinations = g.n - 1;
        r->exhaustive.best = g.setup[comparison.best];
        r->exhaustive.n_rounds =
            comparison.c[comparison.best].n - comparison.c[comparison.best].n_screen;
        st = sequential_ratio(&comparison, comparison.best, &r->exhaustive.ratio, err);
    }
    sequential_close(&comparison);
    free(got);
    free(order);
    free(round.setup);
    free(g.setup);
    return st;
}
