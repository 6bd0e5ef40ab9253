/* SPDX-License-Identifier: MIT
 *
 * texts.c - a line, an object, a prompt
 */
#include "harness/load/texts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/infile.h"
#include "harness/base/format.h"

#define MAX_BYTES (256u << 20)
#define MAX_LINE  (1u << 20) /* a value takes a hundred bytes of memory */
#define MAX_TEXTS 1000000

struct load_texts {
    char **text;   /* [n] */
    int *n_output; /* 0: not said */
    size_t n, cap;
};

size_t load_texts_count(const struct load_texts *t)
{
    return t->n;
}

const char *load_text_at(const struct load_texts *t, size_t i, int *n_output)
{
    i %= t->n;
    if (t->n_output[i] > 0)
        *n_output = t->n_output[i];
    return t->text[i];
}

void load_texts_free(struct load_texts *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->text[i]);
    free(t->text);
    free(t->n_output);
    free(t);
}

/* A text that is not empty, or the first of an array of parts; NULL: neither. */
static const char *text_of(const json_t *v)
{
    if (json_is_string(v))
        return json_string_length(v) ? json_string_value(v) : NULL;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *part = json_object_get(json_array_get(v, i), "text");

        if (json_is_string(part) && json_string_length(part))
            return json_string_value(part);
    }
    return NULL;
}

/* The first that is no system's, of turns whose keys are these. */
static const char *first_turn(const json_t *turns, const char *who, const char *what)
{
    for (size_t i = 0; i < json_array_size(turns); i++) {
        const json_t *turn = json_array_get(turns, i);
        const char *from = json_string_value(json_object_get(turn, who));
        const char *text = text_of(json_object_get(turn, what));

        if (text && (!from || strcmp(from, "system")))
            return text;
    }
    return NULL;
}

static const char *prompt_of(const json_t *o)
{
    const json_t *prompt = json_object_get(o, "prompt");
    const char *text = first_turn(json_object_get(o, "messages"), "role", "content");

    if (json_is_string(prompt) && json_string_length(prompt))
        return json_string_value(prompt);
    return text ? text
                : first_turn(json_object_get(o, "conversations"), "from", "value");
}

static bool add(struct load_texts *t, const char *text, int n_output)
{
    if (t->n == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 256;
        char **texts = realloc(t->text, cap * sizeof *texts);
        int *outputs = texts ? realloc(t->n_output, cap * sizeof *outputs) : NULL;

        t->text = texts ? texts : t->text;
        if (!outputs)
            return false;
        t->n_output = outputs;
        t->cap = cap;
    }
    t->text[t->n] = strdup(text);
    t->n_output[t->n] = n_output;
    return t->text[t->n] && ++t->n;
}

static enum status read_line(struct load_texts *t, const char *path, size_t number,
                             const char *line, size_t len, struct err *err)
{
    json_t *o = len <= MAX_LINE ? json_loadb(line, len, 0, NULL) : NULL;
    const char *text = prompt_of(o);
    const json_t *output = json_object_get(o, "max_tokens");
    enum status st = ST_OK;

    if (!text)
        st = err_set(err, ST_INPUT,
                     "%s, line %zu: no JSON object of at most 1 MiB with a \"prompt\", "
                     "\"messages\" or \"conversations\"",
                     format_path(path).text, number);
    else if (json_is_integer(output) && (json_integer_value(output) < 1 ||
                                         json_integer_value(output) > LOAD_MAX_TOKENS))
        st = err_set(err, ST_INPUT, "%s, line %zu: max_tokens is not 1..%d",
                     format_path(path).text, number, LOAD_MAX_TOKENS);
    else if (!add(t, text, (int)json_integer_value(output)))
        st = err_set(err, ST_NO_MEMORY, "no memory for the prompts of %s",
                     format_path(path).text);
    json_decref(o);
    return st;
}

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

/* Where the text begins: some editors put a byte order mark before it. */
static const char *after_mark(const char *text)
{
    return strncmp(text, "\xef\xbb\xbf", 3) ? text : text + 3;
}

enum status load_texts_read(struct load_texts **out, const char *path, struct err *err)
{
    struct load_texts *t = calloc(1, sizeof *t);
    size_t len, number = 1;
    const char *line;
    char *text = NULL;
    enum status st = t ? infile_read(&text, &len, path, MAX_BYTES, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for prompts");

    line = st ? NULL : after_mark(text);
    for (; st == ST_OK && line < text + len; number++) {
        const char *end = memchr(line, '\n', (size_t)(text + len - line));
        const size_t n = (size_t)((end ? end : text + len) - line);

        if (!is_blank(line, n) && t->n < MAX_TEXTS)
            st = read_line(t, path, number, line, n, err);
        line += n + 1;
    }
    if (st == ST_OK && !t->n)
        st = err_set(err, ST_INPUT, "%s has no prompt", format_path(path).text);
    free(text);
    if (st == ST_OK)
        *out = t;
    else
        load_texts_free(t);
    return st;
}
