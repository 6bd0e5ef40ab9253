/* SPDX-License-Identifier: MIT
 *
 * choose_measure.c - a file of a recipe, and its divergence from the source
 */
#include "harness/decide/choose/choose_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/gguf/gguf_save.h"
#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/measure/quality/quality.h"
#include "harness/model/filework.h"

#define HELD_SPARE (UINT64_C(256) << 20) /* KV cache, buffers */

/* ---- making it ------------------------------------------------------------------- */

/* A rule for each matrix: its name as a pattern that matches nothing else. */
struct rules {
    struct requant_rule *rule;
    char (*pattern)[128];
    size_t n;
};

static void free_rules(struct rules *r)
{
    free(r->rule);
    free(r->pattern);
}

static enum status make_rules(struct rules *r, const struct choose *c,
                              const uint8_t *type, struct err *err)
{
    const size_t n = gguf_n_tensors(c->source);

    *r = (struct rules){.rule = calloc(n, sizeof *r->rule),
                        .pattern = calloc(n, sizeof *r->pattern)};
    if (!r->rule || !r->pattern)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rules", n);
    for (size_t g = 0; g < c->n_groups; g++)
        for (size_t i = 0; i < c->groups[g].n; i++) {
            const struct gguf_tensor *t =
                gguf_tensor_at(c->source, c->groups[g].tensor[i]);
            char *pattern = r->pattern[r->n];
            const enum kern_format fmt = choose_format(c, t, type[g]);

            if (strlen(t->name) + 3 > sizeof *r->pattern)
                return err_set(err, ST_INPUT, "%s: the name of %s is too long",
                               c->ref.text, t->name);
            /* Brackets make it the pattern of a whole name. */
            snprintf(pattern, sizeof *r->pattern, "[%c]%s", t->name[0], t->name + 1);
            r->rule[r->n++] = (struct requant_rule){pattern, fmt};
        }
    return ST_OK;
}

/* rules is for free_rules() in any case. */
static enum status set_params(struct requant_params *p, struct rules *rules,
                              const struct choose *c,
                              const struct choose_recipe *recipe, struct err *err)
{
    enum status st = ST_OK;

    *rules = (struct rules){.n = 0};
    *p = (struct requant_params){.mix = recipe->mix,
                                 .requantise = true,
                                 .imatrix = c->imatrix,
                                 .imatrix_name =
                                     c->s->imatrix ? basename(c->s->imatrix) : NULL};
    if (!recipe->type)
        return ST_OK;
    st = make_rules(rules, c, recipe->type, err);
    p->rules = rules->rule;
    p->n_rules = rules->n;
    p->mix = c->source_mix;
    p->no_file_type = true;
    return st;
}

enum status choose_make(const struct choose *c, struct gguf **made,
                        const struct choose_recipe *recipe, struct err *err)
{
    struct requant_params p;
    struct rules rules;
    struct gguf *source = NULL;
    enum status st = set_params(&p, &rules, c, recipe, err);

    if (!st)
        st = modelref_open(&c->ref, &source, err);
    if (!st)
        st = requant_open(made, source, &p, err);
    free_rules(&rules);
    return st;
}

static enum status write_file(const struct choose *c, const char *path,
                              const struct choose_recipe *recipe, bool keep,
                              uint64_t *bytes, struct err *err)
{
    struct thread_pool *pool = NULL;
    struct gguf *made = NULL;
    struct progress bar;
    struct stat there;
    enum status st = choose_make(c, &made, recipe, err);

    if (st)
        return st;
    *bytes = gguf_image_bytes(made);
    if (!keep || stat(path, &there) || (uint64_t)there.st_size != *bytes) {
        st = filework_pool(&pool, c->s->session.setup.n_threads, err);
        progress_begin(&bar, "writing");
        if (!st)
            st = gguf_save(made, path, pool, filework_progress, &bar,
                           "choose another directory with -o", err);
        progress_end(&bar);
        thread_pool_stop(pool);
    }
    gguf_close(made);
    return st;
}

/* ---- measuring it ---------------------------------------------------------------- */

