/* SPDX-License-Identifier: MIT
 *
 * chat_tools.c - how a model calls tools, by what its template renders
 *
 * A template that shows calls of earlier answers is rendered with answers that make
 * some: one, several, with and without arguments. What it writes around names, keys and
 * values is the form (call_form.h). It is tried on what was rendered: what is read back
 * must be the calls that were rendered, or the template has no form.
 */
#include <stdlib.h>

#include "engine/base/json_read.h"
#include "engine/text/chat_tools_impl.h"

/* Texts that no template writes. */
#define ANSWER "\x7fslmbench-1\x7f"
#define LISTED "slm_probe_listed"

const struct call_probe call_probes[N_PROBES] = {
    {"slm_probe_one", "slmprob01",
     "{\"slmka\": \"slmva\", \"slmkb\": 27182, \"slmkc\": \"slmvc\", \"slmkd\": true}"},
    {"slm_probe_two", "slmprob02", "{\"slmke\": 31415, \"slmkf\": \"slmvf\"}"},
    {"slm_probe_three", "slmprob03", "{}"},
    {"slm_probe_four", "slmprob04", "{\"slmkg\": \"slm\\\"v\\\\g\"}"},
};

/* ---- rendering ------------------------------------------------------------------- */

static json_t *call_of(int i, const struct style *s)
{
    json_t *arguments = s->text_arguments
                            ? json_string(call_probes[i].arguments)
                            : json_loads(call_probes[i].arguments, 0, NULL);

    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", call_probes[i].id, "type",
                     "function", "function", "name", call_probes[i].name, "arguments",
                     arguments);
}

/* A question, and an answer: ANSWER, or calls[n]. NULL: the template fails. */
static char *render(const struct chat_template *c, const int *calls, int n,
                    const struct style *s)
{
    json_t *message = json_pack("{s:s}", "role", "assistant"), *list = json_array();
    json_t *conversation =
        json_pack("{s:[{s:s, s:s}], s:b, s:[{s:s, s:{s:s, s:s, s:{s:s, s:{}}}}]}",
                  "messages", "role", "user", "content", "1", "add_generation_prompt",
                  0, "tools", "type", "function", "function", "name", LISTED,
                  "description", "d", "parameters", "type", "object", "properties");
    struct err why = ERR_INIT;
    struct jinja_text t;
    char *text = NULL;

    if (n == 0)
        json_object_set_new(message, "content", json_string(ANSWER));
    else if (s->content < 2)
        json_object_set_new(message, "content",
                            s->content ? json_null() : json_string(""));
    for (int i = 0; i < n; i++)
        json_array_append_new(list, call_of(calls[i], s));
    if (n)
        json_object_set(message, "tool_calls", list);
    json_decref(list);
    json_array_append_new(json_object_get(conversation, "messages"), message);
    if (conversation && !chat_render(c, conversation, &t, &why)) {
        free(t.own);
        text = t.text;
    }
    json_decref(conversation);
    return text;
}

/* ---- the proof ------------------------------------------------------------------- */

static unsigned probe_types(const void *arg, const char *name, const char *key)
{
    (void)arg;
    (void)name;
    return strchr("bde", key[4]) ? 0 : CALL_MAY_STRING;
}

/* Whether calls[n] are those of the probes. */
static bool are_probes(const struct call_reader *r, const int *calls, int n)
{
    const char *at = r->calls.s, *end = at + r->calls.n;

    for (int i = 0; i < n; i++) {
        const size_t len = strlen(call_probes[calls[i]].name);
        const char *begin = at + len + 2, *next;

        if (end <= begin || *at != CALL_NAME || begin[-1] != CALL_ARGUMENTS ||
            memcmp(at + 1, call_probes[calls[i]].name, len) != 0)
            return false;
        next = memchr(begin, CALL_NAME, (size_t)(end - begin));
        if (!calls_is_object(begin, next ? next : end, calls[i]))
            return false;
        at = next ? next : end;
    }
    return at == end;
}

/* What is read of rendered calls[n] is what was rendered. */
static bool reads_back(const struct finding *x, const char *text, const int *calls,
                       int n)
{
    char *bytes = calls_coded(x, calls_rendered(x, text), false, true);
    struct call_reader r;
    struct err why = ERR_INIT;
    size_t len = bytes ? strlen(bytes) : 0;
    bool ok;

    while (len && is_blank(bytes[len - 1]))
        len--;
    call_reader_open(&r, x->f, probe_types, NULL);
    ok = bytes && !call_reader_add(&r, bytes, len, &why) && call_reader_is_whole(&r) &&
         r.n_calls == n && r.text.n == 0 && are_probes(&r, calls, n);
    free(bytes);
    call_reader_close(&r);
    return ok;
}

