/* SPDX-License-Identifier: MIT
 *
 * hf_special.c - which tokens begin and end a text, from a folder's JSON files
 *
 * tokenizer_config.json names them; generation_config.json and config.json have their
 * numbers, of the end sometimes several. Whether they are put around a text says
 * tokenizer_config.json, or else the template of tokenizer.json's post_processor.
 */
#include "engine/hf_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONFIG ((size_t)16 << 20)
#define MAX_ENDS   3 /* eos, eot, eom: what GGUF has names for */

struct special {
    const struct hf_vocab *v;
    struct jsonfile tokenizer, generation, model; /* root NULL: not there */
    int64_t bos, eos, pad, ends[MAX_ENDS];
    int n_ends;
    int adds_bos, adds_eos; /* -1: nobody said */
};

static int64_t id_of(const struct hf_vocab *v, const char *text)
{
    for (size_t i = 0; text && i < v->n; i++)
        if (v->tokens[i].text && !strcmp(v->tokens[i].text, text))
            return (int64_t)i;
    return -1;
}

/* A number, or the first of a list of them, that is a token's. */
static int64_t number_of(const struct hf_vocab *v, const json_t *value)
{
    const json_t *one = json_is_array(value) ? json_array_get(value, 0) : value;
    const json_int_t id = json_is_integer(one) ? json_integer_value(one) : -1;

    return id >= 0 && (uint64_t)id < v->n ? id : -1;
}

/* By its text, "<s>" or {"content": "<s>"}, and else by its number. */
static int64_t find(const struct special *s, const char *text_key, const char *id_key)
{
    const json_t *named = json_member(s->tokenizer.root, text_key);
    const char *text =
        json_text(json_is_object(named) ? json_member(named, "content") : named);
    int64_t id = id_of(s->v, text);

    if (id < 0)
        id = number_of(s->v, json_member(s->generation.root, id_key));
    if (id < 0)
        id = number_of(s->v, json_member(s->model.root, id_key));
    return id;
}

static void add_end(struct special *s, int64_t id)
{
    for (int i = 0; i < s->n_ends; i++)
        if (s->ends[i] == id)
            return;
    if (id >= 0 && s->n_ends < MAX_ENDS)
        s->ends[s->n_ends++] = id;
}

static void find_ends(struct special *s)
{
    const json_t *list = json_member(s->generation.root, "eos_token_id");
    json_t *one;
    size_t i;

    add_end(s, s->eos);
    json_array_foreach(list, i, one) add_end(s, number_of(s->v, one));
}

/* ---- templates ----------------------------------------------------------------------
 */

/* The special tokens around the text in a template, if at most one on each side; more
 * of them belong to chats, whose own template spells them out. */
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
        } else {
            id[side] = id_of(s->v, text);
            n[side]++;
        }
    }
    s->adds_bos = n[0] == 1 && id[0] >= 0;
    s->adds_eos = n[1] == 1 && id[1] >= 0;
    if (s->adds_bos)
        s->bos = id[0];
    if (s->adds_eos) {
        s->eos = id[1];
        s->ends[0] = id[1];
        s->n_ends = s->n_ends ? s->n_ends : 1;
    }
}

static void read_templates(struct special *s, const json_t *processor)
{
    const char *type = json_text(json_member(processor, "type"));
    json_t *one;
    size_t i;

    if (type && !strcmp(type, "TemplateProcessing"))
        read_template(s, processor);
    if (!type || strcmp(type, "Sequence"))
        return;
    json_array_foreach(json_member(processor, "processors"), i, one)
    {
        const char *inner = json_text(json_member(one, "type"));

        if (inner && !strcmp(inner, "TemplateProcessing"))
            read_template(s, one);
    }
}

/* ---- putting
 * ------------------------------------------------------------------------- */

static void put_id(struct gguf_kvs *k, const char *key, int64_t id)
{
    if (id >= 0)
        gguf_kv_u32(k, key, (uint32_t)id);
}

static void put_ids(struct gguf_kvs *k, const struct special *s)
{
    static const char *const keys[MAX_ENDS] = {"tokenizer.ggml.eos_token_id",
                                               "tokenizer.ggml.eot_token_id",
                                               "tokenizer.ggml.eom_token_id"};
    const bool has_defaults = !s->v->pre.byte_level;

    put_id(k, "tokenizer.ggml.bos_token_id", s->bos);
    for (int i = 0; i < s->n_ends; i++)
        put_id(k, keys[i], s->ends[i]);
    put_id(k, "tokenizer.ggml.unknown_token_id", s->v->unknown);
    put_id(k, "tokenizer.ggml.padding_token_id", s->pad);
    /* Readers think of numbers of their own where a "llama" vocabulary says nothing. */
    if (has_defaults && s->bos < 0)
        gguf_kv_u32(k, "tokenizer.ggml.bos_token_id", UINT32_MAX);
    if (has_defaults && !s->n_ends)
        gguf_kv_u32(k, keys[0], UINT32_MAX);
    if (has_defaults && s->v->unknown < 0)
        gguf_kv_u32(k, "tokenizer.ggml.unknown_token_id", UINT32_MAX);
    gguf_kv_bool(k, "tokenizer.ggml.add_bos_token", s->adds_bos == 1 && s->bos >= 0);
    gguf_kv_bool(k, "tokenizer.ggml.add_eos_token", s->adds_eos == 1 && s->eos >= 0);
}

static void put_chat_template(struct gguf_kvs *k, const struct special *s)
{
    const json_t *t = json_member(s->tokenizer.root, "chat_template");
    const char *text = json_text(t);
    json_t *one;
    size_t i;

    /* Of several named ones the usual. */
    json_array_foreach(t, i, one)
    {
        const char *name = json_text(json_member(one, "name"));

        if (name && !strcmp(name, "default"))
            text = json_text(json_member(one, "template"));
    }
    if (text)
        gguf_kv_str(k, "tokenizer.chat_template", text);
}

static enum status load_if_there(struct jsonfile *f, const char *dir, const char *name,
                                 struct err *err)
{
    return dir && jsonfile_exists(dir, name)
               ? jsonfile_load(f, dir, name, MAX_CONFIG, err)
               : ST_OK;
}

enum status hf_special_put(struct gguf_kvs *k, const struct hf_vocab *v,
                           const char *dir, struct err *err)
{
    struct special s = {.v = v, .adds_bos = -1, .adds_eos = -1};
    bool says = false;
    enum status st;

    if (!(st = load_if_there(&s.tokenizer, dir, "tokenizer_config.json", err)) &&
        !(st = load_if_there(&s.generation, dir, "generation_config.json", err)))
        st = load_if_there(&s.model, dir, "config.json", err);
    if (st)
        goto out;
    s.bos = find(&s, "bos_token", "bos_token_id");
    s.eos = find(&s, "eos_token", "eos_token_id");
    s.pad = find(&s, "pad_token", "pad_token_id");
    find_ends(&s);
    read_templates(&s, json_member(v->file.root, "post_processor"));
    st = json_get_bool(&s.tokenizer, s.tokenizer.root, "add_bos_token", &says, err);
    if (!st && json_member(s.tokenizer.root, "add_bos_token"))
        s.adds_bos = says;
    if (!st)
        st = json_get_bool(&s.tokenizer, s.tokenizer.root, "add_eos_token", &says, err);
    if (!st && json_member(s.tokenizer.root, "add_eos_token"))
        s.adds_eos = says;
    put_ids(k, &s);
    put_chat_template(k, &s);
out:
    jsonfile_free(&s.tokenizer);
    jsonfile_free(&s.generation);
    jsonfile_free(&s.model);
    return st;
}
