/* SPDX-License-Identifier: MIT
 *
 * quality.c - the jobs, their remaining chunks, and their rows
 */
#include "harness/measure/quality/quality.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "engine/engine.h"
#include "harness/base/choice.h"
#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/base/parse.h"
#include "harness/base/pathlist.h"
#include "harness/model/model_names.h"
#include "harness/rows/model_rows.h"
#include "harness/rows/quality_rows.h"

#define DISK_SPARE (UINT64_C(64) << 20) /* results, and a margin */

struct plan {
    const struct quality_settings *s;
    int usual[QUALITY_N_SETTINGS];
    struct int_list values[QUALITY_N_SETTINGS]; /* one at least of each */
    struct quality_model *models;               /* [n_models] */
    size_t n_models, n_given; /* all, and those without a --reference of its own */
    size_t reference;
    struct quality_text text;
    bool alone; /* chunks are too long for a reference that sees all positions */
    struct quality_job *jobs; /* [n_models * values.n], the reference's first */
    size_t n_jobs;
    struct quality_store *rows; /* of the reference */
    char rows_path[4096];
    struct progress progress;
    double work_done;
};

/* ---- models and text ------------------------------------------------------------- */

/* As given: floats before others, then the larger file. */
static bool better_reference(const struct quality_model *a,
                             const struct quality_model *b)
{
    const bool fa = quality_model_is_float(a), fb = quality_model_is_float(b);

    return fa != fb ? fa : a->bytes > b->bytes;
}

static bool same_file(const struct quality_model *a, const struct quality_model *b)
{
    return a->key == b->key && !strcmp(a->name, b->name);
}

/* The models, each once; the reference is the last where it is not among them. */
static enum status read_models(struct plan *p, struct err *err)
{
    const struct quality_settings *s = p->s;
    const size_t n = s->n_models + (s->reference != NULL);

    if (n > MODELREFS_MAX)
        return err_set(err, ST_USAGE, "%zu models; at most %d are possible", n,
                       MODELREFS_MAX);
    p->models = calloc(n, sizeof *p->models);
    if (!p->models)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu models", n);
    for (size_t i = 0; i < n; i++) {
        const bool is_reference = i == s->n_models;
        size_t k = 0;

        if (quality_model_read(&p->models[p->n_models],
                               is_reference ? s->reference : s->models[i],
                               is_reference ? NULL : s->requant, err))
            return err->code;
        while (k < p->n_models && !same_file(&p->models[k], &p->models[p->n_models]))
            k++;
        p->n_models += k == p->n_models;
        if (is_reference)
            p->reference = k;
        else
            p->n_given = p->n_models;
    }
    quality_models_name(p->models, p->n_models);
    for (size_t i = 0; i < p->n_models && !s->reference; i++)
        if (better_reference(&p->models[i], &p->models[p->reference]))
            p->reference = i;
    return ST_OK;
}

/* With a window every chunk is possible, if the window is not too long itself. */
static enum status check_windows(struct plan *p, struct err *err)
{
    const struct int_list *windows = &p->values[QUALITY_KV_WINDOW];
    bool all = true;

    for (size_t k = 0; k < windows->n; k++) {
        all = all && windows->v[k] > 0;
        for (size_t i = 0; i < p->n_models; i++)
            if (windows->v[k] + SLM_DEFAULT_SINKS > p->models[i].n_ctx_train &&
                windows->v[k])
                return err_set(err, ST_USAGE,
                               "--kv-window %d: %s was made for contexts of %d "
                               "positions; with the first %d at most %d can be the "
                               "last ones",
                               windows->v[k], p->models[i].name,
                               p->models[i].n_ctx_train, SLM_DEFAULT_SINKS,
                               p->models[i].n_ctx_train - SLM_DEFAULT_SINKS);
    }
    for (size_t i = 0; all && i < p->n_models; i++)
        p->models[i].max_chunk = INT_MAX;
    return ST_OK;
}

static enum status read_text(struct plan *p, struct err *err)
{
    int ctx = p->s->ctx;
    enum status st = check_windows(p, err);

    if (st)
        return st;

