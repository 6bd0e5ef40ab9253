/* SPDX-License-Identifier: MIT
 *
 * hf_tensors.c - the tensors of a folder as those of a GGUF file
 *
 * Each tensor of the result is made of one or several of the folder, its parts; a row
 * number selects a part and a row in it. Parts stay on disk; hf_rows.c reads rows on
 * request.
 */
#include "engine/hf/hf_tensors_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/strtab.h"
#include "engine/base/utf8.h"
#include "engine/quantize/quantmix.h"

/* ---- from names to entries ------------------------------------------------------- */

#define MAX_BECOMES 3 /* tensors made of one */

struct item {
    char name[HF_NAME_BYTES];
    unsigned part;
    enum hf_how how;
    const struct safetensor *t;
};

static int by_name_and_part(const void *a, const void *b)
{
    const struct item *s = a, *t = b;
    const int order = strcmp(s->name, t->name);

    return order ? order : (s->part > t->part) - (s->part < t->part);
}

/* Order of the folder's data, so that the disk is read from front to back. */
static int by_place(const void *a, const void *b)
{
    const struct hf_entry *s = a, *t = b;

    return s->parts[0] < t->parts[0] ? -1 : s->parts[0] > t->parts[0];
}

/* The tensor's name as messages show it. */
static const char *show(char *buf, size_t cap, const char *name)
{
    return utf8_printable(buf, cap, name, strlen(name));
}

/* Append the tensors made of t to items[*n]. */
static enum status add_items(struct item *items, size_t *n, const struct hf_config *c,
                             const struct safetensor *t, const char *dir,
                             struct err *err)
{
    const struct hf_name *name;
    char shown[80], buf[160];
    const char *full = hf_nextn_name(c, t->name, buf, sizeof buf);

    for (int nth = 0; nth < MAX_BECOMES; nth++) {
        struct item *item = &items[*n];

        name = hf_name_find(c->arch->names, full, nth, item->name, sizeof item->name,
                            &item->part);
        if (!name && nth)
            break;
        if (!name)
            return err_set(err, ST_UNSUPPORTED,
                           "%s: the tensor '%s' is no part of a %s model as known "
                           "here, and without it the model would be another one",
                           dir, show(shown, sizeof shown, t->name),
                           c->arch->model_type);
        item->how = name->how;
        item->t = t;
        /* Some writers keep a copy of a tied embedding. */
        if (name->how != HF_SKIP && !(c->tied && !strcmp(item->name, "output.weight")))
            ++*n;
    }
    return ST_OK;
}

/* The tensors that are used, sorted; *n of them. */
static enum status list_items(struct item **out, size_t *n, const struct hf_config *c,
                              const struct safetensors *s, const char *dir,
                              struct err *err)
{
    const size_t count = safetensors_count(s);
    struct item *items = calloc(MAX_BECOMES * count + 1, sizeof *items);
    enum status st = ST_OK;

    *n = 0;
    if (!items)
        return err_set(err, ST_NO_MEMORY, "no memory for the %zu tensors of %s", count,
                       dir);
    for (size_t i = 0; i < count && !st; i++)
        st = add_items(items, n, c, safetensors_at(s, i), dir, err);
    if (st) {
        free(items);
        return st;
    }
    qsort(items, *n, sizeof *items, by_name_and_part);
    *out = items;
    return ST_OK;
}

/* Check parts of one name: numbered 0, 1, ..., of one type and shape. */
static enum status check_parts(const struct item *items, size_t n, const char *dir,
                               struct err *err)
{
    char a[80], b[80];

