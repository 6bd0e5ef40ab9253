/* SPDX-License-Identifier: MIT
 *
 * chat.c - a model's chat template, run, and its prompts as tokens
 */
#include "engine/text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/text/chat_impl.h"

/* A text that no template writes, to find messages in prompts. */
#define MARK "\x7fslmbench-1\x7f"

/* ---- opening --------------------------------------------------------------------- */

bool chat_template_exists(const struct gguf *g)
{
    struct gguf_str s;

    return gguf_get_str(g, "tokenizer.chat_template", &s) ||
           gguf_get_str(g, "tokenizer.chat_template.tool_use", &s);
}

static enum status no_memory(struct err *err)
{
    return err_set(err, ST_NO_MEMORY, "no memory for a chat template");
}

/* A special token's spelling: as a folder states it, else as the vocabulary has it. */
static void put_token(json_t *own, const char *name, const struct gguf *g,
                      const char *key, const struct tokenizer *tok, int32_t id)
{
    struct gguf_str s;
    size_t n;

    if (g && gguf_get_str(g, key, &s)) {
        json_object_set_new(own, name, json_stringn(s.data, s.len));
    } else if (id >= 0) {
        const char *text = tokenizer_text(tok, id, &n);

        json_object_set_new(own, name, json_stringn(text, n));
    }
}

static enum status read_tokens(struct chat_template *c, const struct gguf *g,
                               const struct tokenizer *tok, struct err *err)
{
    const json_t *bos;
    uint64_t pad = UINT64_MAX, unknown = UINT64_MAX;
    const uint64_t n = (uint64_t)tokenizer_n_vocab(tok);

    if (g) {
        gguf_get_u64(g, "tokenizer.ggml.padding_token_id", &pad);
        gguf_get_u64(g, "tokenizer.ggml.unknown_token_id", &unknown);
    }

    c->own = json_object();
    if (!c->own)
        return no_memory(err);
    put_token(c->own, "bos_token", g, TOKENIZER_KEY_CHAT_BOS, tok, tokenizer_bos(tok));
    put_token(c->own, "eos_token", g, TOKENIZER_KEY_CHAT_EOS, tok, tokenizer_eos(tok));
    put_token(c->own, "pad_token", g, "", tok, pad < n ? (int32_t)pad : -1);
    put_token(c->own, "unk_token", g, "", tok, unknown < n ? (int32_t)unknown : -1);
    bos = json_object_get(c->own, "bos_token");
    c->bos = bos ? json_string_value(bos) : "";
    return ST_OK;
}

/* ---- rendering ------------------------------------------------------------------- */

json_t *chat_conversation(const struct chat_message *m, size_t n)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    json_t *list = json_array();

    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "role", roles[m[i].role],
                                            "content", m[i].text))) {
            json_decref(list);
            return NULL;
        }
    return list ? json_pack("{s:o, s:b}", "messages", list, "add_generation_prompt", 1)
                : NULL;
}

enum status chat_render(const struct chat_template *c, const json_t *conversation,
                        struct jinja_text *out, struct err *err)
{
    const struct chat_variant *v;
    const enum status st = chat_pick(&v, c, conversation, err);

    return st ? st
              : jinja_render(v->program, c->own, conversation, time(NULL), out, err);
}

/* ---- tokens ---------------------------------------------------------------------- */

enum status chat_tokens(const struct chat_template *c, const struct tokenizer *tok,
                        const struct jinja_text *t, size_t from, size_t max_ids,
                        int32_t **ids, size_t *n_ids, struct err *err)
{
    struct tokenizer_span *spans = calloc(t->n_own + 1, sizeof *spans);
    const size_t n_bos = strlen(c->bos);
    const bool has_bos = n_bos && t->n_own && !t->own[0].begin &&
                         t->own[0].end >= n_bos && !memcmp(t->text, c->bos, n_bos);
    struct tokenizer_markers markers = {spans, 0, c->markers};
    enum status st;

    if (!spans)
        return no_memory(err);
    for (size_t i = 0; i < t->n_own; i++) {
        const size_t begin = t->own[i].begin > from ? t->own[i].begin : from;

        if (t->own[i].end > begin)
            spans[markers.n_spans++] =
                (struct tokenizer_span){begin - from, t->own[i].end - from};
    }
    st = tokenizer_encode_marked(tok, t->text + from, t->len - from,
                                 !from && !has_bos && tokenizer_adds_bos(tok), &markers,
                                 max_ids, ids, n_ids, err);
    free(spans);
    return st;
}

enum status chat_encode(const struct chat_template *c, const struct tokenizer *tok,
                        const json_t *conversation, int32_t **ids, size_t *n_ids,
                        struct err *err)
{
    struct jinja_text t;
    enum status st = chat_render(c, conversation, &t, err);

    if (st)
        return st;
    st = chat_tokens(c, tok, &t, 0, TOKENIZER_ANY, ids, n_ids, err);
    jinja_text_free(&t);
    return st;
}

/* The prompt of m[0 .. n). */
static enum status render_messages(const struct chat_template *c,
                                   const struct chat_message *m, size_t n, bool asks,
                                   struct jinja_text *out, struct err *err)
{
    json_t *conversation = chat_conversation(m, n);
    enum status st;

    if (!conversation)
        return no_memory(err);
    json_object_set_new(conversation, "add_generation_prompt", json_boolean(asks));
    st = chat_render(c, conversation, out, err);
    json_decref(conversation);
    return st;
}

bool chat_is_end(const struct chat_template *c, const struct tokenizer *tok, int32_t id)
{
    return tokenizer_is_end(tok, id) || (c->end >= 0 && id == c->end);
}