    if (!ctx) {
        ctx = QUALITY_DEFAULT_CTX;
        for (size_t i = 0; i < p->n_models; i++)
            if (p->models[i].n_ctx_train < ctx)
                ctx = p->models[i].n_ctx_train;
    }
    st = quality_text_read(&p->text, &p->models[p->reference], p->s->text, ctx,
                           p->s->n_chunks, err);
    for (size_t i = 0; i < p->n_models && st == ST_OK; i++)
        if (i != p->reference)
            st = quality_text_check(&p->text, &p->models[p->reference], &p->models[i],
                                    err);
    for (size_t i = 0; i < p->n_models; i++)
        p->alone = p->alone || ctx > p->models[i].n_ctx_train;
    return st;
}

/* ---- jobs ------------------------------------------------------------------------ */

const enum setting_id quality_settings[QUALITY_N_SETTINGS] = {
    [QUALITY_KV_TYPE] = SETTING_kv_type,
    [QUALITY_KV_WINDOW] = SETTING_kv_window,
    [QUALITY_PREFILL_SUMS] = SETTING_prefill_sums,
};

static const char *kv_name(const struct quality_job *job)
{
    return choices_kv.name(job->value[QUALITY_KV_TYPE]);
}

static const char *sums_name(const struct quality_job *job)
{
    return choices_prefill_sums.name(job->value[QUALITY_PREFILL_SUMS]);
}

/* "f16", "f16-w512" with a window, "f16-int8" with such sums. */
static const char *name_values(const struct quality_job *job, char *buf, size_t cap)
{
    const int window = job->value[QUALITY_KV_WINDOW];

    snprintf(buf, cap, "%s", kv_name(job));
    if (window)
        text_append(buf, cap, "-w%d", window);
    if (job->value[QUALITY_PREFILL_SUMS])
        text_append(buf, cap, "-%s", sums_name(job));
    return buf;
}

static void set_columns(struct row *r, const struct quality_job *job)
{
    row_set_text(r, row_field_of(SETTING_kv_type), kv_name(job));
    if (job->value[QUALITY_KV_WINDOW])
        r->kv_window = job->value[QUALITY_KV_WINDOW];
    if (job->value[QUALITY_PREFILL_SUMS])
        r->prefill_sums = job->value[QUALITY_PREFILL_SUMS];
}

static void add_job(struct plan *p, size_t model, const int value[QUALITY_N_SETTINGS])
{
    struct quality_job *job = &p->jobs[p->n_jobs++];
    struct row r;

    job->model = &p->models[model];
    job->text = &p->text;
    job->session = p->s->session;
    for (int i = 0; i < QUALITY_N_SETTINGS; i++) {
        job->value[i] = value[i];
        *(int *)model_setup_field(&job->session.setup, quality_settings[i], NULL) =
            value[i];
    }
    row_init(&r);
    set_columns(&r, job);
    snprintf(job->name, sizeof job->name, "%.60s", job->model->name);
    row_append_unusual(&r, FIELD_COMPUTED, job->name, sizeof job->name);
    job->progress = &p->progress;
    job->work_done = &p->work_done;
}

static enum status make_jobs(struct plan *p, struct err *err)
{
    const struct int_list *types = &p->values[QUALITY_KV_TYPE];
    const struct int_list *windows = &p->values[QUALITY_KV_WINDOW];
    const struct int_list *sums = &p->values[QUALITY_PREFILL_SUMS];
    const size_t n_ways = types->n * windows->n * sums->n;
    const size_t most = p->n_models * n_ways + 1;

    p->jobs = calloc(most, sizeof *p->jobs);
    if (!p->jobs)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu models", p->n_models);
    if (!p->alone)
        add_job(p, p->reference, p->usual);
    for (size_t i = 0; i < p->n_given; i++)
        for (size_t k = 0; k < n_ways; k++) {
            const int value[QUALITY_N_SETTINGS] = {
                [QUALITY_KV_TYPE] = types->v[k / sums->n / windows->n],
                [QUALITY_KV_WINDOW] = windows->v[k / sums->n % windows->n],
                [QUALITY_PREFILL_SUMS] = sums->v[k % sums->n]};

            if (i != p->reference || memcmp(value, p->usual, sizeof value) != 0)
                add_job(p, i, value);
        }
    return ST_OK;
}

