/* SPDX-License-Identifier: MIT
 *
 * kernel_table.c - the lines of a run as tables for a terminal of 100 columns
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"

#include "harness/measure/kernels/kernel_report.h"

#define MAX_COLUMNS   128
#define MAX_ROWS      64
#define CELL_WIDTH    11 /* "123.4 100 %" */
#define TITLE_WIDTH   16 /* of a column that is a group, at least */
#define LABEL_WIDTH   12
#define LEVEL_WIDTH   10
#define LINE_WIDTH    100
#define CELL_CAPACITY 32
#define ABOVE_ROOF    1.05 /* possible quotient of two medians of one run */

/* A table: labels, headings, and a line or NULL in every cell. */
struct grid {
    char row[MAX_ROWS][24];
    const char *level[MAX_ROWS]; /* next to the label; NULL: none */
    char column[MAX_COLUMNS][48];
    const struct kernel_line *cell[MAX_ROWS][MAX_COLUMNS];
    int n_rows, n_columns;
};

/* The format or the operation; for ways to read panels, the way. */
static const char *label_of(const struct kernel_line *l, char *buf, size_t cap)
{
    *buf = '\0';
    if (l->c.prefetch.n_panels)
        text_append(buf, cap, "%s x%u", kernel_prefetch_name(l->c.prefetch).text,
                    (unsigned)l->c.prefetch.n_panels);
    else
        text_append(buf, cap, "%s", l->c.what[0] ? l->c.what : l->c.op);
    return buf;
}

/* The index of name in names[*n], texts of `size` bytes, where it is added if it is
 * new; max: the list is full. */
static int index_of(char *names, size_t size, int *n, int max, const char *name)
{
    int i = 0;

    while (i < *n && strcmp(names + size * (size_t)i, name) != 0)
        i++;
    if (i == *n && i < max)
        snprintf(names + size * (size_t)(*n)++, size, "%s", name);
    return i;
}

static int column_of(struct grid *g, const char *heading)
{
    return index_of(g->column[0], sizeof g->column[0], &g->n_columns, MAX_COLUMNS,
                    heading);
}

static void put(struct grid *g, const char *heading, const struct kernel_line *l)
{
    char label[24];
    const int row = index_of(g->row[0], sizeof g->row[0], &g->n_rows, MAX_ROWS,
                             label_of(l, label, sizeof label));
    const int column = column_of(g, heading);

    if (row < MAX_ROWS && column < MAX_COLUMNS)
        g->cell[row][column] = l;
}

/* ---- cells ----------------------------------------------------------------------- */

enum unit {
    UNIT_OF_READ_ROOF,
    UNIT_TIMES_READ_ROOF,
    UNIT_OF_PEAK,
    UNIT_COST,
    UNIT_GBPS
};

static enum unit unit_of(const struct kernel_case *c)
{
    if (c->cache == KERNEL_HOT)
        return UNIT_TIMES_READ_ROOF;
    if (c->cache != KERNEL_COLD)
        return UNIT_GBPS;
    if (c->n_x == 1)
        return UNIT_OF_READ_ROOF;
    return c->n_x < KERNEL_MANY_COLUMNS ? UNIT_COST : UNIT_OF_PEAK;
}

static const char *const unit_short[] = {
    [UNIT_OF_READ_ROOF] = "GB/s  roof",
    [UNIT_TIMES_READ_ROOF] = "GB/s x roof",
    [UNIT_OF_PEAK] = "GOPS  peak",
    [UNIT_COST] = "GB/s  cost",
    [UNIT_GBPS] = "GB/s",
};

static const char *const unit_long[] = {
    [UNIT_OF_READ_ROOF] = "GB/s of weights, share of the read roof",
    [UNIT_TIMES_READ_ROOF] = "GB/s of weights, multiple of the read roof",
    [UNIT_OF_PEAK] = "GOPS, share of the level's arithmetic peak",
    [UNIT_COST] = "GB/s of weights, time against one column",
    [UNIT_GBPS] = "GB/s read and written",
};

/* Three or four figures in five places. */
static void format_figure(char *buf, size_t cap, double v)
{
    snprintf(buf, cap, "%.*f", v >= 999.5 ? 0 : v >= 99.95 ? 1 : 2, v);
}