    for (size_t i = 1; i < n; i++) {
        const struct safetensor *s = items[0].t, *t = items[i].t;

        show(a, sizeof a, items[i - 1].t->name);
        show(b, sizeof b, t->name);
        if (items[i].part == items[i - 1].part)
            return err_set(err, ST_INPUT, "%s: '%s' and '%s' are the same tensor twice",
                           dir, a, b);
        if (items[0].how == HF_STACK && (s->fmt != t->fmt || s->n_dims != t->n_dims ||
                                         memcmp(s->shape, t->shape, sizeof s->shape)))
            return err_set(err, ST_INPUT,
                           "%s: '%s' has another type or shape than those beside it",
                           dir, b);
    }
    if (items[n - 1].part != n - 1)
        return err_set(err, ST_INPUT,
                       "%s: '%s' is number %u of a list of %zu; one is missing", dir,
                       show(a, sizeof a, items[n - 1].t->name), items[n - 1].part, n);
    return ST_OK;
}

/* ---- shapes ---------------------------------------------------------------------- */

/* Stacks of matrices, whole or halved; or one that is halved. */
static enum status set_slices(struct hf_entry *e, const char *dir, struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const uint64_t n = e->how == HF_SLICES ? 1 : 2;
    const int at = t->n_dims - 2; /* of the rows */
    char shown[80];

    if ((t->n_dims != 3 && (t->n_dims != 2 || n == 1)) || t->n_elems == 0 ||
        t->shape[at] % n)
        return err_set(err, ST_INPUT, "%s: the tensor '%s' is no stack of matrices%s",
                       dir, show(shown, sizeof shown, t->name),
                       n == 2 ? " of two halves" : "");
    e->ne[0] = t->shape[at + 1];
    e->ne[1] = t->shape[at] / n;
    e->ne[2] = at ? t->shape[0] : 1;
    e->ne[3] = 1;
    e->part_rows = e->ne[1] * e->ne[2];
    e->n_dims = t->n_dims;
    e->fmt = t->fmt;
    return ST_OK;
}

static enum status set_matrix(struct hf_entry *e, const char *dir, struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const bool flat = e->how == HF_FLAT && t->n_dims == 2 && t->shape[0] == 1;
    /* Depthwise convolutions: [channels][1][taps]. */
    const bool channels = (e->how == HF_VALUES || e->how == HF_CHANNELS) &&
                          t->n_dims == 3 && t->shape[1] == 1;
    const int n_dims = t->n_dims - (flat || channels);
    char shown[80];

    if (n_dims < 1 || n_dims > 2 || t->n_elems == 0)
        return err_set(err, ST_INPUT,
                       "%s: the tensor '%s' is neither a vector nor a matrix", dir,
                       show(shown, sizeof shown, t->name));
    e->ne[0] = t->shape[t->n_dims - 1];
    e->ne[1] = n_dims == 2 ? t->shape[0] : 1;
    e->ne[2] = e->ne[3] = 1;
    e->part_rows = e->ne[1];
    e->n_dims = n_dims;
    if (n_dims == 1 && (e->how == HF_COLUMN || e->how == HF_COLUMN_DECAY)) {
        e->ne[1] = e->ne[0];
        e->ne[0] = 1;
        e->n_dims = 2;
    }
    if (e->how == HF_STACK) {
        e->ne[n_dims] = e->n_parts;
        e->n_dims++;
    }
    e->flat = e->n_dims == 1 || e->how == HF_COLUMN || e->how == HF_COLUMN_DECAY ||
              strstr(e->name, "_exps.bias") != NULL;
    /* As in GGUF files: vectors that are added or scale, and routers; products. */
    e->fmt = n_dims == 1 || channels || e->flat || e->how == HF_TERNARY ||
                     strstr(e->name, ".ffn_gate_inp.")
                 ? KERN_FMT_f32
                 : t->fmt;
    return ST_OK;
}

/* The norm of several groups has a row for each. */
static enum status set_by_group(struct hf_entry *e, uint64_t n_groups, const char *dir,
                                struct err *err)
{
    if (n_groups < 2 || e->how != HF_BY_GROUP)
        return ST_OK;
    if (e->n_dims != 1 || e->ne[0] % n_groups)
        return err_set(err, ST_INPUT,
                       "%s: %s has %llu elements, which %llu groups "
                       "cannot share",
                       dir, e->name, (unsigned long long)e->ne[0],
                       (unsigned long long)n_groups);
    e->ne[0] /= n_groups;
    e->ne[1] = n_groups;
    e->n_dims = 2;
    return ST_OK;
}

