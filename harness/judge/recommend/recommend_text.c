/* SPDX-License-Identifier: MIT
 *
 * recommend_text.c - the evidence of a recommendation, in words
 */
#include "harness/judge/recommend/recommend_choice.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"

#define MAX_PRICE_PCT 999.0 /* to be printed */

static const char *const reason_text[N_REASONS] = {
    [TOO_SHALLOW] = "at less context",
    [FAILED] = "failed",
    [NO_ROOM] = "that did not fit the memory",
    [UNFINISHED] = "not finished in time",
    [TOO_LARGE] = "over the memory limit",
    [TOO_MANY_THREADS] = "with more threads than CPUs",
    [TOO_SLOW] = "too slow",
    [TOO_LATE] = "whose prompt takes too long or was not measured",
    [UNKNOWN_QUALITY] = "without a known divergence",
    [TOO_LOSSY] = "diverging too much",
    [FEW_BITS] = "of few bits whose quality is not known",
    [ABOVE_ROOF] = "above the roof, so in doubt",
    [DISTURBED] = "disturbed",
};

struct recommend_name recommend_name(const struct chooser *c, const struct row *r)
{
    struct recommend_name name;

    report_setting_name(&c->rows, r, name.text, sizeof name.text);
    text_append(name.text, sizeof name.text, " with %lld thread%s",
                (long long)r->n_threads, plural(r->n_threads, "s"));
    return name;
}

static const char *disturbed_by(const struct row *r)
{
    return !strncmp(r->validity, "disturbed: ", 11) ? r->validity + 11 : "unknown";
}

/* ---- the choice ------------------------------------------------------------------ */

static void write_memory(const struct chooser *c, const struct row *r, char *why,
                         size_t cap)
{
    const uint64_t limit = recommend_limit(c, r);
    const uint64_t needed = (uint64_t)row_needed_bytes(r);

    if (!needed)
        return;
    if (r->mem_resident_bytes > 0)
        text_append(why, cap, "; it needs %s of memory", bytes_text(needed).text);
    else
        text_append(why, cap, "; its memory peaked at %s, page cache included",
                    bytes_text(needed).text);
    if (limit)
        text_append(why, cap, ", %s the limit of %s%s",
                    needed <= limit ? "within" : "more than", bytes_text(limit).text,
                    needed <= limit                ? ""
                    : r->limiter == LIMITER_PAGING ? ", so it pages from disk"
                                                   : ", so it may page from disk");
}

static void write_speed(const struct chooser *c, char *why, size_t cap)
{
    const struct row *r = c->rows.v[c->best];
    const struct speed *s = &c->speed[c->best];
    const int digits = report_decimals(s->median);

    if (s->from_ctx >= 0)
        text_append(
            why, cap,
            "%s decodes about %.*f tok/s at context depth %lld, estimated from depth "
            "%lld (95 %% interval %.*f to %.*f)",
            recommend_name(c, r).text, digits, s->median, (long long)r->ctx,
            (long long)s->from_ctx, digits, speed_lo(s), digits, speed_hi(s));
    else if (r->tok_per_s_lo > 0 && r->tok_per_s_hi > 0)
        text_append(
            why, cap,
            "%s decodes %.*f tok/s at context depth %lld (95 %% interval %.*f to %.*f)",
            recommend_name(c, r).text, digits, s->median, (long long)r->ctx, digits,
            row_lo(r), digits, row_hi(r));
    else
        text_append(why, cap,
                    "%s decodes %.*f tok/s at context depth %lld (no interval)",
                    recommend_name(c, r).text, digits, s->median, (long long)r->ctx);
    if (r->mbu > 0 && s->from_ctx < 0)
        text_append(why, cap, ", %.0f %% of its roof", 100 * r->mbu);
    write_memory(c, r, why, cap);
    text_append(why, cap, ".");
    if (isfinite(r->kl_mean))
        text_append(why, cap,
                    " Quality: KL %.4f from %.60s, the same top token in %.1f %%.",
                    r->kl_mean, r->reference, r->top1_pct);
}

/* Whether the lower end of the choice's interval is above the upper end of every other
 * one. */
static bool shown_fastest(const struct chooser *c)
{
    for (size_t i = 0; i < c->rows.n; i++)
        if (i != c->best && is_candidate(c, i) &&
            speed_hi(&c->speed[i]) >= speed_lo(&c->speed[c->best]))
            return false;
    return true;
}

