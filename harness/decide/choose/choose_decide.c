/* SPDX-License-Identifier: MIT
 *
 * choose_decide.c - one decision from the rows of the sweep, and the command
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/apart.h"
#include "harness/base/format.h"
#include "harness/decide/choose/choose.h"
#include "harness/judge/compare/prices.h"
#include "harness/judge/recommend/deploy.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/result_set.h"

/* The mix that a row is of. */
static const struct choose_file *file_of(const struct choose_result *r,
                                         const struct row *row)
{
    for (size_t i = 0; i < r->n_mixes; i++) {
        const char *name = basename(r->mixes[i].path);
        const size_t n = strlen(row->model);

        if (!strncmp(name, row->model, n) && (!name[n] || !strcmp(name + n, ".gguf")))
            return &r->mixes[i];
    }
    return NULL;
}

/* The probability that the decision is right, and in what. */
static void print_choice(const struct recommendation *rec, const struct choose_wish *w)
{
    const bool has_floor = w->min_tps > 0 || w->max_ttft_s > 0;
    const double p = has_floor ? rec->p_floor : rec->p_best;

    printf("\nDecision: %s\n  ", recommend_choice(&rec->best).text);
    if (row_trust(&rec->best) == ROW_DISTURBED)
        printf("other programs ran while it was measured, so it may be faster\n  ");
    if (p > 0.999)
        printf("more than 99.9 %%");
    else
        printf("%.1f %%", 100 * p);
    printf(has_floor ? " sure that it reaches the limits, with the least divergence\n"
                     : " sure that it is the fastest of its quality\n");
}

static void print_speed(const struct recommendation *rec, const struct choose_wish *w)
{
    const struct recommend_prompt *p = &rec->prompt;

    printf("  speed        %.*f tok/s at depth %d", rec->best_tok_per_s < 100 ? 2 : 0,
           rec->best_tok_per_s, w->ctx);
    if (w->min_tps > 0)
        printf(" (minimum: %g)", w->min_tps);
    putchar('\n');
    if (!p->n_prompt)
        return;
    printf("  first token  %.3g s for %lld tokens", p->warm_s, (long long)p->n_prompt);
    if (isfinite(p->warm_max_s))
        printf(", at most %.3g s", p->warm_max_s);
    if (w->max_ttft_s > 0)
        printf(" (maximum: %g s)", w->max_ttft_s);
    putchar('\n');
}

static void print_memory(const struct recommendation *rec)
{
    const int64_t needed = row_needed_bytes(&rec->best);
    const int64_t limit = rec->best.mem_limit_bytes;

    if (needed <= 0)
        return;
    printf("  memory       %s", bytes_text((uint64_t)needed).text);
    if (limit > 0)
        printf(" of %s", bytes_text((uint64_t)limit).text);
    putchar('\n');
}

/* ---- tasks ----------------------------------------------------------------------- */

struct answering {
    const struct choose_file *file;
    const struct choose_settings *s;
};

static enum status answer(void *result, const void *arg, struct err *err)
{
    const struct answering *a = arg;

    return choose_answer(result, a->file, a->s, err);
}

/* score[0] of the choice, score[1] of the model itself. */
static enum status answer_tasks(struct choose_score score[2],
                                const struct choose_file *f,
                                const struct choose_result *r,
                                const struct choose_settings *s, struct err *err)
{
    struct choose_file own = {.bytes = r->bytes};

    snprintf(own.path, sizeof own.path, "%s", s->model);
    return apart_run(answer, &score[0], sizeof score[0], &(struct answering){f, s}, err)
               ? err->code
               : apart_run(answer, &score[1], sizeof score[1],
                           &(struct answering){&own, s}, err);
}

static void print_tasks(const struct choose_score score[2],
                        const struct choose_result *r)
{
    if (score->n)
        printf("  tasks        %zu of %zu right, %.0f %% (90 %% interval: %.0f to %.0f "
               "%%); %s: %zu\n",
               score->n_right, score->n,
               100 * (double)score->n_right / (double)score->n, 100 * score->lo,
               100 * score->hi, r->quant, score[1].n_right);
}

/* ---- all ------------------------------------------------------------------------- */

static void print_file(const struct choose_result *r, const struct choose_file *f,
                       const struct choose_wish *w, const struct recommendation *rec)
{
    const struct choose_file *usual = choose_rival(r, f);
    char text[300] = "";

    text_append(text, sizeof text, "KL %.6f +- %.6f from %s, the same token in %.1f %%",
                f->kl, 1.96 * f->kl_se, r->quant, f->top1_pct);
    if (usual && f->kl > 0)
        text_append(text, sizeof text, "; %s has %.6f", usual->name, usual->kl);
    printf("  divergence   ");
    text_wrap(stdout, text, 15, 15, 79, false);
    if (w->price > 0)
        printf("  price        %.3g per million tokens, at %g an hour\n",
               price_of_million(w->price, rec->best_tok_per_s, 1), w->price);
    printf("  file         %s, %s\n", format_path(f->path).text,
           bytes_text(f->bytes).text);
}

static enum status print_decision(const struct choose_result *r, const struct deploy *d,
                                  const struct choose_settings *s,
                                  const struct choose_wish *w, struct err *err)
{
    const struct choose_file *f = file_of(r, &d->rec.best);
    struct choose_score score[2] = {{.n = 0}};
    enum status st = s->tasks && f ? answer_tasks(score, f, r, s, err) : ST_OK;

    if (st)
        return st;
    print_choice(&d->rec, w);
    print_speed(&d->rec, w);
    print_memory(&d->rec);
    print_tasks(score, r);
    if (f)
        print_file(r, f, w, &d->rec);
    printf("\nDeploy it:\n");
    return deploy_print(stdout, d, err);
}

enum status choose_decide(const struct choose_result *r, const char *dir,
                          const struct choose_settings *s, const struct choose_wish *w,
                          struct err *err)
{
    const struct deploy_wish target = {.target = (enum deploy_target)w->target,
                                       .n_sequences = 1};
    struct recommend_params params = {.min_tps = w->min_tps,
                                      .max_ttft_s = w->max_ttft_s,
                                      .n_prompt = w->n_prompt,
                                      .ctx = w->ctx};
    struct deploy *d = malloc(sizeof *d);
    struct result_set set = {.n_parts = 0};
    enum status st = d ? result_set_open(&set, dir, RESULT_LAST, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a decision");

    if (!st) {
        params.max_threads = set.parts->run->about.max_threads;
        st = deploy_make(d, &target, set.parts->rows, set.parts->n, &params, err);
    }
    if (!st)
        st = print_decision(r, d, s, w, err);
    if (!st)
        printf("\nthe reasons: bench recommend %s\n", format_path(dir).text);
    result_set_free(&set);
    free(d);
    return st;
}
