/* SPDX-License-Identifier: MIT
 *
 * sweep_plan.c - settings to points, and their order
 */
#include "engine/base/random.h"
#include "engine/base/strtab.h"
#include "harness/base/array.h"
#include "harness/measure/engines/engine.h"
#include "harness/measure/engines/engine_run.h"
#include "harness/measure/sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A plan while it is made. */
struct making {
    struct sweep_plan plan;
    char (*ids)[96];     /* [SWEEP_MAX_POINTS], in the order the points came */
    struct strtab known; /* of ids */
    size_t cap;          /* of plan.points */
    int max_ctx;         /* depths of the model's points are no deeper; 0: any */
    struct err *err;     /* of the first failure, after which nothing is added */
};

static void add(struct making *m, const struct point *p)
{
    const uint32_t n = (uint32_t)m->plan.n_points;
    char id[sizeof *m->ids];
    struct point *grown;

    point_id(p, id, sizeof id);
    if (strtab_find(&m->known, id, strlen(id)) != STRTAB_NONE)
        return;
    if (m->plan.n_points == SWEEP_MAX_POINTS) {
        err_set(m->err, ST_USAGE,
                "the settings make more than %d points, the maximum of a sweep: leave "
                "out values of a list, or measure the models one by one",
                SWEEP_MAX_POINTS);
        return;
    }
    grown = array_grow(m->plan.points, n, &m->cap, sizeof *grown);
    if (!grown) {
        err_set(m->err, ST_NO_MEMORY, "no memory for %u points", n + 1);
        return;
    }
    m->plan.points = grown;
    memcpy(m->ids[n], id, sizeof id);
    strtab_put(&m->known, m->ids[n], (uint32_t)strlen(id), n);
    m->plan.points[m->plan.n_points++] = *p;
}

/* Every context depth with one thread count, and all that is alike. */
static void add_depths(struct making *m, const struct sweep_settings *s,
                       const struct point *base)
{
    const struct int_list *depths = &s->list[SETTING_ctx];

    for (size_t i = 0; i < depths->n && !m->err->code; i++) {
        struct point p = *base;

        p.kind = POINT_DECODE;
        p.ctx = depths->v[i];
        if (m->max_ctx && p.ctx > m->max_ctx && !p.setup.kv_window)
            p.ctx = m->max_ctx;
        if (p.n_sequences == 1)
            p.n_shared = 0; /* nobody shares */
        if (p.n_shared > p.ctx)
            continue;
        if (point_check_sequences(&p, m->err) == ST_OK)
            add(m, &p);
    }
}

/* Every prompt length. */
static void add_prompts(struct making *m, const struct sweep_settings *s,
                        const struct point *base)
{
    const struct int_list *lengths = &s->list[SETTING_prefill];

    for (size_t i = 0; i < lengths->n && !m->err->code; i++) {
        struct point p = *base;

        p.kind = POINT_PREFILL;
        p.n_sequences = 1;
        p.n_shared = p.n_chunk = 0;
        p.n_prompt = lengths->v[i];
        p.n_tokens = s->n_passes;
        p.ctx_prefill = false;
        add(m, &p);
    }
}

/* Every text; its depth is that of its prompt. */
static void add_texts(struct making *m, const struct sweep_settings *s,
                      const struct point *base)
{
    for (int i = 0; i < s->n_texts && !m->err->code; i++) {
        struct point p = *base;

        p.kind = POINT_SPECULATE;
        p.n_sequences = 1;
        p.n_shared = p.n_chunk = 0;
        snprintf(p.text, sizeof p.text, "%s", s->texts[i]);
        p.n_tokens = s->n_passes;
        add(m, &p);
    }
}

/* Another program by a template, which measures decoding only. */
static bool is_template(const struct point *p)
{
    struct err ignored = ERR_INIT;
    struct engine e;

    return *p->engine && engine_parse(&e, p->engine, "", &ignored) == ST_OK &&
           engine_prints(&e);
}

static void add_threads(struct making *m, const struct sweep_settings *s,
                        const struct point *base)
{
    const struct int_list *decode = &s->list[SETTING_threads];
    const struct int_list *prefill = &s->list[SETTING_threads_prefill];
    struct point p = *base;

    if (!prefill->n)
        prefill = decode;
    for (size_t i = 0; i < decode->n; i++) {
        p.setup.n_threads = decode->v[i];
        add_depths(m, s, &p);
        if (!*p.engine)
            add_texts(m, s, &p);
    }
    for (size_t i = 0; i < prefill->n && !is_template(&p); i++) {
        p.setup.n_threads = prefill->v[i];
        add_prompts(m, s, &p);
    }
}

/* Whether it is a setting of this program that another one does not have. */
static bool is_only_ours(const struct point *p, enum setting_id id)
{
    return *p->engine && (id == SETTING_weights || id == SETTING_kv_window ||
                          id == SETTING_prefill_sums || id == SETTING_sequences ||
                          id == SETTING_shared || id == SETTING_chunk);
}

