/* SPDX-License-Identifier: MIT
 *
 * hf_config.c - config.json to the hyperparameters of a GGUF file
 *
 * A config names its kind in model_type; hf_kinds.c reads the members of each kind.
 */
#include "engine/hf/hf_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

static const struct json_limit max_config = {(size_t)16 << 20, (size_t)1 << 18};

/* ---- pairs ----------------------------------------------------------------------- */

static const char *full_key(char *buf, size_t cap, const struct hf_config *c,
                            const char *key)
{
    snprintf(buf, cap, "%s.%s", c->arch->gguf, key);
    return buf;
}

void hf_put_u32(struct hf_config *c, const char *key, int64_t v)
{
    char full[96];

    gguf_kv_u32(c->kvs, full_key(full, sizeof full, c, key), (uint32_t)v);
}

void hf_put_f32(struct hf_config *c, const char *key, double v)
{
    char full[96];

    gguf_kv_f32(c->kvs, full_key(full, sizeof full, c, key), (float)v);
}

void hf_put_bool(struct hf_config *c, const char *key, bool v)
{
    char full[96];

    gguf_kv_bool(c->kvs, full_key(full, sizeof full, c, key), v);
}

void hf_put_str(struct hf_config *c, const char *key, const char *v)
{
    char full[96];

    gguf_kv_str(c->kvs, full_key(full, sizeof full, c, key), v);
}

void hf_put_array(struct hf_config *c, const char *key, enum gguf_type type, uint64_t n)
{
    char full[96];

    gguf_kv_array(c->kvs, full_key(full, sizeof full, c, key), type, n);
}

void hf_put_i32s(struct hf_config *c, const char *key, const int32_t *v, size_t n)
{
    hf_put_array(c, key, GGUF_I32, n);
    for (size_t i = 0; i < n; i++)
        gguf_put_u32(&c->kvs->bytes, (uint32_t)v[i]);
}

/* ---- members --------------------------------------------------------------------- */

enum status hf_get_number(const struct hf_config *c, const char *key, int64_t min,
                          int64_t max, int64_t *out, struct err *err)
{
    const enum status st = json_get_int(&c->file, c->o, key, min, max, out, err);

    if (!st && *out < min)
        return err_set(err, ST_INPUT, "%s lacks %s", c->file.path, key);
    return st;
}

enum status hf_put_number(struct hf_config *c, const char *key, const char *gguf,
                          int64_t min, int64_t max, int64_t missing, struct err *err)
{
    int64_t v = missing;
    const enum status st = hf_get_number(c, key, min, max, &v, err);

    if (!st)
        hf_put_u32(c, gguf, v);
    return st;
}

enum status hf_put_real(struct hf_config *c, const char *key, const char *gguf,
                        double min, double max, double missing, struct err *err)
{
    double v = missing;
    const enum status st = json_get_real(&c->file, c->o, key, min, max, &v, err);

    if (!st)
        hf_put_f32(c, gguf, v);
    return st;
}

enum status hf_must_be(const struct hf_config *c, const char *key, const char *want,
                       struct err *err)
{
    const json_t *v = json_member(c->o, key);
    const char *text = json_text(v);
    char shown[48];

    if (!v || (text && !strcmp(text, want)))
        return ST_OK;
    return err_set(
        err, ST_UNSUPPORTED, "%s: %s is '%s'; of %s models only '%s' is supported",
        c->file.path, key,
        text ? utf8_printable(shown, sizeof shown, text, strlen(text)) : "no text",
        c->arch->model_type, want);
}

enum status hf_must_be_bool(const struct hf_config *c, const char *key, bool want,
                            struct err *err)
{
    bool v = want;
    const enum status st = json_get_bool(&c->file, c->o, key, &v, err);

    if (!st && v != want)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: %s is %s; of %s models only %s is supported", c->file.path,
                       key, v ? "true" : "false", c->arch->model_type,
                       want ? "true" : "false");
    return st;
}

/* ---- members of all kinds -------------------------------------------------------- */

enum status hf_get_sizes(struct hf_config *c, struct err *err)
{
    const json_t *rope = json_member(c->o, "rope_parameters");
    double partial = c->partial > 0 ? c->partial : 1.0;
    enum status st;

    if ((st = hf_get_number(c, "num_hidden_layers", 1, HF_MAX_LAYERS, &c->n_layers,
                            err)) ||
        (st = hf_get_number(c, "hidden_size", 1, HF_MAX_WIDTH, &c->n_embd, err)) ||
        (st = hf_get_number(c, "num_attention_heads", 1, HF_MAX_HEADS, &c->n_heads,
                            err)) ||
        (st = hf_get_number(c, "max_position_embeddings", 1, HF_MAX_CONTEXT, &c->n_ctx,
                            err)))
        return st;
    if (!c->n_kv_heads)
        c->n_kv_heads = c->n_heads;
    if (!c->head_dim)
        c->head_dim = c->n_embd / c->n_heads;
    if ((st = hf_get_number(c, "num_key_value_heads", 1, HF_MAX_HEADS, &c->n_kv_heads,
                            err)) ||
        (st = hf_get_number(c, "head_dim", 1, HF_MAX_HEAD_DIM, &c->head_dim, err)) ||
        (st = json_get_real(&c->file, c->o, "partial_rotary_factor", 0.001, 1.0,
                            &partial, err)) ||
        (st = json_get_real(&c->file, rope, "partial_rotary_factor", 0.001, 1.0,
                            &partial, err)))
        return st;
    c->n_rot = (int64_t)(partial * (double)c->head_dim);
    return ST_OK;
}

