/* SPDX-License-Identifier: MIT
 *
 * point_tune.c - a point with a profile: what that must have been made for, and a check
 * of it against the default
 */
#include <string.h>

#include "harness/base/format.h"
#include "harness/measure/tune/tuned.h"
#include "harness/measure/worker/point/point_answers.h"
#include "harness/measure/worker/point/point_worker.h"
#include "harness/measure/worker/tuned_check.h"

enum status point_key_answer(const json_t *request, struct err *err)
{
    struct tuned_key key = {.text = {""}};
    struct point_request q;
    enum status status = point_read_request(&q, request, err);
    json_t *list;

    if (status == ST_OK)
        status = tuned_key_model(&key, &q.point.setup.model,
                                 q.point.setup.residency == WEIGHTS_MEMORY, err);
    if (status)
        return status;
    list = json_array();
    for (int i = TUNED_MODEL; i < TUNED_N_FIELDS; i++)
        json_array_append_new(list, json_string(key.text[i]));
    worker_send(json_pack("{s:o}", "key", list));
    return ST_OK;
}

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

/* The default's side is used; the parent has its settings. */
static void fall_back(struct point *p, const int *cpus, const char *note)
{
    const struct point_tuning *t = &p->tuning;
    char list[sizeof((struct row *)NULL)->cpus] = "";

    p->setup.n_threads = t->n_threads;
    p->setup.n_threads_prefill = t->n_threads_prefill;
    p->setup.n_batch = t->n_batch;
    p->setup.placement = t->placement;
    if (cpus)
        format_cpus(list, sizeof list, cpus, model_setup_threads(&p->setup));
    worker_send(json_pack("{s:{s:s, s:s}}", "slower", "note", note, "cpus", list));
}

enum status point_check_tuned(struct slm *m, struct point *p,
                              const struct topology *topo, struct err *err)
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
        fall_back(p, sides[0].cpus, note);
    return st;
}
