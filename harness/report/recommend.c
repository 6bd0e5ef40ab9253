/* SPDX-License-Identifier: MIT
 *
 * recommend.c - from measured points to the setting to deploy with
 *
 * A point is judged by the lower end of its interval, since that is the speed that
 * was shown. Points whose intervals overlap with the fastest one's are its equals;
 * among equals the one is taken that diverges less from the reference (quality_rows.h),
 * and where that is not known the larger quantisation, which keeps more of the model;
 * then the one with fewer threads (it leaves more of the machine). The quantisation of
 * the KV cache counts like that of the weights.
 *
 * Speed alone would choose the smallest file there is. So what is known to diverge by
 * more than a limit is left out; without a limit of the user's own it is used, and
 * named, where nothing else qualifies.
 *
 * What disturbs a point slows it down. So a disturbed point is left out, but for two
 * cases, which the recommendation names: there is nothing else, or it was shown to
 * be faster than every undisturbed one all the same.
 */
#include "harness/report/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/options.h"
#include "harness/report/report_speculation.h"
#include "harness/result/report_rows.h"

/* Why a point does not qualify, in the order of the checks: who fails a later one
 * came closer. */
enum reason {
    OTHER_MODEL,
    OTHER_KIND,
    TOO_SHALLOW,
    DEEPER, /* a lesser depth of the same setting serves as well: no exclusion */
    UNFINISHED,
    TOO_LARGE,
    TOO_MANY_THREADS,
    TOO_SLOW,
    UNKNOWN_QUALITY,
    TOO_LOSSY,
    ABOVE_ROOF, /* either figure is wrong: never to be used */
    DISTURBED,
    N_REASONS,
    QUALIFIES = N_REASONS
};

static const char *const reason_text[N_REASONS] = {
    [TOO_SHALLOW] = "at less context",
    [UNFINISHED] = "not finished (time budget, out of memory)",
    [TOO_LARGE] = "over the memory limit",
    [TOO_MANY_THREADS] = "with more threads than CPUs",
    [TOO_SLOW] = "too slow",
    [UNKNOWN_QUALITY] = "without a known divergence",
    [TOO_LOSSY] = "diverging too much",
    [ABOVE_ROOF] = "above the roof, so in doubt",
    [DISTURBED] = "disturbed",
};

struct chooser {
    const struct recommend_params *params;
    struct report_rows rows;
    enum reason *why; /* [rows.n] */
    int64_t ctx;      /* the depth asked for, resolved */
    double max_kl;    /* INFINITY: any */
    bool use_disturbed;
    int n[N_REASONS + 1];
};

static double low(const struct row *r)
{
    return r->tok_per_s_lo > 0 ? r->tok_per_s_lo : r->tok_per_s;
}

static double high(const struct row *r)
{
    return r->tok_per_s_hi > 0 ? r->tok_per_s_hi : r->tok_per_s;
}

static bool is_candidate(const struct chooser *c, const struct row *r)
{
    return !strcmp(r->kind, "decode") &&
           (!c->params->model || !strcmp(c->params->model, r->model));
}

/* The depth that must be served: as asked, or the deepest that anyone finished. */
static int64_t wanted_depth(const struct chooser *c)
{
    int64_t deepest = 0;

    if (c->params->ctx >= 0)
        return c->params->ctx;
    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (is_candidate(c, r) && row_trust(r) >= ROW_DISTURBED && r->ctx > deepest)
            deepest = r->ctx;
    }
    return deepest;
}

static bool same_but_depth(const struct row *a, const struct row *b)
{
    return report_same_setting(a, b) && !strcmp(a->kind, b->kind) &&
           a->n_threads == b->n_threads;
}

/* Did a point of the same setting finish at a lesser depth that is deep enough?
 * Rows are ordered by depth within a setting and thread count. */
static bool has_nearer(const struct chooser *c, size_t i)
{
    const struct row *r = c->rows.v[i];

    while (i-- > 0 && same_but_depth(c->rows.v[i], r) && c->rows.v[i]->ctx >= c->ctx)
        if (c->rows.v[i]->ctx < r->ctx && row_trust(c->rows.v[i]) >= ROW_DISTURBED)
            return true;
    return false;
}

static uint64_t limit_of(const struct chooser *c, const struct row *r)
{
    return c->params->mem_limit     ? c->params->mem_limit
           : r->mem_limit_bytes > 0 ? (uint64_t)r->mem_limit_bytes
                                    : 0;
}

