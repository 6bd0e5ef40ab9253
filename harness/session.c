/* SPDX-License-Identifier: MIT
 *
 * session.c - threads and placement from the topology, then slm_open()
 */
#include "harness/session.h"

#include <stdlib.h>

#include "harness/topology.h"

/* cpus: [n_threads] to fill, or NULL in *chosen where threads float. */
static enum status choose_cpus(const struct topology *topo, const char *placement,
                               int n_threads, int *cpus, const int **chosen,
                               struct err *err)
{
    enum placement p;
    enum status st = placement_parse(placement, &p, err);

    *chosen = NULL;
    if (st || p == PLACEMENT_NONE)
        return st;
    *chosen = cpus;
    return placement_cpus(topo, p, n_threads, cpus, err);
}

enum status session_open(struct slm **m, const struct session_params *params,
                         int *n_threads, struct err *err)
{
    struct slm_params p = slm_params_default();
    struct topology *topo = malloc(sizeof *topo);
    int *cpus = NULL;
    enum status st;

    if (!topo)
        return err_set(err, ST_NO_MEMORY, "no memory to describe the machine");
    st = topology_read(topo, "", err);
    if (!st) {
        p.path = params->model;
        p.n_threads = params->n_threads ? params->n_threads : topo->threads_default;
        p.n_ctx = params->n_ctx;
        p.n_batch = params->n_batch;
        cpus = calloc((size_t)p.n_threads, sizeof *cpus);
        if (!cpus)
            st = err_set(err, ST_NO_MEMORY, "no memory to place %d threads",
                         p.n_threads);
    }
    if (!st)
        st = choose_cpus(topo, params->placement, p.n_threads, cpus, &p.cpus, err);
    if (!st)
        st = slm_open(m, &p, err);
    if (!st && n_threads)
        *n_threads = p.n_threads;
    free(cpus);
    free(topo);
    return st;
}