static bool prove(struct finding *x)
{
    static const int order[] = {0, 1, 2};

    for (int i = 0; i < N_PROBES; i++) {
        if (!x->each[i] || !reads_back(x, x->each[i], &i, 1))
            return calls_fail(
                x, i == 2 ? "it writes calls without arguments in another form"
                          : "its calls cannot be read back");
    }
    if (x->f->mid &&
        (!reads_back(x, x->two, order, 2) || !reads_back(x, x->three, order, 3))) {
        free(x->f->mid);
        x->f->mid = NULL;
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------- */

static void forget(struct finding *x)
{
    free(x->answer);
    free(x->two);
    free(x->three);
    for (int i = 0; i < N_PROBES; i++)
        free(x->each[i]);
    x->answer = x->two = x->three = NULL;
    memset(x->each, 0, sizeof x->each);
}

static bool try_style(struct finding *x)
{
    static const int order[] = {0, 1, 2};
    const char *at;

    x->answer = render(x->c, NULL, 0, &x->style);
    at = x->answer ? strstr(x->answer, ANSWER) : NULL;
    if (!at)
        return calls_fail(x, "it does not render an answer");
    at += strlen(ANSWER);
    x->tail = part(at, at + strlen(at));
    for (int i = 0; i < N_PROBES; i++)
        x->each[i] = render(x->c, &i, 1, &x->style);
    if (!x->each[0])
        return calls_fail(x, "it does not render calls of tools");
    if (!strstr(x->each[0], call_probes[0].name))
        return calls_fail(x, "it does not write calls of tools");
    x->two = render(x->c, order, 2, &x->style);
    x->three = render(x->c, order, 3, &x->style);
    return calls_find_form(x) && prove(x);
}

/* Markers of thoughts, where one alone ends them: a marker with the beginning of an
 * answer in it does not come before a call. */
static bool find_markers(struct finding *x)
{
    struct chat_calls *calls = &((struct chat_template *)x->c)->calls;
    const struct chat_thinking *t = chat_template_thinking(x->c);
    char *begin, *end;

    if (!t)
        return true;
    begin = calls_coded(x, part(t->begin, t->begin + strlen(t->begin)), false, false);
    end = calls_coded(x, part(t->end, t->end + strlen(t->end)), false, false);
    calls->think_begin = begin;
    calls->think_end = end;
    return (begin && end && calls_marker_len(end) == strlen(end)) ||
           calls_fail(x, "its thoughts end with the beginning of an answer");
}

static bool lists_tools(const struct finding *x)
{
    return strstr(x->answer, LISTED) != NULL;
}

static bool list_controls(struct finding *x)
{
    const int n = tokenizer_n_vocab(x->tok);
    char bytes[4];

    x->controls = malloc(((size_t)n + 1) * sizeof *x->controls);
    for (int32_t id = 0; x->controls && id < n; id++)
        if (tokenizer_is_special(x->tok, id) &&
            !tokenizer_piece(x->tok, id, bytes, sizeof bytes))
            x->controls[x->n_controls++] = id;
    return x->controls != NULL;
}

void chat_find_calls(struct chat_template *c, const struct tokenizer *tok)
{
    struct finding x = {.c = c, .tok = tok, .f = &c->calls.form};

    if (!list_controls(&x)) {
        c->calls.why = "there was no memory to look for their form";
        return;
    }
    for (int i = 0; i < 6; i++) {
        const char *before = x.why;

        x.why = NULL;
        x.style = (struct style){.content = i % 3, .text_arguments = i >= 3};
        if (try_style(&x) && !lists_tools(&x))
            calls_fail(&x, "it does not list the tools");
        else if (!x.why && find_markers(&x)) {
            c->text_arguments = x.style.text_arguments;
            c->calls_content = x.style.content;
            forget(&x);
            free(x.controls);
            return;
        }
        chat_free_calls(c);
        forget(&x);
        if (before) /* the first one is the best */
            x.why = before;
    }
    free(x.controls);
    c->calls.why = x.why;
}

void chat_free_calls(struct chat_template *c)
{
    call_form_free(&c->calls.form);
    free(c->calls.think_begin);
    free(c->calls.think_end);
    c->calls = (struct chat_calls){.why = NULL};
}

const struct chat_calls *chat_template_calls(const struct chat_template *c)
{
    return &c->calls;
}

/* ---- calls of earlier answers ---------------------------------------------------- */

static void prepare_arguments(const struct chat_template *c, json_t *function)
{
    const struct json_limit limit = {SIZE_MAX, SIZE_MAX};
    json_t *arguments = json_object_get(function, "arguments"), *other;
    char *text;

    if (c->text_arguments && json_is_object(arguments)) {
        text = json_write(arguments, 0);
        if (text)
            json_object_set_new(function, "arguments", json_string(text));
        free(text);
    } else if (!c->text_arguments && json_is_string(arguments)) {
        other = json_try(json_string_value(arguments), json_string_length(arguments),
                         limit, 0);
        if (json_is_object(other))
            json_object_set(function, "arguments", other);
        json_decref(other);
    }
}

void chat_prepare_calls(const struct chat_template *c, json_t *conversation)
{
    json_t *message, *call;
    size_t i, k;

    json_array_foreach(json_object_get(conversation, "messages"), i, message)
    {
        json_t *calls = json_object_get(message, "tool_calls");
        const json_t *content = json_object_get(message, "content");

        if (!json_array_size(calls))
            continue;
        json_array_foreach(calls, k, call)
        {
            prepare_arguments(c, json_object_get(call, "function"));
        }
        if ((!content || json_is_null(content)) && c->calls_content == 0)
            json_object_set_new(message, "content", json_string(""));
    }
}
