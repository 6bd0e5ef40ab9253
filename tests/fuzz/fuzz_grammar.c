/* SPDX-License-Identifier: MIT
 *
 * fuzz_grammar.c - JSON schemas, and random texts that follow them
 *
 * The input is a schema. Texts are written token by token where the masks allow; the
 * input decides the tokens, too. What is promised: some token is always allowed, what
 * is allowed is accepted, also byte for byte, and a text that has ended is JSON. The
 * schema is a tool's, too, in two forms: what is written is read as calls whose
 * arguments are JSON.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/gguf/gguf_put.h"
#include "engine/grammar/grammar.h"
#include "tests/fuzz/support/model_file.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

#define KEY "tokenizer.ggml."

static const char *const pieces[] = {
    "{\"",   "\":",  "\",\"", "\"}", "}}",   "[[",   "]]",       "],[",      "true",
    "false", "null", "12",    "1.5", "e+1",  "\\u",  "d83d",     "\\ude00",  "\xc3\xa9",
    "\xe2",  "\x82", "name",  "aaa", "\n  ", "    ", "\": \"",   "a\":",     "-1",
    "0",     "x",    "2024-", "T",   "[{\"", "{}",   "[{}, {}]", "\"\",\"\""};
#define N_PIECES  (sizeof pieces / sizeof *pieces)
#define N_VOCAB   (3 + 256 + (uint32_t)N_PIECES)
#define TOKEN_END 2

static struct tokenizer *make_tokenizer(void)
{
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes head = {.n = 0};
    struct err err = ERR_INIT;
    struct tokenizer *tok;
    struct gguf *g;
    char text[16];

    gguf_kv_str(&k, KEY "model", "llama");
    gguf_kv_array(&k, KEY "tokens", GGUF_STRING, N_VOCAB);
    for (uint32_t id = 0; id < N_VOCAB; id++) {
        snprintf(text, sizeof text, id < 3 ? "<%u>" : "<0x%02X>", id < 3 ? id : id - 3);
        gguf_put_str(&k.bytes, id < 259 ? text : pieces[id - 259]);
    }
    gguf_kv_array(&k, KEY "token_type", GGUF_I32, N_VOCAB);
    for (uint32_t id = 0; id < N_VOCAB; id++)
        gguf_put_u32(&k.bytes, id < 1 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1);
    gguf_kv_array(&k, KEY "scores", GGUF_F32, N_VOCAB);
    for (uint32_t id = 0; id < N_VOCAB; id++)
        gguf_put_f32(&k.bytes, -(float)id);
    gguf_put_head(&head, 0, &k);
    gguf_put_padding(&head);
    void *image = image_copy(head.data, head.n);

    if (gguf_parse(&g, image, head.n, "fuzz", &err) || tokenizer_open(&tok, g, &err))
        fuzz_fail("no vocabulary: %s", err.msg);
    gguf_close(g);
    free(image);
    free(head.data);
    free(k.bytes.data);
    return tok;
}

static bool bit(const uint32_t *mask, uint32_t id)
{
    return mask[id / 32] >> id % 32 & 1;
}

/* One of the allowed tokens. */
static int32_t choose(const uint32_t *mask, uint64_t *seed)
{
    const uint32_t first = (uint32_t)random_below(seed, N_VOCAB);

    for (uint32_t i = 0; i < N_VOCAB; i++) {
        if (bit(mask, (first + i) % N_VOCAB))
            return (int32_t)((first + i) % N_VOCAB);
    }
    fuzz_fail("no token may follow");
}

enum { MAX_TEXT = 2048 };

/* Bytes of a text; whether it has ended by itself is the state's. */
static size_t write_any(struct grammar_state *s, const struct tokenizer *tok,
                        uint64_t *seed, char *text)
{
    uint32_t mask[(N_VOCAB + 31) / 32];
    int32_t forced[16];
    size_t len = 0;

    for (int i = 0; i < 100 && !grammar_state_ended(s); i++) {
        grammar_state_mask(s, mask);
        const int n = grammar_state_forced(s, forced, 16);
        const int32_t id = n > 0 ? forced[0] : choose(mask, seed);

        if (n > 0 && !bit(mask, (uint32_t)id))
            fuzz_fail("a forced token is not allowed");
        if (!grammar_state_accept(s, id))
            fuzz_fail("an allowed token is not accepted");
        if (id == TOKEN_END)
            break;
        len += tokenizer_piece(tok, id, text + len, 16);
    }
    return len;
}

/* The same text by tokens of one byte each. */
static void write_bytes(struct grammar_state *s, const char *text, size_t len,
                        bool complete, bool ended)
{
    for (size_t i = 0; i < len; i++)
        if (!grammar_state_accept(s, 3 + (unsigned char)text[i]))
            fuzz_fail("byte %zu is not accepted: %.*s", i, (int)len, text);
    if (ended && !grammar_state_ended(s) && !grammar_state_accept(s, TOKEN_END))
        fuzz_fail("by bytes it may not end: %.*s", (int)len, text);
    if (grammar_state_complete(s) != complete || grammar_state_ended(s) != ended)
        fuzz_fail("by bytes it ends elsewhere: %.*s", (int)len, text);
}

