/* SPDX-License-Identifier: MIT
 *
 * sweep_settings.c - defaults, lists from text, and settings from YAML
 */
#include "harness/measure/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/program.h"
#include "harness/model/modelref.h"
#include "harness/rows/quality_rows.h"

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
    for (size_t i = 0; i < SETTING_N; i++)
        free(s->list[i].v);
    memset(s, 0, sizeof *s);
}

/* ---- places ---------------------------------------------------------------------- */

#define SETTING SETTING_PLACE
#define SETTING_PLACE_MODEL(...)
#define SETTING_PLACE_POINT(...)
#define SETTING_PLACE_SWEEP(...) SETTING_AT(struct sweep_settings, __VA_ARGS__)
#define SETTING_PLACE_NONE(...)
static const struct setting_place places[SETTING_N] = {
#include "harness/rows/settings/settings.def"
};

void *sweep_field(struct sweep_settings *s, enum setting_id id, size_t *size)
{
    if (!places[id].key)
        return point_field(&s->base, id, size);
    if (size)
        *size = places[id].size;
    return (char *)s + places[id].offset;
}

/* ---- defaults -------------------------------------------------------------------- */

static enum status init_list(struct sweep_settings *s, enum setting_id id,
                             const struct topology *topo, struct err *err)
{
    const struct setting *row = setting_row(id);
    const int value = (int)row->value;
    char text[40];

    if (id == SETTING_models || id == SETTING_engines)
        return ST_OK;
    return sweep_set(s, id,
                     row->initial ? row->initial
                                  : setting_text(id, &value, text, sizeof text),
                     topo, row->name, err);
}

enum status sweep_settings_init(struct sweep_settings *s, const struct topology *topo,
                                struct err *err)
{
    enum status status = ST_OK;

    memset(s, 0, sizeof *s);
    point_init(&s->base);
    s->base.setup.seed = 0;
    for (enum setting_id id = 0; id < SETTING_N && status == ST_OK; id++) {
        if (places[id].key)
            setting_default(id, sweep_field(s, id, NULL), places[id].size);
        else if (setting_row(id)->swept)
            status = init_list(s, id, topo, err);
    }
    return status;
}

/* ---- from text ------------------------------------------------------------------- */

enum status sweep_set_models(struct sweep_settings *s, const char *const *texts,
                             size_t n, const char *what, struct err *err)
{
    const size_t most = sizeof((struct modelref *)NULL)->text;
    struct str_list all;
    enum status st = modelref_expand(texts, n, &all, err);

    if (st)
        return st;
    if (!all.n || all.n > SWEEP_MAX_MODELS)
        st = err_set(err, ST_USAGE, "%s: %zu models; 1 to %d are possible", what, all.n,
                     SWEEP_MAX_MODELS);
    for (size_t i = 0; i < all.n && st == ST_OK; i++)
        if (!*all.v[i] || strlen(all.v[i]) >= most)
            st = err_set(err, ST_USAGE,
                         "%s: a name of %zu characters; 1 to %zu are possible", what,
                         strlen(all.v[i]), most - 1);
    if (st == ST_OK)
        free_models(s);
    for (size_t i = 0; i < all.n && st == ST_OK; i++) {
        s->models[i] = strdup(all.v[i]);
        if (!s->models[i])
            st = err_set(err, ST_NO_MEMORY, "no memory for %zu models", all.n);
        else
            s->n_models++;
    }
    free(all.v);
    return st;
}

/* Up to the recommended number, and where there are second hyperthreads once with all
 * of them: whether they help differs by machine, model and phase. */
static enum status all_threads(struct int_list *list, const struct topology *topo,
                               struct err *err)
{
    const int n = topo->threads_default, most = topology_max_threads(topo);
    int *v = malloc((size_t)(n + 1) * sizeof *v);
    size_t n_v = 0;

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %d thread counts", n);
    for (int t = 1; t < n; t += t < ALL_THREADS_DENSE ? 1 : (t + 2) / 3)
        v[n_v++] = t;
    v[n_v++] = n;
    if (most > n)
        v[n_v++] = most;
    free(list->v);
    list->v = v;
    list->n = n_v;
    return ST_OK;
}

static enum status set_quality(struct sweep_settings *s, const char *text,
                               const char *what, struct err *err)
{
    struct err why = ERR_INIT;

    if (strlen(text) >= sizeof s->quality)
        return err_set(err, ST_USAGE, "%s: %.40s... is too long a name", what, text);
    if (!strcmp(text, "none"))
        text = "";
    if (*text && quality_rows_copy(text, NULL, &why))
        return err_set(err, why.code, "%s: %s", what, why.msg);
    snprintf(s->quality, sizeof s->quality, "%s", text);
    return ST_OK;
}

/* Decode points need a thread count; prefill points without one have those of decode
 * points. */
static enum status set_list(struct sweep_settings *s, enum setting_id id,
                            const char *text, const struct topology *topo,
                            const char *what, struct err *err)
{
    const bool is_threads = id == SETTING_threads || id == SETTING_threads_prefill;
    struct int_list *list = &s->list[id];

    if (is_threads && !strcmp(text, "all"))
        return all_threads(list, topo, err);
    if (id == SETTING_threads && !strcmp(text, "none"))
        return err_set(err, ST_USAGE, "%s: at least one thread is needed", what);
    return setting_take_list(list, (int)id, text, what, err);
}

enum status sweep_set(struct sweep_settings *s, enum setting_id id, const char *text,
                      const struct topology *topo, const char *what, struct err *err)
{
    size_t size;
    void *field = sweep_field(s, id, &size);

    if (id == SETTING_speculate)
        return sweep_set_texts(s, text, what, err);
    if (id == SETTING_mem)
        return sweep_set_limits(s, text, what, err);
    if (id == SETTING_quality)
        return set_quality(s, text, what, err);
    if (setting_row(id)->swept)
        return set_list(s, id, text, topo, what, err);
    return setting_parse(id, text, what, field, size, err);
}

/* ---- from YAML ------------------------------------------------------------------- */

struct origin {
    struct sweep_settings *s;
    const struct topology *topo;
};

static enum status take(void *arg, enum setting_id id, const char *text,
                        const char *const *words, size_t n, const char *what,
                        struct err *err)
{
    const struct origin *from = arg;

    return id == SETTING_models ? sweep_set_models(from->s, words, n, what, err)
           : id == SETTING_engines
               ? sweep_set_engines(from->s, words, n, what, err)
               : sweep_set(from->s, id, text, from->topo, what, err);
}

enum status sweep_config_load(struct sweep_settings *s, const char *name,
                              const struct topology *topo, struct err *err)
{
    char buf[8192];
    const char *path = data_config_find(buf, sizeof buf, "sweeps", name);
    struct origin from = {s, topo};

    if (!data_file_is_there(path))
        return err_set_errno(err, ST_IO,
                             "cannot open the configuration %s; name a YAML file, or "
                             "one in configs/sweeps such as quick",
                             path);
    return setting_load_yaml(path, take, &from, err);
}
