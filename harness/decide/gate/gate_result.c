/* SPDX-License-Identifier: MIT
 *
 * gate_result.c - a gate's verdict in a sentence, and the metric that decides it
 */
#include "harness/decide/gate/gate_result.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/decide/gate/gate_report.h"

const char *const gate_end_words[] = {"clear", "budget", "looks", "interrupted"};

const char *gate_verdict_word(enum gate_verdict verdict)
{
    static const char *const words[] = {"inconclusive", "pass", "fail", "inconclusive"};

    return words[verdict];
}

/* How much a metric decides the verdict: a failed one by its loss, others by the
 * probability that is still too large; below 0: not at all. */
static double weight(const struct gate_metric *m, enum gate_verdict verdict)
{
    const struct gate_effect *e = &m->effect;

    if (verdict == GATE_FAIL)
        return m->verdict == GATE_FAIL ? 1 / (1 + e->ratio) : -1;
    if (verdict == GATE_UNCLEAR && m->verdict == GATE_PASS)
        return 0;
    if (!isfinite(e->ratio))
        return 2; /* nothing at all is known of it */
    return verdict == GATE_PASS ? e->p_pass : fmin(e->p_fail, e->p_pass);
}

const struct gate_metric *gate_worst(const struct gate_result *r)
{
    const enum gate_verdict verdict =
        r->verdict == GATE_OPEN ? GATE_UNCLEAR : r->verdict;
    const struct gate_metric *worst = NULL;

    for (size_t i = 0; i < r->n_metrics; i++)
        if (!worst || weight(&r->metric[i], verdict) > weight(worst, verdict))
            worst = &r->metric[i];
    return worst;
}

static size_t n_others(const struct gate_result *r, enum gate_verdict verdict)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_metrics; i++)
        n += gate_metric_verdict(&r->metric[i]) == verdict;
    return n ? n - 1 : 0;
}

static void append_others(char *buf, size_t cap, size_t n, const char *what)
{
    if (n)
        text_append(buf, cap, " %zu more metric%s %s.", n, n == 1 ? "" : "s", what);
}

static void append_fail(char *buf, size_t cap, const struct gate_result *r,
                        const struct gate_metric *m)
{
    const char *a = r->side[0].commit, *b = r->side[1].commit;

    text_append(buf, cap, "B is worse in %s: %s, beyond the margin of %.3g %%.",
                m->name, gate_effect_text(m).text, 100 * m->margin);
    append_others(buf, cap, n_others(r, GATE_FAIL), "failed, too");
    if (r->injected > 0)
        return;
    if (a[0] && b[0] && strcmp(a, b) != 0)
        text_append(buf, cap, " Look at the changes from %s to %s.", a, b);
    else
        text_append(buf, cap, " Look at the changes between the two.");
}

static void append_pass(char *buf, size_t cap, const struct gate_result *r,
                        const struct gate_metric *m)
{
    char margin[48];
    bool alike = true;

    for (size_t i = 0; i < r->n_metrics; i++)
        alike = alike && r->metric[i].margin == m->margin;
    snprintf(margin, sizeof margin, alike ? "the margin of %.3g %%" : "its margin",
             100 * m->margin);
    text_append(
        buf, cap,
        "No metric regressed by more than %s; the closest of %zu metric%s is %s, %s.",
        margin, r->n_metrics, r->n_metrics == 1 ? "" : "s", m->name,
        gate_effect_text(m).text);
}

static void append_unclear(char *buf, size_t cap, const struct gate_result *r,
                           const struct gate_metric *m)
{
    if (r->end == GATE_END_INTERRUPTED)
        text_append(buf, cap, "Interrupted after %zu round%s, so there is no verdict; ",
                    r->n_rounds, plural(r->n_rounds, "s"));
    else if (r->end == GATE_END_BUDGET)
        text_append(buf, cap, "Undecided within %s; ", duration_text(r->budget_s).text);
    else if (r->mode == GATE_MODE_BASELINE)
        text_append(buf, cap, "Undecided after %zu new run%s; ", r->n_launches,
                    r->n_launches == 1 ? "" : "s");
    else
        text_append(buf, cap, "Undecided after %zu launch%s; ", r->n_launches,
                    plural(r->n_launches, "es"));
    text_append(buf, cap, "%s: %s (failing / passing), margin %.3g %%.", m->name,
                gate_effect_text(m).text, 100 * m->margin);
    append_others(buf, cap, n_others(r, GATE_UNCLEAR),
                  n_others(r, GATE_UNCLEAR) == 1 ? "is undecided, too"
                                                 : "are undecided, too");
    if (r->end == GATE_END_INTERRUPTED)
        text_append(buf, cap, " Run it again to its end.");
    else if (*r->advice)
        text_append(buf, cap, " %s", r->advice);
    else if (r->end == GATE_END_BUDGET)
        text_append(buf, cap,
                    " Give it more time with --budget, or a quieter machine.");
    else
        text_append(
            buf, cap,
            " The change is about as large as the margin, or the machine too noisy: "
            "choose another --margin, or a quieter machine.");
}

/* The divergence of B's answers, whatever the speeds are. */
static void append_divergence(char *buf, size_t cap, const struct gate_result *r)
{
    const struct gate_divergence *d = &r->divergence;

    text_append(buf, cap, "%s",
                d->verdict == GATE_FAIL ? "B's answers diverge too far from A's: "
                : d->verdict == GATE_PASS
                    ? "B's answers are within the bound: "
                    : "How far B's answers diverge is undecided: ");
    text_append(
        buf, cap,
        "KL %.4g (+-%.2g) nats in %zu tokens, the bound is %.4g; %.1f %% have the "
        "same first choice.%s ",
        d->kl, 1.96 * d->se, d->n_tokens, d->max, d->top1_pct,
        d->verdict == GATE_UNCLEAR ? " `bench quality` takes more text." : "");
}

enum status gate_check_effect(const struct gate_metric *m, struct err *err)
{
    if (m->less_is_better || !(m->effect.ratio > GATE_MAX_SPEEDUP))
        return ST_OK;
    return err_set(err, ST_INPUT,
                   "%s: B's %s is %.0f times A's %s, which no change of a program "
                   "does: check units, and what a template captures; nothing is judged",
                   m->name, gate_value_text(m->b, m->unit).text, m->effect.ratio,
                   gate_value_text(m->a, m->unit).text);
}

const char *gate_sentence(const struct gate_result *r, char *buf, size_t cap)
{
    const struct gate_metric *m = gate_worst(r);

    buf[0] = '\0';
    if (r->divergence.max > 0)
        append_divergence(buf, cap, r);
    /* a failure of the answers alone */
    if (m && r->verdict == GATE_FAIL && m->verdict != GATE_FAIL)
        text_append(buf, cap, "No metric failed.");
    else if (!m)
        text_append(buf, cap, "Nothing was measured, so there is no verdict.%s",
                    r->end == GATE_END_INTERRUPTED
                        ? " It was interrupted: run it again."
                    : r->end == GATE_END_BUDGET ? " Give it more time with --budget."
                                                : "");
    else if (r->verdict == GATE_FAIL)
        append_fail(buf, cap, r, m);
    else if (r->verdict == GATE_PASS)
        append_pass(buf, cap, r, m);
    else
        append_unclear(buf, cap, r, m);
    if (r->injected > 0)
        text_append(buf, cap, " B was slowed by %.3g %% on purpose.",
                    100 * r->injected);
    return buf;
}
