/* SPDX-License-Identifier: MIT
 *
 * tune_model.c - opening a model again and again, and timing it with a setup
 */
#include "harness/measure/tune/tune_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/random.h"
#include "engine/synth/synth.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/machine/memory_reserve.h"
#include "harness/machine/noise.h"
#include "harness/measure/worker/measured.h"
#include "harness/measure/tune/tuned_kernels.h"

#define MAX_BATCH SLM_DEFAULT_BATCH
#define MIN_BATCH 64

struct tune_model {
    struct tune_model_params p;
    const struct topology *topo;
    struct measured measured;
    struct slm_profile *profile;
    struct progress progress;
    const char *step;       /* of the last line in a log */
    struct noise watched;   /* when the round began */
    int n_threads, n_batch; /* most */
    enum placement placed;
    uint64_t given, room; /* memory in all, and for the model */
};

/* ---- opening -------------------------------------------------------------------- */

static int on_load(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return interrupted();
}

/* As opened with a batch of so many tokens, whatever the setup. */
static struct slm_params params_of(const struct tune_model *t, int n_batch)
{
    struct slm_params p = slm_params_default();

    p.n_threads = t->n_threads;
    p.n_batch = n_batch;
    p.n_logits = 1;
    p.n_ctx = t->p.depth + n_batch + 1;
    p.memory_bytes = t->room;
    return p;
}

static enum status open_model(void *arg, const struct tune_setup *s, struct err *err)
{
    struct tune_model *t = arg;
    struct measured_params p = {.model = &t->p.setup.model,
                                .residency = s->residency,
                                .image_seed = MODELREF_SEED,
                                .slm = params_of(t, t->n_batch)};
    int cpus[TOPO_MAX_CPUS];
    enum status st;

    p.slm.cpus = cpus;
    p.slm.tuning.pages = s->tuning.pages;
    st = placement_cpus(t->topo, s->placement, t->n_threads, cpus, err);
    if (st == ST_OK)
        st = measured_open(&t->measured, &p, err);
    if (st == ST_OK)
        st = measured_preload(&t->measured, UINT64_MAX, err);
    if (st == ST_OK)
        st = measured_fill(&t->measured, t->p.depth, 0, false, t->p.setup.seed, err);
    if (st == ST_OK)
        st = slm_profile_start(t->measured.m, err);
    t->placed = s->placement;
    return st;
}

/* ---- samples -------------------------------------------------------------------- */

enum status tune_apply(struct slm *m, const struct tune_setup *s,
                       const struct topology *topo, enum placement *placed,
                       struct err *err)
{
    int cpus[TOPO_MAX_CPUS];
    enum status st = ST_OK;

    if (*placed != s->placement) {
        st = placement_cpus(topo, s->placement,
                            thread_pool_capacity(slm_thread_pool(m)), cpus, err);
        if (st == ST_OK)
            st = slm_place(m, s->placement == PLACEMENT_NONE ? NULL : cpus, err);
        if (st == ST_OK)
            *placed = s->placement;
    }
    return st ? st : slm_tune(m, s->n_threads, s->n_threads_prefill, &s->tuning, err);
}

/* Rows of the embedding are looked up, not multiplied with. */
static void read_formats(struct tune_model *t, struct tune_sample *out)
{
    slm_profile_read(t->measured.m, t->profile);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < t->profile->n_rows; i++) {
        const struct slm_profile_row *row = &t->profile->rows[i];

        if (row->op != SLM_OP_EMBED && row->fmt != KERN_N_FMT)
            out->fmt_s[row->fmt] += (row->work_ns + row->wait_ns) * 1e-9;
    }
}

static enum status run(struct tune_model *t, const struct tune_setup *s,
                       struct measured_step *step, struct tune_sample *out,
                       struct err *err)
{
    const enum placement before = t->placed;
    enum status st = tune_apply(t->measured.m, s, t->topo, &t->placed, err);
    uint64_t ns = 0;