static void format_cell(char *buf, size_t cap, const struct kernel_line *l)
{
    static const char *const words[] = {"", "WRONG", "failed", "stopped", "skipped"};
    char figure[16], share[16] = "";

    if (!l) {
        snprintf(buf, cap, "-");
        return;
    }
    if (l->state != LINE_OK) {
        snprintf(buf, cap, "%s", words[l->state]);
        return;
    }
    const enum unit unit = unit_of(&l->c);
    const double v = unit == UNIT_OF_READ_ROOF      ? l->of_read_roof
                     : unit == UNIT_TIMES_READ_ROOF ? l->of_read_roof
                     : unit == UNIT_OF_PEAK         ? l->of_peak
                     : unit == UNIT_COST            ? l->vs_one_column
                                                    : NAN;

    format_figure(figure, sizeof figure,
                  unit == UNIT_OF_PEAK ? l->gops.median : l->gbps.median);
    if (isfinite(v) && (unit == UNIT_COST || unit == UNIT_TIMES_READ_ROOF))
        snprintf(share, sizeof share, " %4.*fx", v < 9.995 ? 2 : 1, v);
    else if (isfinite(v))
        snprintf(share, sizeof share, " %3.0f %%", 100 * v);
    snprintf(buf, cap, "%s%s", figure, share);
}

/* ---- tables ---------------------------------------------------------------------- */

static void print_line(FILE *f, const char *label, const char *level,
                       char cells[][CELL_CAPACITY], int n_cells, int width)
{
    char line[LINE_WIDTH * 2];
    size_t used;

    snprintf(line, sizeof line, "  %-*s", LABEL_WIDTH, label);
    if (level)
        text_append(line, sizeof line, " %-*s", LEVEL_WIDTH, level);
    for (int i = 0; i < n_cells; i++)
        text_append(line, sizeof line, " %*s", width, cells[i]);
    for (used = strlen(line); used > 0 && line[used - 1] == ' ';)
        line[--used] = '\0';
    fprintf(f, "%s\n", line);
}

/* The width of a column: that of the longest heading, at least `least`. */
static int width_of(const struct grid *g, int least)
{
    int width = least;

    for (int k = 0; k < g->n_columns; k++)
        if ((int)strlen(g->column[k]) > width)
            width = (int)strlen(g->column[k]);
    return width < CELL_CAPACITY ? width : CELL_CAPACITY - 1;
}

/* Columns that do not fit side by side come below, with the labels again. */
static void print_grid(FILE *f, const struct grid *g, int least, bool with_units)
{
    const int width = width_of(g, least);
    const char *no_level = g->level[0] ? "" : NULL;
    const int per_table =
        (LINE_WIDTH - LABEL_WIDTH - 2 - (no_level ? LEVEL_WIDTH + 1 : 0)) / (width + 1);
    char cells[MAX_COLUMNS][CELL_CAPACITY];

    for (int from = 0; from < g->n_columns; from += per_table) {
        const int n = g->n_columns - from < per_table ? g->n_columns - from : per_table;

        if (from)
            fputc('\n', f);
        for (int k = 0; k < n; k++)
            snprintf(cells[k], CELL_CAPACITY, "%.*s", width, g->column[from + k]);
        print_line(f, "", no_level, cells, n, width);
        for (int k = 0; k < n && with_units; k++)
            for (int i = 0; i < g->n_rows; i++)
                if (g->cell[i][from + k])
                    snprintf(cells[k], CELL_CAPACITY, "%s",
                             unit_short[unit_of(&g->cell[i][from + k]->c)]);
        if (with_units)
            print_line(f, "", no_level, cells, n, width);
        for (int i = 0; i < g->n_rows; i++) {
            for (int k = 0; k < n; k++)
                format_cell(cells[k], CELL_CAPACITY, g->cell[i][from + k]);
            print_line(f, g->row[i], g->level[i], cells, n, width);
        }
    }
}

/* Whether all products of a format are of one level: then groups are the columns. */
static bool one_level_each(const struct kernel_report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *a = &r->v[i];

        if (a->group < 0)
            continue;
        if (unit_of(&a->c) == UNIT_GBPS)
            return false;
        for (size_t k = 0; k < i; k++)
            if (r->v[k].group >= 0 && !strcmp(r->v[k].c.what, a->c.what) &&
                strcmp(r->v[k].c.isa, a->c.isa) != 0)
                return false;
    }
    return true;
}

/* "gemv cold 2t": a group's name as a heading; "q4_K 2t" where rows are ways to read
 * panels. */
static void short_name(char *buf, size_t cap, const struct kernel_case *c)
{
    struct kernel_case alone = *c;

    alone.n_threads = 1;
    if (c->prefetch.n_panels)
        snprintf(buf, cap, "%s", c->what);
    else
        kernel_group_name(buf, cap, &alone);
    if (c->n_threads != 1)
        text_append(buf, cap, " %dt", c->n_threads);
}

