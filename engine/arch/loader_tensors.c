/* SPDX-License-Identifier: MIT
 *
 * loader_tensors.c - apply rules: find and check every tensor by name, shape and type
 */
#include "engine/arch/loader_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/gguf/own_scale.h"

const struct tensor_rule tensors_ends_rms[] = {
    {"token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, embd)}},
    {"output.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, output)}, .optional = true},
    {"output.bias", .kind = TENSOR_VECTOR, .part = {MODEL_PART(VOCAB, b_output)},
     .optional = true},
    {"output_norm.weight", .kind = TENSOR_VECTOR,
     .part = {MODEL_PART(EMBD, output_norm.w)}},
    {0},
};

const struct tensor_rule tensors_ends_layernorm[] = {
    {"token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, embd)}},
    {"output.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, output)}, .optional = true},
    {"output.bias", .kind = TENSOR_VECTOR, .part = {MODEL_PART(VOCAB, b_output)},
     .optional = true},
    {"output_norm.weight", .kind = TENSOR_VECTOR,
     .part = {MODEL_PART(EMBD, output_norm.w)}},
    {"output_norm.bias", .kind = TENSOR_VECTOR,
     .part = {MODEL_PART(EMBD, output_norm.b)}},
    {0},
};

/* ---- one tensor ------------------------------------------------------------------ */

static void tensor_name(char *full, size_t cap, int layer, const char *name)
{
    if (layer < 0)
        snprintf(full, cap, "%s", name);
    else
        snprintf(full, cap, "blk.%d.%s", layer, name);
}

bool loader_has(const struct loader *l, int layer, const char *name)
{
    char full[96];

    tensor_name(full, sizeof full, layer, name);
    return gguf_tensor_find(l->g, full) != NULL;
}

enum status loader_rows_of(struct loader *l, int layer, const char *name, int *out)
{
    char full[96];
    const struct gguf_tensor *t;

    tensor_name(full, sizeof full, layer, name);
    t = gguf_tensor_find(l->g, full);
    if (!t || t->ne[1] < 1 || t->ne[1] > MAX_WIDTH)
        return loader_fail(l, ST_INPUT,
                           "tensor %s is missing, or has an impossible number of rows",
                           full);
    *out = (int)t->ne[1];
    return ST_OK;
}

static const char *known_formats(char *buf, size_t cap)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int fmt = 0; fmt < KERN_N_FMT && used < cap; fmt++)
        used += (size_t)snprintf(buf + used, cap - used, "%s%s", fmt ? " " : "",
                                 kern_format_info((enum kern_format)fmt)->name);
    return buf;
}

/* Find a tensor; check its shape ne[3] (unused dimensions 1) and type. */
static enum status find_tensor(struct loader *l, const struct gguf_tensor **out,
                               int layer, const char *name, const uint64_t *ne)
{
    char full[96], formats[256], type[32];
    const struct gguf_tensor *t = NULL;

    tensor_name(full, sizeof full, layer, name);
    t = gguf_tensor_find(l->g, full);
    if (!t)
        return loader_fail(l, ST_INPUT, "tensor %s is missing", full);
    if (t->ne[0] != ne[0] || t->ne[1] != ne[1] || t->ne[2] != ne[2] || t->ne[3] != 1)
        return loader_fail(l, ST_INPUT,
                           "tensor %s is %llu x %llu x %llu x %llu, the metadata need "
                           "%llu x %llu x %llu x 1",
                           full, (unsigned long long)t->ne[0],
                           (unsigned long long)t->ne[1], (unsigned long long)t->ne[2],
                           (unsigned long long)t->ne[3], (unsigned long long)ne[0],
                           (unsigned long long)ne[1], (unsigned long long)ne[2]);
    if (t->fmt == KERN_N_FMT) {
        const char *known = gguf_ggml_name(t->ggml_id);

        snprintf(type, sizeof type, "number %u", (unsigned)t->ggml_id);
        return loader_fail(
            l, ST_UNSUPPORTED,
            "tensor %s has type %s, which is not supported; supported are %s", full,
            known ? known : type, known_formats(formats, sizeof formats));
    }
    const size_t index = (size_t)(t - gguf_tensor_at(l->g, 0));

    assert(gguf_tensor_at(l->g, index) == t);
    l->used[index] += l->used[index] < 2;
    *out = t;
    return ST_OK;
}

enum status loader_vector(struct loader *l, const float **out, int layer,
                          const char *name, size_t n)
{
    const uint64_t ne[3] = {n, 1, 1};
    const struct gguf_tensor *t = NULL;
    const enum status st = find_tensor(l, &t, layer, name, ne);

    return st ? st : loader_fetch(l, out, t, n);
}

/* ---- rules ----------------------------------------------------------------------- */

static bool has_part(const struct tensor_rule *r, int i)
{
    return i < TENSOR_PARTS && r->part[i].rows != DIM_NONE;
}

static size_t sum_of_parts(const struct model *m, const struct layer *y,
                           const struct tensor_rule *r)
{
    size_t sum = 0;

    for (int i = 0; has_part(r, i); i++)
        sum += loader_size_of(m, y, r->part[i].rows);
    return sum;
}

void loader_shape(const struct model *m, const struct layer *y,
                  const struct tensor_rule *r, uint64_t ne[3])
{
    const size_t n = sum_of_parts(m, y, r);

    ne[0] = r->k == DIM_NONE ? n : loader_size_of(m, y, r->k);
    ne[1] = r->k == DIM_NONE ? 1 : n;
    ne[2] = loader_size_of(m, y, r->slices);
}

bool loader_is_for(const struct model *m, const struct layer *y, enum tensor_when when)
{
    switch (when) {
    case WHEN_DENSE:
        return !y->routed && y->n_ff;
    case WHEN_EXPERTS:
        return y->routed;
    case WHEN_SHARED:
        return y->routed && m->n_ff_shared;
    case WHEN_ATTENTION:
        return y->attends;
    case WHEN_RECURRENT:
        return y->recurrent;
    case WHEN_Q_RANK:
        return m->latent.q_rank > 0;
    case WHEN_NO_Q_RANK:
        return m->latent.q_rank == 0;
    case WHEN_OWN_KV:
        return !y->shares;
    case WHEN_PER_LAYER:
        return m->n_per_layer > 0;
    case WHEN_ALWAYS:
        break;
    }
    return true;
}

/* In the layer whose tensors are read. */
static size_t size_here(const struct loader *l, enum dim d)
{
    return loader_size_of(l->m, l->layer, d);
}

static bool applies(const struct loader *l, const struct tensor_rule *r, int layer)
{
    if (!loader_is_for(l->m, layer < 0 ? NULL : &l->m->layers[layer], r->when))
        return false;
    if (r->unless && loader_has(l, layer, r->unless))
        return false;
    return !r->optional || loader_has(l, layer, r->name);
}

/* The bytes of experts that are not taken, in a tensor with equal parts for all. */
static uint64_t unused_share(const struct model *m, const struct gguf_tensor *t)
{
    const uint64_t n = (uint64_t)m->n_experts;

    return t->bytes / n * (n - (uint64_t)m->n_experts_used);
}

/* Bytes of a vector that no token reads: those of experts that it does not take, and
 * all of a tensor that another rule has counted. */
static uint64_t bytes_not_read(const struct loader *l, const struct tensor_rule *r,
                               const struct gguf_tensor *t)
{
    if (l->used[t - gguf_tensor_at(l->g, 0)] > 1)
        return t->bytes;
    return r->k != DIM_NONE && r->part[0].rows == DIM_EXPERTS ? unused_share(l->m, t)
                                                              : 0;
}

static enum status apply_vector(struct loader *l, const struct tensor_rule *r,
                                const struct gguf_tensor *t, unsigned char *base)
{
    const size_t k = size_here(l, r->k);
    const float *values = NULL;
    const enum status st =
        loader_fetch(l, &values, t, k * sum_of_parts(l->m, l->layer, r));

    if (!st)
        l->m->weight_token_bytes -= bytes_not_read(l, r, t);
    for (int i = 0; !st && has_part(r, i); i++) {
        *(const float **)(void *)(base + r->part[i].field) = values;
        if (values)
            values += k * size_here(l, r->part[i].rows);
    }
    return st;
}

/* Views must start at a panel, or nothing is in panels. */
static bool may_be_packed(const struct loader *l, const struct tensor_rule *r)
{
    const struct latent_sizes *lat = &l->m->latent;
    size_t first = 0;

    if (r->part[0].rows == DIM_LATENT_KV &&
        (lat->key_dim % KERN_PANEL_ROWS || lat->value_dim % KERN_PANEL_ROWS))
        return false;

    for (int i = 0; has_part(r, i); i++) {
        if (first % KERN_PANEL_ROWS)
            return false;
        first += size_here(l, r->part[i].rows);
    }
    return r->kind == TENSOR_MATRIX;
}

/* What a decoded token costs more with this matrix, or with the experts it is of. */
static void count_matrix(struct model *m, const struct matrix *w, bool experts)
{
    const uint64_t n_used = experts ? (uint64_t)m->n_experts_used : w->n_slices;

    m->weight_token_bytes += n_used * matrix_slice_bytes(w);
    m->weight_token_macs += n_used * w->n_rows * w->k;
    if (experts)
        m->expert_bytes += matrix_slice_bytes(w);
}

/* Rows of each slice in panels, of a tensor that products read. */
static size_t take_panels(struct loader *l, const struct gguf_tensor *t)
{
    if (l->in_panels)
        l->in_panels[t - gguf_tensor_at(l->g, 0)] = true;
    return l->w ? weights_panel_rows(l->w, t) : 0;
}

static enum status refuse_panels(struct loader *l, const struct gguf_tensor *t)
{
    return loader_fail(l, ST_INPUT,
                       "tensor %s is in panels, and the %s architecture reads its "
                       "rows; run `bench pack` again on the model that the file was "
                       "made from",
                       t->name, l->m->arch->name);
}

static void mark_used(struct loader *l, const struct gguf_tensor *t)
{
    if (t)
        l->used[t - gguf_tensor_at(l->g, 0)] = 1;
}

/* A matrix's own scale, of n_slices slices, to *out; that of its inputs is not used:
 * activations are quantised with scales of their own values. */
static enum status take_scale(struct loader *l, const struct tensor_rule *r,
                              const struct gguf_tensor *t, const float **out,
                              size_t *n_scales)
{
    const size_t n_slices = size_here(l, r->slices);
    const struct gguf_tensor *scale = gguf_own_scale(l->g, t);

    *out = NULL;
    *n_scales = 0;
    mark_used(l, gguf_input_scale(l->g, t));
    mark_used(l, scale);
    if (!scale)
        return ST_OK;
    if (scale->n_elems != 1 && scale->n_elems != n_slices)
        return loader_fail(l, ST_INPUT,
                           "tensor %s has %llu scales; its matrix has one, or one for "
                           "each of %zu slices",
                           scale->name, (unsigned long long)scale->n_elems, n_slices);
    *n_scales = (size_t)scale->n_elems;
    if (r->slices == DIM_EXPERTS && *n_scales > 1)
        l->m->weight_token_bytes -= unused_share(l->m, scale);
    return loader_fetch(l, out, scale, *n_scales);
}

static enum status apply_matrix(struct loader *l, const struct tensor_rule *r,
                                const struct gguf_tensor *t, unsigned char *base)
{
    struct model *m = l->m;
    const bool in_panels = may_be_packed(l, r);
    const size_t k = size_here(l, r->k), row_bytes = kern_format_bytes(t->fmt, k);
    const size_t panel_rows = in_panels ? take_panels(l, t) : 0;
    const unsigned char *data = l->w ? weights_data(l->w, t) : NULL;
    const float *scale = NULL;
    size_t first = 0, n_scales = 0;
    enum status st;

    if (t->panel_rows && !in_panels && r->kind == TENSOR_MATRIX)
        return refuse_panels(l, t);
    st = take_scale(l, r, t, &scale, &n_scales);
    if (st)
        return st;
    for (int i = 0; has_part(r, i); i++) {
        struct matrix *w = (void *)(base + r->part[i].field);
        const size_t n = size_here(l, r->part[i].rows);
        const size_t behind = panel_rows > first ? panel_rows - first : 0;

        *w = (struct matrix){
            .name = t->name,
            .data = data ? data + first * row_bytes : NULL,
            .places = l->w ? weights_slices(l->w, t) : NULL,
            .mapped = l->w && weights_is_mapped(l->w, t),
            .fmt = t->fmt,
            .act = kern_format_info(t->fmt)->act,
            .n_rows = n,
            .k = k,
            .n_slices = size_here(l, r->slices),
            .first = first,
            .slice_rows = sum_of_parts(m, l->layer, r),
            .row_bytes = row_bytes,
            .panel_rows = behind < n ? behind : n,
            .scale = scale,
            .n_scales = n_scales,
        };
        first += n;
        if (r->kind == TENSOR_TABLE)
            m->weight_token_bytes += row_bytes;
        else
            count_matrix(m, w, r->slices == DIM_EXPERTS);
    }
    return ST_OK;
}

static bool has_each(const struct loader *l, const struct tensor_rule *r, int layer)
{
    char first[64];

    snprintf(first, sizeof first, "%s.0.weight", r->each);
    return !loader_has(l, layer, r->name) && loader_has(l, layer, first);
}

/* Slices in separate tensors, which must have one type. */
static enum status apply_each(struct loader *l, const struct tensor_rule *r, int layer,
                              const uint64_t *ne, unsigned char *base)
{
    const size_t n_slices = size_here(l, r->slices);
    const struct model before = *l->m;
    struct matrix *w = (void *)(base + r->part[0].field), first = {0};
    struct matrix_slice *slices = calloc(n_slices, sizeof *slices);
    enum status st = slices
                         ? ST_OK
                         : loader_fail(l, ST_NO_MEMORY,
                                       "no memory for %zu experts' places", n_slices);

    for (size_t s = 0; !st && s < n_slices; s++) {
        const struct gguf_tensor *t = NULL;
        char name[64];

        snprintf(name, sizeof name, "%s.%zu.weight", r->each, s);
        st = find_tensor(l, &t, layer, name, ne);
        if (st)
            break;
        if (s > 0 && t->fmt != first.fmt)
            st = loader_fail(l, ST_UNSUPPORTED,
                             "tensor %s has type %s, and that of the first expert is "
                             "%s: experts of different types are not supported",
                             t->name, kern_format_info(t->fmt)->name,
                             kern_format_info(first.fmt)->name);
        else
            st = apply_matrix(l, r, t, base);
        if (st)
            break;
        if (s == 0)
            first = *w;
        if (w->n_scales != first.n_scales || w->n_scales > 1)
            st = loader_fail(l, ST_UNSUPPORTED,
                             "experts in separate tensors may have one scale each, or "
                             "none of them any; %s differs",
                             t->name);
        slices[s] = (struct matrix_slice){w->name, w->data};
    }
    if (st) {
        free(slices);
        return st;
    }
    w->data = first.data;
    w->slices = slices;
    w->scale = first.scale; /* vectors are read one behind another */
    w->n_scales = first.n_scales ? n_slices : 0;
    /* Each slice was counted as all of them. */
    l->m->weight_token_bytes = before.weight_token_bytes;
    l->m->weight_token_macs = before.weight_token_macs;
    l->m->expert_bytes = before.expert_bytes;
    count_matrix(l->m, w, true);
    return ST_OK;
}

enum status loader_tensors(struct loader *l, const struct tensor_rule *table, int layer,
                           void *base)
{
    l->layer = layer < 0 ? NULL : &l->m->layers[layer];
    for (const struct tensor_rule *r = table; r->name; r++) {
        const struct gguf_tensor *t = NULL;
        uint64_t ne[3];
        enum status st;

        if (!applies(l, r, layer))
            continue;
        loader_shape(l->m, l->layer, r, ne);
        if (r->each && has_each(l, r, layer)) {
            ne[2] = 1;
            st = apply_each(l, r, layer, ne, base);
            if (st)
                return st;
            continue;
        }
        st = find_tensor(l, &t, layer, r->name, ne);
        if (!st && r->kind == TENSOR_VECTOR)
            st = apply_vector(l, r, t, base);
        else if (!st)
            st = apply_matrix(l, r, t, base);
        if (st)
            return st;
    }
    return ST_OK;
}

void loader_ignore(struct loader *l, int layer, const char *name)
{
    char full[96];

    tensor_name(full, sizeof full, layer, name);
    mark_used(l, gguf_tensor_find(l->g, full));
}

/* The vocabulary is as large as the embedding; it is not compared with the tokenizer's
 * here. */
enum status loader_ends(struct loader *l, struct model *m)
{
    const struct gguf_tensor *t = gguf_tensor_find(l->g, "token_embd.weight");
    enum status st;

    if (t && (t->ne[1] < 1 || t->ne[1] > MAX_WIDTH))
        return loader_fail(l, ST_INPUT, "a vocabulary of %llu tokens is not possible",
                           (unsigned long long)t->ne[1]);
    m->n_vocab = t ? (int)t->ne[1] : 1;
    st = loader_tensors(l, m->arch->ends, -1, m);
    if (!st && m->output.n_rows && t->panel_rows)
        st = refuse_panels(l, t);
    if (st || m->output.n_rows || m->is_encoder)
        return st;
    /* Tied weights are looked up and multiplied with; one copy in panels serves both.
     */
    m->embd.panel_rows = take_panels(l, t);
    m->output = m->embd;
    count_matrix(m, &m->output, false);
    return ST_OK;
}
