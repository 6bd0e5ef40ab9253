/* SPDX-License-Identifier: MIT
 *
 * cores.c - from rounds to a verdict, and from verdicts to cores
 */
#include "harness/machine/cores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "harness/stats/stats.h"
#include "harness/machine/topology_internal.h"

#define N_RESAMPLES 2000

/* ---- one pair -------------------------------------------------------------------- */

void cores_judge(struct cores_pair *p, const double *ratio, int n, uint64_t seed)
{
    static const double half_alpha = 0.025;
    double median[N_RESAMPLES], sample[CORES_ROUNDS], scratch[CORES_ROUNDS];
    int n_one = 0, n_two = 0;

    p->n_rounds = n;
    p->verdict = CORES_UNDECIDED;
    p->ratio = p->lo = p->hi = NAN;
    p->sure = 0;
    if (n < 1)
        return;
    p->ratio = stats_median(ratio, (size_t)n, scratch);
    for (int i = 0; i < N_RESAMPLES; i++) {
        for (int k = 0; k < n; k++)
            sample[k] = ratio[random_bits(&seed) % (uint64_t)n];
        median[i] = stats_median(sample, (size_t)n, scratch);
        n_one += median[i] < CORES_ONE_BELOW;
        n_two += median[i] > CORES_TWO_ABOVE;
    }
    stats_sort(median, N_RESAMPLES);
    p->lo = stats_quantile_sorted(median, N_RESAMPLES, half_alpha);
    p->hi = stats_quantile_sorted(median, N_RESAMPLES, 1 - half_alpha);
    /* One more resample might always have disagreed. */
    p->sure = (double)(n_one > n_two ? n_one : n_two) / (N_RESAMPLES + 1);
    if (n < CORES_MIN_ROUNDS)
        return;
    if (p->hi < CORES_ONE_BELOW)
        p->verdict = CORES_ONE;
    else if (p->lo > CORES_TWO_ABOVE)
        p->verdict = CORES_TWO;
}

static const char *const verdicts[] = {
    [CORES_UNDECIDED] = "undecided",
    [CORES_ONE] = "one core",
    [CORES_TWO] = "two cores",
};

void cores_pair_text(const struct cores_pair *p, char *buf, size_t cap)
{
    if (p->n_rounds < CORES_MIN_ROUNDS)
        snprintf(buf, cap,
                 "CPUs %d and %d: undecided, only %d of %d rounds were undisturbed",
                 p->cpu[0], p->cpu[1], p->n_rounds, p->n_rounds + p->n_disturbed);
    else if (p->verdict == CORES_UNDECIDED)
        snprintf(buf, cap,
                 "CPUs %d and %d: undecided, together they do %.2f times the work of "
                 "one (95 %% interval %.2f to %.2f)",
                 p->cpu[0], p->cpu[1], p->ratio, p->lo, p->hi);
    else
        snprintf(buf, cap,
                 "CPUs %d and %d: %s (confidence %s%.1f %%); together they do %.2f "
                 "times the work of one (95 %% interval %.2f to %.2f)",
                 p->cpu[0], p->cpu[1], verdicts[p->verdict],
                 p->sure > 0.999 ? "more than " : "",
                 p->sure > 0.999 ? 99.9 : 100 * p->sure, p->ratio, p->lo, p->hi);
}

/* ---- many CPUs ------------------------------------------------------------------- */

struct sorting {
    struct cores_map *map;
    cores_test_fn *test;
    void *arg;
    double *share; /* [CORES_ROUNDS * n_cpus] */
    uint64_t end_ns;
    int offset; /* between the partners found last; 0: none yet */
    bool *open; /* [n_cpus]: has no core yet */
    struct err *err;
};

static enum status test_pair(struct sorting *s, int a, int b, struct cores_pair *p)
{
    const int cpus[2] = {s->map->cpu[a], s->map->cpu[b]};
    double ratio[CORES_ROUNDS];
    int n_rounds = 0;
    enum status st;

    p->cpu[0] = cpus[0];
    p->cpu[1] = cpus[1];
    st = s->test(s->arg, cpus, 2, s->share, &n_rounds, &p->n_disturbed, s->err);
    if (st)
        return st;
    for (int r = 0; r < n_rounds; r++)
        ratio[r] = s->share[2 * r] + s->share[2 * r + 1];
    cores_judge(p, ratio, n_rounds, 1);
    return ST_OK;
}

