/* SPDX-License-Identifier: MIT
 *
 * plan.c - a worker computes what a model needs
 */
#include "harness/measure/plan/plan.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/machine/memory_reserve.h"

/* Reading a file's head takes long only on a file system far away. */
#define ANSWER_S 120.0

/* ---- the limit ------------------------------------------------------------------- */

/* In the words of `bench topo`. */
static void find_room(struct plan *plan, const struct topology *topo)
{
    const uint64_t limit = plan->point.setup.mem_limit;
    const uint64_t room = topology_usable_bytes(topo, limit);
    char *from = plan->room_from;
    const size_t cap = sizeof plan->room_from;

    plan->room = room;
    if (room == limit)
        snprintf(from, cap, "--mem");
    else if (room == topo->mem_limit)
        snprintf(from, cap, "the limit of %s", topo->mem_limit_source);
    else if (room == topo->mem_left)
        snprintf(from, cap, "left of the limit of %s", topo->mem_left_source);
    else
        snprintf(from, cap, "available on this machine");
}

/* ---- request --------------------------------------------------------------------- */

static enum status request_plan(struct plan *plan, struct planner *planner,
                                struct err *err)
{
    json_t *request = message_request("need", &plan->point, plan->room, NULL, NULL);
    json_t *answer = NULL;
    enum status st;

    if (!request)
        return err_set(err, ST_USAGE, "the name of the model is not UTF-8: %s",
                       format_path(plan->point.setup.model.path).text);
    st = worker_client_request(&planner->worker, request, "need", "opening the model",
                               &answer, err);
    if (st == ST_OK)
        st = point_need_from_json(&plan->need, answer, err);
    json_decref(answer);
    return st;
}

enum status planner_open(struct planner *planner, struct err *err)
{
    const struct worker_params params = {.who = "the planning process",
                                         .program = "/proc/self/exe",
                                         .command = "worker",
                                         .timeout_s = ANSWER_S,
                                         .pass_errors = true};
    enum status st;

    *planner = (struct planner){.worker = {.child = CHILD_INIT}};
    st = worker_client_start(&planner->worker, &params, err);
    if (st == ST_OK)
        st = worker_client_greet(&planner->worker, err);
    if (st == ST_CHECK)
        st = err_set(err, ST_IO, "the planning process does not start");
    return st;
}

void planner_close(struct planner *planner)
{
    worker_client_close(&planner->worker);
}

/* A point is tried with this much memory; a residency that was chosen also leaves the
 * rest of the reserve. */
enum plan_verdict plan_verdict(const struct point_need *need, uint64_t room)
{
    const bool maps = need->residency == WEIGHTS_MMAP;

    if (need->anon_bytes + point_need_reserve(need->residency) > room)
        return PLAN_NO_FIT;
    if (maps && need->anon_bytes + need->map_bytes + RESERVE_OWN_BYTES > room)
        return PLAN_PAGES;
    return need->streamed_bytes ? PLAN_STREAMS : PLAN_FITS;
}

enum status planner_make(struct planner *planner, struct plan *plan,
                         const struct point *p, const struct topology *topo,
                         struct err *err)
{
    memset(plan, 0, sizeof *plan);
    plan->point = *p;
    plan->wanted = p->setup.residency;
    plan->time.token_s = NAN;
    find_room(plan, topo);
    if (request_plan(plan, planner, err))
        return err->code;
    plan->point.setup.residency = (enum weights_residency)plan->need.residency;
    plan->cache = topology_cache(topo, plan->point.setup.n_threads);
    plan->verdict = plan_verdict(&plan->need, plan->room);
    return ST_OK;
}

enum status plan_make(struct plan *plan, const struct point *p,
                      const struct topology *topo, struct err *err)
{
    struct planner planner;
    enum status st = planner_open(&planner, err);

    if (st == ST_OK)
        st = planner_make(&planner, plan, p, topo, err);
    planner_close(&planner);
    return st;
}

/* ---- the time -------------------------------------------------------------------- */

struct token_work plan_work(const struct plan *plan)
{
    const struct point_need *need = &plan->need;

    return (struct token_work){.memory_bytes = (double)need->token_bytes,
                               .streamed_bytes = (double)need->streamed_bytes,
                               .on_demand = need->cache_bytes > 0,
                               .output_bytes = (double)need->output_bytes,
                               .n_layers = need->n_layers,
                               .n_streamed = need->n_streamed};
}

enum topo_cached plan_cached(const struct plan *plan)
{
    return topology_cached(&plan->cache, (double)plan->need.token_bytes);
}

/* Whether roofs make a time of it: not of a mapped file that memory does not hold, nor
 * of what the last-level cache holds. */
static bool has_time(const struct plan *plan)
{
    return plan->verdict != PLAN_PAGES && plan->verdict != PLAN_NO_FIT &&
           plan_cached(plan) != TOPO_CACHED;
}

void plan_predict(struct plan *plan)
{
    struct token_work work = plan_work(plan);

    work.layer_s = token_time_layer_s(plan->point.setup.n_threads);
    const struct token_roofs slow = token_roofs_end(&plan->roofs.gbps, false);
    const struct token_roofs fast = token_roofs_end(&plan->roofs.gbps, true);

    plan->time = token_time_predict(&work, &plan->roofs.gbps);
    if (!has_time(plan))
        plan->time.token_s = NAN;
    plan->tok_per_s_lo =
        (1 - TOKEN_TIME_BAND) / token_time_predict(&work, &slow).token_s;
    plan->tok_per_s_hi =
        (1 + TOKEN_TIME_BAND) / token_time_predict(&work, &fast).token_s;
}
