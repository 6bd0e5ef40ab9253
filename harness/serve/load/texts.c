/* SPDX-License-Identifier: MIT
 *
 * texts.c - a line, an object, a prompt
 */
#include "harness/serve/load/texts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/infile.h"
#include "engine/base/json_read.h"
#include "harness/base/array.h"
#include "harness/base/format.h"

#define MAX_BYTES (256u << 20)
#define MAX_LINE  (1u << 20) /* a value takes a hundred bytes of memory */
#define MAX_TEXTS 1000000

struct load_texts {
    struct load_text *v; /* [n]; their prompts and blocks are malloc'ed */
    bool is_azure;       /* its header came */
    size_t n, cap;
    size_t n_long; /* those with an answer's length */
};

size_t load_texts_count(const struct load_texts *t)
{
    return t->n;
}

size_t load_texts_count_lengths(const struct load_texts *t)
{
    return t->n_long;
}

struct load_text load_text_at(const struct load_texts *t, size_t i)
{
    return t->v[i % t->n];
}

double load_texts_rate(const struct load_texts *t)
{
    return t && isfinite(t->v[0].at_s)
               ? (double)(t->n - 1) / (t->v[t->n - 1].at_s - t->v[0].at_s)
               : 0;
}

void load_texts_times(const struct load_texts *t, double *at_s, size_t n, double rate)
{
    const double scale = load_texts_rate(t) / rate;
    const double lap_s = (double)t->n / rate; /* the mean gap behind the last line */

    for (size_t i = 0; i < n; i++)
        at_s[i] =
            (t->v[i % t->n].at_s - t->v[0].at_s) * scale + (double)(i / t->n) * lap_s;
}

void load_texts_free(struct load_texts *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++) {
        free((char *)t->v[i].prompt);
        free(t->v[i].block);
    }
    free(t->v);
    free(t);
}

/* A text that is not empty, or the first of an array of parts; NULL: neither. */
static const char *text_of(const json_t *v)
{
    if (json_is_string(v))
        return json_string_length(v) ? json_text(v) : NULL;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *part = json_object_get(json_array_get(v, i), "text");

        if (json_text(part) && json_string_length(part))
            return json_text(part);
    }
    return NULL;
}

enum speaker { SYSTEM, MODEL, PERSON };

/* As OpenAI's, ShareGPT's and other files call them; who is not named is a person. */
static enum speaker speaker_of(const json_t *turn, const char *key)
{
    static const struct {
        const char *name;
        enum speaker is;
    } known[] = {{"system", SYSTEM},   {"developer", SYSTEM}, {"tool", SYSTEM},
                 {"function", SYSTEM}, {"assistant", MODEL},  {"gpt", MODEL},
                 {"chatgpt", MODEL},   {"bing", MODEL},       {"bard", MODEL},
                 {"model", MODEL}};
    const char *name = json_text(json_object_get(turn, key));

    for (size_t i = 0; name && i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(name, known[i].name))
            return known[i].is;
    return PERSON;
}

/* The first turn of a person that has a text, and the answer to it: the model's turn
 * right behind it, but for turns of neither. False: not found. */
static bool first_turn(const json_t *turns, const char *who, const char *what,
                       struct load_text *out)
{
    const char *prompt = NULL, *answer = NULL;

    for (size_t i = 0; i < json_array_size(turns) && !answer; i++) {
        const json_t *turn = json_array_get(turns, i);
        const enum speaker speaker = speaker_of(turn, who);
        const char *text = text_of(json_object_get(turn, what));

        if (prompt && speaker == PERSON)
            break;
        if (text && speaker == PERSON)
            prompt = text;
        else if (text && prompt && speaker == MODEL)
            answer = text;
    }
    out->prompt = prompt;
    out->answer_bytes = answer ? strlen(answer) : 0;
    return prompt != NULL;
}

