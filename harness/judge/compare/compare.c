/* SPDX-License-Identifier: MIT
 *
 * compare.c - the setting of each machine, its figures, and the ranking
 */
#include "harness/judge/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/choice.h"
#include "harness/base/format.h"
#include "harness/rows/report_rows.h"

#define CPU_SHOWN 60

/* Halvings of the range in which the highest floor lies. */
#define FLOOR_STEPS 20

static const char *by_name(int by)
{
    static const char *const names[] = {
        [COMPARE_COST] = "cost", [COMPARE_SPEED] = "speed", [COMPARE_TTFT] = "ttft"};

    return names[by];
}

const struct choices choices_compare_by = {"machines are compared by", by_name,
                                           COMPARE_N_BY};

/* ---- wishes ---------------------------------------------------------------------- */

static bool is_of_model(const struct row *r, const char *model)
{
    return !strcmp(report_model_name(r).text, model) || !strcmp(r->model, model);
}

/* The deepest context of one sequence, or longest prompt, that a machine has finished.
 */
static int64_t max_measured(const struct result_part *m, const char *model,
                            enum point_kind kind)
{
    int64_t most = -1;

    for (size_t i = 0; i < m->n; i++) {
        const struct row *r = &m->rows[i];
        const int64_t v = kind == POINT_DECODE ? row_context(r) : r->n_prompt;

        if (r->kind == (int)kind && row_is_of_one(r) && row_trust(r) >= ROW_PARTIAL &&
            is_of_model(r, model) && v > most)
            most = v;
    }
    return most;
}

/* The least of the machines' most; machines without any do not count. -1: none. */
static int64_t common(const struct result_part *m, size_t n, const char *model,
                      enum point_kind kind)
{
    int64_t least = -1;

    for (size_t i = 0; i < n; i++) {
        const int64_t most = max_measured(&m[i], model, kind);

        if (most >= 0 && (least < 0 || most < least))
            least = most;
    }
    return least;
}

/* Machines are compared by one model: that of the user, or the only one. */
static enum status find_model(struct comparison *c, const struct result_part *m,
                              size_t n, const struct compare_params *p, struct err *err)
{
    snprintf(c->model, sizeof c->model, "%s", p->wishes.model ? p->wishes.model : "");
    for (size_t i = 0; i < n && !p->wishes.model; i++)
        for (size_t k = 0; k < m[i].n; k++) {
            const struct report_name name = report_model_name(&m[i].rows[k]);

            if (m[i].rows[k].kind != POINT_DECODE)
                continue;
            if (!c->model[0])
                snprintf(c->model, sizeof c->model, "%.255s", name.text);
            else if (strcmp(c->model, name.text) != 0)
                return err_set(err, ST_INPUT,
                               "%.80s and %.80s were measured; choose one with --model",
                               c->model, name.text);
        }
    return ST_OK;
}

/* Keeps the rows that bench recommend would choose from: those of one program and one
 * quota. */
static void keep_rows(struct result_part *m, const struct compare_params *p)
{
    const char *engine = p->engine && strcmp(p->engine, "slmbench") ? p->engine : "";
    double quota;
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (!p->engine || !strcmp(m->rows[i].engine, engine))
            m->rows[n++] = m->rows[i];
    quota = recommend_quota(m->rows, n, p->wishes.quota_cpus);
    m->n = 0;
    for (size_t i = 0; i < n; i++)
        if (recommend_is_of_quota(&m->rows[i], quota))
            m->rows[m->n++] = m->rows[i];
}

/* ---- one machine ----------------------------------------------------------------- */

static struct compare_figure figure_of(const struct speed *s)
{
    return (struct compare_figure){s->median, speed_lo(s), speed_hi(s)};
}

static struct compare_figure
cost_of(const struct price *price, struct compare_figure tok_per_s, double utilisation)
{
    if (!(price->per_hour > 0) || !(tok_per_s.mid > 0))
        return (struct compare_figure){NAN, NAN, NAN};
    return (struct compare_figure){
        price_of_million(price->per_hour, tok_per_s.mid, utilisation),
        price_of_million(price->per_hour, tok_per_s.hi, utilisation),
        price_of_million(price->per_hour, tok_per_s.lo, utilisation)};
}