static enum status set_shape(struct hf_entry *e, const struct hf_config *c,
                             const char *dir, struct err *err)
{
    const struct safetensor *t = e->parts[0];
    char shown[80];
    enum status st;

    if (hf_is_mx(e))
        return hf_set_mx(e, dir, err);
    if (t->fmt == KERN_N_FMT)
        return err_set(
            err, ST_UNSUPPORTED,
            "%s: the tensor '%s' has the type %s; F32, F16 and BF16 can be read", dir,
            show(shown, sizeof shown, t->name), t->dtype);
    if (hf_is_transposed(e))
        return hf_set_transposed(e, dir, err);
    if (e->how == HF_SLICES || e->how == HF_FIRST_HALF || e->how == HF_SECOND_HALF)
        return set_slices(e, dir, err);
    st = set_matrix(e, dir, err);
    return st ? st : set_by_group(e, (uint64_t)c->ssm_groups, dir, err);
}

/* Factors that GGUF files have in their weights; the product is F32. */
static void set_scaling(struct hf_tensors *h, struct hf_entry *e)
{
    const char *name = !strncmp(e->name, "blk.", 4) ? strchr(e->name + 4, '.') : NULL;

    for (int i = 0; !e->flat && i < HF_MAX_SCALINGS && h->scalings[i].name; i++)
        if (!strcmp(name ? name + 1 : e->name, h->scalings[i].name)) {
            e->scaling = &h->scalings[i];
            e->fmt = KERN_FMT_f32;
        }
}

static enum status set_pairs(struct hf_entry *e, const struct hf_config *c,
                             const char *dir, struct err *err)
{
    const uint64_t rows = e->n_dims == 1 ? e->ne[0] : e->ne[1];

    e->n_heads = (uint64_t)(e->how == HF_ROPE_Q ? c->n_heads : c->n_kv_heads);
    if (rows % (2 * e->n_heads))
        return err_set(err, ST_INPUT,
                       "%s: %s has %llu rows, which %llu heads cannot share in pairs",
                       dir, e->name, (unsigned long long)rows,
                       (unsigned long long)e->n_heads);
    if (c->n_rot != c->head_dim)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: %s models with partly rotated heads are not supported", dir,
                       c->arch->model_type);
    return ST_OK;
}

/* Check rows, or columns, of all heads of values; queries and keys may precede them. */
static enum status set_values(struct hf_entry *e, const struct hf_config *c,
                              const char *dir, struct err *err)
{
    const uint64_t rows =
        e->n_dims == 1 || e->how == HF_VALUE_COLUMNS ? e->ne[0] : e->ne[1];
    const uint64_t in_front = 2 * (uint64_t)(c->delta_k_heads * c->delta_dim);
    const bool behind = strstr(e->name, ".attn_qkv.") != NULL ||
                        strstr(e->name, ".ssm_conv1d.") != NULL;

    e->n_heads = (uint64_t)c->delta_v_heads;
    e->n_groups = (uint64_t)c->delta_k_heads;
    e->fixed = behind ? in_front : 0;
    if (rows <= e->fixed || (rows - e->fixed) % e->n_heads)
        return err_set(err, ST_INPUT,
                       "%s: %s has %llu %s, which %llu heads cannot share", dir,
                       e->name, (unsigned long long)rows,
                       e->how == HF_VALUE_COLUMNS ? "columns" : "rows",
                       (unsigned long long)e->n_heads);
    return ST_OK;
}