static void write_doubts(const struct chooser *c, char *why, size_t cap)
{
    const struct row *r = c->rows.v[c->best];

    if (c->speed[c->best].from_ctx >= 0)
        text_append(
            why, cap,
            " Careful: its row at depth %lld was disturbed (%s) and shows only %s "
            "tok/s; measure again on a quiet machine.",
            (long long)r->ctx, disturbed_by(r), report_figure(r->tok_per_s).text);
    else if (row_trust(r) == ROW_DISTURBED)
        text_append(
            why, cap, " Careful: %s (%s); measure again on a quiet machine.",
            !c->n[QUALIFIES] ? "every point that qualifies was disturbed, this one, too"
            : shown_fastest(c) ? "it is the fastest although it was disturbed"
                               : "it was disturbed, and undisturbed it may be faster",
            disturbed_by(r));
    if (r->kl_mean > RECOMMEND_MAX_KL && !(c->params->max_kl > 0))
        text_append(why, cap,
                    " Careful: it diverges by more than %g, as does everything else "
                    "that qualifies.",
                    RECOMMEND_MAX_KL);
}

/* ---- the others ------------------------------------------------------------------ */

/* What was given up for quality. */
static void write_replaced(const struct chooser *c, char *why, size_t cap)
{
    const struct row *r = c->rows.v[c->replaced], *best = c->rows.v[c->best];
    const double more = c->speed[c->replaced].median / c->speed[c->best].median - 1;
    const double price = 100 * (quality_price(c, r->kl_mean, best->kl_mean) - 1);

    text_append(why, cap, " %s is ", recommend_name(c, r).text);
    if (more >= 0.005)
        text_append(why, cap, "%.0f %% faster", 100 * more);
    else
        text_append(why, cap, "about as fast");
    if (has_floor(c)) {
        text_append(why, cap, ", but %s, and both reach --min-tps.",
                    quality_is_known(c, r) && quality_is_known(c, best)
                        ? "diverges more"
                        : "is of a type that keeps less of the model");
        return;
    }
    if (quality_is_by_type(c)) {
        text_append(why, cap,
                    ", but of a type that keeps less of the model: without a measured "
                    "quality the better type may cost %g %% of the speed.",
                    100 * RECOMMEND_TYPE_SHARE);
        return;
    }
    text_append(why, cap,
                ", but diverges by %.4f instead of %.4f, which must be worth %s%.0f %% "
                "(%g %% for each tenth of the limit of %g).",
                r->kl_mean, best->kl_mean, price < MAX_PRICE_PCT ? "" : "more than ",
                fmin(price, MAX_PRICE_PCT), 100 * RECOMMEND_KL_PRICE,
                isfinite(c->max_kl) ? c->max_kl : RECOMMEND_MAX_KL);
}

/* Among the settings equal to the choice the top where it is another, else the next. */
static size_t best_equal(const struct chooser *c)
{
    size_t other = NO_ROW;

    if (c->best != c->top)
        return c->top;
    for (size_t i = 0; i < c->rows.n; i++)
        if (i != c->best && recommend_is_equal(c, i) &&
            (other == NO_ROW || c->speed[i].regret < c->speed[other].regret))
            other = i;
    return other;
}

static void write_tie(const struct chooser *c, char *why, size_t cap)
{
    const struct row *best = c->rows.v[c->best], *top = c->rows.v[c->top];
    const double limit_pct = 100 * RECOMMEND_MAX_REGRET;

    if (c->n_equals == 2 || best != top) {
        const size_t other = best_equal(c);

        text_append(why, cap, " Tie: %s (%s%s tok/s) is within %g %%",
                    recommend_name(c, c->rows.v[other]).text,
                    c->speed[other].from_ctx >= 0 ? "about " : "",
                    report_figure(c->speed[other].median).text, limit_pct);
    } else {
        text_append(why, cap, " Tie: %d others are within %g %%", c->n_equals - 1,
                    limit_pct);
    }
    if (best == top) {
        text_append(why, cap, ".");
        return;
    }
    text_append(
        why, cap,
        "; %s preferred, which costs %.1f %% of the speed on average (the limit "
        "is %g %%).",
        quality_is_known(c, best) && quality_is_known(c, top) &&
                best->kl_mean < top->kl_mean
            ? "the one that diverges less was"
        : best->file_bytes > top->file_bytes ? "the larger quantisation was"
        : quality_compare(c, best, top) < 0  ? "the better type was"
        : best->n_threads < top->n_threads   ? "fewer threads were"
                                             : "it was",
        100 * c->speed[c->best].regret, limit_pct);
}