static enum reason judge(const struct chooser *c, size_t i)
{
    const struct row *r = c->rows.v[i];
    const uint64_t limit = limit_of(c, r);

    if (c->params->model && strcmp(c->params->model, r->model))
        return OTHER_MODEL;
    if (strcmp(r->kind, "decode"))
        return OTHER_KIND;
    if (r->ctx < c->ctx)
        return TOO_SHALLOW;
    if (has_nearer(c, i))
        return DEEPER;
    if (row_trust(r) < ROW_DISTURBED)
        return UNFINISHED;
    if (limit && r->mem_peak_bytes > 0 && (uint64_t)r->mem_peak_bytes > limit)
        return TOO_LARGE;
    if (c->params->max_threads > 0 && r->n_threads > c->params->max_threads)
        return TOO_MANY_THREADS;
    if (low(r) < c->params->min_tps)
        return TOO_SLOW;
    if (c->params->max_kl > 0 && !isfinite(r->kl_mean))
        return UNKNOWN_QUALITY;
    if (r->kl_mean > c->max_kl) /* not of a NaN */
        return TOO_LOSSY;
    if (row_above_roof(r))
        return ABOVE_ROOF;
    return row_trust(r) == ROW_DISTURBED ? DISTURBED : QUALIFIES;
}

static bool qualifies(const struct chooser *c, size_t i)
{
    return c->why[i] == QUALIFIES || (c->use_disturbed && c->why[i] == DISTURBED);
}

/* ---- choosing --------------------------------------------------------------- */

static bool overlaps(const struct row *a, const struct row *b)
{
    return high(a) >= low(b) && high(b) >= low(a);
}

/* The fastest that qualifies, is not `but`, and equals `equal_to` (NULL: any). */
static const struct row *fastest(const struct chooser *c, const struct row *but,
                                 const struct row *equal_to)
{
    const struct row *best = NULL;

    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (qualifies(c, i) && r != but && (!equal_to || overlaps(r, equal_to)) &&
            (!best || low(r) > low(best)))
            best = r;
    }
    return best;
}

/* Both known, against the same reference, and not the same. */
static bool keeps_more(const struct row *a, const struct row *b)
{
    return isfinite(a->kl_mean) && isfinite(b->kl_mean) &&
           !strcmp(a->reference, b->reference) && a->kl_mean < b->kl_mean;
}

/* Among equals: the less divergence, else the larger file of the model, fewer threads,
 * the faster one. */
static bool preferred(const struct row *a, const struct row *b)
{
    if (keeps_more(a, b) || keeps_more(b, a))
        return keeps_more(a, b);
    if (a->file_bytes != b->file_bytes)
        return a->file_bytes > b->file_bytes;
    if (a->n_threads != b->n_threads)
        return a->n_threads < b->n_threads;
    return low(a) > low(b);
}

static const struct row *best_of_equals(const struct chooser *c, const struct row *top,
                                        int *n_equals)
{
    const struct row *best = top;

    *n_equals = 0;
    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (!qualifies(c, i) || !overlaps(r, top))
            continue;
        ++*n_equals;
        if (preferred(r, best))
            best = r;
    }
    return best;
}

