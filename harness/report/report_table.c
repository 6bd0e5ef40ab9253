/* SPDX-License-Identifier: MIT
 *
 * report_table.c - the table of a report, and a recommendation in words
 */
#include "harness/report/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/weights/weights.h"
#include "harness/base/format.h"
#include "harness/result/report_rows.h"

#define WIDTH 78 /* of a text for a terminal */

/* ---- the table ------------------------------------------------------------------ */

enum { N_COLUMNS = 11, CELL_MAX = 220 };

static const char *const headings[N_COLUMNS] = {
    "setting",     "point",  "threads", "tok/s",      "interval", "roof",
    "speculative", "memory", "KL",      "limited by", ""};

/* Text is aligned left, figures right. */
static bool is_left(int column)
{
    return column == 0 || column == 1 || column >= 9;
}

typedef char cells[N_COLUMNS][CELL_MAX];

static void fill_cells(cells to, const struct report_rows *p, const struct row *r)
{
    memset(to, 0, sizeof(cells));
    report_setting_name(p, r, to[0], CELL_MAX);
    if (r->kind == POINT_PREFILL)
        snprintf(to[1], CELL_MAX, "prefill %lld", (long long)r->n_prompt);
    else if (r->kind == POINT_SPECULATE)
        snprintf(to[1], CELL_MAX, "text %s", r->spec_text);
    else
        snprintf(to[1], CELL_MAX, "%s at %lld", row_kind_text(r), (long long)r->ctx);
    snprintf(to[2], CELL_MAX, "%lld", (long long)r->n_threads);
    if (r->mem_peak_bytes > 0)
        format_bytes(to[7], CELL_MAX, (uint64_t)r->mem_peak_bytes);
    if (isfinite(r->kl_mean))
        snprintf(to[8], CELL_MAX, "%.4f", r->kl_mean);
    if (row_trust(r) == ROW_FAILED) {
        snprintf(to[3], CELL_MAX, "-");
        snprintf(to[10], CELL_MAX, "%s", row_failure(r));
        return;
    }
    const int digits = report_decimals(r->tok_per_s);
    snprintf(to[3], CELL_MAX, "%.*f", digits, r->tok_per_s);
    if (r->tok_per_s_lo > 0 && r->tok_per_s_hi > 0)
        snprintf(to[4], CELL_MAX, "%.*f .. %.*f", digits, r->tok_per_s_lo, digits,
                 r->tok_per_s_hi);
    if (r->mbu > 0)
        snprintf(to[5], CELL_MAX, "%.0f %%", 100 * r->mbu);
    if (r->spec_speedup > 0)
        snprintf(to[6], CELL_MAX, "x %.2f", r->spec_speedup);
    if (r->spec_speedup > 0 && isfinite(r->spec_speedup_lo))
        snprintf(to[6], CELL_MAX, "x %.2f (%.2f .. %.2f)", r->spec_speedup,
                 r->spec_speedup_lo, r->spec_speedup_hi);
    snprintf(to[9], CELL_MAX, "%s", row_limiter_text(r));
    if (row_trust(r) == ROW_PARTIAL)
        snprintf(to[10], CELL_MAX, "partial");
    else if (row_trust(r) == ROW_DISTURBED)
        snprintf(to[10], CELL_MAX, "%s", r->validity[0] ? r->validity : "doubtful");
}

static void print_cells(FILE *f, char lead, const char *const cell[N_COLUMNS],
                        const int width[N_COLUMNS])
{
    char line[N_COLUMNS * (CELL_MAX + 2)];
    size_t used = 0;

    for (int k = 0; k < N_COLUMNS; k++)
        if (width[k])
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%*s",
                                     used ? "  " : "",
                                     is_left(k) ? -width[k] : width[k], cell[k]);
    while (used && line[used - 1] == ' ')
        line[--used] = '\0';
    fprintf(f, "%c %s\n", lead, line);
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

static void print_rows(FILE *f, const struct report_rows *p, const struct row *best)
{
    int width[N_COLUMNS] = {0};
    cells c;

    for (size_t i = 0; i < p->n; i++) {
        fill_cells(c, p, p->v[i]);
        widen(width, (const char(*)[CELL_MAX])c);
    }
    for (int k = 0; k < N_COLUMNS; k++)
        if (width[k] && (int)strlen(headings[k]) > width[k])
            width[k] = (int)strlen(headings[k]);
    print_cells(f, ' ', headings, width);
    for (size_t i = 0; i < p->n; i++) {
        const char *cell[N_COLUMNS];

        fill_cells(c, p, p->v[i]);
        for (int k = 0; k < N_COLUMNS; k++)
            cell[k] = c[k];
        print_cells(f, best && same_point(best, p->v[i]) ? '*' : ' ', cell, width);
    }
}