/* A slice per head, of its rows of keys or of values. */
static enum status set_latent(struct hf_entry *e, const struct hf_config *c,
                              const char *dir, struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const bool keys = e->how == HF_LATENT_KEYS;
    const uint64_t n = (uint64_t)(keys ? c->latent_key : c->latent_value);

    e->n_heads = (uint64_t)c->n_heads;
    e->fixed = (uint64_t)c->latent_key;
    if (e->n_dims != 2 ||
        e->ne[1] != e->n_heads * (uint64_t)(c->latent_key + c->latent_value))
        return err_set(err, ST_INPUT,
                       "%s: %s comes from a matrix of %llu rows, and %llu heads have "
                       "keys of %lld and values of %lld",
                       dir, e->name, (unsigned long long)e->ne[1],
                       (unsigned long long)e->n_heads, (long long)c->latent_key,
                       (long long)c->latent_value);
    e->ne[0] = keys ? n : t->shape[1];
    e->ne[1] = keys ? t->shape[1] : n;
    e->ne[2] = e->n_heads;
    e->n_dims = 3;
    e->part_rows = e->ne[1] * e->ne[2];
    return ST_OK;
}

static enum status set_heads(struct hf_entry *e, const struct hf_config *c,
                             const char *dir, struct err *err)
{
    switch (e->how) {
    case HF_ROPE_Q:
    case HF_ROPE_K:
        return set_pairs(e, c, dir, err);
    case HF_VALUES:
    case HF_VALUE_COLUMNS:
    case HF_DECAY:
        return set_values(e, c, dir, err);
    case HF_LATENT_KEYS:
    case HF_LATENT_VALUES:
        return set_latent(e, c, dir, err);
    default:
        return ST_OK;
    }
}

/* ---- the list -------------------------------------------------------------------- */

static enum status make_entries(struct hf_tensors *h, const struct hf_config *c,
                                const struct item *items, size_t n, const char *dir,
                                struct err *err)
{
    for (size_t i = 0, end; i < n; i = end) {
        struct hf_entry *e = &h->entries[h->n++];
        enum status st;

        for (end = i + 1; end < n && !strcmp(items[end].name, items[i].name);)
            end++;
        st = check_parts(items + i, end - i, dir, err);
        if (st)
            return st;
        for (size_t k = i; k < end; k++)
            h->parts[k] = items[k].t;
        memcpy(e->name, items[i].name, sizeof e->name);
        e->how = items[i].how;
        e->parts = h->parts + i;
        e->n_parts = end - i;
        if ((st = set_shape(e, c, dir, err)) || (st = hf_layout(e, c, dir, err)) ||
            (st = set_heads(e, c, dir, err)))
            return st;
        set_scaling(h, e);
    }
    if (h->n)
        qsort(h->entries, h->n, sizeof *h->entries, by_place);
    return ST_OK;
}

/* Vectors from config.json come last. */
static enum status add_vectors(struct hf_tensors *h, const struct hf_config *c,
                               struct err *err)
{
    for (int i = 0; i < HF_MAX_VECTORS; i++) {
        const struct hf_vector *v = &c->vectors[i];

        if (!v->v)
            continue;
        h->made[i] = malloc(v->n * sizeof *v->v + 1);
        if (!h->made[i])
            return err_set(err, ST_NO_MEMORY, "no memory for %s", v->name);
        memcpy(h->made[i], v->v, v->n * sizeof *v->v);
        struct hf_entry *e = &h->entries[h->n++];

        snprintf(e->name, sizeof e->name, "%s", v->name);
        e->made = h->made[i];
        e->n_dims = 1;
        e->ne[0] = v->n;
        e->ne[1] = e->ne[2] = e->ne[3] = e->part_rows = 1;
        e->fmt = KERN_FMT_f32;
    }
    return ST_OK;
}