static void write_runner_up(const struct chooser *c, char *why, size_t cap)
{
    const struct row *r = c->rows.v[c->runner_up];
    const struct speed *s = &c->speed[c->runner_up];
    const double share = s->median / c->speed[c->best].median;
    const int digits = report_decimals(s->median);

    text_append(why, cap, " %s ", recommend_name(c, r).text);
    if (share <= 1)
        text_append(why, cap, "is %.0f %% slower", 100 * (1 - share));
    else if (c->speed[c->runner_up].out)
        text_append(why, cap, "is %.0f %% faster", 100 * (share - 1));
    else
        text_append(why, cap,
                    "has a median %.0f %% higher, but may be slower (95 %% interval "
                    "%.*f to %.*f)",
                    100 * (share - 1), digits, speed_lo(s), digits, speed_hi(s));
    if (isfinite(r->kl_mean))
        text_append(why, cap, " (KL %.4f)", r->kl_mean);
    if (s->from_ctx >= 0)
        text_append(why, cap, ", estimated from depth %lld, as its row was disturbed",
                    (long long)s->from_ctx);
    else if (row_trust(r) == ROW_DISTURBED)
        text_append(why, cap, ", but was disturbed");
    text_append(why, cap, ".");
}

static void write_excluded(struct recommendation *rec, const struct chooser *c)
{
    char *text = rec->excluded;

    for (int i = 0; i < N_REASONS; i++) {
        /* Where the choice itself is known from below only, all such took part. */
        if (!c->n[i] || !reason_text[i] ||
            (i == DISTURBED && c->why[c->best] == DISTURBED))
            continue;
        text_append(text, sizeof rec->excluded, "%s%d %s", text[0] ? ", " : "", c->n[i],
                    reason_text[i]);
        rec->n_excluded += c->n[i];
    }
}

void recommend_write(struct recommendation *rec, const struct chooser *c)
{
    char *why = rec->why;
    const size_t cap = sizeof rec->why;

    why[0] = rec->excluded[0] = '\0';
    rec->n_excluded = 0;
    write_speed(c, why, cap);
    write_doubts(c, why, cap);
    if (rec->tie)
        write_tie(c, why, cap);
    if (c->replaced != NO_ROW)
        write_replaced(c, why, cap);
    if (rec->has_runner_up && !recommend_is_equal(c, c->runner_up) &&
        c->runner_up != c->replaced)
        write_runner_up(c, why, cap);
    recommend_add_speculation(&c->rows, c->rows.v[c->best], why, cap);
    write_excluded(rec, c);
}

/* ---- no point qualifies ---------------------------------------------------------- */

/* Lower end of the interval, or of what a row without one is known to. */
static double lowest_speed(const struct row *r)
{
    const struct speed s = speed_measured(r);

    return speed_lo(&s);
}

