/* SPDX-License-Identifier: MIT
 *
 * grammar_texts.h - a small vocabulary, texts that a grammar allows, calls read of them
 *
 * Threading: one input at a time.
 */
#ifndef SLM_TESTS_FUZZ_GRAMMAR_TEXTS_H
#define SLM_TESTS_FUZZ_GRAMMAR_TEXTS_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/gguf/gguf_put.h"
#include "engine/grammar/grammar.h"
#include "tests/fuzz/support/model_file.h"

#define TEXTS_TOKEN_END  2
#define TEXTS_FIRST_BYTE 3 /* of 256 tokens, a byte each */
#define TEXTS_MAX        4096
#define TEXTS_MAX_VOCAB  512

static const char *const texts_pieces[] = {
    "{\"",   "\":",  "\",\"", "\"}", "}}",   "[[",   "]]",       "],[",      "true",
    "false", "null", "12",    "1.5", "e+1",  "\\u",  "d83d",     "\\ude00",  "\xc3\xa9",
    "\xe2",  "\x82", "name",  "aaa", "\n  ", "    ", "\": \"",   "a\":",     "-1",
    "0",     "x",    "2024-", "T",   "[{\"", "{}",   "[{}, {}]", "\"\",\"\""};
#define TEXTS_N_PIECES (sizeof texts_pieces / sizeof *texts_pieces)

/* Those pieces, all bytes, and control tokens. */
static inline struct tokenizer *texts_vocabulary(const char *const *controls,
                                                 size_t n_controls)
{
    const uint32_t n_texts = TEXTS_FIRST_BYTE + 256 + (uint32_t)TEXTS_N_PIECES;
    const uint32_t n = n_texts + (uint32_t)n_controls;
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes head = {.n = 0};
    struct err err = ERR_INIT;
    struct tokenizer *tok;
    struct gguf *g;
    char text[16];

    gguf_kv_str(&k, "tokenizer.ggml.model", "llama");
    gguf_kv_array(&k, "tokenizer.ggml.tokens", GGUF_STRING, n);
    for (uint32_t id = 0; id < n; id++) {
        snprintf(text, sizeof text, id < 3 ? "<%u>" : "<0x%02X>", id < 3 ? id : id - 3);
        gguf_put_str(&k.bytes, id < 259       ? text
                               : id < n_texts ? texts_pieces[id - 259]
                                              : controls[id - n_texts]);
    }
    gguf_kv_array(&k, "tokenizer.ggml.token_type", GGUF_I32, n);
    for (uint32_t id = 0; id < n; id++)
        gguf_put_u32(&k.bytes, id < 1                    ? 2
                               : id < 3 || id >= n_texts ? 3
                               : id < 259                ? 6
                                                         : 1);
    gguf_kv_array(&k, "tokenizer.ggml.scores", GGUF_F32, n);
    for (uint32_t id = 0; id < n; id++)
        gguf_put_f32(&k.bytes, -(float)id);
    gguf_put_head(&head, 0, &k);
    gguf_put_padding(&head);
    void *image = image_copy(head.data, head.n);

    if (n > TEXTS_MAX_VOCAB || gguf_parse(&g, image, head.n, "fuzz", &err) ||
        tokenizer_open(&tok, g, &err))
        fuzz_fail("no vocabulary: %s", err.msg);
    gguf_close(g);
    free(image);
    free(head.data);
    free(k.bytes.data);
    return tok;
}

static inline bool texts_bit(const uint32_t *mask, uint32_t id)
{
    return mask[id / 32] >> id % 32 & 1;
}

/* One of the allowed tokens. */
static inline int32_t texts_choose(const uint32_t *mask, uint32_t n, uint64_t *seed)
{
    const uint32_t first = (uint32_t)random_below(seed, n);

    for (uint32_t i = 0; i < n; i++) {
        if (texts_bit(mask, (first + i) % n))
            return (int32_t)((first + i) % n);
    }
    fuzz_fail("no token may follow");
}

