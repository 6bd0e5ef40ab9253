/* SPDX-License-Identifier: MIT
 *
 * measured_open.c - opening a model that is to be timed
 */
#include "harness/measure/worker/measured.h"

#include <stdlib.h>

#include "engine/synth/synth.h"
#include "harness/machine/memory_reserve.h"
#include "harness/model/model_fence.h"
#include "kernels/isa.h"

void measured_init(struct measured *m, uint64_t seed)
{
    *m = (struct measured){.seed = seed ? seed : 1, .random = seed ? seed : 1};
}

/* ---- weights in memory ----------------------------------------------------------- */

static enum status make_image(struct measured *m, const struct modelref *model,
                              uint64_t seed, struct err *err)
{
    struct synth_plan *plan = NULL;
    enum status st = synth_plan_make(&plan, &model->shape, model->mix, seed, err);

    if (st)
        return st;
    mem_free(&m->image);
    st = mem_alloc(&m->image, synth_plan_bytes(plan), MEM_PAGES_2M, "model image", err);
    if (st == ST_OK)
        st = synth_write_memory(plan, m->image.base, m->progress, m->arg, err);
    synth_plan_free(plan);
    return st;
}

/* ---- opening --------------------------------------------------------------------- */

static enum status make_buffers(struct measured *m, struct err *err)
{
    const struct slm_info *info = slm_info(m->m);
    const int most =
        info->n_batch > info->n_sequences ? info->n_batch : info->n_sequences;
    const size_t n = (size_t)most; /* what slm_batch() refuses is drawn before, too */

    free(m->tokens);
    m->tokens = malloc(n * sizeof *m->tokens);
    return m->tokens ? ST_OK
                     : err_set(err, ST_NO_MEMORY, "no memory for %zu tokens", n);
}

static void close_model(struct measured *m)
{
    if (!m->borrowed)
        slm_close(m->m);
    m->m = NULL;
    mem_free(&m->image);
}

enum status measured_open(struct measured *m, const struct model_setup *setup,
                          const struct slm_params *params, struct err *err)
{
    struct slm_params p = *params;
    enum status st = ST_OK;

    close_model(m);
    if (setup->residency == WEIGHTS_MEMORY) {
        st = make_image(m, &setup->model, setup->seed, err);
        p.image = m->image.base;
        p.image_bytes = m->image.bytes;
        p.image_rewrite = true;
        p.name = setup->model.text;
    } else {
        p.ring = model_ring();
    }
    if (st == ST_OK)
        st = slm_open(&m->m, &p, err);
    return st ? st : make_buffers(m, err);
}

enum status measured_borrow(struct measured *m, struct slm *model, uint64_t seed,
                            struct err *err)
{
    measured_init(m, seed);
    m->m = model;
    m->borrowed = true;
    return make_buffers(m, err);
}

void measured_close(struct measured *m)
{
    close_model(m);
    free(m->tokens);
    m->tokens = NULL;
}

/* ---- reading in ------------------------------------------------------------------ */

struct preload {
    const struct measured *m;
    uint64_t max_bytes;
    bool is_enough;
};

static int on_preload(void *arg, size_t done, size_t total)
{
    struct preload *p = arg;

    p->is_enough = done >= p->max_bytes;
    if (p->is_enough)
        return 1;
    return p->m->progress ? p->m->progress(p->m->arg, done,
                                           total < p->max_bytes ? total : p->max_bytes)
                          : 0;
}

enum status measured_preload(struct measured *m, uint64_t max_bytes, struct err *err)
{
    struct preload how = {m, max_bytes, false};
    struct err stopped = ERR_INIT;
    const enum status st = weights_preload(slm_weights(m->m), slm_thread_pool(m->m),
                                           on_preload, &how, &stopped);

    if (st == ST_OK || (st == ST_INTERRUPTED && how.is_enough))
        return ST_OK;
    return err_set(err, st, "%s", stopped.msg);
}

bool measured_fits(const struct measured *m, uint64_t room_bytes)
{
    const struct slm_info *info = slm_info(m->m);

    return info->map_bytes + info->kv_bytes + info->scratch_bytes + RESERVE_OWN_BYTES <=
           room_bytes;
}

const char *measured_isa(uint32_t usable, bool takes_tiles)
{
    const uint32_t isa =
        usable & (takes_tiles ? ~(1u << KERN_ISA_amx_bf16) : ~ISA_TILE_LEVELS);
    const char *name = "";

    for (int i = 0; i < KERN_N_ISA; i++)
        if (isa >> i & 1)
            name = isa_name(i);
    return name;
}
