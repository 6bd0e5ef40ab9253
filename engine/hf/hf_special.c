/* SPDX-License-Identifier: MIT
 *
 * hf_special.c - tokens that begin and end a text, from a folder's JSON files
 *
 * tokenizer_config.json or special_tokens_map.json has their names;
 * generation_config.json and config.json have their ids, sometimes several for the end.
 * tokenizer_config.json, or else the template of tokenizer.json's post_processor,
 * states whether a text gets them. hf_templates.c finds the chat templates.
 */
#include "engine/hf/hf_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer/tokenizer.h"

#define GGUF_ENDS 3 /* eos, eot, eom: those that GGUF has keys for */

static const struct json_limit max_config = {(size_t)16 << 20, (size_t)1 << 18};

struct special {
    const struct hf_vocab *v;
    struct jsonfile tokenizer, map, generation, model, chat; /* root NULL: no file */
    int64_t bos, eos, pad;
    int64_t *ends; /* in the order in which they are named, each once */
    size_t n_ends;
    bool *is_end;           /* [v->n] */
    int adds_bos, adds_eos; /* -1: not stated */
};

static int64_t id_of(const struct hf_vocab *v, const char *text)
{
    for (size_t i = 0; text && i < v->n; i++)
        if (v->tokens[i].text && !strcmp(v->tokens[i].text, text))
            return (int64_t)i;
    return -1;
}

/* A token id, or the first of a list of ids. */
static int64_t number_of(const struct hf_vocab *v, const json_t *value)
{
    const json_t *one = json_is_array(value) ? json_array_get(value, 0) : value;
    int64_t id;

    return json_whole(one, &id) && id >= 0 && (uint64_t)id < v->n ? id : -1;
}

/* The id of a token's text, "<s>" or {"content": "<s>"}. */
static int64_t named(const struct special *s, const struct jsonfile *f, const char *key)
{
    const json_t *v = json_member(f->root, key);

    return id_of(s->v, json_text(json_is_object(v) ? json_member(v, "content") : v));
}

/* The members of the text model where it is a part of another. */
static const json_t *of_model(const struct special *s, const char *key)
{
    const json_t *v = json_member(s->model.root, key);

    return v ? v : json_member(json_member(s->model.root, "text_config"), key);
}

/* The id of a token by its text, else by its number. */
static int64_t find(const struct special *s, const char *text_key, const char *id_key)
{
    int64_t id = named(s, &s->tokenizer, text_key);

    if (id < 0)
        id = named(s, &s->map, text_key);
    if (id < 0)
        id = number_of(s->v, json_member(s->generation.root, id_key));
    if (id < 0)
        id = number_of(s->v, of_model(s, id_key));
    return id;
}

/* The text of a token that the vocabulary does not have; NULL: it has it, or there is
 * none. */
static const char *foreign_token(const struct special *s, const char *key)
{
    const json_t *v = json_member(s->tokenizer.root, key);
    const char *text = json_text(json_is_object(v) ? json_member(v, "content") : v);

    return text && id_of(s->v, text) < 0 ? text : NULL;
}

static void add_end(struct special *s, int64_t id)
{
    if (id < 0 || s->is_end[id])
        return;
    s->is_end[id] = true;
    s->ends[s->n_ends++] = id;
}

static void find_ends(struct special *s)
{
    const json_t *said = json_member(s->generation.root, "eos_token_id");
    const json_t *list = said ? said : of_model(s, "eos_token_id");
    json_t *one;
    size_t i;

    add_end(s, s->eos);
    if (!json_is_array(list))
        add_end(s, number_of(s->v, list));
    json_array_foreach(list, i, one) add_end(s, number_of(s->v, one));
}

/* ---- templates ------------------------------------------------------------------- */

/* The special tokens around the text in a template, at most one on each side; more
 * belong to chats, whose template has them. */
