/* SPDX-License-Identifier: MIT
 *
 * hf_own.c - tokenizers that no model of GGUF stands for, in pairs of this project; and
 * BERT's, for which there is one
 *
 * The members normalizer, pre_tokenizer and decoder go into the pairs as they are: the
 * tokenizer runs them (tokenizer_norm.h, tokenizer_pieces.h, tokenizer_decode.c), and
 * refuses by name what it does not know. Merges are pairs of ids, as their tokens may
 * have blanks in them.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/hf/hf_impl.h"
#include "engine/tokenizer/tokenizer_impl.h"

static const char no_steps[] = "{\"type\":\"Sequence\",\"pretokenizers\":[]}";
/* Without a decoder tokens are words with blanks between them. */
static const char no_decoder[] =
    "{\"type\":\"WordPiece\",\"prefix\":\"\",\"cleanup\":false}";

static const struct {
    const char *type;
    enum hf_model model;
    const char *gguf;
} models[] = {
    {"BPE", HF_BPE, TOKENIZER_BPE},
    {"Unigram", HF_UNIGRAM, TOKENIZER_UNIGRAM},
    {"WordPiece", HF_WORD_PIECE, TOKENIZER_WORDPIECE},
    {"WordLevel", HF_WORD_LEVEL, TOKENIZER_WORDS},
};
#define N_MODELS (sizeof models / sizeof models[0])

/* Files older than the member differ in others. */
static const char *type_of(const json_t *model)
{
    const char *type = json_text(json_member(model, "type"));

    if (type)
        return type;
    if (json_member(model, "merges"))
        return "BPE";
    if (json_is_array(json_member(model, "vocab")))
        return "Unigram";
    return json_member(model, "continuing_subword_prefix") ? "WordPiece" : "(none)";
}

enum status hf_own_kind(struct hf_vocab *v, struct err *err)
{
    const char *type = type_of(v->model);
    char shown[32];

    v->own = true;
    for (size_t i = 0; i < N_MODELS; i++)
        if (!strcmp(type, models[i].type)) {
            v->kind = models[i].model;
            return ST_OK;
        }
    return err_set(err, ST_UNSUPPORTED,
                   "%s: a tokenizer of the type '%s' is not supported, only BPE, "
                   "Unigram, WordPiece and WordLevel; the model's GGUF file may be",
                   v->file.path,
                   utf8_printable(shown, sizeof shown, type, strlen(type)));
}

/* A member as JSON; NULL or absent: `none`, or without that nothing. */
static enum status put_json(struct gguf_kvs *k, const char *key, const json_t *value,
                            const char *none, struct err *err)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

    if (value && !text)
        return err_set(err, ST_NO_MEMORY, "no memory for a tokenizer's steps");
    if (text || none)
        gguf_kv_str(k, key, text ? text : none);
    free(text);
    return ST_OK;
}

static bool has_text(const struct hf_vocab *v, const char *member)
{
    const char *text = json_text(json_member(v->model, member));

    return text && *text;
}

static void put_text(struct gguf_kvs *k, const char *key, const json_t *value)
{
    const char *text = json_text(value);

    if (text)
        gguf_kv_str(k, key, text);
}

static void put_flag(struct gguf_kvs *k, const struct hf_vocab *v, const char *key,
                     const char *member)
{
    if (json_is_true(json_member(v->model, member)))
        gguf_kv_bool(k, key, true);
}

static bool has_type(const json_t *step, const char *type)
{
    const char *own = json_text(json_member(step, "type"));

    return own && !strcmp(own, type);
}

bool hf_own_is_bert(const struct hf_vocab *v)
{
    const json_t *norm = json_member(v->file.root, "normalizer");
    const json_t *accents = json_member(norm, "strip_accents");
    const char *prefix = json_text(json_member(v->model, "continuing_subword_prefix"));
    int64_t max = 100;

    json_whole(json_member(v->model, "max_input_chars_per_word"), &max);
    return v->own && v->kind == HF_WORD_PIECE && prefix && !strcmp(prefix, "##") &&
           max == 100 &&
           has_type(json_member(v->file.root, "pre_tokenizer"), "BertPreTokenizer") &&
           has_type(norm, "BertNormalizer") &&
           !json_is_false(json_member(norm, "clean_text")) &&
           !json_is_false(json_member(norm, "handle_chinese_chars")) &&
           !json_is_false(json_member(norm, "lowercase")) && !json_is_false(accents);
}

