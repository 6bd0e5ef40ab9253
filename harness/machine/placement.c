/* SPDX-License-Identifier: MIT
 *
 * placement.c - which CPUs n threads go to
 *
 * Every placement is a sort of the allowed CPUs by a key of a few small numbers,
 * so the first k CPUs of any n are those for k threads. Positions count allowed
 * CPUs only: a CPU whose first sibling is forbidden is the first of its core.
 */
#include "harness/machine/topology.h"

#include <limits.h>
#include <stdlib.h>

#include "harness/base/parse.h"

#define N_KEYS 6

struct place {
    int os_id;
    int key[N_KEYS + 1]; /* the last is os_id, so that no two are equal */
};

static const char *const names[] = {
    [PLACEMENT_SPREAD] = "spread",
    [PLACEMENT_COMPACT] = "compact",
    [PLACEMENT_SMT] = "smt",
    [PLACEMENT_NONE] = "none",
};

const char *placement_name(enum placement p)
{
    return names[p];
}

static const char *name_of(int value)
{
    return names[value];
}

const struct choices choices_placement = {"placements are", name_of,
                                          PLACEMENT_NONE + 1};

static bool is_allowed(const struct topology *t, int cpu)
{
    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpu[i].os_id == cpu)
            return t->cpu[i].allowed;
    return false;
}

enum status placement_parse_cpus(const char *text, const struct topology *t,
                                 int *n_threads, int n_threads_prefill, int *cpus,
                                 struct err *err)
{
    struct int_list list = {NULL, 0};
    enum status st = parse_counts(text, "--cpus", "", 0, INT_MAX - 1, &list, err);
    size_t wanted = list.n < TOPO_MAX_CPUS ? list.n : TOPO_MAX_CPUS;

    if (*n_threads)
        wanted = (size_t)*n_threads;
    if ((size_t)n_threads_prefill > wanted)
        wanted = (size_t)n_threads_prefill;
    if (st == ST_OK && list.n != wanted)
        st = err_set(err, ST_USAGE,
                     "--cpus %s names %zu CPU%s for %zu thread%s; name one each", text,
                     list.n, list.n == 1 ? "" : "s", wanted, wanted == 1 ? "" : "s");
    for (size_t i = 0; i < list.n && st == ST_OK; i++) {
        if (is_allowed(t, list.v[i]))
            cpus[i] = list.v[i];
        else
            st = err_set(err, ST_USAGE,
                         "--cpus: this process may not run on CPU %d; `bench topo` and "
                         "`taskset -p $$` show where it may",
                         list.v[i]);
    }
    if (st == ST_OK && !*n_threads)
        *n_threads = (int)list.n;
    free(list.v);
    return st;
}

