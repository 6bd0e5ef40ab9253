/* SPDX-License-Identifier: MIT
 *
 * session.c - threads and placement from the topology, slm_open(), weights read in
 */
#include "harness/measure/session/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/machine/cache.h"
#include "harness/machine/topology.h"
#include "harness/measure/worker/worker.h"
#include "harness/model/model_fence.h"

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
                bytes_text(info->cache_bytes).text);
    else if (info->n_streamed)
        fprintf(
            stderr,
            "bench: memory does not hold all of the model: %d of %d layers (%s) are "
            "read from disk for every token\n",
            info->n_streamed, info->n_layers, bytes_text(info->streamed_bytes).text);
    progress_begin(&progress, "loading");
    st =
        weights_preload(slm_weights(m), slm_thread_pool(m), on_preload, &progress, err);
    progress_end(&progress);
    return st;
}

/* ---- speculative decoding -------------------------------------------------------- */

static const char *drafts_name(int value)
{
    static const char *const names[] = {"off", "lookup", "mtp"};

    return names[value];
}

const struct choices choices_drafts = {"drafts are", drafts_name, DRAFTS_MODEL};

enum status session_take_draft(struct session_params *s, const char *model,
                               struct err *err)
{
    if (!model)
        return ST_OK;
    if (s->drafts != DRAFTS_OFF)
        return err_set(err, ST_USAGE, "--draft and --speculate exclude each other");
    s->drafts = DRAFTS_MODEL;
    return ST_OK;
}

/* ---- opening --------------------------------------------------------------------- */

struct opening {
    const struct session_params *params;
    struct model_setup setup; /* of the parameters, with the model */
    struct topology topo;
    struct slm_params p;
    uint64_t cache_bytes; /* as slm_measure_prefetch() takes it */
};

/* Parsed once: whoever has it already hands it on. */
static enum status name_model(struct modelref *ref, const struct session_params *params,
                              struct err *err)
{
    if (*params->setup.model.text) {
        *ref = params->setup.model;
        return ST_OK;
    }
    if (!params->model)
        return err_set(err, ST_USAGE, "name the model: -m FILE");
    if (modelref_parse(ref, params->model, NULL, err))
        return err->code;
    return modelref_set_quant(ref, params->quant, err);
}

enum status session_model(struct modelref *ref, const struct session_params *params,
                          struct err *err)
{
    if (name_model(ref, params, err) || modelref_make_file(ref, NULL, err))
        return err->code;
    return params->serves ? worker_fence_server(ref, params->draft, params->also,
                                                params->listener, err)
                          : model_fence_enter(err);
}

enum status session_inputs(struct path_list *files, struct session_params *params,
                           struct err *err)
{
    if (name_model(&params->setup.model, params, err))
        return err->code;
    return modelref_files(&params->setup.model, files, err);
}

/* Threads as requested, or as the machine recommends; unpinned, unless CPUs or a
 * placement are requested, since CPUs are shared with other programs. */
static enum status choose_threads(struct opening *o, struct err *err)
{
    struct model_setup *s = &o->setup;
    const bool placed = s->given & SETTING_BIT(placement);
    enum status st = ST_OK;

    if (o->params->cpus && placed)
        return err_set(err, ST_USAGE, "--cpus and --placement exclude each other");
    if (o->params->cpus)
        st = placement_parse_cpus(o->params->cpus, &o->topo, &s->n_threads,
                                  s->n_threads_prefill, s->cpus, err);
    else if (!s->n_threads)
        s->n_threads = o->topo.threads_default;
    s->explicit_cpus = o->params->cpus || (placed && s->placement != PLACEMENT_NONE);
    if (st == ST_OK && s->explicit_cpus && !o->params->cpus)
        st = placement_cpus(&o->topo, s->placement, model_setup_threads(s), s->cpus,
                            err);
    if (!s->n_batch)
        s->n_batch = SLM_DEFAULT_BATCH;
    return st;
}

/* Before the model takes memory: whether the cache holds it decides how it is read. */
static enum status find_cache(struct opening *o, struct err *err)
{
    struct err ignored = ERR_INIT;
    uint64_t bytes;
    enum status st = ST_OK;

    if (o->params->decodes &&
        modelref_bytes(&o->setup.model, &bytes, &ignored) == ST_OK)
        st = cache_find_for(&o->topo, bytes, err);
    o->cache_bytes = topology_cache(&o->topo, o->setup.n_threads).bytes;
    return st;
}

struct slm_params session_model_params(const struct session_params *s,
                                       const struct model_setup *setup,
                                       uint64_t memory_bytes)
{
    struct slm_params p = model_setup_params(setup, memory_bytes);

    p.n_ctx = s->n_ctx;
    p.n_logits = s->n_logits;
    p.mtp = s->drafts == DRAFTS_MTP;
    p.n_sequences = s->n_sequences;
    p.paged = s->paged;
    p.n_pool = s->n_pool;
    p.n_checkpoints = s->n_checkpoints;
    return p;
}

static void fill_params(struct opening *o)
{
    const uint64_t reserved = o->params->reserved_bytes;
    const uint64_t room = topology_model_bytes(&o->topo, 0);
    char doubt[200];

    o->p = session_model_params(o->params, &o->setup,
                                room > reserved ? room - reserved : 1);
    o->p.ring = model_ring();
    if (topology_doubts_threads(&o->topo, slm_params_threads(&o->p), o->p.cpus, doubt,
                                sizeof doubt))
        fprintf(stderr, "bench: %s\n", doubt);
}

static enum status open_with(struct opening *o, struct slm **m, int *n_threads,
                             struct err *err)
{
    struct slm *new = NULL;
    enum status st;

    o->setup = o->params->setup;
    st = session_model(&o->setup.model, o->params, err);
    if (st == ST_OK && o->setup.residency == WEIGHTS_MEMORY)
        st = err_set(err, ST_USAGE,
                     "--weights memory is for synthetic models of bench decode; "
                     "a file is auto, packed, stream or mmap");
    if (st == ST_OK && (topology_read(&o->topo, "", err) || choose_threads(o, err) ||
                        find_cache(o, err)))
        st = err->code;
    if (st)
        return st;
    fill_params(o);
    st = slm_open(&new, &o->p, err);
    if (st == ST_OK)
        st = preload(new, &o->topo, err);
    if (st == ST_OK && o->params->decodes)
        st = slm_measure_prefetch(new, SLM_PREFETCH_BUDGET_S, o->cache_bytes, err);
    if (n_threads)
        *n_threads = o->setup.n_threads;
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
    o->params = params;
    st = open_with(o, m, n_threads, err);
    free(o);
    return st;
}
