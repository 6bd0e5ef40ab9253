/* SPDX-License-Identifier: MIT
 *
 * choose_source.c - the model that is quantised: its groups of matrices, and types
 */
#include "harness/decide/choose/choose_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/model/model_fence.h"
#include "harness/base/dirs.h"
#include "harness/measure/quality/quality_text.h"
#include "harness/measure/session/calibration.h"

/* What published files are made of and CPUs decode well, the finest first. Two bits
 * need an importance matrix. */
static const char usual_types[] = "q8_0,q6_K,q5_K,q4_K,iq4_xs,q3_K,iq3_s,q2_K";
static const char usual_weighed[] = "q8_0,q6_K,q5_K,q4_K,iq4_xs,q3_K,iq3_s,q2_K,iq2_s,"
                                    "iq2_xs";

/* ---- types ----------------------------------------------------------------------- */

static enum status read_types(struct choose *c, struct err *err)
{
    const char *usual = c->imatrix ? usual_weighed : usual_types;
    struct parse_list names = {.what = "--types",
                               .text = c->s->types ? c->s->types : usual};
    enum status st = ST_OK;

    while (parse_item(&names, &st, err)) {
        const enum kern_format type = kern_format_by_name(names.item);

        if (c->n_types == CHOOSE_MAX_TYPES)
            return err_set(err, ST_USAGE, "--types: more than %d types",
                           CHOOSE_MAX_TYPES);
        if (type == KERN_N_FMT || quantmix_by_base(type) == QUANTMIX_N)
            return err_set(err, ST_USAGE,
                           "--types: there is no type '%.40s'; write them as in %s",
                           names.item, usual_types);
        c->types[c->n_types++] = type;
    }
    if (st)
        return st;
    if (c->n_types < 2)
        return err_set(err, ST_USAGE, "--types: name two types at least, as in %s",
                       usual_types);
    c->probed = c->n_types * 2 / 3;
    c->types[c->n_types++] = KERN_N_FMT;
    return ST_OK;
}

const char *choose_type_name(const struct choose *c, size_t k)
{
    return c->types[k] == KERN_N_FMT ? "as it is" : kern_format_info(c->types[k])->name;
}

enum kern_format choose_format(const struct choose *c, const struct gguf_tensor *t,
                               size_t k)
{
    if (c->types[k] != KERN_N_FMT)
        return quantmix_fit_row(c->types[k], t->ne[0]);
    return t->fmt == KERN_FMT_f32 ? KERN_FMT_f16 : quantmix_written(t->fmt);
}

/* ---- groups ---------------------------------------------------------------------- */

/* A matrix of products, by what a mix would make of it. */
static bool is_matrix(const struct choose *c, const struct gguf_tensor *t)
{
    const struct requant_params p = {.mix = QUANTMIX_Q4_0, .pure = true};

    return t->fmt != KERN_N_FMT &&
           kern_format_info(requant_format(&p, c->source, t))->block_elems > 1;
}

/* The layer of "blk.3.attn_q.weight", whose kind is "attn_q.weight"; -1: it is in none.
 */
static int layer_of(const struct gguf_tensor *t, const char **kind)
{
    int layer = -1, n = 0;

    *kind = t->name;
    if (sscanf(t->name, "blk.%d.%n", &layer, &n) < 1 || !n || layer < 0)
        return -1;
    *kind = t->name + n;
    return layer;
}

/* Matrices of one kind and of neighbouring layers; 0 <= layer < n_layers. */
static int band_of(int layer, int n_layers, int n_bands)
{
    return (int)((long)layer * n_bands / n_layers);
}

static void name_group(char *name, size_t cap, int layer, int n_layers, int n_bands,
                       const char *kind)
{
    int first = layer, last = layer;

    while (first > 0 &&
           band_of(first - 1, n_layers, n_bands) == band_of(layer, n_layers, n_bands))
        first--;
    while (last + 1 < n_layers &&
           band_of(last + 1, n_layers, n_bands) == band_of(layer, n_layers, n_bands))
        last++;
    if (layer < 0)
        snprintf(name, cap, "%.80s", kind);
    else if (first == last)
        snprintf(name, cap, "blk.%d.%.60s", first, kind);
    else
        snprintf(name, cap, "blk.%d-%d.%.60s", first, last, kind);
}

