/* SPDX-License-Identifier: MIT
 *
 * gate_print.c - a gate's result for a terminal
 */
#include "harness/decide/gate/gate_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"

/* A line of texts that may be another program's, or from a gate.json of anybody. */
__attribute__((format(printf, 2, 3))) static void print_line(FILE *f, const char *fmt,
                                                             ...)
{
    char line[4096], shown[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fprintf(f, "%s\n", text_harmless(shown, sizeof shown, line));
}

static void print_side(FILE *f, const char *who, const struct gate_side *s)
{
    if (*s->name)
        print_line(f, "%s  %s%s%s%s%s%s%s%s", who, s->name, *s->version ? ", " : "",
                   s->version, *s->commit ? " (" : "", s->commit, *s->commit ? ")" : "",
                   *s->compiler ? ", " : "", s->compiler);
}

/* Text padded to a width in columns: bytes that continue a character take none. */
static void print_cell(FILE *f, const char *text, int width, bool right)
{
    char shown[1024];
    int columns = 0;

    text = text_harmless(shown, sizeof shown, text);
    for (const char *c = text; *c; c++)
        columns += ((unsigned char)*c & 0xc0) != 0x80;
    const int pad = width > columns ? width - columns : 0;
    fprintf(f, "%*s%s%*s", right ? pad : 0, "", text, right ? 0 : pad, "");
}

static void print_row(FILE *f, const char *const cell[7], int first)
{
    const int width[7] = {first, 14, 14, 11, 20, 8, 13};

    for (int i = 0; i < 7; i++) {
        if (i == 6)
            fprintf(f, "  %s", cell[i]);
        else
            print_cell(f, cell[i], width[i], i > 0);
    }
    fputc('\n', f);
}

static void print_metric(FILE *f, const struct gate_metric *m, int first)
{
    char a[48], b[48], change[48], interval[96], margin[24];
    const char *const cell[7] = {
        m->name,
        gate_value_text(a, sizeof a, m->a, m->unit),
        gate_value_text(b, sizeof b, m->b, m->unit),
        gate_change_text(change, sizeof change, m->effect.ratio),
        *gate_interval_text(interval, sizeof interval, &m->effect) ? interval
                                                                   : "too few",
        margin,
        gate_verdict_word(m->verdict),
    };

    snprintf(margin, sizeof margin, "%.3g %%", 100 * m->margin);
    print_row(f, cell, first);
}

void gate_print(FILE *f, const struct gate_result *r)
{
    static const char *const head[7] = {
        "metric", "A", "B", "better by", "95 % interval", "margin", "verdict"};
    char sentence[1024], time[32], took[256];
    int first = 32; /* width of the names */

    for (size_t i = 0; i < r->n_metrics; i++)
        if ((int)strlen(r->metric[i].name) > first)
            first = (int)strlen(r->metric[i].name);

    print_side(f, "A", &r->side[0]);
    print_side(f, "B", &r->side[1]);
    print_line(f, "%s%s%s%s%s", r->model, *r->settings ? ", " : "", r->settings,
               *r->cpu ? "; " : "", r->cpu);
    if (r->injected > 0)
        fprintf(f,
                "B IS SLOWED DOWN by %.3g %% on purpose (--inject-slowdown): the "
                "result shows what\nthe gate detects, and nothing about B\n",
                100 * r->injected);
    fputc('\n', f);
    print_row(f, head, first);
    for (size_t i = 0; i < r->n_metrics; i++)
        print_metric(f, &r->metric[i], first);
    if (r->mode == GATE_MODE_BASELINE)
        snprintf(took, sizeof took, "%zu new run%s", r->n_launches,
                 r->n_launches == 1 ? "" : "s");
    else
        snprintf(took, sizeof took, "%zu launch%s, %zu round%s in %s", r->n_launches,
                 plural(r->n_launches, "es"), r->n_rounds, plural(r->n_rounds, "s"),
                 format_duration(time, sizeof time, r->seconds));
    if (r->n_disturbed)
        text_append(took, sizeof took, "; %zu disturbed round%s left out",
                    r->n_disturbed, plural(r->n_disturbed, "s"));
    fputc('\n', f);
    print_line(f, "%s%s%s%s", took, *r->disturbed ? " (" : "", r->disturbed,
               *r->disturbed ? ")" : "");
    if (*r->notes)
        print_line(f, "Not covered: %s", r->notes);
    print_line(f, "%s: %s", gate_verdict_word(r->verdict),
               gate_sentence(r, sentence, sizeof sentence));
}
