/* SPDX-License-Identifier: MIT
 *
 * call_values.c - values of a call's arguments as they are read: JSON, and parameters,
 * whose keys and texts become JSON
 */
#include <string.h>

#include "engine/grammar/call_reader_impl.h"

/* ---- JSON ------------------------------------------------------------------------ */

/* A letter outside of strings: Python's words become JSON's. */
static char word_byte(struct call_reader *r, char ch)
{
    static const char null[] = "null";

    if (!r->form->python)
        return ch;
    if (!r->in_word && ch == 'N')
        r->none = 1;
    else if (r->in_word && r->none && r->none < 4)
        r->none++;
    else
        r->none = 0;
    if (r->none)
        return null[r->none - 1];
    return ch == 'T' ? 't' : ch == 'F' ? 'f' : ch;
}

/* Takes a byte of a value; true: the value ends with it. */
bool reader_json_byte(struct call_reader *r, char ch)
{
    bool ends = false;
    char out = ch;

    if (r->in_string) {
        ends = !r->escaped && ch == '"' && r->depth == 0;
        if (!r->escaped && ch == '"')
            r->in_string = false;
        r->escaped = !r->escaped && ch == '\\';
    } else {
        out = word_byte(r, ch);
        r->in_string = ch == '"';
        r->depth += (ch == '{' || ch == '[') - (ch == '}' || ch == ']');
        ends = (ch == '}' || ch == ']') && r->depth == 0;
        r->in_word = call_is_name(ch) || ch == '.' || ch == '+';
    }
    reader_put(r, &r->calls, &out, 1);
    return ends;
}

void reader_value_byte(struct call_reader *r, char ch)
{
    const bool bare = r->depth == 0 && !r->in_string && r->in_word;

    /* A number or a word ends before what cannot be part of it. */
    if (bare && !call_is_name(ch) && ch != '.' && ch != '+') {
        reader_begin_literal(r, CALL_CLOSES, r->form->close[CALL_OTHER]);
        reader_add_byte(r, ch);
    } else if (reader_json_byte(r, ch)) {
        reader_begin_literal(r, CALL_CLOSES, r->form->close[CALL_OTHER]);
    }
}

static void begin_value(struct call_reader *r)
{
    r->state = CALL_VALUE;
    r->depth = 0;
    r->in_string = r->escaped = r->in_word = false;
}

/* ---- parameters ------------------------------------------------------------------ */

static void begin_raw(struct call_reader *r)
{
    r->state = CALL_RAW;
    r->n_held = 0;
    r->begun = false;
}

/* The key is known; its value, of one of the kinds, follows. */
static void end_key(struct call_reader *r, size_t n_value, enum call_kind kind)
{
    const struct call_form *f = r->form;
    const bool same = !f->quotes && !strcmp(f->value[0], f->value[1]);

    r->key[r->n_key - n_value] = '\0';
    reader_put_call(r, r->n_parameters ? ", \"" : "\"");
    for (const char *s = r->key; *s; s++)
        reader_put_escaped(r, *s);
    reader_put_call(r, "\": ");
    r->may = r->types ? r->types(r->arg, r->name, r->key) : CALL_MAY_STRING;
    if (f->quotes)
        begin_value(r);
    else if (same && !(r->may & CALL_MAY_STRING))
        begin_value(r);
    else if (same || kind == CALL_STRING) {
        if (!same)
            r->may = CALL_MAY_STRING;
        begin_raw(r);
    } else if (!strncmp(f->value[0], f->value[1], n_value)) {
        r->state = CALL_QUOTE;
        r->literal = call_match_of(f->value[0] + n_value);
        r->n_held = 0;
    } else {
        begin_value(r);
    }
}

static bool ends_with(const struct call_reader *r, const char *text)
{
    const size_t n = strlen(text);

    return r->n_key > n && !memcmp(r->key + r->n_key - n, text, n);
}

void reader_key_byte(struct call_reader *r, char ch)
{
    const struct call_form *f = r->form;

    if (r->n_key == sizeof r->key - 1) {
        r->state = CALL_BROKEN;
        return;
    }
    r->key[r->n_key++] = ch;
    if (!f->quotes && ends_with(r, f->value[0]))
        end_key(r, strlen(f->value[0]), CALL_STRING);
    else if (ends_with(r, f->value[1]))
        end_key(r, strlen(f->value[1]), CALL_OTHER);
}

/* The quote of a string, or the first byte of another value. */
void reader_quote_byte(struct call_reader *r, char ch)
{
    if (call_match_byte(&r->literal, ch)) {
        r->may = CALL_MAY_STRING;
        begin_raw(r);
    } else if (r->literal.alive) {
        r->held[r->n_held++] = ch;
    } else {
        const size_t n = r->n_held;

        begin_value(r);
        r->n_held = 0;
        for (size_t i = 0; i < n; i++)
            reader_add_byte(r, r->held[i]);
        reader_add_byte(r, ch);
    }
}

/* Whether the raw value may be a word: 1 as it is, 0 as it begins, -1 no more. */
static int raw_word(const struct call_reader *r, size_t n, const char **word)
{
    static const struct {
        const char *text, *python;
        unsigned type;
    } words[] = {{"null", "None", CALL_MAY_NULL},
                 {"true", "True", CALL_MAY_BOOLEAN},
                 {"false", "False", CALL_MAY_BOOLEAN}};
    int best = -1;

    for (size_t i = 0; i < 3; i++) {
        const char *text = r->form->python ? words[i].python : words[i].text;

        if (!(r->may & words[i].type) || strncmp(text, r->held, n) != 0 ||
            n > strlen(text))
            continue;
        *word = words[i].text;
        best = n == strlen(text) ? 1 : best < 0 ? 0 : best;
    }
    return best;
}

static void end_raw(struct call_reader *r, size_t n)
{
    const char *word = NULL;

    if (!r->begun && raw_word(r, n, &word) == 1) {
        reader_put_call(r, word);
    } else {
        if (!r->begun)
            reader_put_call(r, "\"");
        for (size_t i = 0; i < n; i++)
            reader_put_escaped(r, r->held[i]);
        reader_put_call(r, "\"");
    }
    r->n_held = 0;
    r->n_parameters++;
    reader_begin_next(r);
}

/* Held: what may be a word, then what may be the closing marker. */
void reader_raw_byte(struct call_reader *r, char ch)
{
    const char *close = r->form->close[CALL_STRING], *word;
    const size_t n_close = strlen(close);

    r->held[r->n_held++] = ch;
    if (r->n_held >= n_close &&
        !memcmp(r->held + r->n_held - n_close, close, n_close)) {
        end_raw(r, r->n_held - n_close);
        return;
    }
    for (;;) {
        size_t tail = r->n_held < n_close ? r->n_held : n_close - 1;

        while (tail && memcmp(r->held + r->n_held - tail, close, tail) != 0)
            tail--;
        if (tail == r->n_held || (!r->begun && r->n_held < sizeof r->held / 2 &&
                                  raw_word(r, r->n_held - tail, &word) >= 0))
            return;
        if (!r->begun)
            reader_put_call(r, "\"");
        r->begun = true;
        for (size_t i = 0; i < r->n_held - tail; i++)
            reader_put_escaped(r, r->held[i]);
        memmove(r->held, r->held + r->n_held - tail, tail);
        r->n_held = tail;
    }
}
