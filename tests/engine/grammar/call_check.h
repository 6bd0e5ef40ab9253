/* SPDX-License-Identifier: MIT
 *
 * call_check.h - forms of calls, tools, and random answers that may call them, read and
 * held against the tools' schemas
 */
#ifndef SLM_TESTS_CALL_CHECK_H
#define SLM_TESTS_CALL_CHECK_H

#include "tests/support/grammar_check.h"
#include "tests/support/schema_check.h"

#include "engine/grammar/machine.h"

/* ---- forms and tools ------------------------------------------------------------- */

static struct call_form tags = {.begin = "<call>\n{\"name\": \"",
                                .n_trigger = 6,
                                .anywhere = true,
                                .sep = "\", \"arguments\": ",
                                .mid = "}\n</call>\n<call>\n{\"name\": \"",
                                .end = "}\n</call>"};
/* no marker, ids, and a number */
static struct call_form bare = {.begin = "[{\"name\": \"",
                                .n_trigger = 1,
                                .sep = "\", \"arguments\": ",
                                .mid =
                                    ", \"id\": \"\x01\"}, {\"n\": \x02, \"name\": \"",
                                .end = ", \"id\": \"\x01\"}]"};
/* marked by control tokens: <s> is one of this vocabulary's */
static struct call_form marked = {.begin = "\xff<s>\xff",
                                  .n_trigger = 5,
                                  .anywhere = true,
                                  .sep = ":",
                                  .mid = "\xff<s>\xff",
                                  .end = ""};
static struct call_form xml = {.begin = "<call><function=",
                               .n_trigger = 6,
                               .anywhere = true,
                               .sep = "",
                               .mid = ">\n</function></call><call><function=",
                               .end = ">\n</function></call>",
                               .parameters = true,
                               .open = ">\n<parameter=",
                               .join = "",
                               .value = {">\n", ">\n"},
                               .close = {"\n</parameter", "\n</parameter"}};
static struct call_form typed = {.begin = "<call><name>",
                                 .n_trigger = 6,
                                 .anywhere = true,
                                 .sep = "</name>",
                                 .end = "</call>",
                                 .parameters = true,
                                 .open = "<arg key=",
                                 .join = "",
                                 .value = {" string>", " json>"},
                                 .close = {"</arg>", "</arg>"}};
static struct call_form python = {.begin = "<py>[",
                                  .n_trigger = 4,
                                  .anywhere = true,
                                  .sep = "(",
                                  .mid = "), ",
                                  .end = ")]</py>",
                                  .parameters = true,
                                  .python = true,
                                  .open = "",
                                  .join = ", ",
                                  .value = {"='", "="},
                                  .close = {"'", ""}};
static struct call_form quotes = {.begin = "<py>",
                                  .n_trigger = 4,
                                  .anywhere = true,
                                  .sep = "(",
                                  .end = ")</py>",
                                  .parameters = true,
                                  .quotes = true,
                                  .open = "",
                                  .join = ", ",
                                  .value = {"=\"", "="},
                                  .close = {"\"", ""}};
/* messages with headers, in more than one order */
static struct call_form headers = {.begin = "<c>com to=f.",
                                   .n_trigger = 12,
                                   .anywhere = true,
                                   .sep = " <t>json<m>",
                                   .end = "<e>",
                                   .heads = {{"to=f.", "<c>com json<m>"},
                                             {"to=f.", "<c>com <t>json<m>"},
                                             {"<c>com to=f.", "<m>"}},
                                   .n_heads = 3,
                                   .answer = "<c>fin<m>",
                                   .preamble = "<c>com<m>",
                                   .next = "<e><s>a",
                                   .n_next = 3};
/* what separates two calls is what the end begins with */
static struct call_form lines = {.begin = "<calls>\n",
                                 .n_trigger = 7,
                                 .anywhere = true,
                                 .sep = " ",
                                 .mid = "\n",
                                 .end = "\n</calls>"};
static struct call_form *const forms[] = {&tags,   &bare,   &marked,  &xml,  &typed,
                                          &python, &quotes, &headers, &lines};
