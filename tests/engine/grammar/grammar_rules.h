/* SPDX-License-Identifier: MIT
 *
 * grammar_rules.h - tables of schemas with texts that are valid and not, and of schemas
 * that are refused
 *
 * Schemas and texts are written with ' for ".
 */
#ifndef SLM_TESTS_ENGINE_GRAMMAR_GRAMMAR_RULES_H
#define SLM_TESTS_ENGINE_GRAMMAR_GRAMMAR_RULES_H

#include "tests/support/grammar_group.h"

static inline void unquote(char *out, size_t cap, const char *text)
{
    assert_true(strlen(text) < cap);
    for (; *text; text++)
        *out++ = (char)(*text == '\'' ? '"' : *text);
    *out = '\0';
}

/* Texts, one a line, and for each whether it is valid. */
struct rule {
    const char *schema, *texts, *valid;
};

static inline void check_rules(const struct rule *rules, size_t n)
{
    char schema[1000], texts[1000], *save = NULL;

    for (size_t i = 0; i < n; i++) {
        size_t k = 0;

        unquote(schema, sizeof schema, rules[i].schema);
        unquote(texts, sizeof texts, rules[i].texts);
        struct grammar *g = grammar_of(schema);

        for (char *text = strtok_r(texts, "\n", &save); text;
             text = strtok_r(NULL, "\n", &save), k++)
            if (grammar_takes(g, group_vocab, text) != (rules[i].valid[k] == '+'))
                fail_msg("%s: %s", schema, text);
        assert_int_equal(k, strlen(rules[i].valid));
        grammar_unref(g);
    }
}

struct refusal {
    const char *schema, *message;
};

static inline void check_refusals(const struct refusal *r, size_t n)
{
    char schema[1000];

    for (size_t i = 0; i < n; i++) {
        struct grammar *g = NULL;
        struct err err = ERR_INIT;

        unquote(schema, sizeof schema, r[i].schema);
        if (grammar_from_schema(&g, schema, strlen(schema), &err) != ST_INPUT ||
            !strstr(err.msg, r[i].message))
            fail_msg("%s: '%s', not '%s'", schema, err.msg, r[i].message);
        assert_null(g);
    }
}

#endif
