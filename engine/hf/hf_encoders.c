/* SPDX-License-Identifier: MIT
 *
 * hf_encoders.c - folders of embedding models: BERT, RoBERTa and XLM-RoBERTa, Nomic's
 * variant, EmbeddingGemma;
 * and what sentence-transformers puts next to any model
 *
 * modules.json lists what follows the model: how its tokens' states are pooled,
 * matrices behind that, and the division by the length, which is left to the reader of
 * vectors.
 */
#include "engine/hf/hf_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define B "blk.#."
#define E "encoder.layer.#."
#define N "encoder.layers.#."

/* Weights and biases; older files have names of their own for those of norms. */
#define BOTH(hf, gguf)                        \
    {hf ".weight", gguf ".weight", HF_AS_IS}, \
    {                                         \
        hf ".bias", gguf ".bias", HF_AS_IS    \
    }
#define NORM(hf, gguf)                                       \
    BOTH(hf, gguf), {hf ".gamma", gguf ".weight", HF_AS_IS}, \
    {                                                        \
        hf ".beta", gguf ".bias", HF_AS_IS                   \
    }

const struct hf_name hf_names_bert[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight", HF_AS_IS},
    {"embeddings.position_embeddings.weight", "position_embd.weight", HF_AS_IS},
    {"embeddings.token_type_embeddings.weight", "token_types.weight", HF_AS_IS},
    NORM("embeddings.LayerNorm", "token_embd_norm"),
    BOTH(E "attention.self.query", B "attn_q"),
    BOTH(E "attention.self.key", B "attn_k"),
    BOTH(E "attention.self.value", B "attn_v"),
    BOTH(E "attention.output.dense", B "attn_output"),
    NORM(E "attention.output.LayerNorm", B "attn_output_norm"),
    BOTH(E "intermediate.dense", B "ffn_up"),
    BOTH(E "output.dense", B "ffn_down"),
    NORM(E "output.LayerNorm", B "layer_output_norm"),
    /* Numbers of positions, and what vectors of texts do not need. */
    {"embeddings.position_ids", NULL, HF_SKIP},
    {"pooler.*", NULL, HF_SKIP},
    {"cls.*", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_roberta[] = {
    {"embeddings.position_embeddings.weight", "position_embd.weight", HF_POSITIONS},
    {"lm_head.*", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_nomic[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight", HF_AS_IS},
    {"embeddings.token_type_embeddings.weight", "token_types.weight", HF_AS_IS},
    BOTH("emb_ln", "token_embd_norm"),
    BOTH(N "attn.Wqkv", B "attn_qkv"),
    BOTH(N "attn.out_proj", B "attn_output"),
    BOTH(N "norm1", B "attn_output_norm"),
    BOTH(N "mlp.fc11", B "ffn_up"),
    BOTH(N "mlp.fc12", B "ffn_gate"),
    BOTH(N "mlp.fc2", B "ffn_down"),
    BOTH(N "norm2", B "layer_output_norm"),
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_dense[] = {
    {"2_Dense/linear.weight", "dense_2.weight", HF_AS_IS},
    {"3_Dense/linear.weight", "dense_3.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

static enum status put_types(struct hf_config *c, struct err *err)
{
    int64_t n = 2;
    const enum status st = hf_get_number(c, "type_vocab_size", 1, 1024, &n, err);

    if (!st)
        gguf_kv_u32(c->kvs, "tokenizer.ggml.token_type_count", (uint32_t)n);
    return st;
}

/* The exact form of GELU is computed as its tanh form, as other readers of GGUF files
 * do. */
static enum status put_bert(struct hf_config *c, struct err *err)
{
    const char *act = json_text(json_member(c->o, "hidden_act"));
    enum status st = ST_OK;

    if (!act || (strcmp(act, "gelu_new") && strcmp(act, "gelu_pytorch_tanh")))
        st = hf_must_be(c, "hidden_act", "gelu", err);
    if (st || (st = hf_must_be(c, "position_embedding_type", "absolute", err)) ||
        (st = hf_get_sizes(c, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_real(c, "layer_norm_eps", "attention.layer_norm_epsilon", 0.0, 1.0,
                          1e-12, err)))
        return st;
    c->n_ctx -= c->first_position;
    if (c->n_ctx < 1)
        return err_set(err, ST_INPUT,
                       "%s: of %d positions, max_position_embeddings, the first %d are "
                       "no text's",
                       c->file.path, (int)(c->n_ctx + c->first_position),
                       (int)c->first_position);
    hf_put_common_sizes(c);
    hf_put_u32(c, "attention.head_count_kv", c->n_kv_heads);
    hf_put_bool(c, "attention.causal", false);
    return put_types(c, err);
}

enum status hf_bert(struct hf_config *c, struct err *err)
{
    return put_bert(c, err);
}

/* Positions of a text are numbered from the one behind that of padding. */
enum status hf_roberta(struct hf_config *c, struct err *err)
{
    int64_t pad = 1;
    const enum status st =
        json_get_int(&c->file, c->o, "pad_token_id", 0, HF_MAX_CONTEXT, &pad, err);

    c->first_position = pad + 1;
    return st ? st : put_bert(c, err);
}

/* It has GPT-2's names of sizes. */
static enum status nomic_sizes(struct hf_config *c, struct err *err)
{
    int64_t trained = 2048;
    enum status st;

    if ((st = hf_get_number(c, "n_layer", 1, HF_MAX_LAYERS, &c->n_layers, err)) ||
        (st = hf_get_number(c, "n_embd", 1, HF_MAX_WIDTH, &c->n_embd, err)) ||
        (st = hf_get_number(c, "n_head", 1, HF_MAX_HEADS, &c->n_heads, err)) ||
        (st = hf_get_number(c, "max_trained_positions", 1, HF_MAX_CONTEXT, &trained,
                            err)))
        return st;
    c->n_kv_heads = c->n_heads;
    c->head_dim = c->n_rot = c->n_embd / c->n_heads;
    c->n_ctx = trained;
    hf_put_u32(c, "context_length", c->n_ctx);
    hf_put_u32(c, "embedding_length", c->n_embd);
    hf_put_u32(c, "attention.head_count", c->n_heads);
    return hf_put_number(c, "n_inner", "feed_forward_length", 1, HF_MAX_WIDTH,
                         4 * c->n_embd, err);
}

enum status hf_nomic(struct hf_config *c, struct err *err)
{
    double fraction = 1.0;
    enum status st;

    if ((st = hf_must_be(c, "activation_function", "swiglu", err)) ||
        (st = hf_must_be_bool(c, "prenorm", false, err)) ||
        (st = hf_must_be_bool(c, "causal", false, err)) ||
        (st = hf_must_be_bool(c, "parallel_block", false, err)) ||
        (st = hf_must_be_bool(c, "rotary_emb_interleaved", false, err)) ||
        (st = hf_must_be_bool(c, "use_rms_norm", false, err)) ||
        (st = json_get_real(&c->file, c->o, "rotary_emb_fraction", 1.0, 1.0, &fraction,
                            err)) ||
        (st = nomic_sizes(c, err)) ||
        (st = hf_put_real(c, "rotary_emb_base", "rope.freq_base", 1.0, 1e15, 10000.0,
                          err)) ||
        (st = hf_put_real(c, "layer_norm_epsilon", "attention.layer_norm_epsilon", 0.0,
                          1.0, 1e-12, err)))
        return st;
    hf_put_bool(c, "attention.causal", false);
    return put_types(c, err);
}

enum status hf_embedding_gemma(struct hf_config *c, struct err *err)
{
    const enum status st = hf_gemma3(c, err);

    if (!st)
        hf_put_bool(c, "attention.causal", false);
    return st;
}

/* Gemma 3 and EmbeddingGemma have one name. */
const struct hf_arch hf_arch_embedding_gemma = {
    "gemma3_text",
    "gemma-embedding",
    {hf_names_dense, hf_names_gemma, hf_names_common},
    hf_embedding_gemma};

/* ---- modules of sentence-transformers -------------------------------------------- */

#define HF_MAX_DENSE 2

static const char *const dense_folders[HF_MAX_DENSE] = {"2_Dense", "3_Dense"};

static const struct json_limit max_modules = {(size_t)1 << 20, 4096};

/* The members of 1_Pooling/config.json that are true, each a pooling. */
static enum status put_pooling(struct hf_config *c, const char *dir, struct err *err)
{
    static const struct {
        const char *key;
        int pooling; /* as in GGUF; -1: not supported */
    } modes[] = {{"pooling_mode_mean_tokens", 1},
                 {"pooling_mode_cls_token", 2},
                 {"pooling_mode_lasttoken", 3},
                 {"pooling_mode_max_tokens", -1},
                 {"pooling_mode_mean_sqrt_len_tokens", -1},
                 {"pooling_mode_weightedmean_tokens", -1}};
    struct jsonfile f = {.root = NULL};
    enum status st = jsonfile_load(&f, dir, "1_Pooling/config.json", max_modules, err);
    int pooling = 0, n = 0;

    for (size_t i = 0; !st && i < sizeof modes / sizeof modes[0]; i++) {
        bool on = false;

        st = json_get_bool(&f, f.root, modes[i].key, &on, err);
        if (on)
            pooling = modes[i].pooling;
        n += on;
    }
    if (!st && (n != 1 || pooling < 0))
        st = err_set(err, ST_UNSUPPORTED,
                     "%s: one of mean, cls and lasttoken must be the pooling, and no "
                     "other",
                     f.path);
    if (!st)
        hf_put_u32(c, "pooling_type", pooling);
    jsonfile_free(&f);
    return st;
}

/* A matrix without a bias and without an activation function. */
static enum status put_dense(struct hf_config *c, const char *dir, int i,
                             struct err *err)
{
    struct jsonfile f = {.root = NULL};
    char name[40], key[40];
    int64_t in = 0, out = 0;
    bool bias = false;
    enum status st;

    snprintf(name, sizeof name, "%d_Dense/config.json", i);
    st = jsonfile_load(&f, dir, name, max_modules, err);
    if (!st)
        st = json_get_int(&f, f.root, "in_features", 1, HF_MAX_WIDTH, &in, err);
    if (!st)
        st = json_get_int(&f, f.root, "out_features", 1, HF_MAX_WIDTH, &out, err);
    if (!st)
        st = json_get_bool(&f, f.root, "bias", &bias, err);
    const char *act = json_text(json_member(f.root, "activation_function"));

    if (!st && (bias || !act || !strstr(act, "Identity") || !in || !out))
        st = err_set(err, ST_UNSUPPORTED,
                     "%s: a matrix behind the pooling must have sizes and no bias, and "
                     "the activation function Identity",
                     f.path);
    snprintf(key, sizeof key, "dense_%d_feat_in", i);
    if (!st)
        hf_put_u32(c, key, in);
    snprintf(key, sizeof key, "dense_%d_feat_out", i);
    if (!st)
        hf_put_u32(c, key, out);
    jsonfile_free(&f);
    return st;
}

static enum status put_module(struct hf_config *c, const char *dir, const char *type,
                              const char *path, struct err *err)
{
    const char *dot = type ? strrchr(type, '.') : NULL;
    const char *kind = dot ? dot + 1 : type;
    char shown[80];

    if (kind && (!strcmp(kind, "Transformer") || !strcmp(kind, "Normalize")))
        return ST_OK;
    if (kind && path && !strcmp(kind, "Pooling") && !strcmp(path, "1_Pooling"))
        return put_pooling(c, dir, err);
    if (kind && path && !strcmp(kind, "Dense") && c->n_dense < HF_MAX_DENSE &&
        !strcmp(path, dense_folders[c->n_dense]) &&
        !strcmp(c->arch->gguf, "gemma-embedding"))
        return put_dense(c, dir, 2 + c->n_dense++, err);
    return err_set(err, ST_UNSUPPORTED,
                   "%s/modules.json: the module '%s' of a %s model is not supported",
                   dir,
                   path ? utf8_printable(shown, sizeof shown, path, strlen(path)) : "",
                   c->arch->model_type);
}

enum status hf_put_modules(struct hf_config *c, const char *dir, struct err *err)
{
    char *text = NULL;
    json_t *list, *module;
    bool exists;
    enum status st = jsonfile_find(&exists, dir, "modules.json", err);
    size_t i;

    if (st || !exists)
        return st;
    st = jsonfile_read_text(&text, dir, "modules.json", max_modules.bytes, err);
    if (st)
        return st;
    st = json_read(&list, "modules.json", text, strlen(text), max_modules, 0, err);
    free(text);
    if (st)
        return st;
    if (!json_is_array(list) || json_array_size(list) > 16)
        st = err_set(err, ST_INPUT, "%s/modules.json is no list of up to 16 modules",
                     dir);
    json_array_foreach(list, i, module)
    {
        if (!st)
            st = put_module(c, dir, json_text(json_member(module, "type")),
                            json_text(json_member(module, "path")), err);
    }
    json_decref(list);
    return st;
}

enum status hf_add_modules(const struct hf_config *c, struct safetensors *s,
                           const char *dir, struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; !st && i < c->n_dense; i++)
        st = safetensors_add(s, dir, dense_folders[i], err);
    return st;
}
