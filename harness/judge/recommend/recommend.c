/* SPDX-License-Identifier: MIT
 *
 * recommend.c - the setting to deploy with, from measured points
 *
 * Each setting has a distribution of speeds (recommend_speed.h), and from these follows
 * its expected regret: the expected loss against the fastest setting. The setting with
 * the least regret wins. A preference may choose another one only if that costs next to
 * nothing: both its expected regret and the distance of the medians must be within
 * RECOMMEND_MAX_REGRET. Overlapping intervals are no evidence of that: a wide interval
 * overlaps with every other. Among such settings the one of the better quality wins
 * (recommend_quality.c); then the one with fewer threads, which leaves more of the
 * machine. The quantisation of the KV cache counts like that of the weights.
 *
 * Speed alone would choose the smallest file, so quality counts in three ways. A
 * setting that is known to diverge by more than a limit is left out; if the user set no
 * limit, it is used, and named, where nothing else qualifies. Below the limit
 * divergence has a price in speed (RECOMMEND_KL_PRICE). And with a floor of speed or
 * latency only settings of the best quality that reaches it remain for the choice by
 * speed.
 *
 * A disturbance slows a point down. A disturbed point therefore competes with the speed
 * estimated from its setting's other depths, or else with its own speed, which is a
 * lower bound; the recommendation states that.
 */
#include "harness/judge/recommend/recommend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/point/point_row.h"
#include "harness/judge/recommend/recommend_choice.h"

/* An interval's end is computed back from a logarithm. */
#define ROUNDING 1e-9

double row_lo(const struct row *r)
{
    return r->tok_per_s_lo > 0 ? r->tok_per_s_lo : r->tok_per_s;
}

double row_hi(const struct row *r)
{
    return r->tok_per_s_hi > 0 ? r->tok_per_s_hi : r->tok_per_s;
}

bool recommend_is_model(const struct chooser *c, const struct row *r)
{
    return !c->model || !strcmp(c->model, r->model) ||
           !strcmp(c->model, report_model_name(r).text);
}

/* What one user gets. */
static bool is_decode(const struct chooser *c, const struct row *r)
{
    return r->kind == POINT_DECODE && row_is_of_one(r) && recommend_is_model(c, r);
}

/* The depth to serve: the requested one, or the deepest that a point finished. */
static int64_t wanted_depth(const struct chooser *c)
{
    int64_t deepest = 0;

    if (c->params->ctx >= 0)
        return c->params->ctx;
    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (is_decode(c, r) && row_trust(r) >= ROW_DISTURBED &&
            row_context(r) > deepest)
            deepest = row_context(r);
    }
    return deepest;
}

/* Whether a point of the same setting finished at a lesser depth that is deep enough.
 * Rows are ordered by depth within a setting and thread count. */
static bool has_nearer(const struct chooser *c, size_t i)
{
    const struct row *r = c->rows.v[i];

    while (i-- > 0 && report_same_line(c->rows.v[i], r) &&
           row_context(c->rows.v[i]) >= c->ctx)
        if (c->rows.v[i]->ctx < r->ctx && row_trust(c->rows.v[i]) >= ROW_DISTURBED)
            return true;
    return false;
}

uint64_t recommend_limit(const struct chooser *c, const struct row *r)
{
    return c->params->mem_limit     ? c->params->mem_limit
           : r->mem_limit_bytes > 0 ? (uint64_t)r->mem_limit_bytes
                                    : 0;
}

/* Whether the setting of row i is known to begin with the answer in time. Rows of one
 * setting follow each other, and the last answer serves them all. */
