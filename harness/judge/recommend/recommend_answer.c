/* SPDX-License-Identifier: MIT
 *
 * recommend_answer.c - a recommendation in a few sentences
 */
#include "harness/judge/recommend/recommend_choice.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/rows/point/point_row.h"

/* "more than 99.9 %". */
static void write_percent(double p, char *buf, size_t cap)
{
    if (p >= 0.999)
        text_append(buf, cap, "more than 99.9 %%");
    else if (p < 0.001)
        text_append(buf, cap, "less than 0.1 %%");
    else
        text_append(buf, cap, "%.*f %%", p < 0.01 || p >= 0.99, 100 * p);
}

/* ---- speed ----------------------------------------------------------------------- */

static bool has_rivals(const struct chooser *c)
{
    int n = 0;

    for (size_t i = 0; i < c->rows.n && n < 2; i++)
        n += is_rival(c, i);
    return n > 1;
}

static void write_speed(const struct recommendation *rec, const struct chooser *c,
                        char *buf, size_t cap)
{
    const struct speed *s = &c->speed[c->best];

    text_append(buf, cap, "It decodes %s%s tok/s at context depth %lld.",
                c->why[c->best] == DISTURBED ? "at least "
                : s->from_ctx >= 0           ? "about "
                                             : "",
                report_figure(s->median).text, (long long)rec->best.ctx);
}

/* The best of another program at that depth with that quantisation, where a sweep
 * measured one; NULL: none. */
static const struct row *other_program(const struct chooser *c)
{
    const struct row *best = c->rows.v[c->best], *found = NULL;

    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (r->kind == POINT_DECODE && recommend_is_model(c, r) && *r->engine &&
            strcmp(r->engine, best->engine) != 0 && r->ctx == best->ctx &&
            !strcmp(r->quant, best->quant) && row_trust(r) == ROW_GOOD &&
            (!found || r->tok_per_s > found->tok_per_s))
            found = r;
    }
    return found;
}

/* Whose speed that is: what is deployed may be another program. */
static void write_program(const struct chooser *c, char *buf, size_t cap)
{
    const struct row *best = c->rows.v[c->best], *other = other_program(c);

    text_append(buf, cap, " That is the speed of %s",
                *best->engine ? best->engine : "slmbench's engine");
    if (other)
        text_append(buf, cap, "; %s decodes %s tok/s with %lld thread%s", other->engine,
                    report_figure(other->tok_per_s).text, (long long)other->n_threads,
                    plural(other->n_threads, "s"));
    else if (!*best->engine)
        text_append(buf, cap, "; `bench sweep --engine` measures llama.cpp and others");
    text_append(buf, cap, ".");
}

/* What it was chosen for. */
static void write_reason(const struct chooser *c, char *buf, size_t cap)
{
    const struct recommend_params *want = c->params;

    if (has_floor(c)) {
        text_append(buf, cap, " Of what");
        if (want->min_tps > 0)
            text_append(buf, cap, " reaches %g tok/s", want->min_tps);
        if (want->max_ttft_s > 0)
            text_append(buf, cap,
                        "%s begins to answer a prompt of %lld tokens within %g s",
                        want->min_tps > 0 ? " and" : "", (long long)c->n_prompt,
                        want->max_ttft_s);
        text_append(buf, cap, " it has the best quality %s.",
                    quality_is_known(c, c->rows.v[c->best])
                        ? "(the least divergence)"
                        : "(by the order of types)");
    } else if (c->replaced != NO_ROW) {
        text_append(buf, cap,
                    quality_is_by_type(c)
                        ? " A faster setting exists, but its type keeps less of a "
                          "model."
                        : " A faster setting exists, but its quality loss is too "
                          "large.");
    }
}

static void write_floor(const struct recommendation *rec, char *buf, size_t cap)
{
    if (!isfinite(rec->p_floor))
        return;
    text_append(buf, cap, " It does so with a probability of ");
    write_percent(rec->p_floor, buf, cap);
    text_append(buf, cap, ".");
}

static void write_probability(const struct recommendation *rec, const struct chooser *c,
                              char *buf, size_t cap)
{
    const struct speed *s = &c->speed[c->best];

    if (!has_rivals(c))
        return;
    if (isnan(rec->p_best)) {
        text_append(buf, cap,
                    " All points that qualify were disturbed, so which setting is the "
                    "fastest is not known: measure again on a quiet machine.");
        return;
    }
    text_append(buf, cap, " The probability that this setting is the fastest%s is ",
                has_floor(c) || c->replaced != NO_ROW ? " of its quality" : "");
    write_percent(s->p_best, buf, cap);
    if (c->n[DISTURBED] > (c->why[c->best] == DISTURBED))
        text_append(buf, cap, ", if no disturbed point is faster than it was measured");
    if (s->regret > RECOMMEND_MAX_REGRET)
        text_append(
            buf, cap,
            "; against the fastest it loses %.1f %% of the speed on average, the "
            "least of all, so measure longer to be sure",
            100 * s->regret);
    text_append(buf, cap, ".");
}

