/* SPDX-License-Identifier: MIT
 *
 * tokenizer_markers.c - markers of chats that a file types as text
 *
 * Some converters type every token as normal, the markers of chats included. Such a
 * marker would be spelled in pieces in a chat's prompt, and would not end an answer.
 * What is taken for a marker: a token typed "normal" that ends turns by its name, or
 * that is in brackets, without a blank, and occurs in the file's chat template. They
 * become control tokens, and tokenizer_note() names them.
 */
#include "engine/tokenizer/tokenizer_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define MAX_MARKER 64 /* bytes */
#define MAX_NAMED  4  /* in the note */

bool tokenizer_ends_turns(const char *text, size_t len)
{
    static const char *const texts[] = {
        "<|eot_id|>", "<|eom_id|>",    "<|im_end|>",    "<|end|>",
        "<|call|>",   "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (len == strlen(texts[i]) && !memcmp(text, texts[i], len))
            return true;
    return false;
}

/* Bytes of the "<...>" or "[...]" that text[len] begins with; 0: it begins otherwise.
 */
static size_t bracketed(const char *text, size_t len)
{
    const char last = *text == '<' ? '>' : *text == '[' ? ']' : '\0';

    for (size_t n = 1; last && n < len && n < MAX_MARKER; n++) {
        if (text[n] == last)
            return n > 1 ? n + 1 : 0;
        if (text[n] == ' ' || text[n] == '\n')
            return 0;
    }
    return 0;
}

static void take(struct tokenizer *t, int32_t id, int *n_named)
{
    const size_t used = strlen(t->note);
    char shown[48];
    size_t len;
    const char *text = token_text(t, id, &len);

    t->type[id] = TOKEN_CONTROL;
    if (*n_named < MAX_NAMED)
        snprintf(t->note + used, sizeof t->note - used, "%s%s", *n_named ? ", " : "",
                 utf8_printable(shown, sizeof shown, text, len));
    ++*n_named;
}

/* Type the candidates that occur in a template. */
static void take_from(struct tokenizer *t, struct gguf_str s,
                      const struct strtab *candidates, int *n_named)
{
    for (size_t i = 0; i < s.len; i++) {
        const size_t len = bracketed(s.data + i, s.len - i);
        const uint32_t id =
            len ? strtab_find(candidates, s.data + i, len) : STRTAB_NONE;

        if (id != STRTAB_NONE && t->type[id] == TOKEN_NORMAL)
            take(t, (int32_t)id, n_named);
    }
}

/* tokenizer.chat_template, and those by name. */
static void take_from_all(struct tokenizer *t, const struct gguf *g,
                          const struct strtab *candidates, int *n_named)
{
    static const char key[] = "tokenizer.chat_template";
    const size_t n = sizeof key - 1;

    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);
        struct gguf_str s;

        if (kv->key.len >= n && !memcmp(kv->key.data, key, n) &&
            (kv->key.len == n || kv->key.data[n] == '.') && kv->type == GGUF_STRING &&
            gguf_elem_str(g, kv, 0, &s))
            take_from(t, s, candidates, n_named);
    }
}

enum status tokenizer_type_markers(struct tokenizer *t, const struct gguf *g,
                                   struct err *err)
{
    struct strtab candidates = {0};
    size_t n = 0;
    int n_named = 0;
    enum status st;

    for (int pass = 0; pass < 2; pass++) { /* count, then index */
        if (pass && (st = strtab_init(&candidates, n + 1, err)))
            return st;
        for (int32_t id = 0; id < t->n_vocab; id++) {
            size_t len;
            const char *text = token_text(t, id, &len);

            if (t->type[id] != TOKEN_NORMAL || bracketed(text, len) != len || !len)
                continue;
            if (!pass)
                n++;
            else if (tokenizer_ends_turns(text, len))
                take(t, id, &n_named);
            else
                strtab_put(&candidates, text, (uint32_t)len, (uint32_t)id);
        }
    }
    if (n)
        take_from_all(t, g, &candidates, &n_named);
    if (n_named > MAX_NAMED) {
        const size_t used = strlen(t->note);

        snprintf(t->note + used, sizeof t->note - used, " and %d others",
                 n_named - MAX_NAMED);
    }
    strtab_free(&candidates);
    return ST_OK;
}