static bool in_time(struct chooser *c, size_t i)
{
    if (!(c->params->max_ttft_s > 0))
        return true;
    if (c->prompt_row == NO_ROW ||
        !report_same_setting(c->rows.v[c->prompt_row], c->rows.v[i])) {
        prompt_of(&c->prompt, c, i);
        c->prompt_row = i;
    }
    if (c->prompt.warm_max_s <= c->params->max_ttft_s) /* not of a NaN */
        return true;
    if (c->earliest_row == NO_ROW || !c->earliest.n_prompt ||
        c->prompt.warm_max_s < c->earliest.warm_max_s) {
        c->earliest = c->prompt;
        c->earliest_row = i;
    }
    return false;
}

static enum reason without_figure(const struct row *r)
{
    return r->status == ROW_STATUS_NO_FIT || r->status == ROW_STATUS_OOM ? NO_ROOM
           : r->status == ROW_STATUS_PARTIAL || r->status == ROW_STATUS_INTERRUPTED
               ? UNFINISHED
               : FAILED;
}

static enum reason judge(struct chooser *c, size_t i, bool estimated)
{
    const struct row *r = c->rows.v[i];

    if (!recommend_is_model(c, r))
        return OTHER_MODEL;
    if (!is_decode(c, r))
        return OTHER_KIND;
    if (row_context(r) < c->ctx)
        return TOO_SHALLOW;
    if (has_nearer(c, i))
        return DEEPER;
    if (row_trust(r) < ROW_DISTURBED)
        return without_figure(r);
    if (!memory_fits(r, (int64_t)recommend_limit(c, r)))
        return TOO_LARGE;
    if (c->params->max_threads > 0 && r->n_threads > c->params->max_threads)
        return TOO_MANY_THREADS;
    if (speed_lo(&c->speed[i]) < c->params->min_tps * (1 - ROUNDING))
        return TOO_SLOW;
    if (!in_time(c, i))
        return TOO_LATE;
    if (c->params->max_kl > 0 && !isfinite(r->kl_mean))
        return UNKNOWN_QUALITY;
    if (r->kl_mean > c->max_kl) /* not of a NaN */
        return TOO_LOSSY;
    if (row_above_roof(r))
        return ABOVE_ROOF;
    return row_trust(r) == ROW_GOOD ? QUALIFIES : estimated ? ESTIMATED : DISTURBED;
}

static void judge_all(struct chooser *c)
{
    memset(c->n, 0, sizeof c->n);
    c->prompt_row = c->earliest_row = NO_ROW;
    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];
        bool estimated = false;

        c->speed[i] = speed_measured(r);
        if (is_decode(c, r) && row_trust(r) == ROW_DISTURBED)
            estimated = speed_estimate(&c->speed[i], &c->rows, i, c->scratch);
        c->why[i] = judge(c, i, estimated);
        c->n[c->why[i]]++;
        if (c->why[i] < DISTURBED)
            c->speed[i].median = 0;
    }
    quality_learn(c);
    if (!has_floor(c))
        quality_drop_few_bits(c);
}

static bool nothing_left(const struct chooser *c)
{
    return !c->n[QUALIFIES] && !c->n[ESTIMATED] && !c->n[DISTURBED];
}

/* ---- choosing -------------------------------------------------------------------- */

bool recommend_is_equal(const struct chooser *c, size_t i)
{
    return is_rival(c, i) && c->speed[i].regret <= RECOMMEND_MAX_REGRET &&
           c->speed[i].median >= (1 - RECOMMEND_MAX_REGRET) * c->max_median;
}

/* Preference among equally fast settings: better quality, fewer threads, less regret.
 */
static bool preferred(const struct chooser *c, size_t i, size_t k)
{
    const struct row *a = c->rows.v[i], *b = c->rows.v[k];
    const int order = quality_compare(c, a, b);

    if (order)
        return order < 0;
    if (a->n_threads != b->n_threads)
        return a->n_threads < b->n_threads;
    return c->speed[i].regret < c->speed[k].regret;
}

static void find_top(struct chooser *c)
{
    c->top = NO_ROW;
    c->max_median = 0;
    for (size_t i = 0; i < c->rows.n; i++) {
        if (!is_rival(c, i))
            continue;
        c->max_median = fmax(c->max_median, c->speed[i].median);
        if (c->top == NO_ROW || c->speed[i].regret < c->speed[c->top].regret)
            c->top = i;
    }
}

