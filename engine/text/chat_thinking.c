/* SPDX-License-Identifier: MIT
 *
 * chat_thinking.c - between which markers a model thinks, by what its template renders
 *
 * A template that shows thoughts of earlier answers is rendered with an answer that has
 * some: what it writes before, between and behind them are the markers. Others only
 * open a block, or cut earlier ones off; for these there is a list of usual markers.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_impl.h"

/* Texts that no template writes, to find an answer and its thoughts. */
#define ANSWER  "\x7fslmbench-1\x7f"
#define THOUGHT "\x7fslmbench-2\x7f"

/* A longer marker is something else. */
enum { MAX_MARKER = 96 };

/* Pairs of markers. One is a model's where its template contains the second. */
static const char *const usual[][2] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<thought>", "</thought>"},
    {"<seed:think>", "</seed:think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|channel>thought", "<channel|>"},
};

static bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

/* Whether a name of a variable may contain it. */
static bool is_word(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

/* text[from .. to) without blanks at its ends, as a string; "" for one that is too
 * long, NULL: no memory. */
static char *trimmed(const char *text, size_t from, size_t to)
{
    while (from < to && is_blank(text[from]))
        from++;
    while (from < to && is_blank(text[to - 1]))
        to--;
    return to - from > MAX_MARKER ? strdup("") : strndup(text + from, to - from);
}

/* The last marker "<...>" or "[...]" that text[0 .. end) ends with; "": none. */
static char *last_marker(const char *text, size_t end)
{
    size_t begin;
    char opens;

    while (end && is_blank(text[end - 1]))
        end--;
    opens = end && text[end - 1] == '>' ? '<' : end && text[end - 1] == ']' ? '[' : 0;
    for (begin = end; opens && begin > 0; begin--)
        if (text[begin - 1] == opens)
            return trimmed(text, begin - 1, end);
    return strdup("");
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

void chat_put_thoughts(json_t *message, const char *thought)
{
    /* the last one is where `thought` may come from */
    static const char *const names[] = {"reasoning", "thinking", "thought", "tool_plan",
                                        "reasoning_content"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        json_object_set_new(message, names[i], json_string(thought));
}

/* A question, with an answer (its thoughts may be NULL) or a request for one; NULL: the
 * template does not render it. */
static char *render(const struct chat_template *c, const char *answer,
                    const char *thought)
{
    json_t *message =
        answer ? json_pack("{s:s, s:s}", "role", "assistant", "content", answer) : NULL;
    json_t *conversation = json_pack(
        "{s:[{s:s, s:s}], s:b, s:b, s:b}", "messages", "role", "user", "content", "1",
        "add_generation_prompt", answer == NULL, "enable_thinking", 1, "thinking", 1);
    struct err why = ERR_INIT;
    struct jinja_text t;
    char *text = NULL;

    if (thought)
        chat_put_thoughts(message, thought);
    if (message)
        json_array_append_new(json_object_get(conversation, "messages"), message);
    if (conversation && !chat_render(c, conversation, &t, &why)) {
        free(t.own);
        text = t.text;
    }
    json_decref(conversation);
    return text;
}

/* Markers around the thoughts of a rendered answer. */
static bool find_rendered(struct chat_thinking *m, const char *prompt, const char *text)
{
    const char *thought = text ? strstr(text, THOUGHT) : NULL;
    const char *answer = thought ? strstr(thought, ANSWER) : NULL;
    size_t begin, end, same;

    if (!prompt || !answer)
        return false;
    begin = (size_t)(thought - text);
    end = begin + strlen(THOUGHT);
    same = common_prefix(prompt, text);
    m->begin = trimmed(text, same < begin ? same : begin, begin);
    if (m->begin && !*m->begin) { /* the prompt has opened the block */
        free(m->begin);
        m->begin = last_marker(text, begin);
    }
    m->end = trimmed(text, end, (size_t)(answer - text));
    m->closing = strndup(text + end, (size_t)(answer - text) - end);
    return m->begin && *m->begin && m->end && *m->end && m->closing;
}

static bool find_usual(struct chat_thinking *m, const char *source)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (!strstr(source, usual[i][1]))
            continue;
        m->begin = strdup(usual[i][0]);
        m->end = strdup(usual[i][1]);
        m->closing = malloc(strlen(usual[i][1]) + 4);
        if (m->closing)
            sprintf(m->closing, "\n%s\n\n", usual[i][1]);
        return m->begin && m->end && m->closing;
    }
    return false;
}

/* What the template writes before an answer without thoughts, unless that is an empty
 * block of them. */
static void find_answer(struct chat_thinking *m, const char *prompt, const char *text)
{
    const char *answer = text ? strstr(text, ANSWER) : NULL;
    const size_t same = answer && prompt ? strlen(prompt) : 0;

    if (same && !strncmp(prompt, text, same) && text + same < answer)
        m->answer = trimmed(text, same, (size_t)(answer - text));
    if (m->answer && (!strncmp(m->answer, m->begin, strlen(m->begin)) ||
                      !strncmp(m->answer, m->end, strlen(m->end))))
        *m->answer = '\0';
}

void chat_find_thinking(struct chat_template *c)
{
    char *prompt = render(c, NULL, NULL);
    char *thinks = render(c, ANSWER, THOUGHT), *plain = render(c, ANSWER, NULL);
    struct chat_thinking *m = &c->thinking;

    if (find_rendered(m, prompt, thinks)) {
        find_answer(m, prompt, plain);
    } else {
        chat_free_thinking(m);
        if (!find_usual(m, c->variants[0].source))
            chat_free_thinking(m);
    }
    free(prompt);
    free(thinks);
    free(plain);
}

void chat_free_thinking(struct chat_thinking *t)
{
    free(t->begin);
    free(t->end);
    free(t->closing);
    free(t->answer);
    *t = (struct chat_thinking){.begin = NULL};
}

const struct chat_thinking *chat_template_thinking(const struct chat_template *c)
{
    return c->thinking.begin ? &c->thinking : NULL;
}

bool chat_prompt_thinks(const struct chat_template *c, const struct jinja_text *prompt)
{
    const char *begin = c->thinking.begin;
    const size_t n = begin ? strlen(begin) : 0;
    size_t len = prompt->len;

    while (len && is_blank(prompt->text[len - 1]))
        len--;
    /* the template's own, and no text of a message */
    return n && len >= n && !memcmp(prompt->text + len - n, begin, n) &&
           prompt->n_own && prompt->own[prompt->n_own - 1].begin <= len - n &&
           prompt->own[prompt->n_own - 1].end == prompt->len;
}

bool chat_template_uses(const struct chat_template *c, const json_t *conversation,
                        const char *name)
{
    const size_t n = strlen(name);
    const struct chat_variant *v;
    struct err why = ERR_INIT;

    if (chat_pick(&v, c, conversation, &why))
        return true; /* chat_render() reports it */
    if (!n)
        return false;
    for (const char *at = v->source; (at = strstr(at, name)); at += n)
        if ((at == v->source || !is_word(at[-1])) && !is_word(at[n]))
            return true;
    return false;
}