enum { N_FORMS = sizeof forms / sizeof *forms };

#define TOOL(name, schema)              \
    {                                   \
        name, schema, sizeof schema - 1 \
    }
static const struct grammar_tool tools[] = {
    TOOL("now", "{}"),
    TOOL("no_parameters", "{\"type\": \"object\", \"properties\": {}}"),
    {"nothing_at_all", "", 0},
    TOOL("get", "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": "
                "\"string\", \"description\": \"a city\"}, \"days\": {\"type\": "
                "\"integer\", \"minimum\": 1, \"maximum\": 14}}, \"required\": "
                "[\"city\"]}"),
    TOOL("get_more", "{\"type\": \"object\", \"properties\": {\"kind\": {\"enum\": "
                     "[\"red\", \"green\"]}, \"when\": {\"type\": \"string\", "
                     "\"format\": \"date\"}, \"code\": {\"type\": \"string\", "
                     "\"pattern\": \"^[a-z]{2,3}$\"}, \"note\": {\"type\": "
                     "[\"string\", \"null\"]}}, \"required\": [\"kind\", \"when\", "
                     "\"code\", \"note\"]}"),
    TOOL("get-all", "{\"type\": \"object\", \"properties\": {\"on\": {\"type\": "
                    "\"boolean\"}, \"list\": {\"type\": \"array\", \"items\": "
                    "{\"type\": \"string\", \"maxLength\": 3}, \"maxItems\": 2}, "
                    "\"deep\": {\"$ref\": \"#/$defs/x\"}, \"either\": {\"anyOf\": "
                    "[{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 5}, "
                    "{\"type\": \"null\"}]}, \"any\": {\"type\": [\"number\", "
                    "\"null\"]}}, \"required\": [\"on\", \"deep\"], \"$defs\": "
                    "{\"x\": {\"type\": \"object\", \"properties\": {\"x\": "
                    "{\"type\": \"integer\"}}, \"required\": [\"x\"], "
                    "\"additionalProperties\": false}}}"),
};
enum { N_TOOLS = sizeof tools / sizeof *tools };

static inline struct grammar *grammar_with(const struct grammar_calls *c)
{
    struct grammar *g = NULL;
    struct err err = ERR_INIT;

    if (grammar_from_calls(&g, c, &err))
        fail_msg("%s", err.msg);
    return g;
}

/* ---- answers --------------------------------------------------------------------- */

enum { MAX_ANSWER = 1 << 16 };
static char answer[MAX_ANSWER];
static size_t n_answer;

static inline bool accept(struct grammar_state *s, int32_t id)
{
    const uint32_t begin = s->v->at[id], end = s->v->at[id + 1];

    if (!grammar_state_accept(s, id))
        return false;
    assert_true(n_answer + end - begin < MAX_ANSWER);
    memcpy(answer + n_answer, s->v->text + begin, end - begin);
    n_answer += end - begin;
    return true;
}

static inline int32_t end_token(const struct grammar_vocab *v)
{
    assert_true(v->n_ends > 0);
    return v->end[0];
}

/* A token of a mask, from a random one on. */
static inline int32_t choose(const uint32_t *mask, int32_t n_vocab, uint64_t *seed)
{
    const int32_t first = (int32_t)(test_random(seed) % (uint64_t)n_vocab);

    for (int32_t i = 0; i < n_vocab; i++) {
        const int32_t id = (first + i) % n_vocab;

        if (mask[id / 32] >> id % 32 & 1)
            return id;
    }
    fail_msg("no token may come");
    return -1;
}

/* The token of each byte; -1: none. */
static inline void list_bytes(const struct grammar_vocab *v, int32_t *ids)
{
    memset(ids, 0xff, 256 * sizeof *ids);
    for (int32_t id = 0; id < v->n_vocab; id++)
        if (v->at[id + 1] - v->at[id] == 1)
            ids[(uint8_t)v->text[v->at[id]]] = id;
}