static bool has_reference(const struct plan *p)
{
    return p->n_jobs > 1 && !p->alone;
}

static uint64_t add_key(uint64_t h, uint64_t key)
{
    return hash_add(h, &key, sizeof key);
}

/* <out>/quality/<model>-<kv>-<key>.scores */
static enum status open_scores(struct plan *p, size_t i, struct err *err)
{
    struct quality_job *job = &p->jobs[i];
    uint64_t key = add_key(add_key(HASH_BEGIN, job->model->key), p->text.key);
    char path[PATH_MAX], values[32];

    key = add_key(key, (uint64_t)job->value[QUALITY_KV_TYPE]);
    if (job->value[QUALITY_KV_WINDOW])
        key = add_key(key, (uint64_t)job->value[QUALITY_KV_WINDOW]);
    if (job->value[QUALITY_PREFILL_SUMS])
        key = hash_add(key, sums_name(job), strlen(sums_name(job)));
    key = add_key(key, has_reference(p) ? p->models[p->reference].key : 0);
    snprintf(path, sizeof path, "%.3000s/quality/%.100s-%s-%016llx.scores", p->s->out,
             basename(job->model->name), name_values(job, values, sizeof values),
             (unsigned long long)key);
    return quality_store_open(
        &job->scores, path, key,
        quality_per_chunk(p->text.ctx) * sizeof(struct quality_score), err);
}

static bool is_complete(const struct quality_job *job)
{
    return quality_store_n(job->scores) >= job->text->n_chunks;
}

static enum status open_all_scores(struct plan *p, struct err *err)
{
    char dir[PATH_MAX];
    enum status st;

    snprintf(dir, sizeof dir, "%.3000s/quality", p->s->out);
    st = dirs_make(dir, err);
    for (size_t i = 0; i < p->n_jobs && st == ST_OK; i++)
        st = open_scores(p, i, err);
    return st;
}

/* ---- the reference's rows -------------------------------------------------------- */

static enum status check_disk(const struct plan *p, const char *dir, struct err *err)
{
    const struct quality_model *m = &p->models[p->reference];
    const size_t per_chunk = quality_per_chunk(p->text.ctx);
    const size_t row = quality_row_bytes((size_t)m->n_vocab);
    const uint64_t need = quality_store_bytes(row, per_chunk * p->text.n_chunks);
    const uint64_t have = quality_store_bytes(row, quality_store_n(p->rows));
    struct statvfs fs;

    if (need <= have || statvfs(dir, &fs))
        return ST_OK;
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (need - have + DISK_SPARE <= free_bytes)
        return ST_OK;
    return err_set(err, ST_NO_MEMORY,
                   "the predictions of %s need %s, and %s has %s free; take fewer "
                   "chunks with --chunks, or another directory with --cache-dir",
                   m->name, bytes_text(need - have).text, dir,
                   bytes_text(free_bytes).text);
}

/* Only where a score is missing that needs them. */
static enum status open_rows(struct plan *p, struct err *err)
{
    const struct quality_model *m = &p->models[p->reference];
    const uint64_t key = add_key(add_key(HASH_BEGIN, m->key), p->text.key);
    bool needed = false;
    char file[160], dir[sizeof p->rows_path];
    enum status st = ST_OK;

    for (size_t i = 0; i < p->n_jobs; i++)
        needed |= !is_complete(&p->jobs[i]);
    if (!needed || !has_reference(p))
        return ST_OK;
    snprintf(file, sizeof file, "quality/%.100s-%016llx.ref", basename(m->name),
             (unsigned long long)key);
    if (modelref_cache_path(p->rows_path, sizeof p->rows_path, p->s->cache_dir, file,
                            err))
        return err->code;
    snprintf(dir, sizeof dir, "%s", p->rows_path);
    *strrchr(dir, '/') = '\0';
    if (dirs_make(dir, err) ||
        quality_store_open(&p->rows, p->rows_path, key,
                           quality_row_bytes((size_t)m->n_vocab), err) ||
        check_disk(p, dir, err))
        st = err->code;
    for (size_t i = 0; i < p->n_jobs; i++)
        p->jobs[i].rows = p->rows;
    return st;
}