/* All at once: those that keep their speed have a core each. A share below the
 * bound is no evidence, since clocks fall as more cores work. */
static enum status test_group(struct sorting *s)
{
    struct cores_map *map = s->map;
    const int n = map->n_cpus;
    int n_rounds = 0, n_disturbed = 0;
    enum status st =
        s->test(s->arg, map->cpu, n, s->share, &n_rounds, &n_disturbed, s->err);

    if (st)
        return st;
    map->n_group = n;
    map->min_share = NAN;
    for (int i = 0; i < n; i++) {
        double ratio[CORES_ROUNDS];
        struct cores_pair own;

        for (int r = 0; r < n_rounds; r++)
            ratio[r] = 2 * s->share[r * n + i];
        cores_judge(&own, ratio, n_rounds, (uint64_t)i + 1);
        if (!(own.ratio / 2 > map->min_share))
            map->min_share = own.ratio / 2;
        if (own.verdict == CORES_TWO) {
            map->core[i] = map->n_cores++;
            s->open[i] = false;
        }
    }
    return ST_OK;
}

/* The k-th candidate partner of CPU i: the distance that was right last time, the
 * next CPU, the one half the list away, then the others. -1: no more. */
static int candidate(const struct sorting *s, int i, int k)
{
    const int n = s->map->n_cpus;
    const int likely[3] = {s->offset, 1, n / 2};

    if (k < 3) {
        for (int earlier = 0; earlier < k; earlier++)
            if (likely[earlier] == likely[k])
                return -2;
        return likely[k] > 0 && i + likely[k] < n ? i + likely[k] : -2;
    }
    const int j = i + 1 + (k - 3);

    if (j >= n)
        return -1;
    for (int earlier = 0; earlier < 3; earlier++)
        if (j == i + likely[earlier])
            return -2;
    return j;
}

/* Find the partner of CPU i among the open ones after it. */
static enum status find_partner(struct sorting *s, int i, bool *undecided)
{
    struct cores_map *map = s->map;
    bool any_undecided = false;

    s->open[i] = false;
    map->core[i] = map->n_cores++;
    for (int k = 0, j; (j = candidate(s, i, k)) != -1; k++) {
        struct cores_pair *p = &map->pair[map->n_pairs];

        if (j < 0 || !s->open[j])
            continue;
        if (map->n_pairs == CORES_MAX_PAIRS ||
            (map->n_pairs && clock_ns() > s->end_ns)) {
            *undecided = true;
            return ST_OK;
        }
        const enum status st = test_pair(s, i, j, p);

        if (st)
            return st;
        map->n_pairs++;
        any_undecided |= p->verdict == CORES_UNDECIDED;
        if (p->verdict == CORES_ONE) {
            map->core[j] = map->core[i];
            s->open[j] = false;
            s->offset = j - i;
            return ST_OK;
        }
    }
    *undecided |= any_undecided;
    return ST_OK;
}

/* Cores in the order of their first CPUs: core[i] is made up from the first CPU of
 * the same core, which has its number by then. */
static void renumber(struct cores_map *map)
{
    int old[TOPO_MAX_CPUS], n = 0;

    memcpy(old, map->core, sizeof old);
    for (int i = 0; i < map->n_cpus; i++) {
        int first = 0;

        while (old[first] != old[i])
            first++;
        map->core[i] = first < i ? map->core[first] : n++;
    }
}