/* Time to the first token and speed of prefill, which scatter alike. */
static void set_prompt(struct compare_machine *m, double utilisation)
{
    const struct recommend_prompt *prompt = &m->rec.prompt;
    const struct speed s = {.median = prompt->tok_per_s,
                            .sigma_lo = prompt->sigma,
                            .sigma_hi = prompt->sigma};
    struct compare_figure tok_per_s;

    m->ttft_s = m->cost_in = (struct compare_figure){NAN, NAN, NAN};
    if (!prompt->n_prompt || !(s.median > 0))
        return;
    tok_per_s = figure_of(&s);
    m->ttft_s.mid = prompt->warm_s;
    m->ttft_s.lo = prompt->warm_s * s.median / tok_per_s.hi;
    m->ttft_s.hi = prompt->warm_s * s.median / tok_per_s.lo;
    m->cost_in = cost_of(&m->price, tok_per_s, utilisation);
}

/* Halves the range between a floor that is reached and one that is not. */
static double find_floor(const struct result_part *rows,
                         const struct recommend_params *wishes)
{
    struct recommendation *rec = malloc(sizeof *rec);
    struct recommend_params p = *wishes;
    double reached = wishes->min_tps, missed = 0;

    for (size_t i = 0; i < rows->n; i++)
        if (rows->rows[i].kind == POINT_DECODE)
            missed =
                fmax(missed, fmax(rows->rows[i].tok_per_s, rows->rows[i].tok_per_s_hi));
    for (int i = 0; rec && i < FLOOR_STEPS && missed > reached; i++) {
        struct err ignored = ERR_INIT;

        p.min_tps = (reached + missed) / 2;
        if (recommend(rec, rows->rows, rows->n, &p, &ignored) == ST_OK)
            reached = p.min_tps;
        else
            missed = p.min_tps;
    }
    free(rec);
    return reached;
}

static enum status judge(struct compare_machine *m, const struct result_part *rows,
                         const struct recommend_params *wishes,
                         const struct compare_params *p, struct err *err)
{
    struct recommend_params own = *wishes;
    enum status st;

    if (!own.max_threads)
        own.max_threads = rows->run->about.max_threads;
    st = recommend(&m->rec, rows->rows, rows->n, &own, &m->none);
    if (st == ST_CHECK)
        return ST_OK;
    if (st)
        return err_set(err, st, "%s", m->none.msg);
    m->speed = speed_measured(&m->rec.best);
    m->speed.median = m->rec.best_tok_per_s;
    m->speed_is_bound =
        row_trust(&m->rec.best) == ROW_DISTURBED && m->rec.best_from_ctx < 0;
    if (m->rec.best_from_ctx >= 0) {
        m->speed.sigma_lo = hypot(m->speed.sigma_lo, SPEED_ESTIMATE_SPREAD);
        m->speed.sigma_hi = hypot(m->speed.sigma_hi, SPEED_ESTIMATE_SPREAD);
    }
    m->tok_per_s = figure_of(&m->speed);
    m->cost_out = cost_of(&m->price, m->tok_per_s, p->utilisation);
    set_prompt(m, p->utilisation);
    m->max_floor = find_floor(rows, &own);
    return ST_OK;
}

/* ---- ranking --------------------------------------------------------------------- */

static bool has_setting(const struct compare_machine *m)
{
    return m->none.code == ST_OK;
}

/* By cost where every machine has a price, and all are in one currency. */
static enum status choose_by(struct comparison *c, const struct compare_params *p,
                             struct err *err)
{
    const char *currency = NULL, *without = NULL;
    bool mixed = false;