static void read_template(struct special *s, const json_t *processor)
{
    int n[2] = {0, 0}, side = 0;
    int64_t id[2] = {-1, -1};
    json_t *one;
    size_t i;

    json_array_foreach(json_member(processor, "single"), i, one)
    {
        const char *text =
            json_text(json_member(json_member(one, "SpecialToken"), "id"));

        if (json_member(one, "Sequence")) {
            side = 1;
        } else if (!n[side]++) {
            id[side] = id_of(s->v, text);
        }
    }
    s->adds_bos = n[0] == 1 && id[0] >= 0;
    s->adds_eos = n[1] == 1 && id[1] >= 0;
    if (s->adds_bos)
        s->bos = id[0];
    if (s->adds_eos) {
        s->eos = id[1];
        add_end(s, id[1]);
    }
}

/* The processors of BERT and RoBERTa: the two tokens around a text by their ids. */
static void read_pair(struct special *s, const json_t *processor)
{
    const int64_t bos =
        number_of(s->v, json_array_get(json_member(processor, "cls"), 1));
    const int64_t eos =
        number_of(s->v, json_array_get(json_member(processor, "sep"), 1));

    if (bos < 0 || eos < 0)
        return;
    s->bos = bos;
    s->eos = eos;
    s->adds_bos = s->adds_eos = 1;
    add_end(s, eos);
}

static void read_processor(struct special *s, const json_t *processor)
{
    const char *type = json_text(json_member(processor, "type"));

    if (type && !strcmp(type, "TemplateProcessing"))
        read_template(s, processor);
    if (type && (!strcmp(type, "BertProcessing") || !strcmp(type, "RobertaProcessing")))
        read_pair(s, processor);
}

static void read_processors(struct special *s, const json_t *processor)
{
    const char *type = json_text(json_member(processor, "type"));
    json_t *one;
    size_t i;

    if (!type || strcmp(type, "Sequence") != 0) {
        read_processor(s, processor);
        return;
    }
    json_array_foreach(json_member(processor, "processors"), i, one)
        read_processor(s, one);
}

/* ---- pairs ----------------------------------------------------------------------- */

static void put_id(struct gguf_kvs *k, const char *key, int64_t id)
{
    if (id >= 0)
        gguf_kv_u32(k, key, (uint32_t)id);
}

static void put_ids(struct gguf_kvs *k, const struct special *s)
{
    static const char *const keys[GGUF_ENDS] = {"tokenizer.ggml.eos_token_id",
                                                "tokenizer.ggml.eot_token_id",
                                                "tokenizer.ggml.eom_token_id"};
    const bool has_defaults = !s->v->pre.byte_level;

    put_id(k, "tokenizer.ggml.bos_token_id", s->bos);
    put_id(k, keys[0], s->eos);
    for (size_t i = 0, n = 1; i < s->n_ends && n < GGUF_ENDS; i++)
        if (s->ends[i] != s->eos)
            put_id(k, keys[n++], s->ends[i]);
    if (s->n_ends > GGUF_ENDS) {
        gguf_kv_array(k, TOKENIZER_KEY_ENDS, GGUF_U32, s->n_ends);
        for (size_t i = 0; i < s->n_ends; i++)
            gguf_put_u32(&k->bytes, (uint32_t)s->ends[i]);
    }
    put_id(k, "tokenizer.ggml.unknown_token_id", s->v->unknown);
    put_id(k, "tokenizer.ggml.padding_token_id", s->pad);
    if (hf_own_is_bert(s->v)) { /* the second one is spelled so */
        put_id(k, "tokenizer.ggml.cls_token_id", s->bos);
        put_id(k, "tokenizer.ggml.seperator_token_id", s->eos);
    }
    /* Readers have their own defaults where a "llama" vocabulary has no key. */
    if (has_defaults && s->bos < 0)
        gguf_kv_u32(k, "tokenizer.ggml.bos_token_id", UINT32_MAX);
    if (has_defaults && s->eos < 0)
        gguf_kv_u32(k, keys[0], UINT32_MAX);
    if (has_defaults && s->v->unknown < 0)
        gguf_kv_u32(k, "tokenizer.ggml.unknown_token_id", UINT32_MAX);
    gguf_kv_bool(k, "tokenizer.ggml.add_bos_token", s->adds_bos == 1 && s->bos >= 0);
    gguf_kv_bool(k, "tokenizer.ggml.add_eos_token", s->adds_eos == 1 && s->eos >= 0);
}