static enum status add_to_group(struct choose *c, size_t tensor, const char *name,
                                struct err *err)
{
    struct choose_group *g = c->groups;
    size_t *grown;

    while (g < c->groups + c->n_groups && strcmp(g->name, name) != 0)
        g++;
    grown = realloc(g->tensor, (g->n + 1) * sizeof *grown);
    if (!grown)
        return err_set(err, ST_NO_MEMORY, "no memory for a group of matrices");
    if (g == c->groups + c->n_groups) {
        snprintf(g->name, sizeof g->name, "%s", name);
        c->n_groups++;
    }
    g->tensor = grown;
    g->tensor[g->n++] = tensor;
    g->n_elems += gguf_tensor_at(c->source, tensor)->n_elems;
    return ST_OK;
}

static void free_groups(struct choose *c)
{
    for (size_t g = 0; c->groups && g < c->n_groups; g++)
        free(c->groups[g].tensor);
    free(c->groups);
    c->groups = NULL;
    c->n_groups = 0;
}

/* All groups, with the layers in n_bands bands; more than are wanted are not all made.
 */
static enum status make_groups(struct choose *c, int n_layers, int n_bands,
                               struct err *err)
{
    const size_t n = gguf_n_tensors(c->source);
    enum status st = ST_OK;

    free_groups(c);
    c->groups = calloc(n + 1, sizeof *c->groups);
    if (!c->groups)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu matrices", n);
    for (size_t i = 0; i < n && !st && c->n_groups <= (size_t)c->s->n_groups; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(c->source, i);
        char name[sizeof c->groups->name], raw[sizeof c->groups->name];
        const char *kind;
        const int layer = layer_of(t, &kind);

        if (!is_matrix(c, t))
            continue;
        name_group(raw, sizeof raw, layer, n_layers, n_bands, kind);
        text_harmless(name, sizeof name, raw);
        st = add_to_group(c, i, name, err);
    }
    return st;
}

/* As many bands as the wanted number of groups allows. */
static enum status part(struct choose *c, struct err *err)
{
    const size_t most = (size_t)c->s->n_groups;
    int n_layers = 1;
    enum status st = ST_OK;

    for (size_t i = 0; i < gguf_n_tensors(c->source); i++) {
        const char *kind;
        const int layer = layer_of(gguf_tensor_at(c->source, i), &kind);

        n_layers = layer < 100000 && layer >= n_layers ? layer + 1 : n_layers;
    }
    for (int n_bands = n_layers < c->s->n_groups ? n_layers : c->s->n_groups;
         n_bands >= 1 && !st; n_bands--) {
        st = make_groups(c, n_layers, n_bands, err);
        if (st || c->n_groups <= most)
            break;
    }
    if (!st && c->n_groups > most)
        st = err_set(err, ST_USAGE,
                     "--groups %zu: %s has more kinds of matrices; give more", most,
                     c->ref.name);
    if (!st && !c->n_groups)
        st = err_set(err, ST_USAGE, "%s has no matrices to quantise", c->ref.text);
    return st;
}

/* ---- sizes ----------------------------------------------------------------------- */

static uint64_t aligned_bytes(const struct choose *c, const struct gguf_tensor *t,
                              enum kern_format fmt)
{
    const uint64_t bytes =
        t->n_elems / t->ne[0] * kern_format_bytes(fmt, (size_t)t->ne[0]);
    const uint64_t alignment = gguf_alignment(c->source);

    return (bytes + alignment - 1) / alignment * alignment;
}

/* Bytes of each group in each type, and of the rest of a file. */
static enum status find_sizes(struct choose *c, struct err *err)
{
    const struct choose_recipe as_it_is = {.mix = c->source_mix};
    struct gguf *made = NULL;