static int by_key(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    for (int i = 0; i <= N_KEYS; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return 0;
}

/* How many distinct values below cpu's own a field takes among the allowed CPUs
 * that agree with cpu in another field: the position of its core in its cache, of
 * its cache in its node, of its node in its socket. */
static int position(const struct topology *t, const struct topo_cpu *cpu, size_t field,
                    size_t within)
{
#define FIELD(c, offset) (*(const int *)((const char *)(c) + (offset)))
    const int own = FIELD(cpu, field), group = FIELD(cpu, within);
    int n = 0;

    for (int i = 0; i < t->n_cpus; i++) {
        const struct topo_cpu *c = &t->cpu[i];
        const int value = FIELD(c, field);
        bool first = c->allowed && FIELD(c, within) == group && value < own;

        for (int j = 0; j < i && first; j++)
            first = !(t->cpu[j].allowed && FIELD(&t->cpu[j], within) == group &&
                      FIELD(&t->cpu[j], field) == value);
        n += first;
    }
    return n;
#undef FIELD
}

/* Position among the allowed CPUs of its own core. */
static int rank_in_core(const struct topology *t, const struct topo_cpu *cpu)
{
    int n = 0;

    for (const struct topo_cpu *c = t->cpu; c < cpu; c++)
        n += c->allowed && c->core == cpu->core;
    return n;
}

static void set_key(const struct topology *t, enum placement p,
                    const struct topo_cpu *cpu, struct place *place)
{
    int *key = place->key;

    place->os_id = key[N_KEYS] = cpu->os_id;
    if (p == PLACEMENT_SPREAD) {
        key[0] = rank_in_core(t, cpu);
        key[1] = cpu->kind;
        key[2] = position(t, cpu, offsetof(struct topo_cpu, core),
                          offsetof(struct topo_cpu, llc));
        key[3] = position(t, cpu, offsetof(struct topo_cpu, llc),
                          offsetof(struct topo_cpu, node));
        key[4] = position(t, cpu, offsetof(struct topo_cpu, node),
                          offsetof(struct topo_cpu, package));
        key[5] = cpu->package;
    } else {
        key[0] = cpu->kind;
        key[1] = cpu->package;
        key[2] = cpu->node;
        key[3] = cpu->llc;
        key[4] = cpu->core;
        key[5] = rank_in_core(t, cpu);
    }
}

/* For PLACEMENT_SMT: cores with two allowed CPUs come before those with one. */
static int core_is_single(const struct topology *t, const struct topo_cpu *cpu)
{
    int n = 0;

    for (int i = 0; i < t->n_cpus; i++)
        n += t->cpu[i].allowed && t->cpu[i].core == cpu->core;
    return n < 2;
}

/* The allowed CPUs in the order of p; returns how many. */
static int sort_cpus(const struct topology *t, enum placement p, struct place *places)
{
    int n = 0, n_pairs = 0;

    for (int i = 0; i < t->n_cpus; i++) {
        if (!t->cpu[i].allowed)
            continue;
        set_key(t, p, &t->cpu[i], &places[n]);
        if (p == PLACEMENT_SMT) {
            const int single = core_is_single(t, &t->cpu[i]);

            places[n].key[0] += single * t->n_kinds;
            n_pairs += !single;
        }
        n++;
    }
    qsort(places, (size_t)n, sizeof places[0], by_key);
    return p == PLACEMENT_SMT && !n_pairs ? -1 : n;
}

enum status placement_cpus(const struct topology *t, enum placement p, int n, int *cpus,
                           struct err *err)
{
    if (n < 1)
        return err_set(err, ST_USAGE, "%d threads cannot be placed: use at least 1", n);
    if (p == PLACEMENT_NONE) {
        for (int i = 0; i < n; i++)
            cpus[i] = -1;
        return ST_OK;
    }
    struct place *places = calloc((size_t)t->n_cpus + 1, sizeof *places);
    if (!places)
        return err_set(err, ST_NO_MEMORY, "no memory to place %d threads", n);
    const int n_places = sort_cpus(t, p, places);
    enum status st = ST_OK;

    if (n_places > 0) {
        for (int i = 0; i < n; i++)
            cpus[i] = places[i % n_places].os_id;
    } else if (p == PLACEMENT_SMT) {
        st = err_set(err, ST_UNSUPPORTED,
                     "placement 'smt' needs a core with two allowed hyperthreads, and "
                     "%s; use spread or compact",
                     t->smt == TOPO_SMT_SHOWN    ? "the affinity mask leaves none"
                     : t->smt == TOPO_SMT_HIDDEN ? "this virtual machine shows none"
                                                 : "this machine has none");
    } else {
        st = err_set(err, ST_UNSUPPORTED, "no CPU is allowed to this process");
    }
    free(places);
    return st;
}

enum status placement_pool(struct thread_pool **pool, const struct topology *t,
                           enum placement p, int n, struct err *err)
{
    int cpus[TOPO_MAX_CPUS];

    if (p == PLACEMENT_NONE)
        return thread_pool_start(pool, n, NULL, err);
    if (placement_cpus(t, p, n, cpus, err))
        return err->code;
    return thread_pool_start(pool, n, cpus, err);
}
