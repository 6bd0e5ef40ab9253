/* SPDX-License-Identifier: MIT
 *
 * choose_speed.c - what memory leaves for a file, and a sweep of the files
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "harness/base/hash.h"
#include "harness/decide/choose/choose.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/measure/plan/plan.h"
#include "harness/measure/sweep/sweep.h"

/* ---- memory ---------------------------------------------------------------------- */

/* A depth that the model was made for. */
static void fit_context(struct choose_wish *w, int model_ctx)
{
    if (model_ctx > 0 && w->ctx > model_ctx)
        w->ctx = model_ctx;
    if (model_ctx > 0 && w->n_prompt > model_ctx)
        w->n_prompt = model_ctx;
}

enum status choose_room(uint64_t *room, uint64_t *others, struct choose_wish *w,
                        const char *model, const struct topology *topo, struct err *err)
{
    struct plan *plan = malloc(sizeof *plan);
    struct point p;
    enum status st = plan ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a plan");

    if (!st && w->mem_limit)
        st = sandbox_check("", w->mem_limit, err);
    point_init(&p);
    p.setup.n_threads = w->n_threads;
    p.setup.mem_limit = w->mem_limit;
    p.setup.residency = WEIGHTS_PACKED;
    p.ctx = w->ctx;
    if (!st)
        st = modelref_parse(&p.setup.model, model, NULL, err);
    if (!st)
        st = plan_make(plan, &p, topo, err);
    if (!st) {
        const struct point_need *need = &plan->need;

        fit_context(w, need->model_ctx);
        *room = plan->room;
        *others = need->anon_bytes - need->weights_memory_bytes +
                  point_need_reserve(WEIGHTS_STREAM);
    }
    free(plan);
    return st;
}

/* ---- the sweep ------------------------------------------------------------------- */

/* The directory's name has what is measured: files and wishes of another run have
 * another one. */
static uint64_t key_of(const struct choose_result *r, const struct choose_wish *w)
{
    const uint64_t facts[] = {(uint64_t)w->ctx, (uint64_t)w->n_prompt, w->mem_limit,
                              (uint64_t)w->n_threads};
    uint64_t h = hash_add(HASH_BEGIN, facts, sizeof facts);

    for (size_t i = 0; i < r->n_mixes; i++)
        h = hash_add(h, r->mixes[i].path, strlen(r->mixes[i].path) + 1);
    return h;
}

static void settings_of(struct sweep_request *q, const struct choose_wish *w,
                        const char *dir, char text[3][24])
{
    snprintf(text[0], sizeof text[0], "%d", w->ctx);
    snprintf(text[1], sizeof text[1], "%d", w->n_prompt);
    snprintf(text[2], sizeof text[2], "%d", w->n_threads);
    q->settings.text[SETTING_ctx] = text[0];
    q->settings.text[SETTING_prefill] = text[1];
    q->settings.text[SETTING_threads] = text[2];
    q->settings.text[SETTING_mem] = w->mem;
    q->settings.text[SETTING_quality] = dir;
    q->settings.text[SETTING_budget] = w->budget;
    q->settings.text[SETTING_launches] = w->launches;
    q->settings.text[SETTING_max_launches] = w->launches;
}

enum status choose_sweep(char *dir, size_t cap, const struct choose_result *r,
                         const struct choose_wish *w, const char *out, struct err *err)
{
    const char *models[CHOOSE_MAX_MIXES];
    struct sweep_session *x = calloc(1, sizeof *x);
    struct sweep_request *q = calloc(1, sizeof *q);
    char text[3][24];
    enum status st =
        x && q ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a sweep");

    snprintf(dir, cap, "%.3000s/speed-%016llx", out, (unsigned long long)key_of(r, w));
    for (size_t i = 0; i < r->n_mixes; i++)
        models[i] = r->mixes[i].path;
    if (!st) {
        settings_of(q, w, out, text);
        q->models = (struct str_list){.v = models, .n = r->n_mixes};
        q->no_probe = w->no_probe;
        q->argc = w->argc;
        q->argv = w->argv;
        if (jsonfile_exists(dir, "machine.json"))
            q->resume = dir;
        else
            q->out = dir;
        st = sweep_session_run(x, q, err);
        sweep_session_close(x);
    }
    free(q);
    free(x);
    return st;
}
