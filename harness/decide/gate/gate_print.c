/* SPDX-License-Identifier: MIT
 *
 * gate_print.c - a gate's result for a terminal
 */
#include "harness/decide/gate/gate_report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/progress.h"

enum { N_CELLS = 7, CELL_MAX = 200, INDENT = 2 };

/* A line of texts that may be another program's, or from a gate.json of anybody; on a
 * terminal it is wrapped. */
__attribute__((format(printf, 2, 3))) static void print_line(FILE *f, const char *fmt,
                                                             ...)
{
    const int columns = terminal_columns(f);
    char line[4096], shown[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    text_harmless(shown, sizeof shown, line);
    if (columns)
        text_wrap(f, shown, 0, 0, columns - 1, false);
    else
        fprintf(f, "%s\n", shown);
}

static void print_side(FILE *f, const char *who, const struct gate_side *s)
{
    if (*s->name)
        print_line(f, "%s  %s%s%s%s%s%s%s%s", who, s->name, *s->version ? ", " : "",
                   s->version, *s->commit ? " (" : "", s->commit, *s->commit ? ")" : "",
                   *s->compiler ? ", " : "", s->compiler);
}

/* Columns of a terminal: bytes that continue a character take none. */
static int columns_of(const char *text)
{
    int columns = 0;

    for (const char *c = text; *c; c++)
        columns += ((unsigned char)*c & 0xc0) != 0x80;
    return columns;
}

typedef char cells[N_CELLS][CELL_MAX];

static const char *const headings[N_CELLS] = {
    "metric", "A", "B", "better by", "95 % interval", "margin", "verdict"};

/* What the table looks like: widths for one line a metric, or for two where a terminal
 * is too narrow. */
struct table {
    int width[N_CELLS], columns;
    bool two_lines;
};

static int pad_of(int width, const char *text)
{
    const int pad = width - columns_of(text);

    return pad > 0 ? pad : 0;
}

static void print_row(FILE *f, const struct table *t, const char *const cell[N_CELLS])
{
    const int gap = t->two_lines ? 2 : 0; /* which the usual widths have in them */

    if (t->two_lines)
        text_wrap(f, cell[0], 0, 2 * INDENT, t->columns - 1, false);
    else
        fprintf(f, "%s%*s", cell[0], pad_of(t->width[0], cell[0]), "");
    for (int i = 1; i < N_CELLS - 1; i++)
        fprintf(f, "%*s%s", gap + pad_of(t->width[i], cell[i]), "", cell[i]);
    fprintf(f, "  %s\n", cell[N_CELLS - 1]);
}

static void fill_cells(cells c, const struct gate_metric *m)
{
    const struct gate_text interval = gate_interval_text(&m->effect);
    text_harmless(c[0], CELL_MAX, m->name);
    snprintf(c[1], CELL_MAX, "%s", gate_value_text(m->a, m->unit).text);
    snprintf(c[2], CELL_MAX, "%s", gate_value_text(m->b, m->unit).text);
    snprintf(c[3], CELL_MAX, "%s", gate_change_text(m->effect.ratio).text);
    snprintf(c[4], CELL_MAX, "%s", *interval.text ? interval.text : "too few");
    snprintf(c[5], CELL_MAX, "%.3g %%", 100 * m->margin);
    snprintf(c[6], CELL_MAX, "%s", gate_verdict_word(m->verdict));
}

static void measure(struct table *t, const struct gate_result *r)
{
    static const int usual[N_CELLS] = {32, 14, 14, 11, 20, 8, 13};
    int wide = 0, narrow[N_CELLS];
    cells c;

    for (int k = 0; k < N_CELLS; k++) {
        t->width[k] = usual[k];
        narrow[k] = columns_of(headings[k]);
    }
    for (size_t i = 0; i < r->n_metrics; i++) {
        fill_cells(c, &r->metric[i]);
        for (int k = 0; k < N_CELLS; k++)
            if (columns_of(c[k]) > narrow[k])
                narrow[k] = columns_of(c[k]);
    }
    if (narrow[0] > t->width[0])
        t->width[0] = narrow[0];
    for (int k = 0; k < N_CELLS; k++)
        wide += t->width[k];
    t->two_lines = t->columns && wide + 2 >= t->columns;
    if (t->two_lines)
        memcpy(t->width, narrow, sizeof narrow);
}

static void print_table(FILE *f, const struct gate_result *r)
{
    struct table t = {.columns = terminal_columns(f)};
    cells c;

    measure(&t, r);
    print_row(f, &t, headings);
    for (size_t i = 0; i < r->n_metrics; i++) {
        const char *cell[N_CELLS];

        fill_cells(c, &r->metric[i]);
        for (int k = 0; k < N_CELLS; k++)
            cell[k] = c[k];
        print_row(f, &t, cell);
    }
}

void gate_print(FILE *f, const struct gate_result *r)
{
    char sentence[1024], took[256];

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
    print_table(f, r);
    if (r->mode == GATE_MODE_BASELINE)
        snprintf(took, sizeof took, "%zu new run%s", r->n_launches,
                 r->n_launches == 1 ? "" : "s");
    else
        snprintf(took, sizeof took, "%zu launch%s, %zu round%s in %s", r->n_launches,
                 plural(r->n_launches, "es"), r->n_rounds, plural(r->n_rounds, "s"),
                 duration_text(r->seconds).text);
    if (r->n_disturbed)
        text_append(took, sizeof took, "; %zu disturbed round%s left out",
                    r->n_disturbed, plural(r->n_disturbed, "s"));
    if (r->n_again)
        text_append(took, sizeof took, "; %zu disturbed turn%s played again",
                    r->n_again, plural(r->n_again, "s"));
    fputc('\n', f);
    print_line(f, "%s%s%s%s", took, *r->disturbed ? " (" : "", r->disturbed,
               *r->disturbed ? ")" : "");
    if (*r->notes)
        print_line(f, "Not covered: %s", r->notes);
    print_line(f, "%s: %s", gate_verdict_word(r->verdict),
               gate_sentence(r, sentence, sizeof sentence));
}