/* A text byte by byte, as far as it may come. */
static inline bool write_bytes(struct grammar_state *s, const int32_t *ids,
                               const char *text)
{
    size_t n = 0;

    while (text[n] && ids[(uint8_t)text[n]] >= 0 && accept(s, ids[(uint8_t)text[n]]))
        n++;
    return n > 0;
}

/* Tokens at random among those allowed; behind the first ones what closes something
 * comes more often, so that the text ends. *complete: it did. */
static inline void write_answer(struct grammar *g, const struct call_form *form,
                                struct grammar_vocab *v, uint64_t seed, int max_tokens,
                                bool *complete)
{
    static const char *const closing[] = {"\"", "\n", "<", "'", "]", ")", "}"};
    uint32_t *mask = calloc(GRAMMAR_MASK_WORDS(v->n_vocab), sizeof *mask);
    const int32_t end = end_token(v);
    struct grammar_state *s = NULL;
    struct err err = ERR_INIT;
    int32_t bytes[256];

    list_bytes(v, bytes);
    assert_int_equal(grammar_state_open(&s, g, v, &err), ST_OK);
    n_answer = 0;
    *complete = false;
    for (int i = 0; i < max_tokens && !*complete; i++) {
        int32_t id;

        if (i > 40 && test_random(&seed) % 2) {
            const char *text = form->parameters && test_random(&seed) % 2
                                   ? form->close[CALL_STRING]
                                   : closing[test_random(&seed) % 7];

            if (write_bytes(s, bytes, text)) {
                *complete = grammar_state_ended(s);
                continue;
            }
        }
        grammar_state_mask(s, mask);
        id = choose(mask, v->n_vocab, &seed);
        if (mask[end / 32] >> end % 32 & 1 && (test_random(&seed) % 4 == 0 || i > 150))
            id = end;
        assert_true(accept(s, id));
        *complete = id == end || grammar_state_ended(s);
    }
    grammar_state_close(s);
    free(mask);
}

/* The schema under which the arguments of a tool are valid. */
static inline const char *schema_of(const struct grammar_tool *list, size_t n,
                                    const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i].name, name))
            return list[i].len ? list[i].schema : "{}";
    return NULL;
}

/* What the answer is read as: text, and how many calls, all valid. */
static inline int check_answer(const struct grammar *g, const struct call_form *form,
                               const struct grammar_tool *list, size_t n_list,
                               bool complete, char *text, size_t cap)
{
    struct call_reader r;
    struct err err = ERR_INIT;
    const char *at, *end;
    int n = 0;

    call_reader_open(&r, form, grammar_parameter_types, g);
    assert_int_equal(call_reader_add(&r, answer, n_answer, &err), ST_OK);
    assert_int_equal(call_reader_end(&r, &err), ST_OK);
    if (text) {
        assert_true(r.text.n < cap);
        if (r.text.n)
            memcpy(text, r.text.s, r.text.n);
        text[r.text.n] = '\0';
    }
    assert_int_not_equal(r.state, CALL_BROKEN);
    if (complete && r.n_calls && !call_reader_is_whole(&r))
        fail_msg("not whole: %.*s", (int)n_answer, answer);
    at = r.calls.s;
    end = r.calls.s + r.calls.n;
    while (at < end) {
        char name[CALL_MAX_NAME + 1];
        const char *arguments = memchr(at, CALL_ARGUMENTS, (size_t)(end - at));
        const char *schema, *next;

        assert_int_equal(*at, CALL_NAME);
        if (!arguments)
            break; /* cut off */
        snprintf(name, sizeof name, "%.*s", (int)(arguments - at - 1), at + 1);
        schema = schema_of(list, n_list, name);
        if (!schema)
            fail_msg("no tool %s: %.*s", name, (int)n_answer, answer);
        arguments++;
        next = memchr(arguments, CALL_NAME, (size_t)(end - arguments));
        next = next ? next : end;
        if ((complete || next < end) &&
            !schema_text_valid(schema, arguments, (size_t)(next - arguments)))
            fail_msg("%s: %.*s, of %.*s", name, (int)(next - arguments), arguments,
                     (int)n_answer, answer);
        at = next;
        n++;
    }
    call_reader_close(&r);
    return n;
}

#endif
