/* SPDX-License-Identifier: MIT
 *
 * choose.c - the steps in their order: errors, groups, mixes, usual mixes
 */
#include "harness/decide/choose/choose_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/measure/quality/quality_text.h"

/* Mixes that people download, the largest first: the sizes that are searched for, and
 * what a mix is compared with. */
static const enum quantmix usual_mixes[] = {
    QUANTMIX_Q8_0,   QUANTMIX_Q6_K,   QUANTMIX_Q5_K_M, QUANTMIX_Q4_K_M, QUANTMIX_Q4_K_S,
    QUANTMIX_IQ4_XS, QUANTMIX_Q3_K_M, QUANTMIX_IQ3_S,  QUANTMIX_Q2_K};

/* ---- the directory --------------------------------------------------------------- */

/* A path as a text of JSON; NULL: "". */
static struct shown_path shown(const char *path)
{
    return format_path(path ? path : "");
}

/* What every step depends on. */
static enum status open_state(struct choose *c, struct err *err)
{
    const struct choose_settings *s = c->s;
    struct quality_model m;
    char key[20], types[400] = "";
    json_t *settings;

    if (quality_model_read(&m, s->model, NULL, err))
        return err->code;
    snprintf(key, sizeof key, "%016llx", (unsigned long long)m.key);
    for (size_t k = 0; k + 1 < c->n_types; k++)
        text_append(types, sizeof types, "%s%s", k ? "," : "", choose_type_name(c, k));
    settings = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:i}", "model",
                         c->ref.name, "files and version", key, "imatrix",
                         shown(s->imatrix).text, "calibration",
                         shown(s->calibration).text, "text", shown(s->text).text, "ctx",
                         s->ctx, "chunks", s->n_chunks, "sense-chunks",
                         s->n_sense_chunks, "types", types, "groups", (int)c->n_groups);
    return choose_state_open(&c->state, s->out, settings, err);
}

/* ---- the pass over the groups ---------------------------------------------------- */

static enum status measure_groups(struct choose *c, struct err *err)
{
    uint8_t *type = malloc(c->n_groups);
    char path[sizeof c->state.dir + 24];
    enum status st =
        type ? ST_OK
             : err_set(err, ST_NO_MEMORY, "no memory for %zu groups", c->n_groups);

    snprintf(path, sizeof path, "%s/trial.gguf", c->state.dir);
    for (size_t g = 0; g < c->n_groups && !st; g++) {
        const struct choose_recipe recipe = {.type = type};
        struct choose_file f = {.promised = NAN};

        memset(type, (int)c->n_types - 1, c->n_groups);
        type[g] = (uint8_t)c->probed;
        snprintf(f.name, sizeof f.name, "%s in %s", c->groups[g].name,
                 choose_type_name(c, c->probed));
        st = choose_measure(c, &f, f.name, &recipe, path, false, c->s->n_sense_chunks,
                            err);
        c->kl[g] = f.kl > 0 ? f.kl : 0;
    }
    free(type);
    return st;
}

/* A group's divergence in every type, from that in one. */
static void fill_losses(struct choose *c)
{
    for (size_t g = 0; g < c->n_groups; g++) {
        const double *error = c->error + g * c->n_types;
        struct mix_option *o = c->option + g * c->n_types;

        for (size_t k = 0; k < c->n_types; k++)
            o[k].loss =
                error[c->probed] > 0 ? c->kl[g] * error[k] / error[c->probed] : 0;
    }
}

/* ---- mixes ----------------------------------------------------------------------- */

static double bits_of(const struct choose *c, uint64_t bytes)
{
    return 8.0 * (double)bytes / (double)c->n_params;
}

/* A mix that was found, written and measured. */
static enum status measure_mix(struct choose *c, struct choose_file *f,
                               const uint8_t *type, struct err *err)
{
    const struct choose_recipe recipe = {.type = type};
    char path[sizeof c->state.dir + 300], step[100];

    snprintf(path, sizeof path, "%s/%s-%.3fbpw.gguf", c->state.dir, c->ref.label,
             bits_of(c, f->bytes));
    snprintf(step, sizeof step, "mix %016llx",
             (unsigned long long)hash_add(HASH_BEGIN, type, c->n_groups));
    return choose_measure(c, f, step, &recipe, path, true, c->s->n_chunks, err);
}

/* The best mix whose file has at most max_bytes, unless it is the same as the one
 * before; the model itself, where it is that small. */
static enum status add_mix(struct choose *c, struct choose_result *r,
                           uint64_t max_bytes, struct err *err)
{
    const struct mix_table table = {c->n_groups, c->n_types, c->option};
    struct choose_file *f = &r->mixes[r->n_mixes];
    uint8_t *type;
    struct mix_option sum = {.bytes = 0};
    enum status st;

    if (max_bytes >= gguf_image_bytes(c->source) && r->n_mixes)
        return ST_OK;
    if (max_bytes >= gguf_image_bytes(c->source)) {
        *f = (struct choose_file){
            .bytes = gguf_image_bytes(c->source), .promised = 0, .top1_pct = 100};
        snprintf(f->name, sizeof f->name, "%s", c->quant);
        snprintf(f->path, sizeof f->path, "%s", c->s->model);
        r->n_mixes++;
        return ST_OK;
    }
    type = malloc(c->n_groups);
    if (!type)
        return err_set(err, ST_NO_MEMORY, "no memory for a mix");
    st = mix_search(type, &sum, &table, max_bytes - c->fixed_bytes, err);
    *f =
        (struct choose_file){.promised = sum.loss, .bytes = c->fixed_bytes + sum.bytes};
    snprintf(f->name, sizeof f->name, "%.3f bits", bits_of(c, f->bytes));
    if (!st && r->n_mixes && !strcmp(f[-1].name, f->name)) {
        c->n_steps--;
    } else if (!st) {
        st = measure_mix(c, f, type, err);
        r->n_mixes += !st;
    }
    free(type);
    return st;
}