/* Whether the line has a prompt: *is_known is false where it has no place for one. */
static bool find_prompt(const json_t *o, struct load_text *out, bool *is_known)
{
    const json_t *prompt = json_object_get(o, "prompt");
    const json_t *messages = json_object_get(o, "messages");
    const json_t *conversations = json_object_get(o, "conversations");

    *is_known = json_is_array(messages) || json_is_array(conversations);
    if (out->n_prompt)
        return true;
    if (json_text(prompt) && json_string_length(prompt)) {
        out->prompt = json_text(prompt);
        return true;
    }
    return first_turn(messages, "role", "content", out) ||
           first_turn(conversations, "from", "value", out);
}

/* Takes its blocks. Error: ST_NO_MEMORY. */
static enum status keep(struct load_texts *t, const struct load_text *text,
                        struct err *err)
{
    struct load_text *more = array_grow(t->v, t->n, &t->cap, sizeof *more);
    char *prompt = text->prompt ? strdup(text->prompt) : NULL;

    if (more)
        t->v = more;
    if (!more || (text->prompt && !prompt)) {
        free(prompt);
        return err_set(err, ST_NO_MEMORY, "no memory for its prompt");
    }
    t->v[t->n] = *text;
    t->v[t->n++].prompt = prompt;
    t->n_long += text->n_output > 0 || text->answer_bytes > 0;
    return ST_OK;
}

static enum status read_azure(struct load_texts *t, size_t number, const char *line,
                              size_t len, struct err *err)
{
    struct load_text text = {.at_s = NAN, .number = number};
    const enum status st = trace_read_azure(&text, line, len, err);

    return st ? st : keep(t, &text, err);
}

/* A conversation without a person's text has no prompt and is skipped: ShareGPT's file
 * has some. */
static enum status read_line(struct load_texts *t, size_t number, const char *line,
                             size_t len, struct err *err)
{
    json_t *o = json_try(line, len, (struct json_limit){MAX_LINE, MAX_LINE}, 0);
    const json_t *output = json_object_get(o, "max_tokens");
    int64_t n_output = 0;
    struct load_text text = {.at_s = NAN, .number = number};
    bool is_known, is_kept = false;
    enum status st = trace_read_object(&text, o, err);

    if (st == ST_OK && !find_prompt(o, &text, &is_known)) {
        if (!is_known)
            st = err_set(
                err, ST_INPUT,
                "no JSON object of at most 1 MiB with a \"prompt\", \"messages\" or "
                "\"conversations\", nor a line of a trace");
    } else if (st == ST_OK && output && !json_is_null(output) &&
               (!json_whole(output, &n_output) || n_output < 1 ||
                n_output > LOAD_MAX_TOKENS)) {
        st = err_set(err, ST_INPUT, "max_tokens is not 1..%d", LOAD_MAX_TOKENS);
    } else if (st == ST_OK) {
        if (n_output)
            text.n_output = (int)n_output;
        st = keep(t, &text, err);
        is_kept = st == ST_OK;
    }
    if (!is_kept)
        free(text.block);
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
    struct err why = ERR_INIT;
    enum status st = t ? infile_read(&text, &len, path, MAX_BYTES, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for prompts");

    line = st ? NULL : after_mark(text);
    for (; st == ST_OK && line < text + len; number++) {
        const char *end = memchr(line, '\n', (size_t)(text + len - line));
        const size_t n = (size_t)((end ? end : text + len) - line);

        if (number == 1 && trace_is_header(line, n))
            t->is_azure = true;
        else if (!is_blank(line, n) && t->n < MAX_TEXTS)
            st = (t->is_azure ? read_azure : read_line)(t, number, line, n, &why);
        if (st)
            err_set(err, st, "%s, line %zu: %s", format_path(path).text, number,
                    why.msg);
        line += n + 1;
    }
    if (st == ST_OK && !t->n)
        st = err_set(err, ST_INPUT, "%s has no prompt", format_path(path).text);
    if (st == ST_OK && trace_sort(t->v, t->n, &why))
        st = err_set(err, why.code, "%s: %s", format_path(path).text, why.msg);
    free(text);
    if (st == ST_OK)
        *out = t;
    else
        load_texts_free(t);
    return st;
}
