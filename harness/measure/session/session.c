/* SPDX-License-Identifier: MIT
 *
 * session.c - threads and placement from the topology, slm_open(), weights read in
 */
#include "harness/measure/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread_pool.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/machine/cache.h"
#include "harness/machine/fence.h"
#include "harness/machine/topology.h"
#include "harness/measure/tune/tuned_use.h"
#include "harness/measure/worker/worker_fence.h"

static int on_preload(void *progress, size_t done, size_t total)
{
    progress_update(progress, (double)done / (double)total, NULL);
    return interrupted();
}

/* A model that fits memory is read sequentially; a larger one would evict its own
 * beginning. */
static enum status preload(struct slm *m, const struct topology *topo, struct err *err)
{
    const struct slm_info *info = slm_info(m);
    struct progress progress;
    char size[24];
    enum status st;

    if (info->residency != WEIGHTS_STREAM &&
        info->weight_bytes + info->kv_bytes + info->scratch_bytes >
            topology_model_bytes(topo, 0)) {
        if (weights_ready(slm_weights(m)))
            return ST_OK;
        return err_set(
            err, ST_NO_MEMORY,
            "%s does not fit the memory there is, and packed weights must; %s",
            gguf_path(slm_gguf(m)),
            info->made_on_load ? "--quant makes it smaller"
                               : "--weights auto keeps what fits, and streams the rest "
                                 "from disk");
    }
    if (info->cache_bytes)
        fprintf(stderr,
                "bench: memory does not hold all experts: those that are not among the "
                "%s in use are read from disk when they are chosen\n",
                format_bytes(size, sizeof size, info->cache_bytes));
    else if (info->n_streamed)
        fprintf(
            stderr,
            "bench: memory does not hold all of the model: %d of %d layers (%s) are "
            "read from disk for every token\n",
            info->n_streamed, info->n_layers,
            format_bytes(size, sizeof size, info->streamed_bytes));
    progress_begin(&progress, "loading");
    st =
        weights_preload(slm_weights(m), slm_thread_pool(m), on_preload, &progress, err);
    progress_end(&progress);
    return st;
}

/* ---- opening ------------------------------------------------------------------ */

struct opening {
    const struct session_params *asked;
    struct model_setup setup; /* of the parameters, with the model */
    struct topology topo;
    struct slm_params p;
    enum placement placement[2];  /* without a profile, and with one */
    struct tuned_side sides[2];   /* likewise */
    int cpus[2][THREAD_POOL_MAX]; /* likewise; the first: as listed, if they are */
    enum tuned_state tuned;
};

/* A profile is read later: the one that is named, or of all that are there. */
static enum status fence_server(const struct modelref *ref,
                                const struct session_params *params, struct err *err)
{
    const char *tuned = params->setup.tuned;
    char folder[4096] = "";
    enum status st = ST_OK;

    if (strcmp(tuned, "auto") != 0)
        snprintf(folder, sizeof folder, "%s", tuned);
    else if (modelref_knows_cache(NULL))
        st = modelref_cache_path(folder, sizeof folder, NULL, "tuned", err);
    return st ? st
              : worker_fence_server(ref, *folder ? folder : NULL, params->listener,
                                    err);
}

/* Parsed once: whoever has it already hands it on. */
static enum status name_model(struct modelref *ref, const struct session_params *params,
                              struct err *err)
{
    enum status st;

    if (*params->setup.model.text) {
        *ref = params->setup.model;
        return ST_OK;
    }
    if (!params->model)
        return err_set(err, ST_USAGE, "name the model: -m FILE");
    st = modelref_parse(ref, params->model, NULL, err);
    return st ? st : modelref_set_quant(ref, params->quant, err);
}

enum status session_model(struct modelref *ref, const struct session_params *params,
                          struct err *err)
{
    enum status st = name_model(ref, params, err);

    if (!st)
        st = modelref_make_file(ref, NULL, err);
    if (st)
        return st;
    return params->serves ? fence_server(ref, params, err) : fence_enter_calls(err);
}

