/* SPDX-License-Identifier: MIT
 *
 * quick_models.c - which models `bench quick` measures, and which it plans
 */
#include "harness/decide/quick/quick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/measure/plan/plan.h"

/* Measured where nobody names others: a small one, and one that many deploy. Where
 * memory does not hold that, the largest that it holds. */
#define SMALL "tinyllama-1.1b"
#define LARGE "yi-1.5-9b"
#define QUANT "Q4_K_M"

/* Models as they are planned; points[i] belongs to models[i]. */
struct planning {
    const struct quick_settings *s;
    const struct topology *topo;
    struct quick_model *models;
    struct point *points;
    size_t n, cap;
    uint64_t room;
    struct plan *plan; /* room for one */
};

static enum status grow(struct planning *g, struct err *err)
{
    const size_t cap = g->cap ? 2 * g->cap : 32;
    struct quick_model *models = realloc(g->models, cap * sizeof *models);
    struct point *points = NULL;

    if (models) {
        g->models = models;
        points = realloc(g->points, cap * sizeof *points);
    }
    if (!points)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu models", cap);
    g->points = points;
    g->cap = cap;
    return ST_OK;
}

static enum status make_point(const struct planning *g, const char *text,
                              struct point *p, struct err *err)
{
    enum status st;

    *p = g->s->base;
    p->kind = POINT_DECODE;
    p->ctx = g->s->ctx;
    if (!p->setup.n_threads)
        p->setup.n_threads = g->topo->threads_default;
    st = modelref_parse(&p->setup.model, text, NULL, err);
    if (st || !p->setup.model.synthetic)
        return st;
    p->setup.residency = WEIGHTS_MEMORY;
    if (p->ctx > (int)p->setup.model.shape.n_ctx_train)
        p->ctx = (int)p->setup.model.shape.n_ctx_train;
    return ST_OK;
}

static void fill(struct quick_model *m, const struct plan *plan)
{
    const struct point_need *need = &plan->need;
    const struct modelref *ref = &plan->point.setup.model;

    *m = (struct quick_model){
        .is_shape = ref->synthetic,
        .has_experts = ref->synthetic && ref->shape.n_experts > 0,
        .fits = plan->verdict == PLAN_FITS,
        .n_params = need->n_params,
        .needed_bytes = need->anon_bytes + point_need_reserve(need->residency),
        .ctx = plan->point.ctx,
        .work = {.memory_bytes = (double)need->token_bytes,
                 .output_bytes = (double)need->output_bytes,
                 .n_layers = need->n_layers},
    };
    snprintf(m->text, sizeof m->text, "%s", ref->text);
    snprintf(m->name, sizeof m->name, "%s", ref->name);
}

static bool is_there(const struct planning *g, const char *text)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->models[i].text, text))
            return true;
    return false;
}

static enum status add(struct planning *g, const char *text, struct err *err)
{
    struct point p;
    enum status st;

    if (is_there(g, text))
        return ST_OK;
    st = g->n == g->cap ? grow(g, err) : ST_OK;
    if (st == ST_OK)
        st = make_point(g, text, &p, err);
    if (st == ST_OK)
        st = plan_make(g->plan, &p, g->topo, err);
    /* of a file that is known only now */
    if (st == ST_OK && g->plan->need.model_ctx > 0 && p.ctx > g->plan->need.model_ctx) {
        p.ctx = g->plan->need.model_ctx;
        st = plan_make(g->plan, &p, g->topo, err);
    }
    if (st)
        return st;
    fill(&g->models[g->n], g->plan);
    g->room = g->plan->room;
    g->points[g->n++] = p;
    return ST_OK;
}

/* All shapes in one quantisation. One that cannot be planned is left out, as nobody has
 * named it, unless no model is left. */
static enum status add_shapes(struct planning *g, const char *quant, struct err *err)
{
    struct synth_shape shape;
    char **names = NULL, text[128];
    int n = 0;
    enum status st = shape_list(&names, &n, err);
    struct err why = ERR_INIT;

