/* SPDX-License-Identifier: MIT
 *
 * sweep_settings.c - defaults, and lists from text
 */
#include "harness/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/parse.h"
#include "harness/result/quality_rows.h"
#include "harness/settings/setting.h"

#define ALL_THREADS_DENSE 8 /* up to here every count; beyond, steps of a third */

static void free_models(struct sweep_settings *s)
{
    for (size_t i = 0; i < s->n_models; i++)
        free(s->models[i]);
    s->n_models = 0;
}

void sweep_settings_free(struct sweep_settings *s)
{
    free_models(s);
    free(s->threads.v);
    free(s->threads_prefill.v);
    free(s->ctx.v);
    free(s->prefill.v);
    memset(s, 0, sizeof *s);
}

enum status sweep_settings_init(struct sweep_settings *s, const struct topology *topo,
                                struct err *err)
{
    enum status status;

    memset(s, 0, sizeof *s);
    s->n_tokens = SETTING_DEFAULT(tokens);
    s->n_passes = SETTING_DEFAULT(passes);
    s->n_batch = SETTING_DEFAULT(batch);
    s->budget_s = setting_row(SETTING_budget)->value;
    s->load_budget_s = setting_row(SETTING_timeout)->value;
    s->n_repeats = SETTING_DEFAULT(repeats);
    s->placements[0] = PLACEMENT_SPREAD;
    s->n_placements = 1;
    s->residencies[0] = WEIGHTS_AUTO;
    s->n_residencies = 1;
    s->kv_types[0] = KERN_KV_f16;
    s->n_kv_types = 1;
    status = sweep_set_threads(s, "all", topo, "threads", err);
    if (status == ST_OK)
        status = setting_parse_list(SETTING_ctx, "0,1024,4096", "ctx", &s->ctx, err);
    if (status == ST_OK)
        status =
            setting_parse_list(SETTING_prefill, "128", "prefill", &s->prefill, err);
    return status;
}

enum status sweep_set_models(struct sweep_settings *s, const char *const *texts,
                             size_t n, const char *what, struct err *err)
{
    if (!n || n > SWEEP_MAX_MODELS)
        return err_set(err, ST_USAGE, "%s: %zu models; 1 to %d are possible", what, n,
                       SWEEP_MAX_MODELS);
    free_models(s);
    for (size_t i = 0; i < n; i++) {
        s->models[i] = strdup(texts[i]);
        if (!s->models[i])
            return err_set(err, ST_NO_MEMORY, "no memory for %zu models", n);
        s->n_models++;
    }
    return ST_OK;
}

static enum status all_threads(struct int_list *list, int n, struct err *err)
{
    int *v = malloc((size_t)n * sizeof *v);
    size_t n_v = 0;

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %d thread counts", n);
    for (int t = 1; t < n; t += t < ALL_THREADS_DENSE ? 1 : (t + 2) / 3)
        v[n_v++] = t;
    v[n_v++] = n;
    free(list->v);
    list->v = v;
    list->n = n_v;
    return ST_OK;
}

static enum status set_counts(struct int_list *list, enum setting_id id,
                              const char *text, const struct topology *topo,
                              const char *what, struct err *err)
{
    if (!strcmp(text, "all"))
        return all_threads(list, topo->threads_default, err);
    return setting_parse_list(id, text, what, list, err);
}

enum status sweep_set_threads(struct sweep_settings *s, const char *text,
                              const struct topology *topo, const char *what,
                              struct err *err)
{
    const enum status status =
        set_counts(&s->threads, SETTING_threads, text, topo, what, err);

    if (status == ST_OK && !s->threads.n)
        return err_set(err, ST_USAGE, "%s: at least one thread is needed", what);
    return status;
}

enum status sweep_set_threads_prefill(struct sweep_settings *s, const char *text,
                                      const struct topology *topo, const char *what,
                                      struct err *err)
{
    return set_counts(&s->threads_prefill, SETTING_threads_prefill, text, topo, what,
                      err);
}