/* ---- saying why ------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void append(char *buf, size_t cap,
                                                         const char *fmt, ...)
{
    const size_t used = strlen(buf);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf + used, cap - used, fmt, ap);
    va_end(ap);
}

static void name_of(const struct chooser *c, const struct row *r, char *buf, size_t cap)
{
    report_setting_name(&c->rows, r, buf, cap);
    append(buf, cap, " with %lld thread%s", (long long)r->n_threads,
           r->n_threads == 1 ? "" : "s");
}

static void say_speed(const struct chooser *c, const struct row *r, char *why,
                      size_t cap)
{
    const uint64_t limit = limit_of(c, r);
    char name[REPORT_NAME_MAX + 32], peak[32], most[32];

    const int digits = report_decimals(r->tok_per_s);

    name_of(c, r, name, sizeof name);
    append(why, cap,
           "%s decodes %.*f tok/s at context depth %lld (95 %% interval %.*f to %.*f)",
           name, digits, r->tok_per_s, (long long)r->ctx, digits, low(r), digits,
           high(r));
    if (r->mbu > 0)
        append(why, cap, ", %.0f %% of its roof", 100 * r->mbu);
    if (r->mem_peak_bytes > 0)
        append(why, cap, "; its memory peaked at %s",
               format_bytes(peak, sizeof peak, (uint64_t)r->mem_peak_bytes));
    if (r->mem_peak_bytes > 0 && limit)
        append(why, cap, ", within the limit of %s",
               format_bytes(most, sizeof most, limit));
    append(why, cap, ".");
    if (isfinite(r->kl_mean))
        append(why, cap, " Quality: KL %.4f from %.60s, the same top token in %.1f %%.",
               r->kl_mean, r->reference, r->top1_pct);
}

static void say_tie(const struct chooser *c, const struct row *best,
                    const struct row *top, int n_equals, char *why, size_t cap)
{
    char name[REPORT_NAME_MAX + 32];

    append(why, cap, " Tie: its interval overlaps with ");
    if (n_equals == 2 || best != top) {
        const struct row *other = best == top ? fastest(c, best, top) : top;

        name_of(c, other, name, sizeof name);
        append(why, cap, "%s (%.*f tok/s)", name, report_decimals(other->tok_per_s),
               other->tok_per_s);
    } else {
        append(why, cap, "%d others", n_equals - 1);
    }
    append(why, cap, ", so no difference in speed was shown");
    if (keeps_more(best, top))
        append(why, cap, "; the one that diverges less was preferred.");
    else if (best->file_bytes > top->file_bytes)
        append(why, cap, "; the larger quantisation was preferred.");
    else if (best->n_threads < top->n_threads)
        append(why, cap, "; fewer threads were preferred.");
    else
        append(why, cap, ".");
}

static void say_why(struct recommendation *rec, const struct chooser *c,
                    const struct row *best, const struct row *top, int n_equals)
{
    char name[REPORT_NAME_MAX + 32];
    char *why = rec->why;
    const size_t cap = sizeof rec->why;

    why[0] = '\0';
    say_speed(c, best, why, cap);
    if (row_trust(best) == ROW_DISTURBED)
        append(why, cap, " Careful: %s (%s); measure again on a quiet machine.",
               c->n[QUALIFIES]
                   ? "it is the fastest although it was disturbed"
                   : "every point that qualifies was disturbed, this one, too",
               !strncmp(best->validity, "disturbed: ", 11) ? best->validity + 11
                                                           : "unknown");
    if (best->kl_mean > RECOMMEND_MAX_KL && !(c->params->max_kl > 0))
        append(why, cap,
               " Careful: it diverges by more than %g, as everything else does that "
               "qualifies.",
               RECOMMEND_MAX_KL);
    if (rec->tie) {
        say_tie(c, best, top, n_equals, why, cap);
    } else if (rec->has_runner_up) {
        name_of(c, &rec->runner_up, name, sizeof name);
        append(why, cap, " %s is %.0f %% slower", name,
               100 * (1 - rec->runner_up.tok_per_s / best->tok_per_s));
        if (isfinite(rec->runner_up.kl_mean))
            append(why, cap, " (KL %.4f)", rec->runner_up.kl_mean);
        append(why, cap, ".");
    }
    report_say_speculation(&c->rows, best, why, cap);
}

static void say_excluded(struct recommendation *rec, const struct chooser *c)
{
    char *text = rec->excluded;

    text[0] = '\0';
    rec->n_excluded = 0;
    for (int i = 0; i < N_REASONS; i++) {
        if (!c->n[i] || !reason_text[i] || (i == DISTURBED && c->use_disturbed))
            continue;
        append(text, sizeof rec->excluded, "%s%d %s", text[0] ? ", " : "", c->n[i],
               reason_text[i]);
        rec->n_excluded += c->n[i];
    }
}

/* ---- nobody qualifies ------------------------------------------------------- */

/* Of two points that fail the same check, the one that fails it by less. */
static bool closer(enum reason why, const struct row *a, const struct row *b)
{
    if (why == TOO_SHALLOW && a->ctx != b->ctx)
        return a->ctx > b->ctx;
    if (why == TOO_LARGE && a->mem_peak_bytes != b->mem_peak_bytes)
        return a->mem_peak_bytes < b->mem_peak_bytes;
    if (why == TOO_MANY_THREADS && a->n_threads != b->n_threads)
        return a->n_threads < b->n_threads;
    if (why == TOO_LOSSY && a->kl_mean != b->kl_mean)
        return a->kl_mean < b->kl_mean;
    return low(a) > low(b) || !(low(b) > 0);
}

static const struct row *closest(const struct chooser *c, enum reason *why)
{
    const struct row *best = NULL;

    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (c->why[i] <= OTHER_KIND || c->why[i] == DEEPER)
            continue;
        if (!best || c->why[i] > *why || (c->why[i] == *why && closer(*why, r, best))) {
            best = r;
            *why = c->why[i];
        }
    }
    return best;
}