static void find_best(struct chooser *c)
{
    c->best = c->top;
    c->n_equals = 1;
    for (size_t i = 0; i < c->rows.n; i++) {
        if (i == c->top || !recommend_is_equal(c, i))
            continue;
        c->n_equals++;
        if (preferred(c, i, c->best))
            c->best = i;
    }
}

static enum status choose_by_speed(struct chooser *c, struct err *err)
{
    if (speed_compare(c->speed, c->rows.n, err))
        return err->code;
    find_top(c);
    find_best(c);
    return ST_OK;
}

/* By speed among all, and then among those of the quality that is wanted. */
static enum status choose_best(struct chooser *c, struct err *err)
{
    enum status st = choose_by_speed(c, err);
    size_t wanted;

    c->replaced = NO_ROW;
    if (st)
        return st;
    wanted = has_floor(c) ? quality_best(c) : quality_worth_more(c);
    if (wanted == NO_ROW)
        return ST_OK;
    quality_restrict(c, wanted);
    if (c->speed[c->best].out)
        c->replaced = c->best;
    return choose_by_speed(c, err);
}

/* Whether row i is a better second to the choice than row k: with a floor, the one of
 * better quality; else the faster one. */
static bool second_before(const struct chooser *c, size_t i, size_t k)
{
    const int order = has_floor(c) ? quality_compare(c, c->rows.v[i], c->rows.v[k]) : 0;

    return order ? order < 0 : c->speed[i].regret < c->speed[k].regret;
}

/* The best setting of another quantisation, or of another program, is more useful to a
 * user than the same weights with one thread less. A setting with only a lower
 * bound comes second only if the first is known no better. */
static void find_runner_up(struct chooser *c)
{
    const struct row *best = c->rows.v[c->best];
    bool other = false;

    c->runner_up = NO_ROW;
    for (size_t i = 0; i < c->rows.n; i++) {
        const bool differs = row_compare(c->rows.v[i], best, FIELD_COMPUTED) != 0 ||
                             strcmp(c->rows.v[i]->engine, best->engine) != 0;

        if (i == c->best || !is_candidate(c, i) ||
            (c->why[i] == DISTURBED && c->why[c->best] != DISTURBED))
            continue;
        if (c->runner_up == NO_ROW || differs > other ||
            (differs == other && second_before(c, i, c->runner_up))) {
            c->runner_up = i;
            other = differs;
        }
    }
}

/* ----------------------------------------------------------------------------- */

/* The command of r with other threads for its prompts; false: none can be made. */
static bool make_command_with(const struct row *r, int64_t n_threads_prefill,
                              char *text, size_t cap)
{
    struct err ignored = ERR_INIT;
    struct row with = *r;

    if (n_threads_prefill <= 0 || n_threads_prefill == r->n_threads)
        return false;
    with.n_threads_prefill = n_threads_prefill;
    return point_row_command(&with, text, cap, &ignored) == ST_OK;
}

/* The row's command is a text of whoever wrote the row, and is made for a shell.
 * n_threads_prefill: those that its prompts are recommended to have; 0: any. */
static void make_command(struct row *r, int64_t n_threads_prefill, char *why,
                         size_t cap)
{
    const bool had_one = r->command[0];
    struct err err = ERR_INIT;
    char text[sizeof r->command];

    if (!make_command_with(r, n_threads_prefill, text, sizeof text) &&
        point_row_command(r, text, sizeof text, &err))
        text[0] = '\0';
    snprintf(why, cap, "%s", had_one ? err.msg : "");
    snprintf(r->command, sizeof r->command, "%s", had_one ? text : "");
}

