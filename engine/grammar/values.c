/* SPDX-License-Identifier: MIT
 *
 * values.c - JSON values of any content: white space, strings, numbers, all of them
 *
 * Source: RFC 8259.
 */
#include "engine/grammar/build.h"

#include <string.h>

#define MAX_BLANKS   40 /* of a line's indentation */
#define MAX_TABS     16
#define MAX_INTEGER  18 /* digits: whatever reads it can hold it in 64 bits */
#define MAX_FRACTION 17
#define MAX_EXPONENT 2

static uint32_t times(struct automaton *a, char c, uint32_t max, uint32_t to)
{
    return build_repeat(a, build_range(a, (uint8_t)c, (uint8_t)c, NODE_POP), 0, max,
                        to);
}

uint32_t build_space(struct automaton *a, uint32_t to)
{
    const uint32_t indented =
        build_either(a, times(a, ' ', MAX_BLANKS, to),
                     build_text(a, "\t", 1, times(a, '\t', MAX_TABS - 1, to)));
    const struct edge edges[] = {{' ', ' ', to}, {'\n', '\n', indented}};

    return to == NODE_DEAD ? to : build_either(a, to, build_bytes(a, edges, 2));
}

uint32_t build_colon(struct automaton *a, uint32_t to)
{
    return build_text(a, ":", 1, build_either(a, to, build_text(a, " ", 1, to)));
}

/* ---- strings --------------------------------------------------------------------- */

static const struct char_range hex[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};

static uint32_t hex_digits(struct automaton *a, int n, uint32_t to)
{
    for (int i = 0; i < n; i++)
        to = build_chars(a, hex, 3, to);
    return to;
}

/* One hexadecimal digit of a set, and n any. */
static uint32_t hex_from(struct automaton *a, const struct char_range *first, size_t n,
                         int n_more, uint32_t to)
{
    return build_chars(a, first, n, hex_digits(a, n_more, to));
}

/* \uXXXX: not zero, which many readers refuse, nor a surrogate but in a pair. */
static uint32_t code_escape(struct automaton *a)
{
    static const struct char_range not_0[] = {{'1', '9'}, {'A', 'F'}, {'a', 'f'}};
    static const struct char_range not_0d[] = {
        {'1', '9'}, {'A', 'C'}, {'a', 'c'}, {'E', 'F'}, {'e', 'f'}};
    static const struct char_range d[] = {{'D', 'D'}, {'d', 'd'}};
    static const struct char_range to_7[] = {{'0', '7'}};
    static const struct char_range high[] = {{'8', '9'}, {'A', 'B'}, {'a', 'b'}};
    static const struct char_range low[] = {{'C', 'F'}, {'c', 'f'}};
    uint32_t zeros = hex_from(a, not_0, 3, 0, NODE_POP), ways[4];

    for (int i = 1; i < 3; i++)
        zeros = build_either(a, hex_from(a, not_0, 3, i, NODE_POP),
                             build_text(a, "0", 1, zeros));
    const uint32_t second =
        build_text(a, "\\u", 2, build_chars(a, d, 2, hex_from(a, low, 2, 2, NODE_POP)));

    ways[0] = build_text(a, "0", 1, zeros);
    ways[1] = hex_from(a, not_0d, 5, 3, NODE_POP);
    ways[2] = build_chars(a, d, 2, hex_from(a, to_7, 1, 2, NODE_POP));
    ways[3] = build_chars(a, d, 2, hex_from(a, high, 3, 2, second));
    return build_text(a, "u", 1, build_split(a, ways, 4));
}

/* The characters of a string and its closing quote. */
static uint32_t string_rule(struct build *b)
{
    static const struct char_range plain[] = {
        {0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, CHAR_MAX_CODE}};
    struct automaton *a = b->a;

    if (b->string == NO_RULE) {
        static const char names[] = "\"\\/bfnrt";
        struct edge edges[sizeof names - 1];

        for (uint32_t i = 0; i < sizeof names - 1; i++)
            edges[i] = (struct edge){(uint8_t)names[i], (uint8_t)names[i], NODE_POP};
        const uint32_t escape =
            build_either(a, build_bytes(a, edges, sizeof names - 1), code_escape(a));
        const uint32_t body = build_either(a, build_chars(a, plain, 3, NODE_POP),
                                           build_text(a, "\\", 1, escape));

        b->string = build_rule(a);
        const uint32_t start =
            build_repeat(a, body, 0, NO_LIMIT, build_text(a, "\"", 1, NODE_POP));

        if (!a->st)
            a->rules[b->string].start = start;
    }
    return b->string;
}

