/* SPDX-License-Identifier: MIT
 *
 * gate_text.c - effects, intervals and probabilities as texts, the same in all forms of
 * a report
 */
#include <math.h>

#include "harness/base/format.h"
#include "harness/decide/gate/gate_report.h"

#define NONE "\xe2\x80\x93" /* en dash */

/* Digits after the point of a change in percent. */
static int decimals(double percent)
{
    const double size = fabs(percent);

    return size < 0.995 ? 2 : size < 99.5 ? 1 : 0;
}

#define ADD(shown, ...) text_append((shown).text, sizeof(shown).text, __VA_ARGS__)

static void add_percent(struct gate_text *shown, double ratio)
{
    const double percent = 100 * (ratio - 1);

    if (fabs(percent) < 0.005)
        ADD(*shown, "0.00");
    else
        ADD(*shown, "%+.*f", decimals(percent), percent);
}

struct gate_text gate_change_text(double ratio)
{
    struct gate_text shown = {""};

    if (isfinite(ratio))
        add_percent(&shown, ratio);
    ADD(shown, isfinite(ratio) ? " %%" : NONE);
    return shown;
}

struct gate_text gate_interval_text(const struct gate_effect *e)
{
    struct gate_text shown = {""};

    if (!isfinite(e->lo) || !isfinite(e->hi))
        return shown;
    add_percent(&shown, e->lo);
    ADD(shown, " to ");
    add_percent(&shown, e->hi);
    ADD(shown, " %%");
    return shown;
}

struct gate_text gate_value_text(double value, const char *unit)
{
    const double size = fabs(value);
    char of[64]; /* a stored gate may be of somebody else */
    struct gate_text shown = {""};

    text_harmless(of, sizeof of, unit);
    if (!isfinite(value))
        ADD(shown, NONE);
    else if (size != 0 && size < 0.1)
        ADD(shown, "%.3g %s", value, of);
    else
        ADD(shown, "%.*f %s",
            size < 1     ? 4
            : size < 10  ? 3
            : size < 100 ? 2
            : size < 1e4 ? 1
                         : 0,
            value, of);
    return shown;
}

static void add_probability(struct gate_text *shown, double p)
{
    if (!isfinite(p))
        ADD(*shown, NONE);
    else if (p >= 0.0005)
        ADD(*shown, "%.*f", p >= 0.1 ? 2 : p >= 0.01 ? 3 : 4, p);
    else
        ADD(*shown, "%.1e", p);
}

struct gate_text gate_p_text(const struct gate_metric *m)
{
    const enum gate_verdict verdict = gate_metric_verdict(m);
    struct gate_text shown = {""};

    if (verdict != GATE_PASS)
        add_probability(&shown, m->effect.p_fail);
    if (verdict == GATE_UNCLEAR)
        ADD(shown, " / ");
    if (verdict != GATE_FAIL)
        add_probability(&shown, m->effect.p_pass);
    return shown;
}

struct gate_text gate_effect_text(const struct gate_metric *m)
{
    const struct gate_text interval = gate_interval_text(&m->effect);
    struct gate_text shown = gate_change_text(m->effect.ratio);

    if (*interval.text)
        ADD(shown, " (%s)", interval.text);
    ADD(shown, ", p = %s", gate_p_text(m).text);
    return shown;
}

enum gate_verdict gate_metric_verdict(const struct gate_metric *m)
{
    return m->verdict == GATE_OPEN ? GATE_UNCLEAR : m->verdict;
}

bool gate_stands_alone(const struct gate_result *r)
{
    const enum gate_verdict verdict =
        r->verdict == GATE_OPEN ? GATE_UNCLEAR : r->verdict;

    if (r->divergence.max > 0)
        return true; /* no metric shows it */
    for (size_t i = 0; i < r->n_metrics; i++)
        if (gate_metric_verdict(&r->metric[i]) == verdict)
            return false;
    return true;
}