/* ---- prompt, memory, quality ----------------------------------------------------- */

static void write_prompt(const struct recommend_prompt *p, char *buf, size_t cap)
{
    if (!p->n_prompt)
        return;
    text_append(buf, cap, " A prompt of %lld tokens takes %s%s s until the first token",
                (long long)p->n_prompt, p->n_measured != p->n_prompt ? "about " : "",
                report_figure(p->warm_s).text);
    if (isfinite(p->cold_s))
        text_append(buf, cap, ", %s s with loading the model",
                    report_figure(p->cold_s).text);
    text_append(buf, cap, " (prefill with %lld thread%s: %s tok/s",
                (long long)p->n_threads, plural(p->n_threads, "s"),
                report_figure(p->tok_per_s).text);
    if (p->n_measured != p->n_prompt)
        text_append(buf, cap, ", %s from a prompt of %lld",
                    p->n_measured < p->n_prompt ? "extrapolated" : "estimated",
                    (long long)p->n_measured);
    text_append(buf, cap, "%s).",
                p->disturbed ? ", disturbed when measured, so it may be faster" : "");
}

static void write_memory(const struct recommendation *rec, char *buf, size_t cap)
{
    const struct recommend_memory *m = &rec->memory;

    if (m->left_bytes >= 0)
        text_append(buf, cap, " At this depth %s%s of %s of memory are left.",
                    m->is_lower_bound ? "at least " : "",
                    bytes_text((uint64_t)m->left_bytes).text,
                    bytes_text((uint64_t)m->limit_bytes).text);
    if (m->max_ctx > 0)
        text_append(buf, cap, " The largest context is %lld tokens, %s.",
                    (long long)m->max_ctx,
                    m->by_model ? "the most that the model was made for"
                                : "the most that fits the memory limit");
    if (m->max_ctx > 0 && rec->prompt.n_prompt > m->max_ctx)
        text_append(buf, cap, " A prompt of %lld tokens does not fit.",
                    (long long)rec->prompt.n_prompt);
}

static void write_quality(const struct chooser *c, char *buf, size_t cap)
{
    const struct row *r = c->rows.v[c->best];

    if (isfinite(r->kl_mean))
        return;
    if (point_row_is_synthetic(r))
        text_append(buf, cap,
                    " The weights are random, so nothing is known of quality: measure "
                    "that with a real model.");
    else
        text_append(
            buf, cap,
            " The quality of %.24s was not measured; `bench quality -o DIR` does "
            "that for a model with real weights.",
            r->quant[0] ? r->quant : "this file");
}

/* ---- steps ----------------------------------------------------------------------- */

static void write_divergence(const struct chooser *c, const struct row *r, char *buf,
                             size_t cap)
{
    const struct row *best = c->rows.v[c->best];

    if (isfinite(r->kl_mean))
        text_append(buf, cap, ", KL %.4f", r->kl_mean);
    if (quality_is_known(c, r) && quality_is_known(c, best))
        text_append(buf, cap, " instead of %.4f", best->kl_mean);
    else if (!isfinite(r->kl_mean))
        text_append(buf, cap, ", %s quality by type (not measured)",
                    quality_compare(c, r, best) < 0 ? "better" : "less");
}

static void write_step(struct recommend_step *s, const struct chooser *c)
{
    const double share = s->tok_per_s / c->speed[c->best].median;
    const size_t cap = sizeof s->text;

    s->text[0] = '\0';
    text_append(s->text, cap, "%s: %s%s tok/s, %.0f %% %s",
                recommend_name(c, &s->row).text, s->from_ctx >= 0 ? "about " : "",
                report_figure(s->tok_per_s).text, 100 * fabs(1 - share),
                share < 1 ? "slower" : "faster");
    write_divergence(c, &s->row, s->text, cap);
}

/* What was given up is as good a choice where its quality suffices. */
static void write_instead(struct recommendation *rec, const struct chooser *c)
{
    const struct row *r = c->rows.v[c->replaced];
    struct recommend_step s = {.row = *r,
                               .tok_per_s = c->speed[c->replaced].median,
                               .from_ctx = c->speed[c->replaced].from_ctx};

    write_step(&s, c);
    snprintf(rec->instead, sizeof rec->instead, "%s", s.text);
}

void recommend_write_answer(struct recommendation *rec, const struct chooser *c)
{
    char *buf = rec->answer;
    const size_t cap = sizeof rec->answer;

    buf[0] = '\0';
    write_speed(rec, c, buf, cap);
    write_program(c, buf, cap);
    write_reason(c, buf, cap);
    write_floor(rec, buf, cap);
    write_probability(rec, c, buf, cap);
    write_prompt(&rec->prompt, buf, cap);
    write_memory(rec, buf, cap);
    write_quality(c, buf, cap);
    for (int i = 0; i < rec->n_steps; i++)
        write_step(&rec->steps[i], c);
    rec->instead[0] = '\0';
    if (quality_is_by_type(c))
        write_instead(rec, c);
}