    /* New threads have not run yet. */
    if (st == ST_OK && t->placed != before)
        st = measured_wake(&t->measured, NULL, err);
    if (st == ST_OK)
        st = slm_profile_start(t->measured.m, err);
    if (st == ST_OK)
        st = measured_sample(&t->measured, step, &ns, err);
    if (st)
        return st;
    read_formats(t, out);
    out->seconds = (double)ns * 1e-9;
    return ST_OK;
}

static enum status decode(void *arg, const struct tune_setup *s,
                          struct tune_sample *out, struct err *err)
{
    struct tune_model *t = arg;
    struct measured_step step = {.kind = MEASURED_DECODE, .depth = t->p.depth};

    return run(t, s, &step, out, err);
}

static enum status prefill(void *arg, const struct tune_setup *s, int n_tokens,
                           struct tune_sample *out, struct err *err)
{
    struct tune_model *t = arg;
    struct measured_step step = {.kind = MEASURED_PREFILL,
                                 .depth = t->p.depth,
                                 .n_tokens =
                                     n_tokens < t->n_batch ? n_tokens : t->n_batch};

    return run(t, s, &step, out, err);
}

static enum status measure(void *arg, struct tune_setup *base, struct err *err)
{
    struct tune_model *t = arg;
    struct slm_tuning measured;
    enum status st = tune_apply(t->measured.m, base, t->topo, &t->placed, err);

    if (st == ST_OK)
        st = slm_measure_prefetch(t->measured.m, SLM_PREFETCH_BUDGET_S,
                                  topology_cache(t->topo, base->n_threads).bytes, err);
    if (st)
        return st;
    slm_get_tuning(t->measured.m, &measured);
    memcpy(base->tuning.prefetch, measured.prefetch, sizeof measured.prefetch);
    return ST_OK;
}

static double now(void *arg)
{
    (void)arg;
    return (double)clock_ns() * 1e-9;
}

static bool stop(void *arg)
{
    (void)arg;
    return interrupted();
}

static void watch(void *arg)
{
    struct tune_model *t = arg;

    noise_read(&t->watched, "");
}

static bool disturbed(void *arg, char *why, size_t cap)
{
    const struct tune_model *t = arg;
    struct noise d;

    noise_read(&d, "");
    noise_diff(&d, &t->watched, &d);
    return noise_disturbed(&d, why, cap);
}

static void on_progress(void *arg, double fraction, const char *what)
{
    struct tune_model *t = arg;

    if (!t->step || strcmp(t->step, what) != 0) /* a log has a line for each */
        progress_step(&t->progress);
    t->step = what;
    progress_update(&t->progress, fraction, what);
}

struct tune_machine tune_model_machine(struct tune_model *t)
{
    return (struct tune_machine){.arg = t,
                                 .open = open_model,
                                 .decode = decode,
                                 .prefill = prefill,
                                 .now = now,
                                 .stop = stop,
                                 .progress = on_progress,
                                 .watch = watch,
                                 .disturbed = disturbed,
                                 .measure = measure};
}

/* ---- what may be chosen from ----------------------------------------------------- */

/* Formats of matrices that are multiplied with: the embedding is one only where it
 * serves as the output too. */
static void find_formats(const struct gguf *g, bool *formats)
{
    const bool tied = !gguf_tensor_find(g, "output.weight");

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(g, i);

        if (tensor->fmt != KERN_N_FMT && tensor->n_dims >= 2 &&
            (tied || strcmp(tensor->name, "token_embd.weight") != 0))
            formats[tensor->fmt] = true;
    }
}

/* An image is made once for planning, and the first opening uses it. */
static enum status open_gguf(struct tune_model *t, struct gguf **g, struct err *err)
{
    enum status st;

    if (t->p.setup.residency != WEIGHTS_MEMORY)
        return modelref_open(&t->p.setup.model, g, err);
    st = measured_make_image(&t->measured, &t->p.setup.model, MODELREF_SEED, t->room,
                             err);
    if (st == ST_OK)
        st = gguf_parse(g, t->measured.image.base, t->measured.image.bytes,
                        t->p.setup.model.text, err);
    return st;
}

static enum status does_not_fit(const struct tune_model *t, const struct slm_info *info,
                                struct err *err)
{
    char need[24], have[24];