    for (size_t i = 0; i < c->n; i++) {
        if (!has_setting(&c->v[i]))
            continue;
        if (!(c->v[i].price.per_hour > 0)) {
            without = c->v[i].name;
            continue;
        }
        mixed |= currency && strcmp(currency, c->v[i].price.currency) != 0;
        currency = c->v[i].price.currency;
    }
    c->by = p->by_given ? p->by : without || mixed ? COMPARE_SPEED : COMPARE_COST;
    if (c->by == COMPARE_COST && mixed)
        return err_set(err, ST_INPUT,
                       "prices are in several currencies; give them in one");
    if (c->by == COMPARE_COST && !currency)
        return err_set(err, ST_INPUT,
                       "no machine has a price, as %s; give --price NAME=0.06 an hour",
                       without ? without : "none has a setting");
    return ST_OK;
}

/* What draws are compared by: the speed, of decode or prefill, for the same money. */
static struct speed score_of(const struct compare_machine *m, enum compare_by by)
{
    struct speed s = m->speed;

    if (!has_setting(m))
        return (struct speed){.out = true};
    if (by == COMPARE_TTFT)
        s = (struct speed){.median = m->ttft_s.mid > 0 ? 1 / m->ttft_s.mid : 0,
                           .sigma_lo = m->rec.prompt.sigma,
                           .sigma_hi = m->rec.prompt.sigma};
    if (by == COMPARE_COST) {
        s.median = m->price.per_hour > 0 ? s.median / m->price.per_hour : 0;
        s.least = 0;
    }
    return s;
}

/* Those that are ranked, then those that have a setting. */
static int compare_machines(const void *x, const void *y)
{
    const struct compare_machine *a = x, *b = y;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (has_setting(a) != has_setting(b))
        return has_setting(a) ? -1 : 1;
    return strcmp(a->name, b->name);
}

static enum status rank(struct comparison *c, struct err *err)
{
    struct speed *v = calloc(c->n + 1, sizeof *v);
    bool bounds = false;
    enum status st;

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory to rank %zu machines", c->n);
    for (size_t i = 0; i < c->n; i++)
        v[i] = score_of(&c->v[i], c->by);
    st = speed_compare(v, c->n, err);
    for (size_t i = 0; i < c->n && st == ST_OK; i++) {
        c->v[i].score = v[i].out ? 0 : v[i].median;
        c->v[i].is_bound =
            c->v[i].score > 0 && (c->by == COMPARE_TTFT ? c->v[i].rec.prompt.disturbed
                                                        : c->v[i].speed_is_bound);
        bounds |= c->v[i].is_bound;
    }
    for (size_t i = 0; i < c->n && st == ST_OK; i++)
        c->v[i].p_first = bounds ? NAN : c->v[i].score > 0 ? v[i].p_best : 0;
    free(v);
    if (st == ST_OK)
        qsort(c->v, c->n, sizeof *c->v, compare_machines);
    return st;
}

static enum status judge_all(struct comparison *c, const struct result_part *rows,
                             const struct compare_params *p, struct err *err)
{
    struct recommend_params wishes = p->wishes;
    const struct compare_machine *some = NULL;
    enum status st = find_model(c, rows, c->n, p, err);

    wishes.model = c->model;
    if (wishes.ctx < 0)
        wishes.ctx = (int)common(rows, c->n, c->model, POINT_DECODE);
    if (!wishes.n_prompt && common(rows, c->n, c->model, POINT_PREFILL) > 0)
        wishes.n_prompt = (int)fmax((double)common(rows, c->n, c->model, POINT_PREFILL),
                                    RECOMMEND_USUAL_PROMPT);
    c->ctx = wishes.ctx;
    c->n_prompt = wishes.n_prompt;
    for (size_t i = 0; i < c->n && st == ST_OK; i++) {
        const struct price *price = prices_find(p->prices, c->v[i].name);

        if (price)
            c->v[i].price = *price;
        st = judge(&c->v[i], &rows[i], &wishes, p, err);
        if (st == ST_OK && has_setting(&c->v[i]))
            some = &c->v[i];
    }
    if (st)
        return st;
    return some ? ST_OK
                : err_set(err, ST_CHECK, "of %zu machine%s none has a setting: %s: %s",
                          c->n, plural((long long)c->n, "s"), c->v[0].name,
                          c->v[0].none.msg);
}