/* With the spellings that a template may write all the same, where the vocabulary does
 * not have them. */
static enum status put_chat_templates(struct gguf_kvs *k, const struct special *s,
                                      const char *dir, struct err *err)
{
    bool any = false;
    const enum status st = hf_templates_put(k, &s->tokenizer, &s->chat, dir, &any, err);

    if (any && foreign_token(s, "bos_token"))
        gguf_kv_str(k, TOKENIZER_KEY_CHAT_BOS, foreign_token(s, "bos_token"));
    if (any && foreign_token(s, "eos_token"))
        gguf_kv_str(k, TOKENIZER_KEY_CHAT_EOS, foreign_token(s, "eos_token"));
    return st;
}

static enum status load_if_there(struct jsonfile *f, const char *dir, const char *name,
                                 struct err *err)
{
    bool exists = false;
    const enum status st = dir ? jsonfile_find(&exists, dir, name, err) : ST_OK;

    return st || !exists ? st : jsonfile_load(f, dir, name, max_config, err);
}

/* Whether a text gets tokens around it, from tokenizer_config.json. */
static enum status read_adds(struct special *s, struct err *err)
{
    bool bos = s->adds_bos == 1, eos = s->adds_eos == 1;
    enum status st =
        json_get_bool(&s->tokenizer, s->tokenizer.root, "add_bos_token", &bos, err);

    if (!st)
        st =
            json_get_bool(&s->tokenizer, s->tokenizer.root, "add_eos_token", &eos, err);
    if (json_member(s->tokenizer.root, "add_bos_token"))
        s->adds_bos = bos;
    if (json_member(s->tokenizer.root, "add_eos_token"))
        s->adds_eos = eos;
    return st;
}

enum status hf_special_put(struct gguf_kvs *k, const struct hf_vocab *v,
                           const char *dir, struct err *err)
{
    struct special s = {.v = v, .adds_bos = -1, .adds_eos = -1};
    enum status st;

    if ((st = load_if_there(&s.tokenizer, dir, "tokenizer_config.json", err)) ||
        (st = load_if_there(&s.map, dir, "special_tokens_map.json", err)) ||
        (st = load_if_there(&s.generation, dir, "generation_config.json", err)) ||
        (st = load_if_there(&s.model, dir, "config.json", err)) ||
        (st = load_if_there(&s.chat, dir, "chat_template.json", err)))
        goto out;
    s.ends = malloc((v->n + 1) * sizeof *s.ends);
    s.is_end = calloc(v->n + 1, sizeof *s.is_end);
    if (!s.ends || !s.is_end) {
        st = err_set(err, ST_NO_MEMORY, "no memory for %zu tokens", v->n);
        goto out;
    }
    s.bos = find(&s, "bos_token", "bos_token_id");
    s.eos = find(&s, "eos_token", "eos_token_id");
    s.pad = find(&s, "pad_token", "pad_token_id");
    find_ends(&s);
    read_processors(&s, json_member(v->file.root, "post_processor"));
    st = read_adds(&s, err);
    put_ids(k, &s);
    if (!st)
        st = put_chat_templates(k, &s, dir, err);
out:
    free(s.ends);
    free(s.is_end);
    jsonfile_free(&s.tokenizer);
    jsonfile_free(&s.map);
    jsonfile_free(&s.generation);
    jsonfile_free(&s.model);
    jsonfile_free(&s.chat);
    return st;
}