static enum status make_index(struct hf_tensors *h, const struct hf_config *c,
                              const char *dir, struct err *err)
{
    const enum status st = strtab_init(&h->index, h->n, err);
    bool untied = false;

    for (size_t i = 0; i < h->n && !st; i++)
        strtab_put(&h->index, h->entries[i].name, (uint32_t)strlen(h->entries[i].name),
                   (uint32_t)i);
    if (st)
        return st;
    untied = json_is_false(json_member(c->o, "tie_word_embeddings"));
    if (untied && strtab_find(&h->index, "output.weight", 13) == STRTAB_NONE)
        return err_set(err, ST_INPUT,
                       "%s: config.json says that the output has weights of its own, "
                       "and there are none",
                       dir);
    return ST_OK;
}

enum status hf_tensors_make(struct hf_tensors **out, const struct hf_config *c,
                            struct safetensors *s, const char *dir, struct err *err)
{
    struct hf_tensors *h = calloc(1, sizeof *h);
    struct item *items = NULL;
    size_t n = 0;
    enum status st;

    if (!h) {
        safetensors_close(s);
        return err_set(err, ST_NO_MEMORY, "no memory for the tensors of %s", dir);
    }
    h->s = s;
    pthread_mutex_init(&h->lock, NULL);
    memcpy(h->scalings, c->scalings, sizeof h->scalings);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        h->to_floats[fmt] =
            kern_best(KERN_OP_dequantize, fmt, isa_usable())->fn.dequantize;
    st = list_items(&items, &n, c, s, dir, err);
    if (!st) {
        h->parts = calloc(n + 1, sizeof *h->parts);
        h->entries = calloc(n + HF_MAX_VECTORS, sizeof *h->entries);
        if (!h->parts || !h->entries)
            st = err_set(err, ST_NO_MEMORY, "no memory for the tensors of %s", dir);
    }
    if (!st)
        st = make_entries(h, c, items, n, dir, err);
    if (!st)
        st = add_vectors(h, c, err);
    if (!st)
        st = make_index(h, c, dir, err);
    free(items);
    if (st)
        hf_tensors_free(h);
    else
        *out = h;
    return st;
}

void hf_tensors_free(void *arg)
{
    struct hf_tensors *h = arg;

    if (!h)
        return;
    safetensors_close(h->s);
    pthread_mutex_destroy(&h->lock);
    strtab_free(&h->index);
    for (int i = 0; i < HF_MAX_VECTORS; i++)
        free(h->made[i]);
    free(h->parts);
    free(h->entries);
    free(h);
}

size_t hf_tensors_count(const struct hf_tensors *h)
{
    return h->n;
}

uint32_t hf_tensors_file_type(const struct hf_tensors *h)
{
    uint64_t n[KERN_N_FMT] = {0};

    for (size_t i = 0; i < h->n; i++)
        n[h->entries[i].fmt] +=
            h->entries[i].ne[0] * h->entries[i].ne[1] * h->entries[i].ne[2];
    if (n[KERN_FMT_bf16] > n[KERN_FMT_f16] && n[KERN_FMT_bf16] > n[KERN_FMT_f32])
        return quantmix_file_type(QUANTMIX_BF16);
    return quantmix_file_type(n[KERN_FMT_f16] > n[KERN_FMT_f32] ? QUANTMIX_F16
                                                                : QUANTMIX_F32);
}

int64_t hf_tensors_n_vocab(const struct hf_tensors *h)
{
    const uint32_t i = strtab_find(&h->index, "token_embd.weight", 17);

    return i == STRTAB_NONE || h->entries[i].ne[1] > INT32_MAX
               ? 0
               : (int64_t)h->entries[i].ne[1];
}

void hf_tensors_put(const struct hf_tensors *h, struct gguf_bytes *head)
{
    uint64_t offset = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct hf_entry *e = &h->entries[i];

        gguf_put_tensor(head, e->name, e->n_dims, e->ne,
                        kern_format_info(e->fmt)->ggml_id, offset);
        offset = gguf_put_aligned(
            offset + e->ne[1] * e->ne[2] * kern_format_bytes(e->fmt, (size_t)e->ne[0]));
    }
}