/* Every value of each setting that all points are measured with, from id on; the last
 * of them varies first. */
static void add_each(struct making *m, const struct sweep_settings *s,
                     const struct point *base, enum setting_id id)
{
    struct point p = *base;

    while (id < SETTING_N &&
           (setting_row(id)->swept != SETTING_EACH || is_only_ours(base, id)))
        id++;
    if (id == SETTING_N)
        add_threads(m, s, base);
    for (int i = 0; id == SETTING_mem && i < s->n_mem_limits && !m->err->code; i++) {
        p.setup.mem_limit = s->mem_limits[i];
        add_each(m, s, &p, id + 1);
    }
    if (id == SETTING_N || id == SETTING_mem)
        return;
    for (size_t i = 0; i < s->list[id].n && !m->err->code; i++) {
        *(int *)point_field(&p, id, NULL) = s->list[id].v[i];
        add_each(m, s, &p, id + 1);
    }
}

/* The same points by other programs, as far as these can measure them. */
static void add_engines(struct making *m, const struct sweep_settings *s,
                        struct point base)
{
    if (m->err->code || !s->n_engines || engine_check_model(&base.setup.model, m->err))
        return;
    base.setup.kv_window = 0;
    base.setup.prefill_sums = SLM_SUMS_EXACT;
    base.setup.residency = WEIGHTS_AUTO;
    for (int i = 0; i < s->n_engines && !m->err->code; i++) {
        snprintf(base.engine, sizeof base.engine, "%s", s->engines[i]);
        add_each(m, s, &base, 0);
    }
}

static enum status no_points(const struct sweep_settings *s, struct err *err)
{
    const struct int_list *shared = &s->list[SETTING_shared];

    if (s->list[SETTING_ctx].n && shared->n)
        return err_set(err, ST_USAGE,
                       "nothing to measure: no context depth (--ctx) has the %d tokens "
                       "that sequences are to begin with (--shared)",
                       shared->v[0]);
    return err_set(err, ST_USAGE,
                   "nothing to measure: neither a context depth (--ctx) nor a "
                   "prompt length (--prefill) nor a text (--speculate) is given");
}

enum status sweep_plan_of(struct sweep_plan *plan, const struct sweep_settings *s,
                          const struct sweep_models *models, struct err *err)
{
    struct making m = {.plan = {.points = NULL, .n_models = s->n_models},
                       .ids = malloc(SWEEP_MAX_POINTS * sizeof *m.ids),
                       .err = err};
    struct sweep_plan *out = &m.plan;
    enum status status =
        m.ids ? strtab_init(&m.known, SWEEP_MAX_POINTS, err)
              : err_set(err, ST_NO_MEMORY, "no memory for the identities of points");

    for (size_t i = 0; i < s->n_models && status == ST_OK; i++) {
        struct point base = s->base;

        out->first[i] = out->n_points;
        base.setup.model = models->v[i].ref;
        m.max_ctx = s->ctx_usual ? models->v[i].max_ctx : 0;
        add_each(&m, s, &base, 0);
        add_engines(&m, s, base);
        status = err->code;
        /* the same wherever the sweep's seed is used */
        uint64_t seed = s->base.setup.seed + i * 0x632be59bd9b4e019u;

        if (out->n_points > out->first[i])
            random_shuffle(out->points + out->first[i], out->n_points - out->first[i],
                           sizeof *out->points, &seed);
    }
    out->first[s->n_models] = out->n_points;
    if (status == ST_OK && !out->n_points)
        status = no_points(s, err);
    strtab_free(&m.known);
    free(m.ids);
    if (status)
        free(out->points);
    else
        *plan = *out;
    return status;
}

enum status sweep_plan_make(struct sweep_plan *plan, const struct sweep_settings *s,
                            struct err *err)
{
    struct sweep_models models;
    enum status status = sweep_models_read(&models, s, err);

    if (status)
        return status;
    status = sweep_plan_of(plan, s, &models, err);
    sweep_models_free(&models);
    return status;
}

void sweep_plan_free(struct sweep_plan *plan)
{
    free(plan->points);
    memset(plan, 0, sizeof *plan);
}

/* ---- order of a round ------------------------------------------------------------ */

/* Seeds that differ in one bit start unrelated series; any odd constant does. */
#define NEXT_ROUND 0x9e3779b97f4a7c15u

void sweep_round_order(const struct sweep_plan *plan, uint64_t seed, int round,
                       size_t *order)
{
    uint64_t state = seed + (uint64_t)round * NEXT_ROUND;
    size_t models[SWEEP_MAX_MODELS], n = 0;

    for (size_t m = 0; m < plan->n_models; m++)
        models[m] = m;
    random_shuffle(models, plan->n_models, sizeof *models, &state);
    for (size_t m = 0; m < plan->n_models; m++) {
        const size_t begin = n;

        for (size_t i = plan->first[models[m]]; i < plan->first[models[m] + 1]; i++)
            order[n++] = i;
        if (round > 1)
            random_shuffle(order + begin, n - begin, sizeof *order, &state);
    }
}