/* ---- running --------------------------------------------------------------------- */

/* Parameters times chunks: the cost of prefill with any quantisation. */
static double work_of(const struct plan *p)
{
    double work = 0;

    for (size_t i = 0; i < p->n_jobs; i++) {
        const struct quality_job *job = &p->jobs[i];
        const size_t n = i == 0 && p->rows ? quality_job_chunks_of_rows(job)
                                           : quality_store_n(job->scores);

        if (n < p->text.n_chunks)
            work += (double)(p->text.n_chunks - n) * (double)job->model->n_params;
    }
    return work;
}

static enum status run_jobs(struct plan *p, struct err *err)
{
    const double work = work_of(p);
    enum status st = ST_OK;

    progress_begin(&p->progress, "quality");
    for (size_t i = 0; i < p->n_jobs && st == ST_OK; i++) {
        struct quality_job *job = &p->jobs[i];

        job->work_total = work;
        if (i == 0 && p->rows) {
            st = quality_job_make_rows(job, err);
            if (st == ST_OK)
                st = quality_job_copy_scores(job, err);
        } else {
            st = quality_job_score(job, err);
        }
    }
    progress_end(&p->progress);
    return st;
}

/* ---- rows ------------------------------------------------------------------------ */

static enum status summarise(const struct quality_job *job, struct quality_summary *sum,
                             struct err *err)
{
    const size_t per_chunk = quality_per_chunk(job->text->ctx);
    const size_t n = per_chunk * job->text->n_chunks;
    struct quality_score *v = calloc(n, sizeof *v);
    double *scratch = calloc(n, sizeof *scratch);
    enum status st = v && scratch
                         ? ST_OK
                         : err_set(err, ST_NO_MEMORY, "no memory for %zu scores", n);

    for (size_t i = 0; i < job->text->n_chunks && st == ST_OK; i++)
        st = quality_store_read(job->scores, i, v + i * per_chunk, err);
    if (st == ST_OK)
        quality_summarise(sum, v, n, scratch);
    free(v);
    free(scratch);
    return st;
}

static void make_command(const struct plan *p, const struct quality_job *job,
                         struct row *r)
{
    const size_t cap = sizeof r->command;

    snprintf(r->command, cap, "bench quality -m");
    shell_word_append(r->command, cap, job->model->ref.text);
    if (has_reference(p)) {
        text_append(r->command, cap, " --reference");
        shell_word_append(r->command, cap, p->models[p->reference].ref.text);
    }
    text_append(r->command, cap, " --text");
    shell_word_append(r->command, cap, p->text.path);
    text_append(r->command, cap, " --ctx %d --chunks %zu --kv-type", p->text.ctx,
                p->text.n_chunks);
    shell_word_append(r->command, cap, kv_name(job));
    if (job->value[QUALITY_KV_WINDOW])
        text_append(r->command, cap, " --kv-window %d", job->value[QUALITY_KV_WINDOW]);
    if (job->value[QUALITY_PREFILL_SUMS])
        text_append(r->command, cap, " --prefill-sums %s", sums_name(job));
}

static void fill_figures(const struct plan *p, const struct quality_summary *s,
                         struct row *r)
{
    const struct quality_model *reference = &p->models[p->reference];

    snprintf(r->text, sizeof r->text, "%s", p->text.name);
    r->chunk_tokens = p->text.ctx;
    r->n_scored = (int64_t)s->n;
    r->perplexity = s->perplexity;
    r->perplexity_se = s->perplexity_se;
    if (!has_reference(p))
        return;
    snprintf(r->reference, sizeof r->reference, "%.95s", reference->name);
    r->reference_bytes = (int64_t)reference->bytes;
    r->ppl_ratio = s->ratio;
    r->ppl_ratio_se = s->ratio_se;
    r->kl_mean = s->kl_mean;
    r->kl_se = s->kl_se;
    r->kl_median = s->kl_median;
    r->kl_p99 = s->kl_p99;
    r->top1_pct = 100 * s->same;
    r->top1_se_pct = 100 * s->same_se;
}

