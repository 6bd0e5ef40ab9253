/* SPDX-License-Identifier: MIT
 *
 * report_sweep.c - what a sweep prints when it ends
 */
#include "harness/show/report/report.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/judge/recommend/recommend.h"
#include "harness/rows/rounds.h"

#define MAX_MODELS 64 /* whose rounds are compared; no sweep has more */

/* Points without a figure in any launch. */
struct failures {
    size_t n_points, n_failed, n_no_memory; /* no_fit or oom, of those that failed */
    const struct row *first, *first_error;  /* status error: not for lack of memory */
    size_t n_errors;
};

static enum status count_failures(struct failures *f, const struct report_rows *p,
                                  struct err *err)
{
    *f = (struct failures){.n_points = p->n};
    for (size_t i = 0; i < p->n; i++) {
        const struct row *r = p->v[i];

        if (row_trust(r) != ROW_FAILED)
            continue;
        f->first = f->first ? f->first : r;
        f->n_failed++;
        f->n_no_memory += r->status == ROW_STATUS_NO_FIT || r->status == ROW_STATUS_OOM;
        if (r->status == ROW_STATUS_ERROR && !f->n_errors++)
            f->first_error = r;
    }
    if (f->n_errors && f->n_failed < f->n_points)
        return err_set(err, ST_PARTIAL, "%zu of %zu points failed, %s: %s", f->n_errors,
                       f->n_points, f->first_error->point, f->first_error->detail);
    if (!f->n_points || f->n_failed < f->n_points)
        return ST_OK;
    return err_set(err, f->n_no_memory == f->n_failed ? ST_NO_MEMORY : ST_CHECK,
                   "no point could be measured; %s: %s%s%s", f->first->point,
                   row_failure(f->first), *f->first->detail ? ": " : "",
                   f->first->detail);
}

static void print_failures(FILE *out, const struct failures *f)
{
    const size_t n_errors = f->n_failed - f->n_no_memory;

    if (!f->n_failed || f->n_failed == f->n_points)
        return;
    fprintf(out, "%zu of %zu points have no figure:", f->n_failed, f->n_points);
    if (f->n_no_memory)
        fprintf(out, " %zu did not fit%s", f->n_no_memory, n_errors ? "," : "");
    if (n_errors)
        fprintf(out, " %zu failed", n_errors);
    fputc('\n', out);
}

/* ---- rounds ---------------------------------------------------------------------- */

/* like: a row of the model whose rounds they are; NULL: all models. */
static void print_rounds(FILE *f, const struct row *rows, size_t n_rows,
                         const struct row *like)
{
    struct round_effect *found = malloc(ROUNDS_MAX * sizeof *found);
    struct err err = ERR_INIT;
    size_t n = 0;

    if (!found || rounds_compare(found, &n, rows, n_rows, like, &err))
        fprintf(f, "rounds are not compared: no memory\n");
    for (size_t i = 0; i < n; i++) {
        if (like)
            fprintf(f, "%s %s: ", like->model, like->quant);
        fprintf(f,
                "the machine was %.0f %% %s in round %d than in the others (median of "
                "%zu points); speeds are as measured\n",
                100 * fabs(found[i].share - 1),
                found[i].share < 1 ? "slower" : "faster", found[i].round,
                found[i].n_points);
    }
    free(found);
}

static void print_rounds_by_model(FILE *f, const struct row *rows, size_t n_rows)
{
    const struct row *models[MAX_MODELS];
    size_t n = 0;

    for (size_t i = 0; i < n_rows; i++) {
        size_t k = 0;

        while (k < n && row_compare(models[k], &rows[i], FIELD_MODEL))
            k++;
        if (k < n || n == MAX_MODELS)
            continue;
        models[n++] = &rows[i];
        print_rounds(f, rows, n_rows, &rows[i]);
    }
}

/* ---- all ------------------------------------------------------------------------- */

/* The table, with the choice for each model marked. */
static void print_table(FILE *f, const struct row *rows, size_t n,
                        const struct recommend_answers *answers)
{
    const struct row *chosen[RECOMMEND_MAX_MODELS];
    size_t n_chosen = 0;

    for (size_t i = 0; i < answers->n; i++)
        if (!answers->v[i].none.code)
            chosen[n_chosen++] = &answers->v[i].rec.best;
    report_table(f, rows, n, chosen, n_chosen);
}

/* What comes next: to look at it, to deploy it, other wishes. */
static void print_next(FILE *f, const char *dir)
{
    static const struct {
        const char *command, *option, *what;
    } next[] = {
        {"report", "", "write a page to look at, report.html"},
        {"recommend", " --for slmbench",
         "print the command that deploys it (or llama.cpp, ollama, docker, k8s)"},
        {"recommend", " --min-tps 8",
         "choose for other wishes (`bench recommend --help`)"}};

    fputs("next:\n", f);
    for (size_t i = 0; i < sizeof next / sizeof next[0]; i++) {
        char command[4400] = "";

        text_append(command, sizeof command, "bench %s", next[i].command);
        shell_word_append(command, sizeof command, dir);
        text_append(command, sizeof command, "%s", next[i].option);
        fprintf(f, "  %s:\n    %s\n", next[i].what, command);
    }
}

static bool print_choice(FILE *f, const struct result_part *part)
{
    struct recommend_params params = {.ctx = -1};
    struct recommend_answers answers = {.n = 0};
    struct err err = ERR_INIT;

    params.max_threads = part->run->about.max_threads;
    if (recommend_each(&answers, part->rows, part->n, &params, &err))
        answers.n = 0;
    fputc('\n', f);
    print_table(f, part->rows, part->n, &answers);
    fputc('\n', f);
    if (err.code)
        fprintf(f, "no recommendation: %s\n", err.msg);
    else
        recommend_print_each(f, &answers);
    recommend_answers_free(&answers);
    return err.code == ST_OK;
}

enum status report_sweep(FILE *f, const struct result_part *part, bool one_by_one,
                         bool charts, struct err *err)
{
    const char *dir = part->run->dir;
    struct report_rows picked;
    struct failures failures;
    struct err why = ERR_INIT;
    bool has_choice;
    enum status st;

    has_choice = print_choice(f, part);
    if (one_by_one)
        print_rounds_by_model(f, part->rows, part->n);
    else
        print_rounds(f, part->rows, part->n, NULL);
    if (report_rows_pick(&picked, part->rows, part->n, err))
        return err->code;
    st = count_failures(&failures, &picked, err);
    report_rows_free(&picked);
    if (charts && report_charts(dir, NULL, part, &why) && why.code != ST_INTERRUPTED &&
        !(st && why.code == ST_CHECK)) /* a missing figure is printed anyway */
        fprintf(f, "%s\n", why.msg);
    if (has_choice)
        print_next(f, dir);
    fprintf(f, "results: %s\n", format_path(dir).text);
    print_failures(f, &failures);
    return why.code == ST_INTERRUPTED ? err_set(err, why.code, "%s", why.msg) : st;
}
