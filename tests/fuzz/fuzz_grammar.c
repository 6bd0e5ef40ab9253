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
#include "tests/fuzz/support/grammar_texts.h"
#include "tests/fuzz/support/mutate.h"

/* The same text by tokens of one byte each. */
static void write_bytes(struct grammar_state *s, const char *text, size_t len,
                        bool complete, bool ended)
{
    for (size_t i = 0; i < len; i++)
        if (!grammar_state_accept(s, TEXTS_FIRST_BYTE + (unsigned char)text[i]))
            fuzz_fail("byte %zu is not accepted: %.*s", i, (int)len, text);
    if (ended && !grammar_state_ended(s) && !grammar_state_accept(s, TEXTS_TOKEN_END))
        fuzz_fail("by bytes it may not end: %.*s", (int)len, text);
    if (grammar_state_complete(s) != complete || grammar_state_ended(s) != ended)
        fuzz_fail("by bytes it ends elsewhere: %.*s", (int)len, text);
}

static void write_text(struct grammar_state *s, struct grammar_state *by_bytes,
                       const struct tokenizer *tok, uint64_t *seed)
{
    char text[TEXTS_MAX];
    const size_t len = texts_write(s, tok, seed, text);

    write_bytes(by_bytes, text, len, grammar_state_complete(s), grammar_state_ended(s));
    if (grammar_state_ended(s)) {
        json_t *value = texts_json(text, len);

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

static struct tokenizer *tok;

static void read_schema(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    const struct grammar_tool tool = {"aaa", (const char *)data, size};
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
    for (size_t i = 0; size && i < sizeof forms / sizeof *forms; i++)
        texts_call_tool(&forms[i], &tool, v, tok, &seed);
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
        tok = texts_vocabulary(NULL, 0);
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