/* One of the usual mixes, for comparison; it is not kept. */
static enum status add_usual(struct choose *c, struct choose_result *r,
                             enum quantmix mix, struct err *err)
{
    const struct choose_recipe recipe = {.mix = mix};
    struct choose_file *f = &r->usual[r->n_usual];
    char path[sizeof c->state.dir + 24];
    enum status st;

    *f = (struct choose_file){.promised = NAN};
    snprintf(f->name, sizeof f->name, "%s", quantmix_name(mix));
    snprintf(path, sizeof path, "%s/trial.gguf", c->state.dir);
    st = choose_measure(c, f, f->name, &recipe, path, false, c->s->n_chunks, err);
    r->n_usual += !st;
    return st;
}

/* ---- sizes that are wanted ------------------------------------------------------- */

struct sizes {
    uint64_t max;                        /* of a file */
    enum quantmix mix[CHOOSE_MAX_MIXES]; /* usual ones that are as small, by size */
    uint64_t bytes[CHOOSE_MAX_MIXES];
    size_t n;
};

static enum status find_wanted(struct choose *c, struct sizes *w, struct err *err)
{
    const struct mix_table table = {c->n_groups, c->n_types, c->option};
    const uint64_t min = c->fixed_bytes + mix_min_bytes(&table);
    const uint64_t own = gguf_image_bytes(c->source);

    *w = (struct sizes){.max = own};
    if (c->s->max_file && c->s->max_file < own)
        w->max = c->s->max_file;
    if (c->s->room && min + c->s->others > c->s->room)
        return err_set(
            err, ST_CHECK,
            "%s does not fit %s of memory: its smallest mix of these types needs "
            "%s; take --mem of that size, a smaller --ctx, smaller types "
            "with --types, or a smaller model",
            c->ref.name, bytes_text(c->s->room).text,
            bytes_text(min + c->s->others).text);
    if (c->s->room && c->s->room - c->s->others < w->max)
        w->max = c->s->room - c->s->others;
    if (min > w->max)
        return err_set(err, ST_CHECK,
                       "no mix of these types is as small as %s: the smallest file of "
                       "%s has %s; raise the limit to that, add smaller types with "
                       "--types, or take a smaller model",
                       bytes_text(w->max).text, c->ref.name, bytes_text(min).text);
    for (size_t i = 0; i < sizeof usual_mixes / sizeof usual_mixes[0]; i++) {
        const struct choose_recipe recipe = {.mix = usual_mixes[i]};
        struct gguf *made = NULL;
        const enum status st = choose_make(c, &made, &recipe, err);
        uint64_t bytes;

        if (st)
            return st;
        bytes = gguf_image_bytes(made);
        gguf_close(made);
        if (bytes > w->max || bytes < min || w->n + 1 >= (size_t)c->s->n_mixes ||
            (w->n && bytes >= w->bytes[w->n - 1]))
            continue;
        w->mix[w->n] = usual_mixes[i];
        w->bytes[w->n++] = bytes;
    }
    return ST_OK;
}

/* ---- all ------------------------------------------------------------------------- */

static enum status run(struct choose *c, struct choose_result *r, struct err *err)
{
    struct sizes wanted;
    enum status st = find_wanted(c, &wanted, err);

    if (st)
        return st;
    c->n_steps =
        c->n_groups + 2 * wanted.n + (wanted.max < gguf_image_bytes(c->source));
    printf("%s: %s, %zu matrices in %zu groups; %zu steps in %s\n", c->ref.name,
           c->quant, gguf_n_tensors(c->source), c->n_groups, c->n_steps,
           format_path(c->s->out).text);
    fflush(stdout);
    if (choose_errors(c, err) || measure_groups(c, err))
        return err->code;
    fill_losses(c);
    st = add_mix(c, r, wanted.max, err);
    for (size_t i = 0; i < wanted.n && !st; i++) {
        st = add_mix(c, r, wanted.bytes[i], err);
        if (!st)
            st = add_usual(c, r, wanted.mix[i], err);
    }
    return st;
}

enum status choose_files(struct choose_result *r, const struct choose_settings *s,
                         struct err *err)
{
    struct choose_settings own = *s;
    struct choose c = {.s = &own, .state = {.lock = -1}};
    char imatrix[3100];
    enum status st = ST_OK;

    *r = (struct choose_result){.n_mixes = 0};
    if (s->calibration) {
        st = choose_importance(imatrix, sizeof imatrix, s, err);
        own.imatrix = imatrix;
    }
    if (st == ST_OK && (choose_open(&c, err) || open_state(&c, err) || run(&c, r, err)))
        st = err->code;
    if (!st) {
        snprintf(r->model, sizeof r->model, "%.120s", c.ref.name);
        snprintf(r->quant, sizeof r->quant, "%s", c.quant);
        r->bytes = gguf_image_bytes(c.source);
        r->n_params = c.n_params;
        r->n_groups = c.n_groups;
        r->n_scored = c.n_scored;
        r->seconds = c.seconds;
    }
    choose_close(&c);
    return st;
}
