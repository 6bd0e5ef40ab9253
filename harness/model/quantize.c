/* SPDX-License-Identifier: MIT
 *
 * quantize.c - a model file in another quantisation
 */
#include "harness/model/filework.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/gguf/gguf_save.h"
#include "engine/modelfile.h"
#include "harness/base/progress.h"
#include "harness/machine/fence/fence.h"
#include "harness/model/modelref.h"

struct work {
    const struct quantize_job *job;
    struct requant_params params;
    struct requant_rule *rules;
    char *texts; /* the patterns of the rules */
    struct imatrix *imatrix;
    struct requant_measure measures[KERN_N_FMT];
    struct gguf *from; /* the source, for the plan and the remarks */
    struct gguf *made; /* the result */
};

/* ---- the request ----------------------------------------------------------------- */

static enum status parse_type(struct work *w, struct err *err)
{
    const struct quantize_job *job = w->job;
    const enum kern_format fmt = kern_format_by_name(job->type);

    w->params.pure = job->pure;
    if (job->pure && fmt != KERN_N_FMT) {
        w->params.mix = quantmix_by_name(job->type);
        if (w->params.mix == QUANTMIX_N || quantmix_base(w->params.mix) != fmt)
            w->params.mix = quantmix_by_base(fmt);
        return ST_OK;
    }
    return mix_parse(&w->params.mix, job->type, err);
}

static enum status parse_rule(struct requant_rule *rule, char *text, struct err *err)
{
    char *equals = strrchr(text, '=');

    if (!equals || equals == text)
        return err_set(
            err, ST_USAGE,
            "--tensor-type takes PATTERN=TYPE, such as ffn_down=q6_K, not '%.80s'",
            text);
    *equals = '\0';
    rule->pattern = text;
    rule->fmt = kern_format_by_name(equals + 1);
    if (rule->fmt == KERN_N_FMT)
        return err_set(err, ST_USAGE,
                       "--tensor-type %.80s=%.40s: there is no format '%.40s'; q6_K, "
                       "q8_0 and f16 are some",
                       text, equals + 1, equals + 1);
    return ST_OK;
}

static enum status parse_rules(struct work *w, struct err *err)
{
    const struct quantize_job *job = w->job;
    size_t bytes = 1;
    char *p;

    for (size_t i = 0; i < job->n_rules; i++)
        bytes += strlen(job->rules[i]) + 1;
    w->rules = calloc(job->n_rules + 1, sizeof *w->rules);
    p = w->texts = malloc(bytes);
    if (!w->rules || !w->texts)
        return err_set(err, ST_NO_MEMORY, "no memory for the rules");
    for (size_t i = 0; i < job->n_rules; i++) {
        const size_t n = strlen(job->rules[i]) + 1;

        memcpy(p, job->rules[i], n);
        if (parse_rule(&w->rules[i], p, err))
            return err->code;
        p += n;
    }
    w->params.rules = w->rules;
    w->params.n_rules = job->n_rules;
    return ST_OK;
}

static enum status check_output(const struct quantize_job *job, struct err *err)
{
    struct path_list inputs = {0};
    struct modelref in;
    enum status st = ST_OK;

    if (modelref_parse(&in, job->in, NULL, err) || modelref_files(&in, &inputs, err) ||
        path_list_add(&inputs, job->imatrix, err) ||
        path_list_check_output(&inputs, job->out, err))
        st = err->code;
    path_list_free(&inputs);
    return st;
}

static enum status prepare(struct work *w, struct err *err)
{
    const struct quantize_job *job = w->job;
    struct gguf *source = NULL;
    enum status st;

    st = job->out ? check_output(job, err) : ST_OK;
    if (!st)
        st = parse_type(w, err);
    if (!st)
        st = parse_rules(w, err);
    if (!st && job->imatrix) {
        st = imatrix_read(&w->imatrix, job->imatrix, err);
        w->params.imatrix = w->imatrix;
        w->params.imatrix_name = basename(job->imatrix);
    }
    w->params.keep_output = job->keep_output;
    w->params.requantise = true;
    w->params.measures = job->rmse ? w->measures : NULL;
    if (!st)
        st = fence_enter_calls(-1, err);
    /* Opened twice: the second one describes the result. */
    if (st == ST_OK && (modelfile_open(&w->from, job->in, NULL, err) ||
                        modelfile_open(&source, job->in, NULL, err) ||
                        requant_open(&w->made, source, &w->params, err)))
        st = err->code;
    return st;
}

/* ---- the work -------------------------------------------------------------------- */

static enum status save(struct work *w, struct err *err)
{
    struct thread_pool *pool = NULL;
    struct progress bar;
    enum status st = filework_pool(&pool, w->job->n_threads, err);

    if (st)
        return st;
    progress_begin(&bar, "quantising");
    st = gguf_save(w->made, w->job->out, pool, filework_progress, &bar,
                   "choose a smaller quantisation", err);
    progress_end(&bar);
    thread_pool_stop(pool);
    return st;
}

enum status quantize_run(const struct quantize_job *job, struct err *err)
{
    struct work w = {.job = job};
    const uint64_t begin = clock_ns();
    enum status st = prepare(&w, err);

    if (!st) {
        quantize_remark(w.from, w.made, &w.params);
        if (job->dry_run)
            quantize_print_plan(w.from, w.made);
        else
            st = save(&w, err);
    }
    if (!st)
        quantize_print_result(job->dry_run ? NULL : job->out, w.from, w.made, &w.params,
                              (double)(clock_ns() - begin) * 1e-9);
    gguf_close(w.made);
    gguf_close(w.from);
    imatrix_free(w.imatrix);
    free(w.rules);
    free(w.texts);
    return st;
}
