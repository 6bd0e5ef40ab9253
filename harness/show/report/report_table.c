/* SPDX-License-Identifier: MIT
 *
 * report_table.c - the table of a report
 */
#include "harness/show/report/report.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/progress.h"

#define LINE_WIDTH 79

enum { N_COLUMNS = 12, CELL_MAX = 220, INDENT = 4 };

static const char *const headings[N_COLUMNS] = {
    "setting", "point",       "threads", "tok/s", "interval",   "launches",
    "roof",    "speculative", "memory",  "KL",    "limited by", ""};

/* Text is aligned left, figures right. */
static bool is_left(int column)
{
    return column == 0 || column == 1 || column >= 10;
}

typedef char cells[N_COLUMNS][CELL_MAX];

/* "3", or "2 of 3" where some do not count; empty for a single one. */
static void fill_launches(char *cell, const struct launches *l)
{
    if (l->n_left_out)
        snprintf(cell, CELL_MAX, "%zu of %zu", l->n_used, l->n_used + l->n_left_out);
    else if (l->n_used > 1)
        snprintf(cell, CELL_MAX, "%zu", l->n_used);
}

static void fill_cells(cells to, const struct report_rows *p, size_t i)
{
    const struct row *r = p->v[i];

    memset(to, 0, sizeof(cells));
    report_setting_name(p, r, to[0], CELL_MAX);
    if (r->kind == POINT_PREFILL)
        snprintf(to[1], CELL_MAX, "prefill %lld", (long long)r->n_prompt);
    else if (r->kind == POINT_SPECULATE)
        snprintf(to[1], CELL_MAX, "text %s", r->spec_text);
    else
        snprintf(to[1], CELL_MAX, "%s at %lld", row_kind_text(r), (long long)r->ctx);
    snprintf(to[2], CELL_MAX, "%lld", (long long)r->n_threads);
    if (row_needed_bytes(r) > 0)
        format_bytes(to[8], CELL_MAX, (uint64_t)row_needed_bytes(r));
    if (isfinite(r->kl_mean))
        snprintf(to[9], CELL_MAX, "%.4f", r->kl_mean);
    if (row_trust(r) == ROW_FAILED) {
        snprintf(to[3], CELL_MAX, "-");
        snprintf(to[11], CELL_MAX, "%s", row_failure(r));
        return;
    }
    const int digits = report_decimals(r->tok_per_s);
    snprintf(to[3], CELL_MAX, "%.*f", digits, r->tok_per_s);
    if (r->tok_per_s_lo > 0 && r->tok_per_s_hi > 0)
        snprintf(to[4], CELL_MAX, "%.*f .. %.*f", digits, r->tok_per_s_lo, digits,
                 r->tok_per_s_hi);
    fill_launches(to[5], &p->launches[i]);
    if (r->mbu > 0)
        snprintf(to[6], CELL_MAX, "%.0f %%", 100 * r->mbu);
    if (r->spec_speedup > 0)
        snprintf(to[7], CELL_MAX, "x %.2f", r->spec_speedup);
    if (r->spec_speedup > 0 && isfinite(r->spec_speedup_lo))
        snprintf(to[7], CELL_MAX, "x %.2f (%.2f .. %.2f)", r->spec_speedup,
                 r->spec_speedup_lo, r->spec_speedup_hi);
    snprintf(to[10], CELL_MAX, "%s", row_limiter_text(r));
    if (row_trust(r) == ROW_PARTIAL)
        snprintf(to[11], CELL_MAX, "partial");
    else if (row_trust(r) == ROW_DISTURBED)
        snprintf(to[11], CELL_MAX, "%s", r->validity[0] ? r->validity : "doubtful");
}

/* Prints a line of cells without the blanks at its end. */
static void end_line(FILE *f, char *line, size_t used)
{
    while (used && line[used - 1] == ' ')
        used--;
    line[used] = '\0';
    if (used)
        fprintf(f, "%s\n", line);
}

/* On a terminal, the cells that do not fit its columns are on further lines, indented;
 * columns 0: one line. */
static void print_cells(FILE *f, char lead, const char *const cell[N_COLUMNS],
                        const int width[N_COLUMNS], int columns)
{
    char line[N_COLUMNS * (CELL_MAX + 2)];
    size_t used = (size_t)snprintf(line, sizeof line, "%c", lead), begin = used;

    for (int k = 0; k < N_COLUMNS; k++) {
        const size_t shown =
            k == N_COLUMNS - 1 ? strlen(cell[k]) : (size_t)width[k]; /* not padded */

        if (!width[k])
            continue;
        if (columns && used > begin && used + 2 + shown >= (size_t)columns) {
            end_line(f, line, used);
            used = begin = (size_t)snprintf(line, sizeof line, "%*s", INDENT, "");
        }
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%*s",
                                 used > begin ? "  " : " ",
                                 is_left(k) ? -width[k] : width[k], cell[k]);
    }
    end_line(f, line, used);
}

static void widen(int width[N_COLUMNS], const cells of)
{
    for (int k = 0; k < N_COLUMNS; k++)
        if ((int)strlen(of[k]) > width[k])
            width[k] = (int)strlen(of[k]);
}

