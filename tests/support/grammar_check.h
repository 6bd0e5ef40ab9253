/* SPDX-License-Identifier: MIT
 *
 * grammar_check.h - a small vocabulary to write JSON with, grammars from schemas, and
 * texts held against them
 */
#ifndef SLM_TESTS_GRAMMAR_CHECK_H
#define SLM_TESTS_GRAMMAR_CHECK_H

#include "tests/support/tokenizer_check.h"

#include "engine/grammar/grammar.h"

/* ids: 0 <unk>, 1 <s>, 2 </s>, 3 .. 258 bytes, 259 .. ASCII characters 0x20 .. 0x7e,
 * then these: words, pieces of JSON, and tokens that end inside of a character. */
static const char *const grammar_pieces[] = {
    "{\"",      "\"}",
    "\":",      "\": ",
    "\": \"",   "\",",
    "\", \"",   "\",\"",
    "\"]",      "\"}]",
    "\"}}",     "\"]}",
    "],",       "},",
    "}}",       "]]",
    "}]",       "[{",
    "[[",       "{}",
    "[]",       "[\"",
    "[{\"",     "{\"a",
    "{\"name",  "name",
    "me\"",     "na",
    "id\":",    "true",
    "false",    "null",
    "tr",       "ue",
    "nul",      "12",
    "123",      "000",
    "1.5",      "e+",
    "0.",       "-1",
    "10",       "99",
    "2024",     "-0",
    "\n",       "\n  ",
    "\n    ",   "  ",
    "    ",     "\n\t",
    "\t\t",     "\\n",
    "\\\"",     "\\u",
    "\\u00",    "\\ud8",
    "\\\\",     "00e9",
    "d83d",     "\\ude00",
    "\xc3",     "\xc3\xa9",
    "\xe2\x82", "\xe2\x82\xac",
    "\xf0\x9f", "\xf0\x9f\x98\x80",
    "\x80",     "\xa9",
    "red",      "green",
    "blue",     "re",
    "en",       "d\"",
    "value",    "children",
    "next",     "\"next\":",
    "type",     "kind",
    "ab",       "abc",
    " a",       " the",
    "the",      "a\"b",
    "x\": [",   "\" :",
    "0\",",     "hello",
    "world",    ", ",
    ": ",       "aaaa",
    "aa",       "\"id\"",
    "12]",      "1,",
    "1}",       "},{\"",
    "-",        "T12:",
    "Z\"",      "@",
    "a@b.c",    "://",
    "--",       "\"\"",
    "\"\",\"",  "[[[[",
};
enum {
    GRAMMAR_ASCII = 259,
    GRAMMAR_FIRST = GRAMMAR_ASCII + 0x7f - 0x20,
    GRAMMAR_VOCAB = GRAMMAR_FIRST + sizeof grammar_pieces / sizeof *grammar_pieces,
    GRAMMAR_END = 2,
};

/* Whether there are byte tokens; else those ids are control tokens. */
static bool grammar_has_bytes = true;

static inline const char *grammar_token(int id, char *buf, int *type)
{
    static const char *const first[] = {"<unk>", "<s>", "</s>"};

    *type = id == 0              ? 2
            : id < 3             ? 3
            : id < GRAMMAR_ASCII ? (grammar_has_bytes ? 6 : 3)
                                 : 1;
    if (id < 3)
        return first[id];
    if (id >= GRAMMAR_FIRST)
        return grammar_pieces[id - GRAMMAR_FIRST];
    if (id < GRAMMAR_ASCII)
        sprintf(buf, "<0x%02X>", (unsigned)(id - 3));
    else
        sprintf(buf, "%c", id - GRAMMAR_ASCII + 0x20);
    return buf;
}

static inline struct tokenizer *grammar_tokenizer(bool adds_space)
{
    struct build b = build_new();
    struct tokenizer *t;
    char buf[16];
    int type;

    put_header(&b, 3, 0, 5);
    put_kv_str(&b, "tokenizer.ggml.model", "llama");
    put_key(&b, "tokenizer.ggml.tokens", GGUF_ARRAY);
    put_u32(&b, GGUF_STRING);
    put_u64(&b, GRAMMAR_VOCAB);
    for (int id = 0; id < GRAMMAR_VOCAB; id++)
        put_str(&b, grammar_token(id, buf, &type));
    put_key(&b, "tokenizer.ggml.scores", GGUF_ARRAY);
    put_u32(&b, GGUF_F32);
    put_u64(&b, GRAMMAR_VOCAB);
    for (int id = 0; id < GRAMMAR_VOCAB; id++)
        put_f32(&b, -(float)id);
    put_key(&b, "tokenizer.ggml.token_type", GGUF_ARRAY);
    put_u32(&b, GGUF_I32);
    put_u64(&b, GRAMMAR_VOCAB);
    for (int id = 0; id < GRAMMAR_VOCAB; id++) {
        grammar_token(id, buf, &type);
        put_u32(&b, (uint32_t)type);
    }
    put_key(&b, "tokenizer.ggml.add_space_prefix", GGUF_BOOL);
    put_u8(&b, adds_space);
    t = open_image(&b);
    build_free(&b);
    return t;
}

static inline struct grammar_vocab *grammar_vocabulary(bool adds_space)
{
    struct tokenizer *t = grammar_tokenizer(adds_space);
    struct grammar_vocab *v = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(grammar_vocab_open(&v, t, &err), ST_OK);
    tokenizer_close(t); /* nothing of it is needed */
    return v;
}

/* NULL stands for "any object". */
static inline struct grammar *grammar_of(const char *schema)
{
    struct grammar *g = NULL;
    struct err err = ERR_INIT;

    if (schema ? grammar_from_schema(&g, schema, strlen(schema), &err)
               : grammar_json(&g, &err))
        fail_msg("%s: %s", schema, err.msg);
    return g;
}

static inline struct grammar_state *grammar_start(struct grammar *g,
                                                  struct grammar_vocab *v)
{
    struct grammar_state *s = NULL;
    struct err err = ERR_INIT;

    if (grammar_state_open(&s, g, v, &err))
        fail_msg("%s", err.msg);
    return s;
}

static inline bool grammar_bit(const uint32_t *mask, int id)
{
    return mask[id / 32] >> id % 32 & 1;
}

static inline bool grammar_may_end(struct grammar_state *s)
{
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];

    grammar_state_mask(s, mask);
    return grammar_bit(mask, GRAMMAR_END);
}

/* Whether a text is one of the grammar's, written byte by byte. */
static inline bool grammar_takes(struct grammar *g, struct grammar_vocab *v,
                                 const char *text)
{
    struct grammar_state *s = grammar_start(g, v);
    bool ok = true;

    for (const char *c = text; *c && ok; c++)
        ok = grammar_state_accept(s, 3 + (unsigned char)*c);
    ok = ok && grammar_may_end(s) && grammar_state_accept(s, GRAMMAR_END);
    grammar_state_close(s);
    return ok;
}

#endif