    format_bytes(need, sizeof need,
                 info->weight_bytes + info->kv_bytes + info->scratch_bytes +
                     RESERVE_OWN_BYTES + RESERVE_SPARE_BYTES);
    format_bytes(have, sizeof have, t->given);
    return err_set(err, ST_NO_MEMORY,
                   "%s does not fit: it needs %s, and there are %s; a model that is "
                   "paged from disk runs at the disk's speed, however it is tuned",
                   t->p.setup.model.text, need, have);
}

/* The largest batch that memory allows, and which residencies. */
static enum status plan(struct tune_model *t, const struct gguf *g,
                        struct tune_space *space, struct err *err)
{
    struct slm_info info;
    struct slm_params least = params_of(t, 1);
    bool fits = false, made_on_load = false;

    least.n_ctx = 1;
    if (slm_plan(&info, g, &least, err) || slm_check_predicts(&info, err))
        return err->code;
    for (t->n_batch = MAX_BATCH;; t->n_batch /= 2) {
        const struct slm_params params = params_of(t, t->n_batch);
        const enum status st = slm_plan(&info, g, &params, err);

        if (st)
            return st;
        made_on_load = info.made_on_load;
        info.made_on_load = false; /* whether it fits is asked, not what else to do */
        fits = slm_choose_residency(&info, t->room, 0) == WEIGHTS_PACKED;
        if (fits || t->n_batch <= MIN_BATCH)
            break;
    }
    if (!fits)
        return does_not_fit(t, &info, err);
    space->n_batch = t->n_batch;
    space->can_pack =
        t->p.setup.residency == WEIGHTS_AUTO || t->p.setup.residency == WEIGHTS_PACKED;
    space->can_map = !made_on_load && (t->p.setup.residency == WEIGHTS_AUTO ||
                                       t->p.setup.residency == WEIGHTS_MMAP);
    return ST_OK;
}

/* From what `bench tune --kernels` found, where it was run. */
static enum status make_base(const struct tune_model *t, struct tune_setup *base,
                             struct err *err)
{
    *base = (struct tune_setup){.residency = t->p.setup.residency == WEIGHTS_AUTO
                                                 ? WEIGHTS_PACKED
                                                 : t->p.setup.residency,
                                .n_threads = t->topo->threads_default,
                                .n_threads_prefill = t->topo->threads_default,
                                .placement = PLACEMENT_SPREAD,
                                .tuning = slm_tuning_default()};
    base->tuning.n_batch = t->n_batch;
    return tuned_kernels_start(&base->tuning, t->topo, NULL, 0, err);
}

enum status tune_model_open(struct tune_model **t, const struct tune_model_params *p,
                            const struct topology *topo, struct tune_space *space,
                            struct tune_setup *base, struct err *err)
{
    struct tune_model *new = calloc(1, sizeof *new);
    struct gguf *g = NULL;
    enum status st;

    if (!new || !(new->profile = calloc(1, sizeof *new->profile))) {
        free(new);
        return err_set(err, ST_NO_MEMORY, "no memory to tune");
    }
    new->p = *p;
    new->topo = topo;
    measured_init(&new->measured, p->setup.seed);
    new->measured.progress = on_load;
    new->given = topology_usable_bytes(topo, p->setup.mem_limit);
    new->room = topology_model_bytes(topo, p->setup.mem_limit);
    new->n_threads = topo->n_allowed > topo->threads_default ? topo->n_allowed
                                                             : topo->threads_default;
    memset(space, 0, sizeof *space);
    space->topo = topo;
    space->isa_mask = isa_usable();
    st = open_gguf(new, &g, err);
    if (st == ST_OK)
        st = plan(new, g, space, err);
    if (st == ST_OK)
        find_formats(g, space->formats);
    gguf_close(g);
    if (st == ST_OK)
        st = make_base(new, base, err);
    if (st) {
        tune_model_close(new);
        return st;
    }
    progress_begin(&new->progress, "tune");
    *t = new;
    return ST_OK;
}

void tune_model_close(struct tune_model *t)
{
    if (!t)
        return;
    progress_end(&t->progress);
    measured_close(&t->measured);
    free(t->profile);
    free(t);
}