static bool same_point(const struct row *a, const struct row *b)
{
    return report_same_setting(a, b) && a->kind == b->kind &&
           a->n_threads == b->n_threads && a->ctx == b->ctx &&
           a->n_prompt == b->n_prompt && !strcmp(a->spec_text, b->spec_text);
}

static bool is_chosen(const struct row *r, const struct row *const *chosen, size_t n)
{
    while (n-- > 0)
        if (same_point(chosen[n], r))
            return true;
    return false;
}

/* ---- words ----------------------------------------------------------------------- */

/* A word of a column's cells, and what it means; NULL: any cell of the column. */
static const struct explained {
    int column;
    const char *word, *text;
} explained[] = {
    {0, "spread", "a core of its own for each thread"},
    {0, "compact", "threads on neighbouring cores"},
    {0, "smt", "both threads of each core"},
    {0, "packed", "weights in memory, rearranged for the kernels"},
    {0, "mmap", "weights in the mapped file"},
    {0, "stream", "what does not fit is read from disk for each token"},
    {0, "memory", "weights made in memory, without a file"},
    {4, NULL, "holds the true speed with 95 %"},
    {5, "of", "how many of the launches count (disturbed and partial ones do not)"},
    {6, NULL, "share of the speed that memory's bandwidth allows"},
    {9, NULL, "divergence from the reference model (bench quality)"},
    {10, "memory", "its bandwidth"},
    {10, "compute", "arithmetic"},
    {10, "latency", "instructions that wait for loads or each other"},
    {10, "synchronisation", "threads that wait for each other"},
    {10, "paging", "page faults that go to disk"},
    {10, "disk", "reading streamed weights"},
    {10, "cache", "the last-level cache's bandwidth"},
    {10, "quota", "the CPU quota"},
    {10, "noise", "other load on the machine"},
};
enum { N_EXPLAINED = sizeof explained / sizeof explained[0] };

static bool has_word(const char *cell, const char *word)
{
    const size_t n = word ? strlen(word) : 0;

    if (!word)
        return *cell;
    for (const char *at = cell; (at = strstr(at, word)); at += n)
        if ((at == cell || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

static void find_words(bool occurs[N_EXPLAINED], const cells c)
{
    for (int i = 0; i < N_EXPLAINED; i++)
        occurs[i] |= has_word(c[explained[i].column], explained[i].word);
}

/* Those that occur, in one paragraph. */
static void explain_words(FILE *f, const bool occurs[N_EXPLAINED])
{
    char text[2048] = "";
    int before = -1;

    for (int i = 0; i < N_EXPLAINED; i++) {
        const struct explained *e = &explained[i];
        const bool with_heading = e->column >= 4 && e->column != before;

        if (!occurs[i])
            continue;
        text_append(text, sizeof text, "%s%s%s%s: %s", *text ? "; " : "",
                    with_heading ? headings[e->column] : "",
                    with_heading && e->column == 10 ? " " : "",
                    e->column == 0 || e->column == 10 ? e->word : "", e->text);
        before = e->column;
    }
    if (*text)
        text_wrap(f, text, 0, 0, LINE_WIDTH, false);
}

/* ---- the table ------------------------------------------------------------------- */

static void print_rows(FILE *f, const struct report_rows *p,
                       const struct row *const *chosen, size_t n_chosen)
{
    int width[N_COLUMNS] = {0};
    const int columns = terminal_columns(f);
    bool any_chosen = false, any_disturbed = false, occurs[N_EXPLAINED] = {false};
    cells c;

    for (size_t i = 0; i < p->n; i++) {
        fill_cells(c, p, i);
        widen(width, (const char(*)[CELL_MAX])c);
        find_words(occurs, (const char(*)[CELL_MAX])c);
    }
    for (int k = 0; k < N_COLUMNS; k++)
        if (width[k] && (int)strlen(headings[k]) > width[k])
            width[k] = (int)strlen(headings[k]);
    print_cells(f, ' ', headings, width, columns);
    for (size_t i = 0; i < p->n; i++) {
        const char *cell[N_COLUMNS];

        fill_cells(c, p, i);
        for (int k = 0; k < N_COLUMNS; k++)
            cell[k] = c[k];
        const bool is = is_chosen(p->v[i], chosen, n_chosen);

        print_cells(f, is ? '*' : ' ', cell, width, columns);
        any_chosen |= is;
        any_disturbed |= row_trust(p->v[i]) == ROW_DISTURBED;
    }
    if (any_chosen)
        fputs("* recommended below\n", f);
    explain_words(f, occurs);
    if (any_disturbed)
        text_wrap(f,
                  "disturbed: other programs, the hypervisor or the clock changed the "
                  "speed (waiting: threads that were ready had no CPU; others: CPU "
                  "time of other processes); measure again on a quiet machine "
                  "(docs/noise.md)",
                  0, 0, LINE_WIDTH, false);
}

void report_table(FILE *f, const struct row *rows, size_t n_rows,
                  const struct row *const *chosen, size_t n_chosen)
{
    struct report_rows picked;
    struct err err = ERR_INIT;

    if (n_rows && report_rows_pick(&picked, rows, n_rows, &err) == ST_OK) {
        print_rows(f, &picked, chosen, n_chosen);
        report_rows_free(&picked);
    }
}