    for (int i = 0; i < n && st == ST_OK; i++) {
        why = (struct err)ERR_INIT;
        if (!shape_load(&shape, names[i], &why) && *shape.pooling)
            continue; /* an embedding model decodes nothing */
        snprintf(text, sizeof text, "%s:%s", names[i], quant);
        st = add(g, text, &why);
        if (st == ST_NO_MEMORY || st == ST_INTERRUPTED)
            err_set(err, st, "%s", why.msg);
        else
            st = ST_OK;
    }
    if (st == ST_OK && !g->n && why.code)
        st = err_set(err, why.code, "%s", why.msg);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return st;
}

/* ---- which are measured ---------------------------------------------------------- */

static struct quick_model *find(const struct planning *g, const char *shape)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->models[i].is_shape && !strcmp(g->models[i].name, shape))
            return &g->models[i];
    return NULL;
}

/* The shape of that name, or, where it does not fit, the largest dense one below it. */
static struct quick_model *find_large(const struct planning *g)
{
    struct quick_model *wanted = find(g, LARGE), *best = NULL;

    if (wanted && wanted->fits)
        return wanted;
    for (size_t i = 0; i < g->n; i++) {
        struct quick_model *m = &g->models[i];

        if (m->fits && !m->has_experts && (!best || m->n_params > best->n_params) &&
            (!wanted || m->n_params < wanted->n_params))
            best = m;
    }
    return best;
}

static enum status choose(struct planning *g, struct err *err)
{
    struct quick_model *small = find(g, SMALL), *large = find_large(g);

    if (!large)
        return err_set(err, ST_NO_MEMORY,
                       "no model of the shapes that are known fits into %s with %d "
                       "tokens of context",
                       bytes_text(g->room).text, g->s->ctx);
    large->is_measured = true;
    if (small && small->fits && small->n_params < large->n_params)
        small->is_measured = true;
    return ST_OK;
}

/* The models that were named; all must fit. */
static enum status add_named(struct planning *g, struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < g->s->models.n && st == ST_OK; i++) {
        st = add(g, g->s->models.v[i], err);
        if (st == ST_OK && !g->models[g->n - 1].fits)
            st = err_set(err, ST_NO_MEMORY,
                         "%s does not fit into %s of memory: it needs %s",
                         g->s->models.v[i], bytes_text(g->room).text,
                         bytes_text(g->models[g->n - 1].needed_bytes).text);
        if (st == ST_OK)
            g->models[g->n - 1].is_measured = true;
    }
    return st;
}

/* By size; there are few. */
static void sort(struct planning *g)
{
    for (size_t i = 1; i < g->n; i++)
        for (size_t k = i; k > 0 && g->models[k - 1].n_params > g->models[k].n_params;
             k--) {
            const struct quick_model m = g->models[k];
            const struct point p = g->points[k];

            g->models[k] = g->models[k - 1];
            g->models[k - 1] = m;
            g->points[k] = g->points[k - 1];
            g->points[k - 1] = p;
        }
}

/* That of the first model that is a shape. */
static const char *quant_of(const struct planning *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->models[i].is_shape)
            return quantmix_name(g->points[i].setup.model.mix);
    return QUANT;
}

enum status quick_plan_models(struct quick_answer *a, struct point **points,
                              const struct quick_settings *s,
                              const struct topology *topo, struct err *err)
{
    struct planning g = {.s = s, .topo = topo, .plan = calloc(1, sizeof *g.plan)};
    enum status st = g.plan ? add_named(&g, err)
                            : err_set(err, ST_NO_MEMORY, "no memory for a plan");

    if (st == ST_OK) {
        snprintf(a->quant, sizeof a->quant, "%s", quant_of(&g));
        st = add_shapes(&g, a->quant, err);
    }
    if (st == ST_OK && !s->models.n)
        st = choose(&g, err);
    if (st == ST_OK)
        sort(&g);
    a->models = g.models;
    a->n_models = g.n;
    a->room = g.room;
    *points = g.points;
    free(g.plan);
    return st;
}