enum status hf_own_put_kind(struct gguf_kvs *k, const struct hf_vocab *v,
                            struct err *err)
{
    const json_t *root = v->file.root;
    const char *affix = "continuing_subword_prefix";
    int64_t max = -1;
    enum status st;

    if (hf_own_is_bert(v)) {
        gguf_kv_str(k, "tokenizer.ggml.model", "bert");
        gguf_kv_str(k, "tokenizer.ggml.pre", "default");
        return ST_OK;
    }
    gguf_kv_str(k, "tokenizer.ggml.model", models[v->kind].gguf);
    if (json_is_true(json_member(v->model, "byte_fallback")) && v->kind == HF_BPE &&
        (has_text(v, affix) || has_text(v, "end_of_word_suffix")))
        return err_set(err, ST_UNSUPPORTED,
                       "%s: byte_fallback with %s or end_of_word_suffix is not "
                       "supported",
                       v->file.path, affix);
    put_text(k, TOKENIZER_KEY_SUBWORD, json_member(v->model, affix));
    put_text(k, TOKENIZER_KEY_SUFFIX, json_member(v->model, "end_of_word_suffix"));
    put_flag(k, v, TOKENIZER_KEY_WHOLE_WORDS, "ignore_merges");
    put_flag(k, v, TOKENIZER_KEY_BYTES, "byte_fallback");
    put_flag(k, v, TOKENIZER_KEY_FUSES, "fuse_unk");
    if (json_whole(json_member(v->model, "max_input_chars_per_word"), &max) && max >= 0)
        gguf_kv_u64(k, TOKENIZER_KEY_MAX_CHARS, (uint64_t)max);
    if ((st = put_json(k, TOKENIZER_KEY_NORMALIZER, json_member(root, "normalizer"),
                       NULL, err)) ||
        (st = put_json(k, TOKENIZER_KEY_STEPS, json_member(root, "pre_tokenizer"),
                       no_steps, err)))
        return st;
    return put_json(k, TOKENIZER_KEY_DECODER, json_member(root, "decoder"), no_decoder,
                    err);
}

/* ---- merges ---------------------------------------------------------------------- */

/* The ids of a merge, "a b" or ["a", "b"]. */
static bool find_pair(const struct strtab *ids, const json_t *merge, uint32_t id[2])
{
    const char *both = json_text(merge), *gap = both ? strchr(both, ' ') : NULL;
    const char *part[2] = {json_text(json_array_get(merge, 0)),
                           json_text(json_array_get(merge, 1))};

    if (gap && !strchr(gap + 1, ' ')) {
        id[0] = strtab_find(ids, both, (size_t)(gap - both));
        id[1] = strtab_find(ids, gap + 1, strlen(gap + 1));
        return true;
    }
    for (int i = 0; i < 2 && part[i]; i++)
        id[i] = strtab_find(ids, part[i], strlen(part[i]));
    return part[0] && part[1] && json_array_size(merge) == 2;
}

enum status hf_own_put_merges(struct gguf_kvs *k, const struct hf_vocab *v,
                              const struct strtab *ids, struct err *err)
{
    json_t *merges = json_member(v->model, "merges"), *one;
    size_t n = 0, i;

    json_array_foreach(merges, i, one) n += !hf_is_version(one);
    gguf_kv_array(k, TOKENIZER_KEY_PAIRS, GGUF_U32, 2 * n);
    json_array_foreach(merges, i, one)
    {
        uint32_t id[2] = {STRTAB_NONE, STRTAB_NONE};

        if (hf_is_version(one))
            continue;
        if (!find_pair(ids, one, id))
            return err_set(err, ST_INPUT, "%s: merge %zu is not two tokens",
                           v->file.path, i);
        if (id[0] == STRTAB_NONE || id[1] == STRTAB_NONE)
            return err_set(err, ST_INPUT,
                           "%s: merge %zu needs a token that is not in the vocabulary",
                           v->file.path, i);
        gguf_put_u32(&k->bytes, id[0]);
        gguf_put_u32(&k->bytes, id[1]);
    }
    return ST_OK;
}