    c->option = calloc(c->n_groups * c->n_types, sizeof *c->option);
    c->error = calloc(c->n_groups * c->n_types, sizeof *c->error);
    c->kl = calloc(c->n_groups, sizeof *c->kl);
    if (!c->option || !c->error || !c->kl)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu groups", c->n_groups);
    if (choose_make(c, &made, &as_it_is, err))
        return err->code;
    c->fixed_bytes = gguf_image_bytes(made);
    for (size_t g = 0; g < c->n_groups; g++)
        for (size_t i = 0; i < c->groups[g].n; i++) {
            const struct gguf_tensor *t =
                gguf_tensor_at(c->source, c->groups[g].tensor[i]);

            c->fixed_bytes -= aligned_bytes(c, t, gguf_tensor_find(made, t->name)->fmt);
            for (size_t k = 0; k < c->n_types; k++)
                c->option[g * c->n_types + k].bytes +=
                    aligned_bytes(c, t, choose_format(c, t, k));
        }
    gguf_close(made);
    return ST_OK;
}

/* ---- opening --------------------------------------------------------------------- */

static enum status check_source(struct choose *c, struct err *err)
{
    struct slm_params params = slm_params_default();
    struct slm_info info;

    params.n_ctx = 1;
    if (slm_plan(&info, c->source, &params, err) || slm_check_predicts(&info, err))
        return err->code;
    snprintf(c->quant, sizeof c->quant, "%s", info.quant);
    c->n_params = info.n_params;
    c->source_mix = quantmix_by_name(info.quant);
    if (c->source_mix == QUANTMIX_F32 || c->source_mix == QUANTMIX_F16 ||
        c->source_mix == QUANTMIX_BF16 || c->source_mix == QUANTMIX_Q8_0)
        return ST_OK;
    return err_set(err, ST_USAGE,
                   "%s is %s already; choose begins with the F32, F16, BF16 or Q8_0 "
                   "file that it was made from",
                   c->ref.text, info.quant);
}

/* Memory is looked at before the model has any. */
static enum status look_at_memory(struct choose *c, struct err *err)
{
    struct topology *topo = NULL;
    const enum status st = topology_open(&topo, "", err);

    if (!st)
        c->memory_bytes = topology_model_bytes(topo, 0);
    free(topo);
    return st;
}

enum status choose_open(struct choose *c, struct err *err)
{
    enum status st = modelref_parse(&c->ref, c->s->model, NULL, err);

    if (!st)
        st = look_at_memory(c, err);

    if (!st && (c->ref.synthetic || c->ref.at_load))
        st = err_set(err, ST_USAGE,
                     "%s is no file; choose begins with a GGUF file or a "
                     "Hugging Face folder",
                     c->ref.text);
    if (st == ST_OK &&
        ((c->s->imatrix && imatrix_read(&c->imatrix, c->s->imatrix, err)) ||
         read_types(c, err) || model_fence_enter(err) ||
         modelref_open(&c->ref, &c->source, err) || check_source(c, err) ||
         part(c, err)))
        st = err->code;
    return st ? st : find_sizes(c, err);
}

void choose_close(struct choose *c)
{
    choose_state_close(&c->state);
    free_groups(c);
    free(c->option);
    free(c->error);
    free(c->kl);
    gguf_close(c->source);
    imatrix_free(c->imatrix);
}

/* ---- the importance matrix ------------------------------------------------------- */

#define CHUNKS 100 /* more change little */

/* Only a whole matrix gets its name. */
enum status choose_importance(char *path, size_t cap, const struct choose_settings *s,
                              struct err *err)
{
    char part[3100];
    struct calibration c = {
        .session = s->session, .text = s->calibration, .out = part, .n_chunks = CHUNKS};
    struct calibration_result r;
    struct quality_model m;
    struct imatrix *im = NULL;
    enum status st = quality_model_read(&m, s->model, NULL, err);

    snprintf(path, cap, "%.3000s/imatrix.gguf", s->out);
    snprintf(part, sizeof part, "%.3000s/imatrix-part.gguf", s->out);
    if (!st)
        st = dirs_make(s->out, err);
    if (st || !access(path, F_OK))
        return st;
    c.session.model = s->model;
    c.session.n_logits = 1;
    c.session.n_ctx = m.n_ctx_train && m.n_ctx_train < CALIBRATION_CTX
                          ? m.n_ctx_train
                          : CALIBRATION_CTX;
    st = calibrate(&im, &r, &c, err);
    if (!st && rename(part, path))
        st = err_set_errno(err, ST_IO, "cannot rename %s", part);
    if (!st)
        printf("importance matrix: %zu chunks of %s\n", r.done,
               format_path(s->calibration).text);
    imatrix_free(im);
    unlink(part);
    return st;
}