/* ---- what a template does -------------------------------------------------------- */

static bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

/* The token that is spelled as the marker "<...>" or "[...]" that a text begins with,
 * whatever the vocabulary types it as; -1: none. */
static int32_t spelled_marker(const struct tokenizer *tok, const char *text)
{
    const char *end = *text == '<'   ? strchr(text, '>')
                      : *text == '[' ? strchr(text, ']')
                                     : NULL;
    const size_t n = end ? (size_t)(end - text) + 1 : 0;

    for (int32_t id = 0; n > 2 && id < tokenizer_n_vocab(tok); id++) {
        size_t len;
        const char *spelled = tokenizer_text(tok, id, &len);

        if (len == n && !memcmp(spelled, text, n))
            return id;
    }
    return -1;
}

/* The first token of text[len], if it is no text. */
static int32_t first_marker(const struct chat_template *c, const struct tokenizer *tok,
                            const char *text, size_t len)
{
    const struct tokenizer_span all = {0, len};
    const struct tokenizer_markers markers = {&all, 1, c->markers};
    int32_t *ids = NULL, id = -1;
    size_t n = 0;

    if (len &&
        !tokenizer_encode_marked(tok, text, len, false, &markers, TOKENIZER_ANY, &ids,
                                 &n, NULL) &&
        n && tokenizer_is_special(tok, ids[0]))
        id = ids[0];
    free(ids);
    return id;
}

/* The token behind an answer: at the end of a conversation, or else, of families that
 * write none there, before the next question. */
static int32_t find_end(const struct chat_template *c, const struct tokenizer *tok)
{
    const struct chat_message m[] = {
        {CHAT_USER, "1"}, {CHAT_ASSISTANT, MARK}, {CHAT_USER, "2"}};
    int32_t end = -1;

    for (size_t n = 2; n <= 3 && end < 0; n++) {
        struct jinja_text t;
        struct err why = ERR_INIT;
        const char *at;

        if (render_messages(c, m, n, false, &t, &why))
            continue;
        at = strstr(t.text, MARK);
        if (at) {
            for (at += strlen(MARK); is_blank(*at);)
                at++;
            end = first_marker(c, tok, at, strlen(at));
            if (end < 0)
                end = spelled_marker(tok, at);
        }
        jinja_text_free(&t);
    }
    return end;
}

/* The prompt with further variables; "" where the template fails. */
static char *render_with(const struct chat_template *c, const char *system,
                         const char *name, json_t *value)
{
    const struct chat_message m[] = {{CHAT_SYSTEM, system ? system : ""},
                                     {CHAT_USER, "1"}};
    json_t *conversation = chat_conversation(m + !system, 2 - (size_t)!system);
    struct jinja_text t;
    struct err why = ERR_INIT;
    char *text = NULL;

    if (name)
        json_object_set_new(conversation, name, value);
    if (conversation && !chat_render(c, conversation, &t, &why)) {
        free(t.own);
        text = t.text;
    }
    json_decref(conversation);
    return text ? text : strdup("");
}

struct chat_abilities chat_template_abilities(const struct chat_template *c)
{
    json_t *tools =
        json_pack("[{s:s, s:{s:s, s:s, s:{s:s, s:{}}}}]", "type", "function",
                  "function", "name", "slmbench_probe", "description", "d",
                  "parameters", "type", "object", "properties");
    char *plain = render_with(c, NULL, NULL, NULL);
    char *system = render_with(c, MARK, NULL, NULL);
    char *tool = render_with(c, NULL, "tools", tools);
    char *on = render_with(c, NULL, "enable_thinking", json_true());
    char *off = render_with(c, NULL, "enable_thinking", json_false());
    struct chat_abilities can = {false, false, false, false};

    if (plain && system && tool && on && off) {
        can.system = strstr(system, MARK) != NULL;
        can.tools = strstr(tool, "slmbench_probe") != NULL;
        can.thinking_switch = *on && *off && strcmp(on, off) != 0;
        can.thinking = can.thinking_switch || strstr(plain, "think>");
    }
    free(plain);
    free(system);
    free(tool);
    free(on);
    free(off);
    return can;
}

enum status chat_template_open(struct chat_template **out, const struct gguf *g,
                               const struct tokenizer *tok, const char *name,
                               struct err *err)
{
    struct chat_template *c = calloc(1, sizeof *c);
    enum status st;

    if (!c)
        return no_memory(err);
    c->name = strdup(name ? name : "of the model");
    st = c->name ? chat_load_variants(c, g, name, err) : no_memory(err);
    if (!st)
        st = read_tokens(c, g, tok, err);
    if (st) {
        chat_template_close(c);
        return st;
    }
    c->end = find_end(c, tok);
    chat_find_thinking(c);
    chat_find_calls(c, tok);
    *out = c;
    return ST_OK;
}

void chat_template_close(struct chat_template *c)
{
    if (!c)
        return;
    free(c->name);
    chat_free_thinking(&c->thinking);
    chat_free_calls(c);
    chat_free_variants(c);
    json_decref(c->own);
    free(c);
}

const char *chat_template_name(const struct chat_template *c)
{
    return c->name;
}

const char *chat_template_variants(const struct chat_template *c)
{
    return c->names;
}

bool chat_template_mentions(const struct chat_template *c, const json_t *conversation,
                            const char *word)
{
    const struct chat_variant *v;
    struct err why = ERR_INIT;

    return !chat_pick(&v, c, conversation, &why) && strstr(v->source, word);
}