/* Probability for speed and latency, as if they were independent. */
static double floor_probability(const struct chooser *c,
                                const struct recommendation *rec)
{
    const struct recommend_params *want = c->params;
    double p = NAN;

    if (has_floor(c))
        p = speed_reaches(&c->speed[c->best], want->min_tps);
    if (want->max_ttft_s > 0)
        p *= prompt_in_time(&rec->prompt, want->max_ttft_s);
    return p;
}

static void hand_over(struct recommendation *rec, const struct chooser *c)
{
    const struct speed *best = &c->speed[c->best];

    memset(rec, 0, sizeof *rec);
    rec->best = *c->rows.v[c->best];
    rec->p_best = c->n[QUALIFIES] + c->n[ESTIMATED] ? best->p_best : NAN;
    rec->regret = best->regret;
    rec->best_tok_per_s = best->median;
    rec->best_from_ctx = best->from_ctx;
    rec->by_quality = c->replaced != NO_ROW;
    rec->tie = c->n_equals > 1;
    prompt_of(&rec->prompt, c, c->best);
    make_command(&rec->best, rec->prompt.n_threads, rec->no_command,
                 sizeof rec->no_command);
    memory_of(&rec->memory, c, c->best);
    quality_steps(rec, c);
    rec->p_floor = floor_probability(c, rec);
    rec->has_runner_up = c->runner_up != NO_ROW;
    if (c->why[c->best] != DISTURBED)
        rec->n_disturbed = c->n[DISTURBED];
    if (rec->has_runner_up) {
        char why[sizeof rec->no_command];

        rec->runner_up = *c->rows.v[c->runner_up];
        make_command(&rec->runner_up, 0, why, sizeof why);
        rec->runner_up_tok_per_s = c->speed[c->runner_up].median;
        rec->runner_up_from_ctx = c->speed[c->runner_up].from_ctx;
    }
}

static void judge_for(struct chooser *c)
{
    c->ctx = wanted_depth(c);
    c->n_prompt = prompt_wanted(c);
    c->max_kl = c->params->max_kl > 0 ? c->params->max_kl : RECOMMEND_MAX_KL;
    judge_all(c);
    if (nothing_left(c) && !(c->params->max_kl > 0)) {
        c->max_kl = INFINITY;
        judge_all(c);
    }
}

/* The model with the fastest candidate, where several are in the choice. */
static void take_one_model(struct chooser *c)
{
    size_t fastest = NO_ROW;

    for (size_t i = 0; i < c->rows.n; i++)
        if (is_candidate(c, i) &&
            (fastest == NO_ROW || c->speed[i].median > c->speed[fastest].median))
            fastest = i;
    if (c->model || fastest == NO_ROW)
        return;
    c->model_name = report_model_name(c->rows.v[fastest]);
    c->model = c->model_name.text;
    judge_for(c);
}

static enum status choose(struct recommendation *rec, struct chooser *c,
                          struct err *err)
{
    judge_for(c);
    take_one_model(c);
    if (nothing_left(c))
        return recommend_write_nothing(c, err);
    if (choose_best(c, err))
        return err->code;
    find_runner_up(c);
    hand_over(rec, c);
    recommend_write(rec, c);
    recommend_write_answer(rec, c);
    return ST_OK;
}

enum status recommend(struct recommendation *rec, const struct row *rows, size_t n_rows,
                      const struct recommend_params *params, struct err *err)
{
    struct chooser c = {.params = params, .model = params->model};
    enum status st = report_rows_pick(&c.rows, rows, n_rows, err);

    if (st)
        return st;
    c.why = calloc(c.rows.n + 1, sizeof *c.why);
    c.speed = calloc(c.rows.n + 1, sizeof *c.speed);
    c.scratch = calloc(c.rows.n + 1, sizeof *c.scratch);
    st = c.why && c.speed && c.scratch
             ? choose(rec, &c, err)
             : err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_rows);
    free(c.scratch);
    free(c.speed);
    free(c.why);
    report_rows_free(&c.rows);
    return st;
}
