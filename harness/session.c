/* SPDX-License-Identifier: MIT
 *
 * session.c - threads and placement from the topology, slm_open(), weights read in
 */
#include "harness/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/interrupt.h"
#include "harness/parse.h"
#include "harness/progress.h"
#include "harness/topology.h"

/* Weights of a file; "memory" makes models, which is not for this. */
static enum status choose_residency(const char *text, struct slm_params *p,
                                    struct err *err)
{
    enum weights_residency r = WEIGHTS_AUTO;

    if (text && residency_parse(text, "--weights", &r, err))
        return ST_USAGE;
    if (r == WEIGHTS_MEMORY)
        return err_set(err, ST_USAGE,
                       "--weights memory is for synthetic models of bench decode; "
                       "a file is auto, mmap or packed");
    p->residency = r;
    return ST_OK;
}

/* Threads and, unless they float, their CPUs in cpus[TOPO_MAX_CPUS]. */
static enum status choose_threads(struct slm_params *p,
                                  const struct session_params *params,
                                  const struct topology *topo, int *cpus,
                                  struct err *err)
{
    enum placement placement = PLACEMENT_NONE;
    enum status st = ST_OK;

    p->n_threads = params->n_threads;
    p->n_threads_prefill = params->n_threads_prefill;
    if (params->cpus && params->placement)
        return err_set(err, ST_USAGE, "--cpus and --placement exclude each other");
    if (params->cpus) {
        p->cpus = cpus;
        return placement_parse_cpus(params->cpus, topo, &p->n_threads,
                                    p->n_threads_prefill, cpus, err);
    }
    if (!p->n_threads)
        p->n_threads = topo->threads_default;
    if (params->placement)
        st = placement_parse(params->placement, &placement, err);
    if (st || placement == PLACEMENT_NONE)
        return st;
    p->cpus = cpus;
    return placement_cpus(topo, placement, slm_params_threads(p), cpus, err);
}

static int on_preload(void *progress, size_t done, size_t total)
{
    progress_update(progress, (double)done / (double)total, NULL);
    return interrupted();
}

/* A model that memory holds is read in one go, with the disk reading ahead; one
 * that it does not hold would push out its own beginning. */
static enum status preload(struct slm *m, const struct topology *topo, struct err *err)
{
    const struct slm_info *info = slm_info(m);
    struct progress progress;
    enum status st;

    if (info->weight_bytes + info->kv_bytes + info->scratch_bytes >
        topology_model_bytes(topo)) {
        if (weights_ready(slm_weights(m)))
            return ST_OK;
        return err_set(err, ST_NO_MEMORY,
                       "%s does not fit the memory there is, and packed weights must; "
                       "--weights mmap pages it from disk",
                       gguf_path(slm_gguf(m)));
    }
    progress_begin(&progress, "loading");
    st = weights_preload(slm_weights(m), slm_team(m), on_preload, &progress, err);
    progress_end(&progress);
    return st;
}

enum status session_open(struct slm **m, const struct session_params *params,
                         int *n_threads, struct err *err)
{
    struct slm_params p = slm_params_default();
    struct topology *topo = malloc(sizeof *topo);
    struct slm *new = NULL;
    int *cpus = NULL;
    char doubt[200];
    enum status st;

    if (!topo)
        return err_set(err, ST_NO_MEMORY, "no memory to describe the machine");
    st = choose_residency(params->weights, &p, err);
    if (!st && params->kv_type)
        st = kv_type_parse(params->kv_type, "--kv-type", &p.kv_type, err);
    if (!st)
        st = topology_read(topo, "", err);
    if (!st) {
        p.path = params->model;
        p.memory_bytes = topology_model_bytes(topo);
        p.n_ctx = params->n_ctx;
        p.n_batch = params->n_batch;
        p.n_logits = params->n_logits;
        cpus = calloc(TEAM_MAX_MEMBERS, sizeof *cpus);
        if (!cpus)
            st = err_set(err, ST_NO_MEMORY, "no memory to place threads");
    }
    if (!st)
        st = choose_threads(&p, params, topo, cpus, err);
    if (!st && topology_doubts_threads(topo, slm_params_threads(&p), p.cpus, doubt,
                                       sizeof doubt))
        fprintf(stderr, "bench: %s\n", doubt);
    if (!st)
        st = slm_open(&new, &p, err);
    if (!st)
        st = preload(new, topo, err);
    if (st) {
        slm_close(new);
    } else {
        *m = new;
        if (n_threads)
            *n_threads = p.n_threads;
    }
    free(cpus);
    free(topo);
    return st;
}
