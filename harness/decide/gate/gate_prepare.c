/* SPDX-License-Identifier: MIT
 *
 * gate_prepare.c - what both sides of a gate open, and whether there is room for it
 */
#include <string.h>

#include "harness/base/format.h"
#include "harness/decide/gate/gate_run.h"
#include "harness/machine/cache.h"
#include "kernels/isa.h"

static enum status choose_cpus(struct gate_run *run, struct worker_open *o,
                               struct err *err)
{
    struct model_setup *m = &o->setup;

    m->n_threads = worker_n_threads(o);
    m->explicit_cpus = m->placement != PLACEMENT_NONE;
    return m->explicit_cpus
               ? placement_cpus(run->topo, m->placement, m->n_threads, m->cpus, err)
               : ST_OK;
}

static enum status describe_opening(struct gate_run *run, struct err *err)
{
    const struct gate_settings *s = run->s;
    struct worker_open *o = &run->open[0];

    *o = (struct worker_open){.topo = run->topo,
                              .setup = s->setup,
                              .n_loads = s->load ? WORKER_MAX_LOADS : 1,
                              .n_steps = run->plan.n_steps};
    o->setup.isa_disabled = isa_detected() & ~isa_usable();
    /* Both are in memory at a time, and each streams what its half does not hold. */
    if (s->setup.residency == WEIGHTS_STREAM)
        o->setup.mem_limit = topology_usable_bytes(run->topo, s->setup.mem_limit) / 2;
    memcpy(o->step, run->plan.step, sizeof o->step);
    const enum status st = choose_cpus(run, o, err);
    run->open[1] = *o;
    run->open[1].slower = s->slower;
    if (s->has_b_model)
        run->open[1].setup.model = s->b_model;
    return st;
}

/* Bytes of both models' weights. */
static enum status weights_of_both(const struct gate_run *run, uint64_t bytes[2],
                                   struct err *err)
{
    enum status st = ST_OK;

    for (int side = 0; side < 2 && st == ST_OK; side++)
        st = modelref_bytes(&run->open[side].setup.model, &bytes[side], err);
    return st;
}

/* All weights, where each program has its own. */
static enum status check_room(const struct gate_run *run, const uint64_t bytes[2],
                              struct err *err)
{
    const struct gate_settings *s = run->s;
    const uint64_t room = topology_model_bytes(run->topo, s->setup.mem_limit);

    if (s->setup.residency != WEIGHTS_PACKED || bytes[0] + bytes[1] <= room)
        return ST_OK;
    return err_set(err, ST_NO_MEMORY,
                   "packed weights of both programs take %s, and there are %s; "
                   "--weights mmap has them in memory once",
                   bytes_text(bytes[0] + bytes[1]).text, bytes_text(room).text);
}

static enum status make_files(const struct gate_run *run, struct err *err)
{
    enum status st = ST_OK;

    for (int side = 0; side < 2 && st == ST_OK; side++) {
        const struct model_setup *setup = &run->open[side].setup;

        if (setup->model.at_load && setup->residency != WEIGHTS_PACKED)
            return err_set(err, ST_USAGE,
                           "%s is quantised while it is loaded, which needs "
                           "--weights packed",
                           setup->model.text);
        st = modelref_make_file(&setup->model, NULL, err);
    }
    return st;
}

static enum status prepare_model(struct gate_run *run, struct err *err)
{
    const struct gate_settings *s = run->s;
    uint64_t bytes[2];
    enum status st = make_files(run, err);

    if (st == ST_OK)
        st = weights_of_both(run, bytes, err);
    /* Both sides have the same answer, and read the model the same way for it. */
    if (st == ST_OK)
        st = cache_find_for(run->topo, bytes[0] > bytes[1] ? bytes[0] : bytes[1], err);
    if (st == ST_OK)
        st = check_room(run, bytes, err);
    if (st || !s->setup.mem_limit)
        return st;
    for (int side = 0; side < 2; side++) {
        uint64_t stayed;

        /* Cached pages were charged to another group. */
        modelref_evict(&run->open[side].setup.model, &stayed, NULL);
    }
    return ST_OK;
}

enum status gate_run_prepare(struct gate_run *run, struct err *err)
{
    const enum status st = describe_opening(run, err);

    return st ? st : prepare_model(run, err);
}
