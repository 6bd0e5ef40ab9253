/* SPDX-License-Identifier: MIT
 *
 * gate_annotations.c - a gate's result as workflow commands of GitHub Actions
 *
 *     ::error title=TITLE::MESSAGE
 *
 * Escapes as the runner undoes them: %25, %0D and %0A everywhere, %3A and %2C in
 * properties. So no name ends a line and begins a command of its own.
 */
#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/decide/gate/gate_report.h"

static void put(FILE *f, const char *s, bool is_property)
{
    char line[2048];

    utf8_printable(line, sizeof line, s, strlen(s));
    for (const char *c = line; *c; c++)
        if (*c == '%' || (is_property && (*c == ':' || *c == ',')))
            fprintf(f, "%%%02X", (unsigned)*c);
        else
            fputc(*c, f);
}

static void put_line(FILE *f, enum gate_verdict verdict, const char *title,
                     const char *message)
{
    fprintf(f, "::%s title=",
            verdict == GATE_FAIL   ? "error"
            : verdict == GATE_PASS ? "notice"
                                   : "warning");
    put(f, title, true);
    fputs("::", f);
    put(f, message, false);
    fputc('\n', f);
}

/* How much a metric lost; what has no figure comes last. */
static double loss(const struct gate_metric *m)
{
    return isfinite(m->effect.ratio) ? -m->effect.ratio : -INFINITY;
}

/* The metrics of a verdict, the slowest first. */
static void put_metrics(FILE *f, const struct gate_result *r, enum gate_verdict verdict)
{
    bool reported[GATE_MAX_METRICS] = {false};

    for (;;) {
        const struct gate_metric *m = NULL;
        char title[200];
        size_t at = 0;

        for (size_t i = 0; i < r->n_metrics; i++)
            if (!reported[i] && gate_metric_verdict(&r->metric[i]) == verdict &&
                (!m || loss(&r->metric[i]) > loss(m))) {
                m = &r->metric[i];
                at = i;
            }
        if (!m)
            return;
        reported[at] = true;
        snprintf(title, sizeof title, "%s: %s", m->name, gate_verdict_word(verdict));
        put_line(f, verdict, title, gate_effect_text(m).text);
    }
}

void gate_annotations_write(FILE *f, const struct gate_result *r)
{
    char title[64], text[1024];

    snprintf(title, sizeof title, "bench gate: %s", gate_verdict_word(r->verdict));
    put_line(f, r->verdict, title, gate_sentence(r, text, sizeof text));
    put_metrics(f, r, GATE_FAIL);
    put_metrics(f, r, GATE_UNCLEAR);
}