/* The machines of each path into parts[COMPARE_MAX_MACHINES]; their rows stay those of
 * sets[n]. */
static enum status read_all(struct result_set *sets, struct result_part *parts,
                            size_t *n_parts, const char *const *paths, size_t n,
                            struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = result_set_open(&sets[i], paths[i], RESULT_BY_MACHINE, err);
    if (st == ST_OK)
        st = result_parts_join_models(sets, n, err);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        for (size_t k = 0; k < sets[i].n_parts && st == ST_OK; k++) {
            if (*n_parts == COMPARE_MAX_MACHINES)
                st = err_set(err, ST_USAGE, "more than %d machines",
                             COMPARE_MAX_MACHINES);
            else
                parts[(*n_parts)++] = sets[i].parts[k];
        }
    return st;
}

/* When the chosen rows were measured, and by what. */
static enum status find_origin(struct comparison *c, struct err *err)
{
    struct row *rows = malloc((c->n + 1) * sizeof *rows);
    size_t n = 0;

    if (!rows)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", c->n);
    for (size_t i = 0; i < c->n; i++)
        if (has_setting(&c->v[i]))
            rows[n++] = c->v[i].rec.best;
    report_origin(rows, n, c->origin, sizeof c->origin);
    free(rows);
    return ST_OK;
}

static void describe(struct compare_machine *m, const struct result_part *part)
{
    const struct report_machine *about = &part->run->about;

    memcpy(m->name, part->name, sizeof m->name);
    text_shorten(m->cpu, sizeof m->cpu,
                 *about->cpu_model ? about->cpu_model : "unknown CPU", CPU_SHOWN);
    if (about->n_cpus > 0)
        text_append(m->cpu, sizeof m->cpu, ", %d CPU%s", about->n_cpus,
                    plural(about->n_cpus, "s"));
}

static enum status compare_parts(struct comparison *c, struct result_part *parts,
                                 size_t n, const struct compare_params *p,
                                 struct err *err)
{
    enum status st = ST_OK;

    c->v = calloc(n + 1, sizeof *c->v);
    if (!c->v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu machines", n);
    for (c->n = 0; c->n < n; c->n++) {
        describe(&c->v[c->n], &parts[c->n]);
        keep_rows(&parts[c->n], p);
    }
    if (judge_all(c, parts, p, err) || choose_by(c, p, err) || rank(c, err) ||
        find_origin(c, err))
        st = err->code;
    if (st == ST_OK)
        compare_note(c);
    return st;
}

static bool has_points(const struct result_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < parts[i].n; k++)
            if (parts[i].rows[k].kind != ROW_LOAD)
                return true;
    return false;
}

enum status compare_make(struct comparison *c, const char *const *paths, size_t n,
                         const struct compare_params *p, struct err *err)
{
    struct result_part parts[COMPARE_MAX_MACHINES];
    struct result_set *sets = calloc(n + 1, sizeof *sets);
    size_t n_parts = 0;
    enum status st;

    memset(c, 0, sizeof *c);
    c->utilisation = p->utilisation;
    snprintf(c->prices_from, sizeof c->prices_from, "%s", p->prices_from);
    st = sets ? read_all(sets, parts, &n_parts, paths, n, err)
              : err_set(err, ST_NO_MEMORY, "no memory for %zu sets of rows", n);
    if (st == ST_OK)
        st = compare_users(c, parts, n_parts, p, err);
    if (st == ST_OK && (has_points(parts, n_parts) || !c->n_serves))
        st = compare_parts(c, parts, n_parts, p, err);
    for (size_t i = 0; sets && i < n; i++)
        result_set_free(&sets[i]);
    free(sets);
    return st;
}

void compare_free(struct comparison *c)
{
    free(c->v);
    c->v = NULL;
    c->n = 0;
}