/* A file is named absolutely, so that --resume works from anywhere. */
enum status sweep_set_tuned(struct sweep_settings *s, const char *text,
                            const char *what, struct err *err)
{
    const bool is_word = !strcmp(text, "auto") || !strcmp(text, "none");
    struct err why = ERR_INIT;
    struct tuned ignored;
    char *path;
    int n;

    if (!is_word && tuned_load(&ignored, text, &why))
        return err_set(err, why.code, "%s: %s", what, why.msg);
    path = is_word ? strdup(strcmp(text, "none") ? text : "") : realpath(text, NULL);
    if (!path)
        return err_set_errno(err, ST_IO, "%s: cannot open %s", what, text);
    n = snprintf(s->tuned, sizeof s->tuned, "%s", path);
    free(path);
    if (n >= (int)sizeof s->tuned)
        return err_set(err, ST_USAGE, "%s: %s is too long a name", what, text);
    return ST_OK;
}

enum status sweep_set_quality(struct sweep_settings *s, const char *text,
                              const char *what, struct err *err)
{
    struct err why = ERR_INIT;

    if (strlen(text) >= sizeof s->quality)
        return err_set(err, ST_USAGE, "%s: %s is too long a name", what, text);
    if (!strcmp(text, "none"))
        text = "";
    if (*text && quality_rows_bring(text, NULL, &why))
        return err_set(err, why.code, "%s: %s", what, why.msg);
    snprintf(s->quality, sizeof s->quality, "%s", text);
    return ST_OK;
}

enum status sweep_set_placements(struct sweep_settings *s, const char *text,
                                 const char *what, struct err *err)
{
    char *copy = strdup(text), *save = NULL;
    enum placement found[PLACEMENT_NONE + 1];
    int n = 0;
    enum status status = copy ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL;
         word && status == ST_OK; word = strtok_r(NULL, ", ", &save)) {
        if (n > PLACEMENT_NONE)
            status = err_set(err, ST_USAGE, "%s: '%s' names more placements than exist",
                             what, text);
        else
            status = placement_parse(word, &found[n++], err);
    }
    if (status == ST_OK && !n)
        status = err_set(err, ST_USAGE, "%s: at least one placement is needed", what);
    if (status == ST_OK) {
        memcpy(s->placements, found, (size_t)n * sizeof found[0]);
        s->n_placements = n;
    }
    free(copy);
    return status;
}

enum status sweep_set_residencies(struct sweep_settings *s, const char *text,
                                  const char *what, struct err *err)
{
    enum weights_residency found[SWEEP_MAX_RESIDENCIES];
    char *copy = strdup(text), *save = NULL;
    int n = 0;
    enum status status = copy ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL;
         word && status == ST_OK; word = strtok_r(NULL, ", ", &save)) {
        enum weights_residency r = WEIGHTS_MMAP;

        if (n == SWEEP_MAX_RESIDENCIES)
            status =
                err_set(err, ST_USAGE, "%s: '%s' names more than auto, mmap and packed",
                        what, text);
        else
            status = residency_parse(word, what, &r, err);
        if (status == ST_OK && r == WEIGHTS_MEMORY)
            status =
                err_set(err, ST_USAGE,
                        "%s: weights of a sweep are auto, mmap or packed, not memory; "
                        "bench decode takes it",
                        what);
        if (status == ST_OK)
            found[n++] = r;
    }
    if (status == ST_OK && !n)
        status = err_set(err, ST_USAGE, "%s: auto, mmap or packed are needed", what);
    if (status == ST_OK) {
        memcpy(s->residencies, found, (size_t)n * sizeof found[0]);
        s->n_residencies = n;
    }
    free(copy);
    return status;
}

enum status sweep_set_kv_types(struct sweep_settings *s, const char *text,
                               const char *what, struct err *err)
{
    enum kern_kv found[KERN_N_KV];
    char *copy = strdup(text), *save = NULL;
    int n = 0;
    enum status status = copy ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL;
         word && status == ST_OK; word = strtok_r(NULL, ", ", &save)) {
        if (n == KERN_N_KV)
            status = err_set(err, ST_USAGE, "%s: '%s' names more types than exist",
                             what, text);
        else
            status = kv_type_parse(word, what, &found[n++], err);
    }
    if (status == ST_OK && !n)
        status = err_set(err, ST_USAGE, "%s: at least one type is needed", what);
    if (status == ST_OK) {
        memcpy(s->kv_types, found, (size_t)n * sizeof found[0]);
        s->n_kv_types = n;
    }
    free(copy);
    return status;
}
