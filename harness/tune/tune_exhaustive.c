/* SPDX-License-Identifier: MIT
 *
 * tune_exhaustive.c - every combination of the settings that matter to decoding,
 * against what was tuned
 *
 * Setting by setting can miss a pair that is good only together. Here all combinations
 * of threads, chunks, one prefetch and one level for all formats run interleaved; the
 * best of them is compared with the tuned choice in a duel of new rounds.
 */
#include "harness/tune/tune.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COMBINATIONS 512

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

/* Values of any format, the most usual one's: of the first that has the most. */
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

static enum status sequential_all(struct sequential *comparison, const struct grid *g,
                                  const struct tune_machine *m, size_t *order,
                                  struct err *err)
{
    enum status st = ST_OK;
    size_t n, n_done = 0;

    while (st == ST_OK && (n = sequential_round(comparison, order)) > 0) {
        for (size_t i = 0; i < n && st == ST_OK; i++) {
            struct tune_sample got = {0};

            if (m->stop && m->stop(m->arg))
                return err_set(err, ST_INTERRUPTED, "interrupted");
            if (m->progress)
                m->progress(m->arg, (double)n_done / (double)(9 * g->n),
                            "all combinations");
            n_done++;
            st = m->decode(m->arg, &g->setup[order[i]], &got, err);
            if (st == ST_OK)
                sequential_record(comparison, order[i], got.seconds);
        }
        if (st == ST_OK)
            st = sequential_round_end(comparison, err);
    }
    return st;
}

enum status tune_exhaust(struct tune_result *r, const struct tune_params *p,
                         const struct tune_machine *m, struct err *err)
{
    struct grid g = {calloc(MAX_COMBINATIONS, sizeof *g.setup), 0};
    size_t *order = calloc(MAX_COMBINATIONS, sizeof *order);
    struct tune_setup base = r->base;
    struct sequential comparison = {0};
    enum status st = ST_OK;

    if (!g.setup || !order) {
        st = err_set(err, ST_NO_MEMORY, "no memory for %d combinations",
                     MAX_COMBINATIONS);
    } else {
        base.residency = r->chosen.residency;
        base.tuning.pages = r->chosen.tuning.pages;
        base.placement = r->chosen.placement;
        add(&g, &r->chosen);
        make_grid(&g, p, &base);
        st = sequential_open(&comparison, g.n, p->seed ^ 0x5bd1e995, err);
    }
    if (st == ST_OK) {
        comparison.always_duel = true;
        st = sequential_all(&comparison, &g, m, order, err);
    }
    if (st == ST_OK && comparison.best) {
        r->exhaustive.n_combinations = g.n - 1;
        r->exhaustive.best = g.setup[comparison.best];
        r->exhaustive.n_rounds =
            comparison.c[comparison.best].n - comparison.c[comparison.best].n_screen;
        st = sequential_ratio(&comparison, comparison.best, &r->exhaustive.ratio, err);
    }
    sequential_close(&comparison);
    free(order);
    free(g.setup);
    return st;
}