/* The file at path, or, with requant, the source quantised while it is loaded. */
static enum status measure(struct choose *c, struct choose_file *f, const char *path,
                           const struct requant_params *requant, bool keep,
                           int n_chunks, struct err *err)
{
    char out[sizeof c->state.dir + 16], cache[sizeof c->state.dir + 16];
    struct quality_report report = {.rows = NULL};
    struct quality_settings q = {.models = &path,
                                 .n_models = 1,
                                 .requant = requant,
                                 .reference = c->s->model,
                                 .text = c->s->text,
                                 .ctx = c->s->ctx,
                                 .n_chunks = n_chunks,
                                 .session = c->s->session,
                                 .out = out,
                                 .cache_dir = cache};

    snprintf(out, sizeof out, "%s%s", c->state.dir, keep ? "" : "/trials");
    snprintf(cache, sizeof cache, "%s/reference", c->state.dir);
    if (quality_run(&report, &q, err))
        return err->code;
    const struct row *r = &report.rows[report.n - 1];

    f->kl = r->kl_mean;
    f->kl_se = r->kl_se;
    f->top1_pct = r->top1_pct;
    c->n_scored = report.n_scored;
    quality_report_free(&report);
    return ST_OK;
}

/* Whether memory holds the quantised model, which cannot be paged then. */
static bool is_held(const struct choose *c, uint64_t bytes)
{
    return bytes + bytes / 8 + HELD_SPARE < c->memory_bytes;
}

/* What is not kept is quantised into memory, where it fits: a file for each group would
 * write a large model a hundred times. */
static enum status try_recipe(struct choose *c, struct choose_file *f,
                              const struct choose_recipe *recipe, const char *path,
                              int n_chunks, struct err *err)
{
    struct gguf *made = NULL;
    struct requant_params p;
    struct rules rules;
    enum status st = choose_make(c, &made, recipe, err);

    if (st)
        return st;
    f->bytes = gguf_image_bytes(made);
    gguf_close(made);
    if (is_held(c, f->bytes)) {
        st = set_params(&p, &rules, c, recipe, err);
        if (!st)
            st = measure(c, f, c->s->model, &p, false, n_chunks, err);
        free_rules(&rules);
        return st;
    }
    st = write_file(c, path, recipe, false, &f->bytes, err);
    if (!st)
        st = measure(c, f, path, NULL, false, n_chunks, err);
    unlink(path);
    return st;
}

/* ---- as a step ------------------------------------------------------------------- */

static bool read_step(struct choose *c, const char *step, struct choose_file *f)
{
    const json_t *v = choose_state_get(&c->state, step);
    const double kl = json_number_value(json_object_get(v, "kl"));
    const json_int_t bytes = json_integer_value(json_object_get(v, "bytes"));

    if (!json_is_number(json_object_get(v, "kl")) || !(kl >= -1) || bytes <= 0)
        return false;
    f->kl = kl;
    f->bytes = (uint64_t)bytes;
    f->kl_se = json_number_value(json_object_get(v, "kl_se"));
    f->top1_pct = json_number_value(json_object_get(v, "top1_pct"));
    c->n_scored = (size_t)json_integer_value(json_object_get(v, "n_scored"));
    c->seconds += json_number_value(json_object_get(v, "seconds"));
    return true;
}

static enum status write_step(struct choose *c, const char *step,
                              const struct choose_file *f, double seconds,
                              struct err *err)
{
    c->spent_s += seconds;
    c->seconds += seconds;
    c->n_spent++;
    return choose_state_put(&c->state, step,
                            json_pack("{s:I, s:f, s:f, s:f, s:I, s:f}", "bytes",
                                      (json_int_t)f->bytes, "kl", f->kl, "kl_se",
                                      f->kl_se, "top1_pct", f->top1_pct, "n_scored",
                                      (json_int_t)c->n_scored, "seconds", seconds),
                            err);
}

static void print_step(const struct choose *c, const struct choose_file *f)
{
    const double left =
        c->n_spent ? c->spent_s / (double)c->n_spent * (double)(c->n_steps - c->n_done)
                   : 0;

    printf("%zu of %zu  %s: KL %.6f", c->n_done, c->n_steps, f->name, f->kl);
    if (c->n_spent && c->n_done < c->n_steps)
        printf(" (%s left)", duration_text(left).text);
    putchar('\n');
    fflush(stdout);
}

enum status choose_measure(struct choose *c, struct choose_file *f, const char *step,
                           const struct choose_recipe *recipe, const char *path,
                           bool keep, int n_chunks, struct err *err)
{
    const uint64_t begin = clock_ns();
    const bool is_done = read_step(c, step, f);
    enum status st = ST_OK;

    if (keep)
        st = write_file(c, path, recipe, true, &f->bytes, err);
    if (!st && !is_done)
        st = keep ? measure(c, f, path, NULL, true, n_chunks, err)
                  : try_recipe(c, f, recipe, path, n_chunks, err);
    if (st)
        return st;
    c->n_done++;
    if (!is_done)
        st = write_step(c, step, f, (double)(clock_ns() - begin) * 1e-9, err);
    if (!st && !is_done)
        print_step(c, f);
    if (keep)
        snprintf(f->path, sizeof f->path, "%s", path);
    return st;
}