enum status session_inputs(struct path_list *files, struct session_params *params,
                           struct err *err)
{
    const enum status st = name_model(&params->setup.model, params, err);

    return st ? st : modelref_files(&params->setup.model, files, err);
}

/* The requested profile; prints on standard error why it is not used. */
static enum status find_profile(struct opening *o, struct tuned *t, struct err *err)
{
    char note[320];
    struct tuned_key here;
    enum status st;

    if (!*o->setup.tuned)
        return ST_OK;
    tuned_key_machine(&here, &o->topo, 0);
    st = tuned_key_model(&here, &o->setup.model, o->setup.residency == WEIGHTS_MEMORY,
                         err);
    if (st == ST_OK)
        st = tuned_find(t, &o->tuned, o->setup.tuned, &here, o->setup.residency, note,
                        sizeof note, err);
    if (st == ST_OK && o->tuned != TUNED_USED)
        fprintf(stderr, "bench: %s\n", note);
    return st;
}

/* Threads and placement as requested. */
static enum status choose_plain(struct opening *o, struct err *err)
{
    const struct model_setup *s = &o->setup;
    const bool placed = s->given & SETTING_BIT(placement);
    struct tuned_side *plain = &o->sides[0];

    o->placement[0] = placed ? s->placement : PLACEMENT_NONE;
    plain->n_threads = s->n_threads;
    plain->n_threads_prefill = s->n_threads_prefill;
    plain->tuning = slm_tuning_default();
    plain->tuning.n_batch = s->n_batch ? s->n_batch : SLM_DEFAULT_BATCH;
    if (o->asked->cpus && placed)
        return err_set(err, ST_USAGE, "--cpus and --placement exclude each other");
    if (o->asked->cpus)
        return placement_parse_cpus(o->asked->cpus, &o->topo, &plain->n_threads,
                                    plain->n_threads_prefill, o->cpus[0], err);
    if (!plain->n_threads)
        plain->n_threads = o->topo.threads_default;
    return ST_OK;
}