/* Bytes of a token, for a control token as forms of calls have it. */
static inline size_t texts_piece(const struct tokenizer *tok, int32_t id, char *to)
{
    size_t n = tokenizer_piece(tok, id, to, 32);

    if (!n && id > TEXTS_TOKEN_END) {
        const char *text = tokenizer_text(tok, id, &n);

        to[0] = to[n + 1] = CALL_CONTROL;
        memcpy(to + 1, text, n);
        n += 2;
    }
    return n;
}

/* Bytes of a text; whether it has ended by itself is the state's. */
static inline size_t texts_write(struct grammar_state *s, const struct tokenizer *tok,
                                 uint64_t *seed, char text[TEXTS_MAX])
{
    uint32_t mask[TEXTS_MAX_VOCAB / 32];
    int32_t forced[16];
    size_t len = 0;

    for (int i = 0; i < 100 && !grammar_state_ended(s); i++) {
        grammar_state_mask(s, mask);
        const int n = grammar_state_forced(s, forced, 16);
        const int32_t id =
            n > 0 ? forced[0]
                  : texts_choose(mask, (uint32_t)tokenizer_n_vocab(tok), seed);

        if (n > 0 && !texts_bit(mask, (uint32_t)id))
            fuzz_fail("a forced token is not allowed");
        if (!grammar_state_accept(s, id))
            fuzz_fail("an allowed token is not accepted");
        if (tokenizer_is_end(tok, id))
            break;
        len += texts_piece(tok, id, text + len);
    }
    return len;
}

/* A value of JSON, whose integers may be of any size; NULL: the text is none. */
static inline json_t *texts_json(const char *text, size_t len)
{
    return json_loadb(text, len,
                      JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

/* Each call's arguments but for one that was cut off are JSON. */
static inline void texts_check_calls(const struct grammar *g,
                                     const struct call_form *form, const char *text,
                                     size_t len, bool ended)
{
    struct call_reader r;
    struct err err = ERR_INIT;
    const char *at, *end, *next;

    call_reader_open(&r, form, grammar_parameter_types, g);
    if (call_reader_add(&r, text, len, &err) || r.state == CALL_BROKEN ||
        (ended && !call_reader_is_whole(&r)))
        fuzz_fail("a call is not read (state %d, %s): %.*s", (int)r.state,
                  ended ? "ended" : "cut", (int)len, text);
    at = r.calls.s;
    end = r.calls.s + r.calls.n;
    for (; at < end; at = next) {
        json_t *value;

        at = memchr(at, CALL_ARGUMENTS, (size_t)(end - at));
        if (!at)
            fuzz_fail("a name without arguments");
        at++;
        next = memchr(at, CALL_NAME, (size_t)(end - at));
        if (!next && !ended)
            break;
        next = next ? next : end;
        value = texts_json(at, (size_t)(next - at));
        if (!json_is_object(value))
            fuzz_fail("arguments are no object: %.*s", (int)len, text);
        json_decref(value);
    }
    call_reader_close(&r);
}

/* A text that calls a tool of that schema, in a form, is written and read. */
static inline void texts_call_tool(const struct call_form *form,
                                   const struct grammar_tool *tool,
                                   struct grammar_vocab *v, const struct tokenizer *tok,
                                   uint64_t *seed)
{
    const struct grammar_calls c = {.form = form,
                                    .tools = tool,
                                    .n_tools = 1,
                                    .choice = GRAMMAR_REQUIRED,
                                    .parallel = true};
    struct err err = ERR_INIT;
    struct grammar_state *s;
    struct grammar *g;
    char text[TEXTS_MAX];
    size_t len;

    if (!fuzz_accepted(grammar_from_calls(&g, &c, &err), &err))
        return;
    if (grammar_state_open(&s, g, v, &err))
        fuzz_fail("no state: %s", err.msg);
    len = texts_write(s, tok, seed, text);
    texts_check_calls(g, form, text, len, grammar_state_ended(s));
    grammar_state_close(s);
    grammar_unref(g);
}

#endif
