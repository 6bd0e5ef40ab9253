/* SPDX-License-Identifier: MIT
 *
 * point_tuned.c - a point with a profile: finding it, sending it to the worker, and the
 * worker's check
 */
#include "harness/measure/point/point_tuned.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/rows/settings/setting.h"

/* ---- the deciding side ---------------------------------------------------------- */

/* What the user has set stays; a prefill point has one count, that of prefill. */
static void take_setup(struct point *p, const struct tune_setup *s)
{
    const bool threads = !(p->setup.given & SETTING_BIT(threads));
    const bool prefill = threads && !(p->setup.given & SETTING_BIT(threads_prefill));

    if (p->kind == POINT_PREFILL) {
        if (prefill)
            p->setup.n_threads = s->n_threads_prefill;
    } else {
        if (threads)
            p->setup.n_threads = s->n_threads;
        if (prefill)
            p->setup.n_threads_prefill = s->n_threads_prefill;
        if (p->setup.n_threads_prefill == p->setup.n_threads)
            p->setup.n_threads_prefill = 0;
    }
    if (!(p->setup.given & SETTING_BIT(placement)))
        p->setup.placement = s->placement;
    if (!(p->setup.given & SETTING_BIT(batch)))
        p->setup.n_batch = s->tuning.n_batch;
}

enum status point_take_tuned(struct point *p, const struct tuned_key *here, char *note,
                             size_t cap, struct err *err)
{
    struct point_tuning *t = &p->tuning;
    struct tuned tuned;
    enum status st;

    *note = '\0';
    st = tuned_find(&tuned, &t->state, p->setup.tuned, here, p->setup.residency, note,
                    cap, err);
    if (st || t->state != TUNED_USED)
        return st;
    t->n_threads = p->setup.n_threads;
    t->n_threads_prefill = p->setup.n_threads_prefill;
    t->n_batch = p->setup.n_batch;
    t->placement = p->setup.placement;
    t->residency = tuned.setup.residency;
    t->choices = tuned.setup.tuning;
    take_setup(p, &tuned.setup);
    return ST_OK;
}

/* ---- the measuring side
 * -------------------------------------------------------------- */

static int most(int a, int b)
{
    return a > b ? a : b;
}

void point_tuned_params(const struct point *p, struct slm_params *params)
{
    const struct point_tuning *t = &p->tuning;

    if (t->state != TUNED_USED)
        return;
    params->tuning = t->choices;
    params->tuning.n_batch = 0; /* as opened; the check sets it */
    params->n_batch = most(p->setup.n_batch, t->n_batch);
    params->n_threads = most(p->setup.n_threads, t->n_threads);
    params->n_threads_prefill =
        most(most(p->setup.n_threads_prefill, t->n_threads_prefill), 0);
}

/* CPUs of all threads, with that placement. */
static enum status side_cpus(const struct point *p, const struct topology *topo,
                             enum placement placement, int n, int *cpus,
                             const int **chosen, struct err *err)
{
    *chosen = NULL;
    if (placement == PLACEMENT_NONE)
        return ST_OK;
    *chosen = cpus;
    if (!p->setup.explicit_cpus || n != model_setup_threads(&p->setup) ||
        placement != p->setup.placement)
        return placement_cpus(topo, placement, n, cpus, err);
    memcpy(cpus, p->setup.cpus, (size_t)n * sizeof *cpus);
    return ST_OK;
}

enum status point_tuned_cpus(const struct point *p, const struct topology *topo,
                             int *cpus, const int **chosen, struct err *err)
{
    struct slm_params params = {.n_threads = p->setup.n_threads};

    point_tuned_params(p, &params);
    return side_cpus(p, topo, p->setup.placement, slm_params_threads(&params), cpus,
                     chosen, err);
}

static void fall_back(struct point *p, const int *cpus, const char *note,
                      struct row *row)
{
    const struct point_tuning *t = &p->tuning;

    p->setup.n_threads = t->n_threads;
    p->setup.n_threads_prefill = t->n_threads_prefill;
    p->setup.n_batch = t->n_batch;
    p->setup.placement = t->placement;
    row->n_threads = p->setup.n_threads;
    if (p->kind == POINT_DECODE) /* the profile's may stand there */
        row->n_threads_prefill = p->setup.n_threads_prefill ? p->setup.n_threads_prefill
                                                            : p->setup.n_threads;
    row->placement = (int)p->setup.placement;
    if (cpus)
        format_cpus(row->cpus, sizeof row->cpus, cpus, model_setup_threads(&p->setup));
    row->tuning = TUNED_SLOWER;
    snprintf(row->detail, sizeof row->detail, "%.190s", note);
}

enum status point_check_tuned(struct slm *m, struct point *p,
                              const struct topology *topo, struct row *row,
                              struct err *err)
{
    const struct point_tuning *t = &p->tuning;
    const int n = thread_pool_capacity(slm_thread_pool(m));
    int cpus[2][TOPO_MAX_CPUS];
    struct tuned_side sides[2] = {
        {.n_threads = t->n_threads,
         .n_threads_prefill = t->n_threads_prefill,
         .tuning = slm_tuning_default(),
         .cache_bytes = topology_cache(topo, t->n_threads).bytes},
        {.n_threads = p->setup.n_threads,
         .n_threads_prefill = p->setup.n_threads_prefill,
         .tuning = t->choices}};
    bool slower = false;
    char note[240];
    enum status st;

    sides[0].tuning.n_batch = t->n_batch;
    sides[1].tuning.n_batch = p->setup.n_batch;
    for (int i = 0; i < 2; i++)
        if (sides[i].tuning.n_batch > slm_info(m)->n_batch)
            sides[i].tuning.n_batch = slm_info(m)->n_batch;
    st = side_cpus(p, topo, t->placement, n, cpus[0], &sides[0].cpus, err);
    if (st == ST_OK)
        st = side_cpus(p, topo, p->setup.placement, n, cpus[1], &sides[1].cpus, err);
    if (st == ST_OK)
        st = tuned_check(m, sides, 1,
                         p->kind == POINT_PREFILL ? TUNE_PREFILL : TUNE_DECODE, &slower,
                         note, sizeof note, err);
    if (st == ST_OK && slower)
        fall_back(p, sides[0].cpus, note, row);
    return st;
}
