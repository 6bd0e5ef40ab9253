/* SPDX-License-Identifier: MIT
 *
 * recommend_each.c - a recommendation for each model of a table
 */
#include "harness/judge/recommend/recommend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/report_rows.h"

/* Adds a name unless it is there. Names are few, so the order is kept by moving them.
 */
static enum status add_model(struct recommend_answers *a, const struct row *r,
                             struct err *err)
{
    char name[sizeof a->v->model];
    size_t k = a->n;

    snprintf(name, sizeof name, "%.255s", report_model_name(r).text);
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->v[i].model, name))
            return ST_OK;
    if (a->n == RECOMMEND_MAX_MODELS)
        return err_set(err, ST_INPUT,
                       "the table has more than %d models, such as %.60s; choose one "
                       "with --model",
                       RECOMMEND_MAX_MODELS, name);
    for (; k > 0 && strcmp(a->v[k - 1].model, name) > 0; k--)
        memcpy(a->v[k].model, a->v[k - 1].model, sizeof a->v[k].model);
    snprintf(a->v[k].model, sizeof a->v[k].model, "%s", name);
    a->n++;
    return ST_OK;
}

static enum status find_models(struct recommend_answers *a, const struct row *rows,
                               size_t n_rows, const char *only, struct err *err)
{
    a->v = calloc(RECOMMEND_MAX_MODELS, sizeof *a->v);
    if (!a->v)
        return err_set(err, ST_NO_MEMORY, "no memory for the answers");
    if (only) {
        snprintf(a->v[0].model, sizeof a->v[0].model, "%s", only);
        a->n = 1;
    }
    for (size_t i = 0; i < n_rows && !only; i++)
        if (rows[i].kind == POINT_DECODE)
            if (add_model(a, &rows[i], err))
                return err->code;
    return ST_OK;
}

/* Each by itself; a model without an answer does not spoil the others'. */
static enum status answer_all(struct recommend_answers *a, const struct row *rows,
                              size_t n_rows, const struct recommend_params *params,
                              struct err *err)
{
    enum status st = ST_CHECK;

    for (size_t i = 0; i < a->n; i++) {
        struct recommend_answer *x = &a->v[i];
        struct recommend_params p = *params;

        p.model = params->model ? params->model : x->model;
        if (recommend(&x->rec, rows, n_rows, &p, &x->none) == ST_OK)
            st = ST_OK;
        else if (x->none.code != ST_CHECK)
            return err_set(err, x->none.code, "%s", x->none.msg);
    }
    if (st == ST_OK)
        return ST_OK;
    return a->n == 1 ? err_set(err, st, "%s", a->v[0].none.msg)
                     : err_set(err, st, "of %zu models: %.60s: %s", a->n, a->v[0].model,
                               a->v[0].none.msg);
}

/* ---- quotas ---------------------------------------------------------------------- */

static double quota_of(const struct row *r)
{
    return r->cpus_quota > 0 ? r->cpus_quota : 0;
}

double recommend_quota(const struct row *rows, size_t n_rows, double wanted)
{
    double most = 0;

    for (size_t i = 0; i < n_rows && !(wanted > 0); i++) {
        if (!(quota_of(&rows[i]) > 0))
            return 0;
        most = fmax(most, quota_of(&rows[i]));
    }
    return wanted > 0 ? wanted : most;
}

bool recommend_is_of_quota(const struct row *r, double quota)
{
    return fabs(quota_of(r) - quota) < 0.005;
}

/* Rows with one quota are those of one machine: *chosen is malloc'ed, or NULL where all
 * rows are. */
static enum status choose_quota(struct row **chosen, size_t *n_chosen,
                                const struct row *rows, size_t n_rows, double wanted,
                                struct err *err)
{
    const double quota = recommend_quota(rows, n_rows, wanted);
    size_t n = 0;

    *chosen = NULL;
    for (size_t i = 0; i < n_rows; i++)
        n += recommend_is_of_quota(&rows[i], quota);
    *n_chosen = n;
    if (n == n_rows)
        return ST_OK;
    if (!n)
        return err_set(err, ST_CHECK, "no point was measured with a quota of %g CPUs",
                       quota);
    *chosen = malloc(n * sizeof **chosen);
    if (!*chosen)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n);
    n = 0;
    for (size_t i = 0; i < n_rows; i++)
        if (recommend_is_of_quota(&rows[i], quota))
            (*chosen)[n++] = rows[i];
    return ST_OK;
}

static enum status recommend_rows(struct recommend_answers *answers,
                                  const struct row *rows, size_t n_rows,
                                  const struct recommend_params *params,
                                  struct err *err)
{
    enum status st;

    st = find_models(answers, rows, n_rows, params->model, err);
    if (st == ST_OK && answers->n == 0)
        return err_set(err, ST_CHECK,
                       "no decode point was measured, so nothing can be recommended; "
                       "see `bench sweep --help`");
    return st ? st : answer_all(answers, rows, n_rows, params, err);
}

enum status recommend_each(struct recommend_answers *answers, const struct row *rows,
                           size_t n_rows, const struct recommend_params *params,
                           struct err *err)
{
    struct row *chosen;
    size_t n;
    enum status st = choose_quota(&chosen, &n, rows, n_rows, params->quota_cpus, err);

    memset(answers, 0, sizeof *answers);
    if (st == ST_OK)
        st = recommend_rows(answers, chosen ? chosen : rows, n, params, err);
    free(chosen);
    return st;
}

void recommend_answers_free(struct recommend_answers *answers)
{
    free(answers->v);
    memset(answers, 0, sizeof *answers);
}