/* Settings from a profile, except where options override them. */
static void choose_tuned(struct opening *o, const struct tuned *t)
{
    const struct model_setup *s = &o->setup;
    const bool has_cpus = o->asked->cpus;
    struct tuned_side *tuned = &o->sides[1];

    *tuned = o->sides[0];
    o->placement[1] = o->placement[0];
    if (o->tuned != TUNED_USED)
        return;
    tuned->tuning = t->setup.tuning;
    if (s->n_batch)
        tuned->tuning.n_batch = s->n_batch;
    if (!s->n_threads && !has_cpus)
        tuned->n_threads = t->setup.n_threads;
    if (!s->n_threads && !s->n_threads_prefill && !has_cpus)
        tuned->n_threads_prefill = t->setup.n_threads_prefill;
    /* Threads stay unpinned, since CPUs are shared with other programs, unless tuning
     * has chosen another placement than spread, its default. */
    if (!(s->given & SETTING_BIT(placement)) && !has_cpus &&
        t->setup.placement != PLACEMENT_SPREAD)
        o->placement[1] = t->setup.placement;
    if (t->setup.residency == WEIGHTS_MMAP)
        o->p.residency = WEIGHTS_MMAP;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* The thread pool has the larger of both thread counts, placed as requested. */
static enum status choose_params(struct opening *o, struct err *err)
{
    const int side = o->tuned == TUNED_USED;
    char doubt[200];
    enum status st = ST_OK;

    for (int i = 0; i < 2; i++) {
        o->p.n_threads = most(o->p.n_threads, o->sides[i].n_threads);
        o->p.n_threads_prefill =
            most(o->p.n_threads_prefill, o->sides[i].n_threads_prefill);
        o->p.n_batch = most(o->p.n_batch, o->sides[i].tuning.n_batch);
    }
    for (int i = 0; i < 2 && st == ST_OK; i++) {
        if (o->asked->cpus)
            o->sides[i].cpus = o->cpus[0];
        else if (o->placement[i] != PLACEMENT_NONE) {
            o->sides[i].cpus = o->cpus[i];
            st = placement_cpus(&o->topo, o->placement[i], slm_params_threads(&o->p),
                                o->cpus[i], err);
        }
    }
    o->p.cpus = o->sides[side].cpus;
    o->p.tuning = o->sides[side].tuning;
    o->p.tuning.n_batch = 0;
    if (st == ST_OK && topology_doubts_threads(&o->topo, slm_params_threads(&o->p),
                                               o->p.cpus, doubt, sizeof doubt))
        fprintf(stderr, "bench: %s\n", doubt);
    return st;
}

/* Before the model takes memory: whether the cache holds it decides how it is read. */
static enum status find_cache(struct opening *o, struct err *err)
{
    struct err ignored = ERR_INIT;
    uint64_t bytes;
    enum status st = ST_OK;

    if (o->asked->decodes && modelref_bytes(&o->setup.model, &bytes, &ignored) == ST_OK)
        st = cache_find_for(&o->topo, bytes, err);
    o->sides[0].cache_bytes = topology_cache(&o->topo, o->sides[0].n_threads).bytes;
    return st;
}

/* Choose one of the two sides. */
static enum status choose_side(struct opening *o, struct slm *m, int *n_threads,
                               struct err *err)
{
    bool slower = false;
    char note[320];
    enum status st = ST_OK;

    for (int i = 0; i < 2; i++)
        if (o->sides[i].tuning.n_batch > slm_info(m)->n_batch)
            o->sides[i].tuning.n_batch = slm_info(m)->n_batch;
    if (o->tuned == TUNED_USED)
        st = tuned_check(m, o->sides, 1, TUNE_BOTH, &slower, note, sizeof note, err);
    else if (o->asked->decodes)
        st = slm_measure_prefetch(m, SLM_PREFETCH_BUDGET_S, o->sides[0].cache_bytes,
                                  err);
    if (st == ST_OK && slower)
        fprintf(stderr, "bench: %s\n", note);
    if (n_threads)
        *n_threads = o->sides[o->tuned == TUNED_USED && !slower].n_threads;
    return st;
}

static enum status open_with(struct opening *o, struct slm **m, int *n_threads,
                             struct err *err)
{
    const struct session_params *a = o->asked;
    struct slm *new = NULL;
    struct tuned t;
    enum status st;

    o->setup = a->setup;
    st = session_model(&o->setup.model, a, err);
    if (st == ST_OK && o->setup.residency == WEIGHTS_MEMORY)
        st = err_set(err, ST_USAGE,
                     "--weights memory is for synthetic models of bench decode; "
                     "a file is auto, packed, stream or mmap");
    if (st == ST_OK)
        st = topology_read(&o->topo, "", err);
    if (st == ST_OK)
        st = choose_plain(o, err);
    if (st == ST_OK)
        st = find_cache(o, err);
    if (st == ST_OK)
        st = find_profile(o, &t, err);
    if (st)
        return st;
    o->p = model_setup_params(&o->setup, topology_model_bytes(&o->topo, 0));
    o->p.n_ctx = a->n_ctx;
    o->p.n_logits = a->n_logits;
    o->p.mtp = a->mtp;
    o->p.n_sequences = a->n_sequences;
    o->p.paged = a->paged;
    o->p.n_pool = a->n_pool;
    o->p.ring = a->serves ? worker_ring() : NULL;
    choose_tuned(o, &t);
    st = choose_params(o, err);
    if (st == ST_OK)
        st = slm_open(&new, &o->p, err);
    if (st == ST_OK)
        st = preload(new, &o->topo, err);
    if (st == ST_OK)
        st = choose_side(o, new, n_threads, err);
    if (st)
        slm_close(new);
    else
        *m = new;
    return st;
}

enum status session_open(struct slm **m, const struct session_params *params,
                         int *n_threads, struct err *err)
{
    struct opening *o = calloc(1, sizeof *o);
    enum status st;

    if (!o)
        return err_set(err, ST_NO_MEMORY, "no memory to describe the machine");
    o->asked = params;
    st = open_with(o, m, n_threads, err);
    free(o);
    return st;
}