static void write_text(struct grammar_state *s, struct grammar_state *by_bytes,
                       const struct tokenizer *tok, uint64_t *seed)
{
    char text[MAX_TEXT];
    const size_t len = write_any(s, tok, seed, text);

    write_bytes(by_bytes, text, len, grammar_state_complete(s), grammar_state_ended(s));
    if (grammar_state_ended(s)) {
        json_t *value = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

        if (!value)
            fuzz_fail("a text that has ended is no JSON: %.*s", (int)len, text);
        json_decref(value);
    }
}

/* ---- the schema of a tool -------------------------------------------------------- */

static struct call_form forms[] = {{.begin = "{\"name\": \"",
                                    .n_trigger = 1,
                                    .sep = "\": ",
                                    .mid = "}{\"name\": \"",
                                    .end = "}"},
                                   {.begin = "<c>",
                                    .n_trigger = 3,
                                    .anywhere = true,
                                    .sep = "",
                                    .end = "</c>",
                                    .parameters = true,
                                    .open = "<p>",
                                    .join = "",
                                    .value = {"=", "="},
                                    .close = {"</p>", "</p>"}}};

/* Each call's arguments but for one that was cut off are JSON. */
static void check_calls(const struct grammar *g, const struct call_form *form,
                        const char *text, size_t len, bool ended)
{
    struct call_reader r;
    struct err err = ERR_INIT;
    const char *at, *end, *next;

    call_reader_open(&r, form, grammar_parameter_types, g);
    if (call_reader_add(&r, text, len, &err) || r.state == CALL_BROKEN ||
        (ended && !call_reader_is_whole(&r)))
        fuzz_fail("a call is not read: %.*s", (int)len, text);
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
        value =
            json_loadb(at, (size_t)(next - at), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!json_is_object(value))
            fuzz_fail("arguments are no object: %.*s", (int)len, text);
        json_decref(value);
    }
    call_reader_close(&r);
}

static void call_tool(struct grammar_vocab *v, const struct tokenizer *tok,
                      const uint8_t *data, size_t size, uint64_t *seed)
{
    const struct grammar_tool tool = {"aaa", (const char *)data, size};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct grammar_calls c = {.form = &forms[i],
                                        .tools = &tool,
                                        .n_tools = 1,
                                        .choice = GRAMMAR_REQUIRED,
                                        .parallel = true};
        struct err err = ERR_INIT;
        struct grammar_state *s;
        struct grammar *g;
        char text[MAX_TEXT];
        size_t len;

        if (!fuzz_accepted(grammar_from_calls(&g, &c, &err), &err))
            continue;
        if (grammar_state_open(&s, g, v, &err))
            fuzz_fail("no state: %s", err.msg);
        len = write_any(s, tok, seed, text);
        check_calls(g, &forms[i], text, len, grammar_state_ended(s));
        grammar_state_close(s);
        grammar_unref(g);
    }
}

static struct tokenizer *tok;

static void read_schema(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct grammar_vocab *v;
    struct grammar_state *s, *by_bytes;
    struct grammar *g;
    uint64_t seed = 1;

    if (!fuzz_accepted(grammar_from_schema(&g, (const char *)data, size, &err), &err))
        return;
    for (size_t i = 0; i < size; i++)
        seed = (seed ^ data[i]) * 0x100000001b3u | 1;
    if (grammar_vocab_open(&v, tok, &err))
        fuzz_fail("no vocabulary: %s", err.msg);
    for (int i = 0; i < 3; i++) {
        if (grammar_state_open(&s, g, v, &err) ||
            grammar_state_copy(&by_bytes, s, &err))
            fuzz_fail("no state: %s", err.msg);
        write_text(s, by_bytes, tok, &seed);
        grammar_state_close(by_bytes);
        grammar_state_close(s);
    }
    if (size)
        call_tool(v, tok, data, size, &seed);
    grammar_vocab_close(v);
    grammar_unref(g);
}

/* What is remembered of an automaton has limits of its own, whatever the schema. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_bound bound = {.cpu_s = 2,
                                            .cpu_s_per_byte = 50e-6,
                                            .bytes = (size_t)160 << 20,
                                            .bytes_per_byte = 4096};

    if (!tok)
        tok = make_tokenizer();
    return fuzz_run(read_schema, data, size, &bound);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"type",
                                        "object",
                                        "array",
                                        "string",
                                        "integer",
                                        "number",
                                        "boolean",
                                        "null",
                                        "properties",
                                        "required",
                                        "additionalProperties",
                                        "items",
                                        "prefixItems",
                                        "minItems",
                                        "maxItems",
                                        "minLength",
                                        "maxLength",
                                        "minimum",
                                        "exclusiveMaximum",
                                        "enum",
                                        "const",
                                        "anyOf",
                                        "oneOf",
                                        "allOf",
                                        "$ref",
                                        "$defs",
                                        "#",
                                        "#/$defs/a",
                                        "pattern",
                                        "format",
                                        "date",
                                        "uri",
                                        "^(a|b*)+[^c]{2,5}\\d$",
                                        "a",
                                        NULL};

    return mutate_json(data, size, max_size, seed, words);
}