/* Whether a is closer to passing the check that both fail. */
static bool closer(enum reason why, const struct row *a, const struct row *b)
{
    if (why == TOO_SHALLOW && row_context(a) != row_context(b))
        return row_context(a) > row_context(b);
    if (why == TOO_LARGE && memory_min_limit(a) != memory_min_limit(b))
        return memory_min_limit(a) < memory_min_limit(b);
    if (why == TOO_MANY_THREADS && a->n_threads != b->n_threads)
        return a->n_threads < b->n_threads;
    if (why == TOO_LOSSY && a->kl_mean != b->kl_mean)
        return a->kl_mean < b->kl_mean;
    return row_lo(a) > row_lo(b) || !(row_lo(b) > 0);
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

static void write_late(const struct chooser *c, char *text, size_t cap)
{
    const struct recommend_prompt *p = &c->earliest;

    if (!p->n_prompt)
        text_append(text, cap, "no prefill of it was measured");
    else
        text_append(text, cap,
                    "a prompt of %lld tokens takes %s s with %lld thread%s (shown: at "
                    "most %s), more than %g",
                    (long long)p->n_prompt, report_figure(p->warm_s).text,
                    (long long)p->n_threads, plural(p->n_threads, "s"),
                    report_figure(p->warm_max_s).text, c->params->max_ttft_s);
}

/* What was charged is the most that it may need. */
static void write_large(const struct chooser *c, const struct row *r, char *text,
                        size_t cap)
{
    const int64_t least = memory_min_limit(r);
    const bool charged = least == r->mem_peak_bytes && !(r->mem_resident_bytes > 0);

    text_append(text, cap, "it needs %s%s of %s%s", charged ? "up to " : "",
                bytes_text((uint64_t)least).text,
                bytes_text(recommend_limit(c, r)).text,
                charged ? " (as charged, page cache included)" : "");
}

/* Whether several sequences of the model were decoded, or one while a prompt was read.
 */
static bool decoded_together(const struct chooser *c)
{
    for (size_t i = 0; i < c->rows.n; i++)
        if (c->rows.v[i]->kind == POINT_DECODE && recommend_is_model(c, c->rows.v[i]))
            return true;
    return false;
}

enum status recommend_write_nothing(const struct chooser *c, struct err *err)
{
    char name[REPORT_NAME_MAX + 32], text[160] = "";
    enum reason why = OTHER_MODEL;
    const char *const model = c->params->model ? c->params->model : "";
    const struct row *r = closest(c, &why);

    if (!r)
        return err_set(err, ST_CHECK,
                       "no decode point%s%.60s %s, so nothing can be recommended; %s",
                       *model ? " of " : "", model,
                       decoded_together(c) ? "is of one sequence alone"
                                           : "was measured",
                       decoded_together(c) ? "measure one, too: --sequences 1"
                                           : "see `bench sweep --help`");
    if (why == TOO_LATE) /* of a setting, whatever its threads for decode */
        report_setting_name(&c->rows, c->rows.v[c->earliest_row], name, sizeof name);
    else
        memcpy(name, recommend_name(c, r).text, sizeof name);
    if (why == TOO_SHALLOW && r->model_ctx > 0 && r->model_ctx < c->ctx &&
        !(r->kv_window > 0))
        text_append(text, sizeof text,
                    "the model was made for contexts of %lld tokens, and not of %lld",
                    (long long)r->model_ctx, (long long)c->ctx);
    else if (why == TOO_SHALLOW)
        text_append(text, sizeof text, "measured at depth %lld and not at %lld or more",
                    (long long)r->ctx, (long long)c->ctx);
    else if (why >= FAILED && why <= UNFINISHED)
        text_append(text, sizeof text, "it ended as %s at depth %lld%s%.90s",
                    r->status == FIELD_NO_ENUM ? "unknown" : row_status_text(r),
                    (long long)r->ctx, *r->detail ? ": " : "", r->detail);
    else if (why == TOO_LARGE)
        write_large(c, r, text, sizeof text);
    else if (why == TOO_LATE)
        write_late(c, text, sizeof text);
    else if (why == ABOVE_ROOF && isnan(r->mbu))
        text_append(text, sizeof text,
                    "it is faster than its roof, so one of the two is wrong");
    else if (why == ABOVE_ROOF)
        text_append(text, sizeof text,
                    "%.0f %% of its roof, so one of the two is wrong", 100 * r->mbu);
    else if (why == TOO_LOSSY)
        text_append(text, sizeof text, "it diverges by %.4f, the maximum is %g",
                    r->kl_mean, c->max_kl);
    else if (why == UNKNOWN_QUALITY)
        text_append(text, sizeof text,
                    "its divergence is not known; `bench quality -o DIR` measures it");
    else if (why == TOO_MANY_THREADS)
        text_append(text, sizeof text, "more than the %d this machine allows",
                    c->params->max_threads);
    else
        text_append(text, sizeof text,
                    "%s tok/s at depth %lld (shown: at least %s), below %g",
                    report_figure(r->tok_per_s).text, (long long)r->ctx,
                    report_figure(lowest_speed(r)).text, c->params->min_tps);
    return err_set(err, ST_CHECK,
                   "no measured setting qualifies; the closest is %.150s: %s", name,
                   text);
}
