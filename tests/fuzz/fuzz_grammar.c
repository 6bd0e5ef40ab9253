/* SPDX-License-Identifier: MIT
 *
 * fuzz_grammar.c - JSON schemas, and random texts that follow them
 *
 * The input is a schema. Texts are written token by token where the masks allow; the
 * input decides the tokens, too. What is promised: some token is always allowed, what
 * is allowed is accepted, and a text that has ended is JSON.
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

static void write_text(struct grammar_state *s, const struct tokenizer *tok,
                       uint64_t *seed)
{
    uint32_t mask[(N_VOCAB + 31) / 32];
    int32_t forced[16];
    char text[2048];
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
    if (grammar_state_ended(s)) {
        json_t *value = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

        if (!value)
            fuzz_fail("a text that has ended is no JSON: %.*s", (int)len, text);
        json_decref(value);
    }
}

static struct tokenizer *tok;

static void read_schema(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct grammar_vocab *v;
    struct grammar_state *s;
    struct grammar *g;
    uint64_t seed = 1;

    if (!fuzz_accepted(grammar_from_schema(&g, (const char *)data, size, &err), &err))
        return;
    for (size_t i = 0; i < size; i++)
        seed = (seed ^ data[i]) * 0x100000001b3u | 1;
    if (grammar_vocab_open(&v, tok, &err))
        fuzz_fail("no vocabulary: %s", err.msg);
    for (int i = 0; i < 3; i++) {
        if (grammar_state_open(&s, g, v, &err))
            fuzz_fail("no state: %s", err.msg);
        write_text(s, tok, &seed);
        grammar_state_close(s);
    }
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
