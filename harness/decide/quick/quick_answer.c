/* SPDX-License-Identifier: MIT
 *
 * quick_answer.c - figures of models that were measured, and of those between them
 */
#include "harness/decide/quick/quick_answer.h"

#include <math.h>

#include "harness/stats/stats.h"

/* ---- of one point ---------------------------------------------------------------- */

/* The median of the undisturbed launches, or the highest if all were disturbed. */
static double figure_of(const struct quick_point *p, bool valid_only, size_t offset)
{
    double v[QUICK_MAX_ROUNDS], scratch[QUICK_MAX_ROUNDS], most = NAN;
    size_t n = 0;

    for (int i = 0; i < p->n; i++) {
        const double x =
            *(const double *)(const void *)((const char *)&p->launch[i] + offset);

        if (isfinite(x) && (p->launch[i].is_valid || !valid_only))
            v[n++] = x;
        most = fmax(most, x);
    }
    return !valid_only ? most : n ? stats_median(v, n, scratch) : NAN;
}

struct quick_figures quick_figures_of(const struct quick_point *p)
{
    double disturbed_pct = 100;
    int n_valid = 0;

    for (int i = 0; i < p->n; i++) {
        n_valid += p->launch[i].is_valid;
        disturbed_pct = fmin(disturbed_pct, p->launch[i].disturbed_pct);
    }
    return (struct quick_figures){
        .tok_per_s =
            figure_of(p, n_valid > 0, offsetof(struct quick_launch, tok_per_s)),
        .roof_gbps =
            figure_of(p, n_valid > 0, offsetof(struct quick_launch, roof_gbps)),
        .mbu = figure_of(p, n_valid > 0, offsetof(struct quick_launch, mbu)),
        .is_disturbed = p->n > 0 && n_valid == 0,
        .is_bound = p->n > 0 && n_valid == 0 && disturbed_pct >= QUICK_SLIGHT_PCT,
    };
}

/* ---- between measured models ----------------------------------------------------- */

/* A property of measured models, by the logarithm of their size. */
struct curve {
    double x[QUICK_MAX_CURVE], y[QUICK_MAX_CURVE];
    int n;
};

static void put(struct curve *c, double x, double y)
{
    if (c->n < QUICK_MAX_CURVE && x > 0 && y > 0) {
        c->x[c->n] = log(x);
        c->y[c->n++] = y;
    }
}

/* Between the nearest two points a straight line, beyond the last ones their value.
 * Points come in the order of x. NaN: no point. */
static double at(const struct curve *c, double x)
{
    const double lx = log(x);

    if (!c->n)
        return NAN;
    for (int i = 0; i < c->n; i++) {
        if (lx > c->x[i])
            continue;
        if (i == 0 || c->x[i] <= c->x[i - 1])
            return c->y[i];
        const double w = (lx - c->x[i - 1]) / (c->x[i] - c->x[i - 1]);

        return c->y[i - 1] + w * (c->y[i] - c->y[i - 1]);
    }
    return c->y[c->n - 1];
}

/* Whether the roof of memory is the model's: a cache that holds it is faster. */
static bool is_of_memory(const struct quick_answer *a, const struct quick_model *m)
{
    return m->work.memory_bytes > (double)a->llc_bytes;
}

static void take_measured(struct quick_answer *a, struct quick_model *m,
                          struct curve *share, struct curve *prompt)
{
    const struct quick_figures decode = quick_figures_of(&m->decode);
    const struct quick_figures prefill = quick_figures_of(&m->prefill);

    m->tok_per_s = decode.tok_per_s;
    m->prompt_s = a->n_prompt / prefill.tok_per_s;
    m->is_bound = decode.is_bound;
    m->prompt_is_bound = prefill.is_bound;
    if (is_of_memory(a, m)) {
        m->share = decode.tok_per_s * m->work.memory_bytes / (a->roof_gbps * 1e9);
        put(share, m->work.memory_bytes, m->share);
        if (!m->has_experts)
            put(prompt, (double)m->n_params, m->prompt_s / (double)m->n_params);
    }
}

void quick_conclude(struct quick_answer *a)
{
    struct curve share = {.n = 0}, prompt = {.n = 0};
    bool is_bound = false, prompt_is_bound = false;

    /* The roof of all, from the models that read most: the largest has no other. */
    a->roof_gbps = NAN;
    for (size_t i = a->n_models; i-- > 0 && isnan(a->roof_gbps);)
        if (a->models[i].is_measured && is_of_memory(a, &a->models[i]))
            a->roof_gbps = quick_figures_of(&a->models[i].decode).roof_gbps;
    for (size_t i = 0; i < a->n_models; i++) {
        struct quick_model *m = &a->models[i];

        m->tok_per_s = m->prompt_s = m->share = NAN;
        m->is_bound = m->prompt_is_bound = false;
        if (m->is_measured)
            take_measured(a, m, &share, &prompt);
        is_bound |= m->is_bound;
        prompt_is_bound |= m->prompt_is_bound;
    }
    for (size_t i = 0; i < a->n_models; i++) {
        struct quick_model *m = &a->models[i];
        const struct token_roofs roofs = {.read_gbps = a->roof_gbps};

        if (m->is_measured || !m->fits || !is_of_memory(a, m))
            continue;
        m->is_bound = is_bound;
        m->prompt_is_bound = prompt_is_bound;
        m->share = at(&share, m->work.memory_bytes);
        if (m->share > 0)
            m->tok_per_s = 1 / token_time_at(&m->work, &roofs, m->share).token_s;
        if (!m->has_experts)
            m->prompt_s = (double)m->n_params * at(&prompt, (double)m->n_params);
    }
}
