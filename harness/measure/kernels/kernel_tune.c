/* SPDX-License-Identifier: MIT
 *
 * kernel_tune.c - rounds of all ways, of the faster ones, of the last few
 */
#include "harness/measure/kernels/kernel_tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/forward/prefetch_rule.h"
#include "engine/forward/tuning.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/stats/stats.h"
#include "harness/measure/kernels/kernel_work.h"

#define MAX_WAYS   128
#define MAX_ROUNDS PREFETCH_MAX_ROUNDS
#define COLD_ROWS  4096

/* Rounds of a stage, and how many ways go on behind it. The last stage has its rounds
 * by the time there is. */
static const struct {
    size_t n_rounds;
    int n_kept;
} stages[] = {{2, 16}, {4, 6}};

#define N_STAGES ((int)(sizeof stages / sizeof stages[0]))

struct way {
    struct kernel_case c;
    double time[MAX_ROUNDS]; /* ns per byte */
    double median;           /* of the stage */
};

struct tuning {
    const struct topology *topo;
    struct kernel_fixture *fixture;
    struct way *ways;
    int n_ways;
    uint64_t random;
    int n_threads;
};

static struct kernel_case make_case(enum kern_format fmt, enum kern_isa isa,
                                    int n_threads, struct kern_prefetch prefetch)
{
    struct kernel_case c = {.rows = COLD_ROWS,
                            .cols = KERNEL_COLS,
                            .n_x = 1,
                            .cache = KERNEL_COLD,
                            .n_threads = n_threads,
                            .prefetch = prefetch};

    snprintf(c.op, sizeof c.op, "%s", kern_op_name(KERN_OP_gemv_x16));
    snprintf(c.what, sizeof c.what, "%s", kern_format_info(fmt)->name);
    snprintf(c.isa, sizeof c.isa, "%s", isa_name(isa));
    return c;
}

static bool same_way(const struct kernel_case *a, const struct kernel_case *b)
{
    return !strcmp(a->isa, b->isa) && a->prefetch.distance == b->prefetch.distance &&
           (!a->prefetch.distance || a->prefetch.hint == b->prefetch.hint) &&
           kern_panels_interleaved(a->prefetch) == kern_panels_interleaved(b->prefetch);
}

static void add_way(struct tuning *t, const struct kernel_case *c)
{
    for (int i = 0; i < t->n_ways; i++)
        if (same_way(&t->ways[i].c, c))
            return;
    if (t->n_ways < MAX_WAYS)
        t->ways[t->n_ways++].c = *c;
}

/* ---- rounds --------------------------------------------------------------------- */

static enum status run(struct tuning *t, struct way *w, size_t round, struct err *err)
{
    struct kernel_work *work;

    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (kernel_work_open(&work, t->fixture, &w->c, err))
        return err->code;
    const size_t n_calls = kernel_work_batch(work);
    kernel_work_cool(work, n_calls);
    const uint64_t begin = clock_ns();
    kernel_work_run(work, n_calls);
    w->time[round] = (double)(clock_ns() - begin + 1) /
                     (kernel_work_cost(work).bytes * (double)n_calls);
    kernel_work_close(work);
    return ST_OK;
}

/* Every way once, in random order. */
static enum status run_round(struct tuning *t, size_t round, struct err *err)
{
    int order[MAX_WAYS] = {0};
    enum status st = ST_OK;

    for (int i = 0; i < t->n_ways; i++)
        order[i] = i;
    random_shuffle(order, (size_t)t->n_ways, sizeof *order, &t->random);
    for (int i = 0; i < t->n_ways && st == ST_OK; i++)
        st = run(t, &t->ways[order[i]], round, err);
    return st;
}

static int by_median(const void *a, const void *b)
{
    const double x = ((const struct way *)a)->median,
                 y = ((const struct way *)b)->median;

    return (x > y) - (x < y);
}

/* The default stays first, whatever its place. */
static void keep_fastest(struct tuning *t, size_t n_rounds, int n_kept)
{
    double scratch[MAX_ROUNDS];

    for (int i = 0; i < t->n_ways; i++)
        t->ways[i].median = stats_median(t->ways[i].time, n_rounds, scratch);
    qsort(t->ways + 1, (size_t)t->n_ways - 1, sizeof *t->ways, by_median);
    if (t->n_ways > n_kept + 1)
        t->n_ways = n_kept + 1;
}

/* The other levels that are usable, for the fastest way so far. */
static void add_levels(struct tuning *t, enum kern_format fmt)
{
    const struct kernel_case fastest = t->ways[t->n_ways > 1 ? 1 : 0].c;

    for (int isa = 0; isa < KERN_N_ISA; isa++) {
        const struct kern_row *row =
            isa_usable() >> isa & 1 ? kern_best(KERN_OP_gemv_x16, (int)fmt, 1u << isa)
                                    : NULL;
        if (!row || isa == KERN_ISA_scalar || t->n_ways >= PREFETCH_MAX_CANDIDATES)
            continue;
        const struct kernel_case c =
            make_case(fmt, (enum kern_isa)isa, t->n_threads, fastest.prefetch);
        add_way(t, &c);
    }
}