static enum status nothing_qualifies(const struct chooser *c, struct err *err)
{
    char name[REPORT_NAME_MAX + 32], text[160] = "", peak[32], limit[32];
    enum reason why = OTHER_MODEL;
    const struct row *r = closest(c, &why);

    if (!r)
        return err_set(err, ST_CHECK,
                       "no decode point%s%.60s was measured, so nothing can be "
                       "recommended; see `bench sweep --help`",
                       c->params->model ? " of " : "",
                       c->params->model ? c->params->model : "");
    name_of(c, r, name, sizeof name);
    if (why == TOO_SHALLOW)
        append(text, sizeof text, "measured at depth %lld and not at %lld or more",
               (long long)r->ctx, (long long)c->ctx);
    else if (why == UNFINISHED)
        append(text, sizeof text, "it ended as %s at depth %lld",
               r->status[0] ? r->status : "unknown", (long long)r->ctx);
    else if (why == TOO_LARGE)
        append(text, sizeof text, "it needs %s of %s",
               format_bytes(peak, sizeof peak, (uint64_t)r->mem_peak_bytes),
               format_bytes(limit, sizeof limit, limit_of(c, r)));
    else if (why == ABOVE_ROOF)
        append(text, sizeof text, "%.0f %% of its roof, so one of the two is wrong",
               100 * r->mbu);
    else if (why == TOO_LOSSY)
        append(text, sizeof text, "it diverges by %.4f, and %g is the most", r->kl_mean,
               c->max_kl);
    else if (why == UNKNOWN_QUALITY)
        append(text, sizeof text,
               "its divergence is not known; `bench quality -o DIR` measures it");
    else if (why == TOO_MANY_THREADS)
        append(text, sizeof text, "more than the %d this machine allows",
               c->params->max_threads);
    else
        append(text, sizeof text,
               "%.*f tok/s at depth %lld (shown: at least %.*f), below %g",
               report_decimals(r->tok_per_s), r->tok_per_s, (long long)r->ctx,
               report_decimals(low(r)), low(r), c->params->min_tps);
    return err_set(err, ST_CHECK,
                   "no measured setting qualifies; the closest is %.150s: %s", name,
                   text);
}

/* ----------------------------------------------------------------------------- */

static void judge_all(struct chooser *c)
{
    memset(c->n, 0, sizeof c->n);
    for (size_t i = 0; i < c->rows.n; i++) {
        c->why[i] = judge(c, i);
        c->n[c->why[i]]++;
    }
}

static enum status choose(struct recommendation *rec, struct chooser *c,
                          struct err *err)
{
    c->ctx = wanted_depth(c);
    c->max_kl = c->params->max_kl > 0 ? c->params->max_kl : RECOMMEND_MAX_KL;
    judge_all(c);
    if (!c->n[QUALIFIES] && !c->n[DISTURBED] && !(c->params->max_kl > 0)) {
        c->max_kl = INFINITY;
        judge_all(c);
    }
    if (!c->n[QUALIFIES] && !c->n[DISTURBED])
        return nothing_qualifies(c, err);
    const struct row *undisturbed = fastest(c, NULL, NULL);
    c->use_disturbed = true;
    const struct row *top = fastest(c, NULL, NULL);
    if (undisturbed && low(top) <= high(undisturbed)) {
        c->use_disturbed = false;
        top = undisturbed;
    }

    int n_equals;
    const struct row *best = best_of_equals(c, top, &n_equals);
    const struct row *second = fastest(c, best, NULL);

    memset(rec, 0, sizeof *rec);
    rec->best = *best;
    rec->tie = n_equals > 1;
    rec->has_runner_up = second != NULL;
    if (second)
        rec->runner_up = *second;
    say_why(rec, c, best, top, n_equals);
    say_excluded(rec, c);
    return ST_OK;
}

enum status recommend(struct recommendation *rec, const struct row *rows, size_t n_rows,
                      const struct recommend_params *params, struct err *err)
{
    struct chooser c = {.params = params};
    enum status st = report_rows_pick(&c.rows, rows, n_rows, err);

    if (st)
        return st;
    c.why = calloc(c.rows.n + 1, sizeof *c.why);
    st = c.why ? choose(rec, &c, err)
               : err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_rows);
    free(c.why);
    report_rows_free(&c.rows);
    return st;
}
