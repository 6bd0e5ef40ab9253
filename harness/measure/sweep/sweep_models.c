/* SPDX-License-Identifier: MIT
 *
 * sweep_models.c - the models of a sweep: names of their own, and what they are
 */
#include "harness/measure/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/parse.h"
#include "harness/measure/engines/engine_run.h"
#include "harness/model/model_names.h"
#include "harness/measure/plan/plan.h"

_Static_assert(SWEEP_MAX_MODELS <= MODELREFS_MAX, "more models than can be named");

enum status sweep_models_read(struct sweep_models *models,
                              const struct sweep_settings *s, struct err *err)
{
    struct modelref *refs[SWEEP_MAX_MODELS];
    struct sweep_models out = {.n = s->n_models};
    enum status st = ST_OK;

    out.v = calloc(s->n_models + 1, sizeof *out.v);
    if (!out.v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu models", s->n_models);
    for (size_t i = 0; i < s->n_models && st == ST_OK; i++) {
        struct modelref *ref = refs[i] = &out.v[i].ref;

        st =
            modelref_parse(ref, s->models[i], *s->cache_dir ? s->cache_dir : NULL, err);
        if (st == ST_OK && ref->synthetic)
            out.v[i].max_ctx = (int)ref->shape.n_ctx_train;
    }
    if (st == ST_OK)
        model_names_part(refs, s->n_models);
    if (st)
        sweep_models_free(&out);
    else
        *models = out;
    return st;
}

void sweep_models_free(struct sweep_models *models)
{
    free(models->v);
    *models = (struct sweep_models){.v = NULL};
}

/* Each by a worker of its own: a fenced process opens one model only. */
static enum status look_at(struct sweep_model *model, const struct sweep_settings *s,
                           const struct topology *topo, struct err *err)
{
    struct point p = s->base;
    struct plan *plan = malloc(sizeof *plan);
    struct planner planner;
    struct err why = ERR_INIT;
    enum status st;

    if (!plan)
        return err_set(err, ST_NO_MEMORY, "no memory to look at a model");
    p.kind = POINT_DECODE;
    p.ctx = 0;
    p.n_sequences = 1;
    p.setup.model = model->ref;
    st = planner_open(&planner, &why);
    if (st == ST_OK)
        st = planner_make(&planner, plan, &p, topo, &why);
    if (st == ST_OK) {
        model->ref.identity = plan->need.identity;
        model->max_ctx = plan->need.model_ctx;
    } else {
        err_set(err, st, "%s",
                planner.worker.end == WORKER_GAVE_UP ? planner.worker.error : why.msg);
    }
    planner_close(&planner);
    free(plan);
    return st;
}

enum status sweep_models_look(struct sweep_models *models,
                              const struct sweep_settings *s,
                              const struct topology *topo, struct err *err)
{
    struct modelref *refs[SWEEP_MAX_MODELS];
    enum status st = ST_OK;

    for (size_t i = 0; i < models->n && st == ST_OK; i++) {
        if (!models->v[i].ref.synthetic)
            st = look_at(&models->v[i], s, topo, err);
        if (st == ST_OK && s->n_engines)
            st = engine_check_model(&models->v[i].ref, err);
        refs[i] = &models->v[i].ref;
    }
    if (st == ST_OK)
        model_labels_choose(refs, models->n);
    return st;
}

enum status sweep_engines_look(const struct sweep_settings *s, bool start_them,
                               struct err *err)
{
    for (int i = 0; i < s->n_engines; i++)
        if (engine_check(s->engines[i], start_them, err))
            return err->code;
    return ST_OK;
}

/* ---- texts ----------------------------------------------------------------------- */

/* A built-in text keeps its name; a file is named absolutely, so that --resume works
 * from anywhere. */
enum status sweep_add_text(struct sweep_settings *s, const char *word, const char *what,
                           struct err *err)
{
    const bool is_file = strchr(word, '/') || strchr(word, '.');
    struct err why = ERR_INIT;
    struct point p;
    char *path;

    if (s->n_texts == SWEEP_MAX_TEXTS)
        return err_set(err, ST_USAGE, "%s: at most %d texts are possible", what,
                       SWEEP_MAX_TEXTS);
    path = is_file ? realpath(word, NULL) : NULL;
    point_init(&p);
    if (point_set_text(&p, path ? path : word, &why)) {
        free(path);
        return err_set(err, ST_USAGE, "%s: %s", what, why.msg);
    }
    free(path);
    snprintf(s->texts[s->n_texts++], sizeof s->texts[0], "%s", p.text);
    return ST_OK;
}

enum status sweep_set_texts(struct sweep_settings *s, const char *text,
                            const char *what, struct err *err)
{
    struct parse_list words = {.what = what, .text = text};
    enum status st = ST_OK;

    s->n_texts = 0;
    while (strcmp(text, "none") && parse_item(&words, &st, err))
        st = sweep_add_text(s, words.item, what, err);
    return st;
}