uint32_t build_string(struct build *b, uint32_t min, uint32_t max, uint32_t to)
{
    struct automaton *a = b->a;

    if (max == 0)
        return min == 0 ? build_text(a, "\"\"", 2, to) : NODE_DEAD;
    return build_text(a, "\"", 1, build_call_repeat(a, string_rule(b), min, max, to));
}

/* ---- numbers --------------------------------------------------------------------- */

static uint32_t digits(struct automaton *a, uint32_t min, uint32_t max, uint32_t to)
{
    return build_repeat(a, build_range(a, '0', '9', NODE_POP), min, max, to);
}

static uint32_t integer_part(struct automaton *a, uint32_t to)
{
    const struct edge edges[] = {{'0', '0', to},
                                 {'1', '9', digits(a, 0, MAX_INTEGER - 1, to)}};

    return build_bytes(a, edges, 2);
}

uint32_t build_integer(struct build *b, uint32_t to)
{
    struct automaton *a = b->a;

    if (b->integer == NO_RULE) {
        b->integer = build_rule(a);
        const uint32_t part = integer_part(a, NODE_POP);
        const uint32_t negative = build_text(
            a, "-", 1,
            build_range(a, '1', '9', digits(a, 0, MAX_INTEGER - 1, NODE_POP)));

        if (!a->st)
            a->rules[b->integer].start = build_either(a, part, negative);
    }
    return build_call(a, b->integer, 0, to);
}

uint32_t build_number(struct build *b, uint32_t to)
{
    struct automaton *a = b->a;

    if (b->number == NO_RULE) {
        b->number = build_rule(a);
        const uint32_t power = digits(a, 1, MAX_EXPONENT, NODE_POP);
        const struct edge signs[] = {{'+', '+', power}, {'-', '-', power}};
        const uint32_t size = build_either(a, power, build_bytes(a, signs, 2));
        const struct edge exponent[] = {{'E', 'E', size}, {'e', 'e', size}};
        const uint32_t end = build_either(a, NODE_POP, build_bytes(a, exponent, 2));
        const uint32_t fraction =
            build_text(a, ".", 1, digits(a, 1, MAX_FRACTION, end));
        const uint32_t part = integer_part(a, build_either(a, end, fraction));

        if (!a->st)
            a->rules[b->number].start =
                build_either(a, part, build_text(a, "-", 1, part));
    }
    return build_call(a, b->number, 0, to);
}

/* ---- words ----------------------------------------------------------------------- */

struct text build_word(const struct build *b, const char *word)
{
    const char *const python = *word == 't' ? "True" : *word == 'f' ? "False" : "None";
    const char *const text = b->python ? python : word;

    return (struct text){text, strlen(text)};
}

/* ---- any value ------------------------------------------------------------------- */

uint32_t build_any_object(struct build *b, uint8_t nest, uint32_t to)
{
    struct automaton *a = b->a;
    const uint32_t after = build_open(a, 2), close = build_text(a, "}", 1, to);
    const uint32_t value = build_colon(a, build_any(b, (uint8_t)(nest + 1), after));
    const uint32_t member = build_string(b, 0, NO_LIMIT, value);

    build_close(a, after, 0, build_text(a, ",", 1, build_space(a, member)));
    build_close(a, after, 1, build_space(a, close));
    return build_text(a, "{", 1, build_space(a, build_either(a, member, close)));
}

static uint32_t any_array(struct build *b, uint32_t to)
{
    struct automaton *a = b->a;
    const uint32_t after = build_open(a, 2), close = build_text(a, "]", 1, to);
    const uint32_t value = build_any(b, 1, after);

    build_close(a, after, 0, build_text(a, ",", 1, build_space(a, value)));
    build_close(a, after, 1, build_space(a, close));
    return build_text(a, "[", 1, build_space(a, build_either(a, value, close)));
}

uint32_t build_any(struct build *b, uint8_t nest, uint32_t to)
{
    struct automaton *a = b->a;

    if (b->any == NO_RULE) {
        b->any = build_rule(a);
        struct text words[] = {build_word(b, "true"), build_word(b, "false"),
                               build_word(b, "null")};
        const uint32_t ways[] = {
            build_any_object(b, 0, NODE_POP), any_array(b, NODE_POP),
            build_string(b, 0, NO_LIMIT, NODE_POP), build_number(b, NODE_POP),
            build_texts(a, words, 3, NODE_POP)};
        const uint32_t start = build_split(a, ways, 5);

        if (!a->st)
            a->rules[b->any].start = start;
    }
    return build_call(a, b->any, nest, to);
}
