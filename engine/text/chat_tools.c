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
#define ANSWER  "\x7fslmbench-1\x7f"
#define THOUGHT "\x7fslmbench-2\x7f"
#define LISTED  "slm_probe_listed"
#define PART    "slm_probe_part"

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

/* The content of a message without text, by its style. */
static json_t *no_text(int style)
{
    return style == 3   ? json_pack("[{s:s, s:s}]", "type", "text", "text", "")
           : style == 1 ? json_null()
                        : json_string("");
}

/* A question, and an answer by that message: ANSWER, or calls[n]; the message is
 * released. NULL: the template fails. */
static char *render_message(const struct chat_template *c, json_t *message,
                            const int *calls, int n, const struct style *s)
{
    json_t *list = json_array();
    json_t *conversation =
        json_pack("{s:[{s:s, s:s}], s:b, s:[{s:s, s:{s:s, s:s, s:{s:s, s:{}}}}]}",
                  "messages", "role", "user", "content", "1", "add_generation_prompt",
                  0, "tools", "type", "function", "function", "name", LISTED,
                  "description", "d", "parameters", "type", "object", "properties");
    struct err why = ERR_INIT;
    struct jinja_text t;
    char *text = NULL;

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

static char *render(const struct chat_template *c, const int *calls, int n,
                    const struct style *s)
{
    json_t *message = json_pack("{s:s}", "role", "assistant");

    if (n == 0)
        json_object_set_new(message, "content", json_string(ANSWER));
    else if (s->content != 2)
        json_object_set_new(message, "content", no_text(s->content));
    if (n && s->content == 3) /* shown where parts are written as they are */
        json_object_set_new(json_array_get(json_object_get(message, "content"), 0),
                            PART, json_true());
    return render_message(c, message, calls, n, s);
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
    x->head = part(x->answer, at);
    at += strlen(ANSWER);
    x->tail = part(at, at + strlen(at));
    for (int i = 0; i < N_PROBES; i++)
        x->each[i] = render(x->c, &i, 1, &x->style);
    if (!x->each[0] || strstr(x->each[0], PART))
        return calls_fail(x, "it does not render calls of tools");
    if (!strstr(x->each[0], call_probes[0].name))
        return calls_fail(x, "it does not write calls of tools");
    x->two = render(x->c, order, 2, &x->style);
    x->three = render(x->c, order, 3, &x->style);
    return calls_find_form(x) && prove(x);
}

/* How much of `closing` comes behind thoughts where a call follows them, by a template
 * that has thoughts next to calls as such, or as their content; 0: unknown. */
static size_t closing_of_call(const struct finding *x, const char *closing)
{
    const struct style style = {.text_arguments = x->style.text_arguments};
    const int first = 0;
    size_t n = 0;

    for (int i = 0; i < 2 && !n; i++) {
        json_t *message =
            json_pack("{s:s, s:s}", "role", "assistant", "content", i ? THOUGHT : "");
        char *text;
        const char *at;

        if (!i)
            chat_put_thoughts(message, THOUGHT);
        text = render_message(x->c, message, &first, 1, &style);
        at = text ? strstr(text, THOUGHT) : NULL;
        if (at) {
            at += strlen(THOUGHT);
            n = common_prefix(part(at, at + strlen(at)),
                              part(closing, closing + strlen(closing)));
            n = calls_whole_tags(at, n);
        }
        free(text);
    }
    return n;
}

/* Behind thoughts the template writes the beginning of an answer, too: t is split
 * where a call may follow as well. *n: bytes of the closing up to there. */
static bool split_thinking(struct finding *x, struct chat_thinking *t, size_t *n)
{
    const char *closing = t->closing;
    struct part end, answer;
    char *texts[2];

    *n = closing_of_call(x, closing);
    end = trim(part(closing, closing + *n));
    answer = trim(part(closing + *n, closing + strlen(closing)));
    texts[0] = end.n ? strndup(end.s, end.n) : NULL;
    texts[1] = answer.n ? strndup(answer.s, answer.n) : NULL;
    if (!texts[0] || !texts[1]) {
        free(texts[0]);
        free(texts[1]);
        return calls_fail(x, "its thoughts end with the beginning of an answer");
    }
    free(t->end);
    free(t->answer);
    t->end = texts[0];
    t->answer = texts[1];
    calls_put_answer(x, part(t->answer, t->answer + strlen(t->answer)));
    return x->f->answer ||
           calls_fail(x, "its thoughts end with the beginning of an answer");
}

static char *coded(const struct finding *x, const char *text)
{
    return calls_coded(x, part(text, text + strlen(text)), false, false);
}

/* Markers of thoughts, behind which a call or an answer comes. */
static bool find_markers(struct finding *x)
{
    struct chat_template *c = (struct chat_template *)x->c;
    struct chat_thinking *t = &c->thinking, *of = &c->calls.thinking;
    size_t n;

    if (!t->begin)
        return true;
    n = strlen(t->closing);
    of->end = coded(x, t->end);
    if (of->end && calls_marker_len(of->end) != strlen(of->end)) {
        if (!split_thinking(x, t, &n))
            return false;
        free(of->end);
        of->end = coded(x, t->end);
    }
    of->begin = coded(x, t->begin);
    of->closing = strndup(t->closing, n);
    return (of->begin && of->end && of->closing) ||
           calls_fail(x, "there was no memory for the markers of its thoughts");
}

/* What comes behind a marked text where the answer may begin again: what the template
 * writes between a text and the end, or where messages have headers, behind thoughts.
 */
static bool find_next(struct finding *x)
{
    struct call_form *f = x->f;
    const char *thoughts_end = x->c->calls.thinking.end;
    struct part tail = trim(x->tail);
    size_t n;

    if (!f->answer)
        return true;
    if (tail.n > MAX_PART)
        tail.n = 0;
    f->next = f->n_heads && thoughts_end ? strdup(thoughts_end)
                                         : calls_coded(x, tail, false, true);
    for (n = f->next ? strlen(f->next) : 0; n && is_blank(f->next[n - 1]); n--)
        f->next[n - 1] = '\0';
    if (!f->next)
        return calls_fail(x, "there was no memory for what it writes behind texts");
    f->n_next = calls_marker_len(f->next);
    if (!f->n_next) {
        free(f->next);
        f->next = NULL;
    }
    return true;
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
    for (int i = 0; i < 8; i++) {
        const char *before = x.why;

        x.why = NULL;
        x.style = (struct style){.content = i % 4, .text_arguments = i >= 4};
        if (try_style(&x) && !lists_tools(&x))
            calls_fail(&x, "it does not list the tools");
        else if (!x.why && find_markers(&x) && find_next(&x)) {
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
    chat_free_thinking(&c->calls.thinking);
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
        const char *thought = json_text(json_object_get(message, "reasoning_content"));

        if (thought && !json_object_get(message, "thinking") &&
            !(json_array_size(calls) && json_text(content) && *json_text(content)))
            chat_put_thoughts(message, thought);
        if (!json_array_size(calls))
            continue;
        json_array_foreach(calls, k, call)
        {
            prepare_arguments(c, json_object_get(call, "function"));
        }
        if ((!content || json_is_null(content)) && c->calls_content % 3 == 0)
            json_object_set_new(message, "content", no_text(c->calls_content));
    }
}