void hf_put_common_sizes(struct hf_config *c)
{
    hf_put_u32(c, "context_length", c->n_ctx);
    hf_put_u32(c, "embedding_length", c->n_embd);
    hf_put_u32(c, "attention.head_count", c->n_heads);
    hf_put_u32(c, "attention.key_length", c->head_dim);
    hf_put_u32(c, "attention.value_length", c->head_dim);
    hf_put_u32(c, "rope.dimension_count", c->n_rot);
}

enum status hf_put_sizes(struct hf_config *c, struct err *err)
{
    const enum status st = hf_get_sizes(c, err);

    if (st)
        return st;
    hf_put_common_sizes(c);
    if (c->recurrent)
        return hf_put_kv_heads(c, err);
    if (!c->lists_kv_heads)
        hf_put_u32(c, "attention.head_count_kv", c->n_kv_heads);
    return ST_OK;
}

/* ---- the folder ------------------------------------------------------------------ */

static const struct hf_arch *arch_called(const char *type)
{
    for (size_t i = 0; type && i < hf_n_archs; i++)
        if (!strcmp(type, hf_archs[i].model_type))
            return &hf_archs[i];
    return NULL;
}

static const struct hf_arch *arch_of(const json_t *o)
{
    return arch_called(json_text(json_member(o, "model_type")));
}

/* The kind of the whole model, or, where only that is known, of its text model. */
static enum status find_arch(struct hf_config *c, struct err *err)
{
    const char *type = json_text(json_member(c->file.root, "model_type"));
    char known[900] = "", shown[48];
    size_t used = 0;

    c->arch = arch_of(c->file.root);
    if (!c->arch)
        c->arch = arch_of(json_member(c->file.root, "text_config"));
    if (c->arch && !strcmp(c->arch->gguf, "gemma3") &&
        json_is_true(json_member(c->file.root, "use_bidirectional_attention")))
        c->arch = &hf_arch_embedding_gemma;
    if (hf_bitnet_kind(c, arch_called("bitnet"), err))
        return ST_UNSUPPORTED;
    if (c->arch)
        return ST_OK;
    for (size_t i = 0; i < hf_n_archs; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                 i ? ", " : "", hf_archs[i].model_type);
    assert(used < sizeof known); /* or the table of kinds has outgrown it */
    if (!type)
        return err_set(err, ST_INPUT, "%s has no model_type; is it a language model's?",
                       c->file.path);
    return err_set(
        err, ST_UNSUPPORTED, "%s: model_type '%s' is not supported; supported are: %s",
        c->file.path, utf8_printable(shown, sizeof shown, type, strlen(type)), known);
}

/* Refuse weights that are quantised in another format. */
static enum status check_plain(const struct hf_config *c, struct err *err)
{
    const json_t *how = json_member(c->file.root, "quantization_config");
    const char *method = json_text(json_member(how, "quant_method"));
    char shown[32];

    if (!how ||
        (method && !strcmp(method, "mxfp4") && !strcmp(c->arch->model_type, "gpt_oss")))
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED,
                   "%s: the weights are quantised already (quantization_config: %s); "
                   "use the model's F16 or BF16 folder, or a GGUF file",
                   c->file.path,
                   method ? utf8_printable(shown, sizeof shown, method, strlen(method))
                          : "unknown");
}

/* Refuse models whose last matrix gives scores instead of tokens or vectors. */
static enum status check_class(const struct hf_config *c, struct err *err)
{
    static const char end[] = "ForSequenceClassification";
    const char *name =
        json_text(json_array_get(json_member(c->file.root, "architectures"), 0));
    const size_t n = name ? strlen(name) : 0, n_end = sizeof end - 1;
    char shown[80];

    if (n < n_end || strcmp(name + n - n_end, end) != 0)
        return ST_OK;
    return err_set(
        err, ST_UNSUPPORTED,
        "%s: %s scores texts or pairs of texts (a classifier or a reranker), "
        "which is not supported; models that make vectors (bench embed) or "
        "continue texts are",
        c->file.path, utf8_printable(shown, sizeof shown, name, n));
}

static void put_name(struct gguf_kvs *kvs, const char *dir)
{
    char name[128];
    size_t len;
    const char *at = hf_folder_name(dir, &len);

    gguf_kv_str(kvs, "general.name", utf8_printable(name, sizeof name, at, len));
}

enum status hf_config_load(struct hf_config *c, const char *dir, struct gguf_kvs *kvs,
                           struct err *err)
{
    enum status st;

    *c = (struct hf_config){.kvs = kvs, .tied = false};
    st = jsonfile_load(&c->file, dir, "config.json", max_config, err);
    if (!st)
        st = find_arch(c, err);
    if (!st)
        st = check_plain(c, err);
    if (!st)
        st = check_class(c, err);
    if (st)
        return st;
    c->o = json_member(c->file.root, "text_config");
    if (!json_is_object(c->o))
        c->o = c->file.root;
    c->arch = hf_nemotron_kind(c);
    gguf_kv_str(kvs, "general.architecture", c->arch->gguf);
    gguf_kv_str(kvs, "general.type", "model");
    put_name(kvs, dir);
    st = json_get_bool(&c->file,
                       json_member(c->o, "tie_word_embeddings") ? c->o : c->file.root,
                       "tie_word_embeddings", &c->tied, err);
    return st ? st : c->arch->config(c, err);
}

void hf_config_free(struct hf_config *c)
{
    for (int i = 0; i < HF_MAX_VECTORS; i++)
        free(c->vectors[i].v);
    jsonfile_free(&c->file);
}