static enum status make_row(const struct plan *p, const struct quality_job *job,
                            struct row *r, struct err *err)
{
    struct quality_summary sum;
    char values[32];

    if (summarise(job, &sum, err))
        return err->code;
    row_init(r);
    format_now(r->utc, sizeof r->utc);
    snprintf(r->point, sizeof r->point, "%.48s/quality/kv-%.15s/%.16s",
             job->model->name, name_values(job, values, sizeof values), p->text.name);
    row_name_build(r);
    r->kind = ROW_QUALITY;
    snprintf(r->model, sizeof r->model, "%s", job->model->ref.name);
    snprintf(r->model_label, sizeof r->model_label, "%s", job->model->ref.label);
    row_set_model(r, job->model->ref.identity);
    snprintf(r->quant, sizeof r->quant, "%s", job->model->quant);
    set_columns(r, job);
    r->status = ROW_STATUS_OK;
    snprintf(r->validity, sizeof r->validity, "valid");
    r->n_params = (int64_t)job->model->n_params;
    r->file_bytes = (int64_t)job->model->bytes;
    if (job->n_threads)
        r->n_threads = job->n_threads;
    make_command(p, job, r);
    fill_figures(p, &sum, r);
    row_disarm(r);
    return ST_OK;
}

static enum status make_report(const struct plan *p, struct quality_report *report,
                               struct err *err)
{
    enum status st = ST_OK;

    memset(report, 0, sizeof *report);
    report->rows = calloc(p->n_jobs, sizeof *report->rows);
    if (!report->rows)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", p->n_jobs);
    for (size_t i = 0; i < p->n_jobs && st == ST_OK; i++)
        st = make_row(p, &p->jobs[i], &report->rows[i], err);
    report->n = p->n_jobs;
    report->ctx = p->text.ctx;
    report->n_chunks = p->text.n_chunks;
    report->n_scored = p->text.n_chunks * quality_per_chunk(p->text.ctx);
    snprintf(report->text, sizeof report->text, "%s", p->text.path);
    if (p->rows) {
        snprintf(report->reference_path, sizeof report->reference_path, "%s",
                 p->rows_path);
        report->reference_bytes = quality_store_bytes(
            quality_row_bytes((size_t)p->models[p->reference].n_vocab),
            quality_store_n(p->rows));
    }
    if (st == ST_OK)
        st = quality_rows_write(p->s->out, report->rows, report->n, err);
    if (st)
        quality_report_free(report);
    return st;
}

void quality_report_free(struct quality_report *report)
{
    free(report->rows);
    memset(report, 0, sizeof *report);
}

static enum status check_output(const struct quality_settings *s, struct err *err)
{
    static const char *const names[] = {QUALITY_CSV, NULL};
    struct path_list inputs = {0};
    enum status st = path_list_add(&inputs, s->text, err);

    for (size_t i = 0; i < s->n_models && st == ST_OK; i++)
        st = path_list_add(&inputs, s->models[i], err);
    if (st == ST_OK)
        st = path_list_check_folder(&inputs, s->out, names, err);
    path_list_free(&inputs);
    return st;
}

enum status quality_run(struct quality_report *report, const struct quality_settings *s,
                        struct err *err)
{
    static enum status (*const steps[])(struct plan * p, struct err * err) = {
        read_models, read_text, make_jobs, open_all_scores, open_rows, run_jobs};
    struct plan *p = calloc(1, sizeof *p);
    enum status st;

    if (!p)
        return err_set(err, ST_NO_MEMORY, "no memory for a plan");
    p->s = s;
    for (int i = 0; i < QUALITY_N_SETTINGS; i++) {
        p->usual[i] = (int)setting_row(quality_settings[i])->value;
        p->values[i] =
            s->values[i].n ? s->values[i] : (struct int_list){&p->usual[i], 1};
    }
    st = check_output(s, err);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && st == ST_OK; i++)
        st = steps[i](p, err);
    if (st == ST_OK)
        st = make_report(p, report, err);
    for (size_t i = 0; i < p->n_jobs; i++)
        quality_store_close(p->jobs[i].scores);
    quality_store_close(p->rows);
    quality_text_free(&p->text);
    free(p->models);
    free(p->jobs);
    free(p);
    return st;
}