void report_table(FILE *f, const struct row *rows, size_t n_rows,
                  const struct row *chosen)
{
    struct report_rows picked;
    struct err err = ERR_INIT;

    if (n_rows && report_rows_pick(&picked, rows, n_rows, &err) == ST_OK) {
        print_rows(f, &picked, chosen);
        report_rows_free(&picked);
    }
}

/* ---- a recommendation ---------------------------------------------------------------
 */

/* Text wrapped at WIDTH, every line indented. */
static void print_wrapped(FILE *f, const char *text, int indent)
{
    int column = 0;

    while (*text) {
        const size_t len = strcspn(text, " ");

        if (column && column + 1 + (int)len > WIDTH - indent) {
            fputc('\n', f);
            column = 0;
        }
        fprintf(f, "%*s%.*s", column ? 1 : indent, column ? " " : "", (int)len, text);
        column += (int)len + (column > 0);
        text += len + strspn(text + len, " ");
    }
    fputc('\n', f);
}

/* Threads and the other settings of the choice. */
static void print_choice(FILE *f, const struct row *r)
{
    char model[REPORT_NAME_MAX], computed[REPORT_NAME_MAX] = "";
    const bool named = strcmp(report_model_name(r, model, sizeof model), r->model) != 0;

    fprintf(f, "%s%s%s, %lld thread%s", r->model, named ? "" : " ",
            named ? "" : r->quant, (long long)r->n_threads,
            r->n_threads == 1 ? "" : "s");
    if (r->placement != FIELD_NO_ENUM)
        fprintf(f, ", placement %s", row_placement_text(r));
    if (r->residency != FIELD_NO_ENUM)
        fprintf(f, ", weights %s", row_residency_text(r));
    row_append_unusual(r, FIELD_COMPUTED, computed, sizeof computed);
    fputs(computed, f);
}

void recommend_print(FILE *f, const struct recommendation *rec)
{
    const struct row *b = &rec->best;

    fputs("Recommended: ", f);
    print_choice(f, b);
    fprintf(f, ", context up to %lld\n", (long long)b->ctx);
    print_wrapped(f, rec->why, 2);
    if (rec->has_runner_up) {
        const struct row *r = &rec->runner_up;

        fputs("Runner-up: ", f);
        print_choice(f, r);
        fprintf(f, ": %s%.*f tok/s\n", rec->runner_up_from_ctx >= 0 ? "about " : "",
                report_decimals(rec->runner_up_tok_per_s), rec->runner_up_tok_per_s);
    }
    if (rec->excluded[0]) {
        char text[sizeof rec->excluded + 32];

        snprintf(text, sizeof text, "Left out: %s.", rec->excluded);
        print_wrapped(f, text, 0);
    }
    if (b->command[0])
        fprintf(f, "Measure it again:\n  %s\n", b->command);
    else if (rec->no_command[0])
        fprintf(f, "No command measures it again: %s.\n", rec->no_command);
}

static json_t *depth_or_null(int64_t ctx)
{
    return ctx >= 0 ? json_integer(ctx) : json_null();
}

json_t *recommend_json(const struct recommendation *rec)
{
    const bool second = rec->has_runner_up;

    return json_pack(
        "{s:o, s:o, s:f, s:o, s:o, s:o, s:f, s:f, s:b, s:s, s:i, s:s}", "best",
        row_json(&rec->best), "runner_up",
        second ? row_json(&rec->runner_up) : json_null(), "best_tok_per_s",
        rec->best_tok_per_s, "runner_up_tok_per_s",
        second ? json_real(rec->runner_up_tok_per_s) : json_null(), "best_from_ctx",
        depth_or_null(rec->best_from_ctx), "runner_up_from_ctx",
        depth_or_null(second ? rec->runner_up_from_ctx : -1), "p_best", rec->p_best,
        "regret", rec->regret, "tie", rec->tie, "why", rec->why, "n_excluded",
        rec->n_excluded, "excluded", rec->excluded);
}
