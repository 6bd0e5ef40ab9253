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

static void percent_text(char *buf, size_t cap, double ratio)
{
    const double percent = 100 * (ratio - 1);

    if (fabs(percent) < 0.005)
        snprintf(buf, cap, "0.00");
    else
        snprintf(buf, cap, "%+.*f", decimals(percent), percent);
}

const char *gate_change_text(char *buf, size_t cap, double ratio)
{
    char text[32];

    if (isfinite(ratio))
        percent_text(text, sizeof text, ratio);
    snprintf(buf, cap, isfinite(ratio) ? "%s %%" : NONE, text);
    return buf;
}

const char *gate_interval_text(char *buf, size_t cap, const struct gate_effect *e)
{
    char lo[32], hi[32];

    buf[0] = '\0';
    if (!isfinite(e->lo) || !isfinite(e->hi))
        return buf;
    percent_text(lo, sizeof lo, e->lo);
    percent_text(hi, sizeof hi, e->hi);
    snprintf(buf, cap, "%s to %s %%", lo, hi);
    return buf;
}

const char *gate_value_text(char *buf, size_t cap, double value, const char *unit)
{
    const double size = fabs(value);
    char shown[64]; /* a stored gate may be of somebody else */

    text_harmless(shown, sizeof shown, unit);

    if (!isfinite(value))
        snprintf(buf, cap, NONE);
    else if (size != 0 && size < 0.1)
        snprintf(buf, cap, "%.3g %s", value, shown);
    else
        snprintf(buf, cap, "%.*f %s",
                 size < 1     ? 4
                 : size < 10  ? 3
                 : size < 100 ? 2
                 : size < 1e4 ? 1
                              : 0,
                 value, shown);
    return buf;
}

static void probability_text(char *buf, size_t cap, double p)
{
    if (!isfinite(p))
        snprintf(buf, cap, NONE);
    else if (p >= 0.0005)
        snprintf(buf, cap, "%.*f", p >= 0.1 ? 2 : p >= 0.01 ? 3 : 4, p);
    else
        snprintf(buf, cap, "%.1e", p);
}

const char *gate_p_text(char *buf, size_t cap, const struct gate_metric *m)
{
    const enum gate_verdict verdict = gate_metric_verdict(m);
    char fail[32], pass[32];

    probability_text(fail, sizeof fail, m->effect.p_fail);
    probability_text(pass, sizeof pass, m->effect.p_pass);
    if (verdict == GATE_UNCLEAR)
        snprintf(buf, cap, "%s / %s", fail, pass);
    else
        snprintf(buf, cap, "%s", verdict == GATE_FAIL ? fail : pass);
    return buf;
}

const char *gate_effect_text(char *buf, size_t cap, const struct gate_metric *m)
{
    char change[48], interval[80], p[80];

    gate_change_text(change, sizeof change, m->effect.ratio);
    gate_interval_text(interval, sizeof interval, &m->effect);
    gate_p_text(p, sizeof p, m);
    snprintf(buf, cap, "%s%s%s%s, p = %s", change, interval[0] ? " (" : "", interval,
             interval[0] ? ")" : "", p);
    return buf;
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