static void choose(struct tuning *t, enum kern_format fmt, size_t n_rounds,
                   struct kernel_choice *out)
{
    static double time[MAX_ROUNDS][PREFETCH_MAX_CANDIDATES];
    double scratch[MAX_ROUNDS];

    for (size_t i = 0; i < n_rounds; i++)
        for (int w = 0; w < t->n_ways; w++)
            time[i][w] = t->ways[w].time[i];
    const int best = prefetch_choose(n_rounds, t->n_ways, time);
    const struct way *w = &t->ways[best];

    *out = (struct kernel_choice){
        .fmt = fmt,
        .isa = kernel_case_entry(&w->c)->isa,
        .prefetch = w->c.prefetch,
        .gbps = 1 / stats_median(w->time, n_rounds, scratch),
        .default_gbps = 1 / stats_median(t->ways[0].time, n_rounds, scratch),
        .is_default = best == 0};
}

static enum status tune_format(struct tuning *t, const struct kern_row *row,
                               double budget_s, struct kernel_choice *out,
                               struct err *err)
{
    const enum kern_format fmt = (enum kern_format)row->what;
    const uint64_t end = clock_ns() + (uint64_t)(budget_s * 1e9);
    size_t n_ways, n_rounds = 0;
    const struct kern_prefetch *ways = kernel_prefetches(&n_ways);
    struct kernel_case c =
        make_case(fmt, row->isa, t->n_threads, slm_tuning_default().prefetch[fmt]);
    enum status st = ST_OK;

    t->n_ways = 0;
    add_way(t, &c);
    for (size_t i = 0; i < n_ways; i++) {
        c.prefetch = ways[i];
        add_way(t, &c);
    }
    for (int stage = 0; stage < N_STAGES && st == ST_OK; stage++) {
        for (size_t i = 0; i < stages[stage].n_rounds && st == ST_OK; i++)
            st = run_round(t, i, err);
        if (st == ST_OK)
            keep_fastest(t, stages[stage].n_rounds, stages[stage].n_kept);
    }
    if (st == ST_OK)
        add_levels(t, fmt);
    while (st == ST_OK && n_rounds < MAX_ROUNDS &&
           (n_rounds < PREFETCH_MIN_ROUNDS || clock_ns() < end))
        st = run_round(t, n_rounds++, err);
    if (st == ST_OK)
        choose(t, fmt, n_rounds, out);
    return st;
}

/* ---- all formats ---------------------------------------------------------------- */

static enum status tune_all(struct tuning *t, struct kernel_choices *out,
                            uint64_t formats, double budget_s, struct err *err)
{
    const uint64_t begin = clock_ns();
    const struct kern_row *rows[KERN_N_FMT];
    struct kernel_case roof;
    struct progress progress;
    enum status st = ST_OK;
    int n = 0;

    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        rows[n] =
            formats >> fmt & 1 ? kern_best(KERN_OP_gemv_x16, fmt, isa_usable()) : NULL;
        n += rows[n] != NULL;
    }
    if (n == 0)
        return err_set(err, ST_UNSUPPORTED,
                       "none of the formats has panels at the ISA levels in use, so "
                       "there is nothing to tune");
    progress_begin(&progress, "tune");
    for (int i = 0; i < n && st == ST_OK; i++) {
        const double left = budget_s - (double)(clock_ns() - begin) * 1e-9;

        progress_update(&progress, (double)i / n,
                        kern_format_info((enum kern_format)rows[i]->what)->name);
        st = tune_format(t, rows[i], left / (n - i), &out->v[out->n], err);
        out->n += st == ST_OK;
    }
    progress_end(&progress);
    const struct kernel_case any =
        make_case((enum kern_format)rows[0]->what, rows[0]->isa, t->n_threads,
                  (struct kern_prefetch){0});
    if (st == ST_OK && kernel_case_read_roof(&roof, &any))
        out->read_gbps = kernel_fixture_roof(t->fixture, &roof);
    return st;
}

enum status kernel_tune(struct kernel_choices *choices, const struct topology *topo,
                        uint64_t formats, int n_threads, double budget_s,
                        struct err *err)
{
    struct kernel_choices out = {.n_threads = n_threads};
    struct tuning t = {.topo = topo,
                       .ways = calloc(MAX_WAYS, sizeof *t.ways),
                       .random = 1,
                       .n_threads = n_threads};
    enum status st = t.ways
                         ? kernel_fixture_open(&t.fixture, topo, PLACEMENT_SPREAD, err)
                         : err_set(err, ST_NO_MEMORY, "no memory to tune kernels");

    if (st == ST_OK) {
        st = tune_all(&t, &out, formats, budget_s, err);
        kernel_fixture_close(t.fixture);
    }
    free(t.ways);
    if (st == ST_OK)
        *choices = out;
    return st;
}