static void print_one_table(FILE *f, const struct kernel_report *r, struct grid *g)
{
    char heading[48];
    bool same = true;

    memset(g, 0, sizeof *g);
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].group >= 0) {
            short_name(heading, sizeof heading, &r->v[i].c);
            put(g, heading, &r->v[i]);
        }
    for (int i = 0; i < g->n_rows; i++) {
        for (int k = 0; k < g->n_columns && !g->level[i]; k++)
            g->level[i] = g->cell[i][k] ? g->cell[i][k]->c.isa : NULL;
        same &= !strcmp(g->level[i], g->level[0]);
    }
    if (same && g->n_rows) {
        fprintf(f, "Level: %s\n", g->level[0]);
        memset(g->level, 0, sizeof g->level);
    }
    print_grid(f, g, TITLE_WIDTH, true);
}

static void print_group(FILE *f, const struct kernel_report *r, int group,
                        struct grid *g)
{
    const struct kernel_line *first = NULL;
    char name[64];

    memset(g, 0, sizeof *g);
    /* headings in the order of levels, whichever row comes first */
    for (int isa = 0; isa < KERN_N_ISA; isa++)
        for (size_t i = 0; i < r->n; i++)
            if (r->v[i].group == group &&
                !strcmp(r->v[i].c.isa, isa_name((enum kern_isa)isa)))
                column_of(g, r->v[i].c.isa);
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].group == group) {
            first = first ? first : &r->v[i];
            put(g, r->v[i].c.isa, &r->v[i]);
        }
    fprintf(f, "%s: %s\n", kernel_group_name(name, sizeof name, &first->c),
            unit_long[unit_of(&first->c)]);
    print_grid(f, g, CELL_WIDTH, false);
}

/* ---- below the tables ------------------------------------------------------------ */

static void print_roofs(FILE *f, const struct kernel_report *r)
{
    bool any = false;

    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];
        const bool is_read = !strcmp(l->c.what, "read");
        const struct stats *s = is_read ? &l->gbps : &l->gops;

        if (l->group >= 0 || l->state != LINE_OK || !s->n)
            continue;
        if (!any)
            fprintf(f, "\nRoofs of this run: median, 95 %% interval\n");
        any = true;
        fprintf(f, "  %-4s  %-10s  %2d thread%s  %8.2f", l->c.what, l->c.isa,
                l->c.n_threads, l->c.n_threads == 1 ? " " : "s", s->median);
        if (isfinite(s->lo))
            fprintf(f, "  %8.2f .. %.2f", s->lo, s->hi);
        fprintf(f, " %s", is_read ? "GB/s" : "GOPS");
        if (is_read && isfinite(l->huge_share))
            fprintf(f, ", %.0f %% in 2 MiB pages", 100 * l->huge_share);
        fputc('\n', f);
    }
}

/* How many lines are skipped for the level of v[i]; 0 when an earlier line had it. */
static size_t count_skipped(const struct kernel_report *r, size_t i)
{
    size_t n = 0;

    for (size_t k = 0; k < r->n; k++)
        if (r->v[k].state == LINE_SKIPPED && !strcmp(r->v[k].c.isa, r->v[i].c.isa)) {
            if (k < i)
                return 0;
            n++;
        }
    return n;
}

/* A figure above its roof is a wrong figure, the kernel's or the roof's. */
static void print_impossible(FILE *f, const struct kernel_report *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += r->v[i].state == LINE_OK && kernel_line_of_roof(&r->v[i]) > ABOVE_ROOF;
    if (n)
        fprintf(f,
                "\nAbove their roof by more than %.0f %%, which cannot be: %zu row%s. "
                "The machine was not quiet;\nmeasure again, with more --repetitions or "
                "a longer --min-time.\n",
                100 * (ABOVE_ROOF - 1), n, n == 1 ? "" : "s");
}

static void print_absent(FILE *f, const struct kernel_report *r)
{
    size_t n_stopped = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];
        const size_t n = l->state == LINE_SKIPPED ? count_skipped(r, i) : 0;

        if (n)
            fprintf(f, "\nSkipped: %zu row%s of %s: %s\n", n, n == 1 ? "" : "s",
                    l->c.isa, l->reason);
        if (l->state == LINE_WRONG || l->state == LINE_FAILED)
            fprintf(f, "\n%s: %s: %s\n", l->state == LINE_WRONG ? "WRONG" : "Failed",
                    kernel_case_name(&l->c).text, l->reason);
        n_stopped += l->state == LINE_STOPPED;
    }
    if (n_stopped)
        fprintf(f, "\nStopped before a single repetition: %zu row%s\n", n_stopped,
                n_stopped == 1 ? "" : "s");
}

void kernel_report_print(FILE *f, const struct kernel_report *report)
{
    struct grid *g = calloc(1, sizeof *g);

    if (!g)
        return;
    if (one_level_each(report)) {
        print_one_table(f, report, g);
    } else {
        for (int group = 0; group < report->n_groups; group++) {
            if (group)
                fputc('\n', f);
            print_group(f, report, group, g);
        }
    }
    free(g);
    print_roofs(f, report);
    print_impossible(f, report);
    print_absent(f, report);
}