enum status cores_sort(struct cores_map *map, const int *cpus, int n, double budget_s,
                       cores_test_fn *test, void *arg, struct err *err)
{
    const uint64_t begin_ns = clock_ns();
    struct sorting s = {.map = map,
                        .test = test,
                        .arg = arg,
                        .end_ns = begin_ns + (uint64_t)(budget_s * 1e9),
                        .err = err};
    bool undecided = false;
    enum status st = ST_OK;

    memset(map, 0, sizeof *map);
    if (n < 2 || n > TOPO_MAX_CPUS)
        return err_set(err, ST_USAGE, "%d CPUs cannot be compared: 2 to %d can", n,
                       TOPO_MAX_CPUS);
    map->n_cpus = n;
    memcpy(map->cpu, cpus, (size_t)n * sizeof *cpus);
    s.share = calloc((size_t)n * CORES_ROUNDS, sizeof *s.share);
    s.open = calloc((size_t)n, sizeof *s.open);
    if (!s.share || !s.open)
        st = err_set(err, ST_NO_MEMORY, "no memory to compare %d CPUs", n);
    for (int i = 0; i < n && !st; i++)
        s.open[i] = true;
    if (!st && n > 2)
        st = test_group(&s);
    for (int i = 0; i < n && !st; i++)
        if (s.open[i])
            st = find_partner(&s, i, &undecided);
    renumber(map);
    map->complete = !st && !undecided;
    map->seconds = (double)(clock_ns() - begin_ns) * 1e-9;
    free(s.share);
    free(s.open);
    return st;
}

/* ---- printing -------------------------------------------------------------------- */

json_t *cores_json(const struct cores_map *map)
{
    json_t *cpus = json_array(), *pairs = json_array();

    for (int i = 0; i < map->n_cpus; i++)
        json_array_append_new(
            cpus, json_pack("{s:i, s:i}", "cpu", map->cpu[i], "core", map->core[i]));
    for (int i = 0; i < map->n_pairs; i++) {
        const struct cores_pair *p = &map->pair[i];
        const bool any = p->n_rounds > 0;

        json_array_append_new(
            pairs, json_pack("{s:[i,i], s:s, s:o, s:o, s:o, s:f, s:i, s:i}", "cpus",
                             p->cpu[0], p->cpu[1], "verdict", verdicts[p->verdict],
                             "ratio", any ? json_real(p->ratio) : json_null(), "lo",
                             any ? json_real(p->lo) : json_null(), "hi",
                             any ? json_real(p->hi) : json_null(), "sure", p->sure,
                             "rounds", p->n_rounds, "disturbed", p->n_disturbed));
    }
    return json_pack(
        "{s:b, s:i, s:o, s:o, s:o, s:f}", "complete", (int)map->complete, "cores",
        map->n_cores, "cpus", cpus, "pairs", pairs, "least_share_of_all",
        map->n_group && isfinite(map->min_share) ? json_real(map->min_share)
                                                 : json_null(),
        "seconds", map->seconds);
}

/* One sentence: the pair, or a summary for many CPUs. */
static void summarize(const struct cores_map *map, char *buf, size_t cap)
{
    const struct cores_pair *weakest = map->pair;

    if (map->n_cpus == 2) {
        cores_pair_text(map->pair, buf, cap);
        return;
    }
    if (!map->complete) {
        snprintf(buf, cap,
                 "undecided after %d pair%s of %d CPUs: too many rounds were "
                 "disturbed, or time was up",
                 map->n_pairs, map->n_pairs == 1 ? "" : "s", map->n_cpus);
        return;
    }
    for (int i = 1; i < map->n_pairs; i++)
        if (map->pair[i].sure < weakest->sure)
            weakest = &map->pair[i];
    if (map->n_pairs)
        snprintf(buf, cap,
                 "%d CPUs on %d cores; the least certain pair is %d and %d (confidence "
                 "%.1f %%)",
                 map->n_cpus, map->n_cores, weakest->cpu[0], weakest->cpu[1],
                 100 * weakest->sure);
    else
        snprintf(
            buf, cap,
            "%d CPUs on %d cores: all at once, each kept at least %.0f %% of its speed",
            map->n_cpus, map->n_cores, 100 * map->min_share);
}

void cores_apply(const struct cores_map *map, struct topology *t)
{
    summarize(map, t->smt_measured, sizeof t->smt_measured);
    if (!map->complete || t->smt != TOPO_SMT_HIDDEN)
        return;
    /* CPUs that were not measured keep cores of their own. */
    for (int i = 0; i < t->n_cpus; i++) {
        t->cpu[i].core += map->n_cores;
        for (int k = 0; k < map->n_cpus; k++)
            if (map->cpu[k] == t->cpu[i].os_id)
                t->cpu[i].core = map->core[k];
    }
    topology_count_cores(t);
}
