/* SPDX-License-Identifier: MIT
 *
 * chat_tools_form.c - the form of calls from what a template renders of them
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/json_read.h"
#include "engine/text/chat_tools_impl.h"

bool calls_fail(struct finding *x, const char *why)
{
    x->why = why;
    return false;
}

/* The control token that is spelled at text[n], the longest; its bytes, or 0. */
static size_t control_at(const struct finding *x, const char *text, size_t n,
                         int32_t *id)
{
    size_t best = 0;

    for (int i = 0; i < x->n_controls; i++) {
        size_t len;
        const char *spelled = tokenizer_text(x->tok, x->controls[i], &len);

        if (len <= best || len > n || memcmp(spelled, text, len) != 0)
            continue;
        best = len;
        *id = x->controls[i];
    }
    return best;
}

/* Whether a byte may begin the spelling of a control token; few do. */
static bool may_begin(char ch)
{
    return ch == '<' || ch == '[' || ch == '|';
}

char *calls_coded(const struct finding *x, struct part p, bool holes, bool ends)
{
    char *out = malloc(3 * p.n + 1);
    size_t n = 0;

    for (size_t i = 0; out && i < p.n;) {
        int32_t id = -1;
        const size_t len = may_begin(p.s[i]) ? control_at(x, p.s + i, p.n - i, &id) : 0;

        if (ends && len && (tokenizer_is_end(x->tok, id) || id == x->c->end))
            break;
        if (holes && p.n - i >= CALL_ID_CHARS &&
            !memcmp(p.s + i, call_probes[0].id, 8)) {
            out[n++] = CALL_HOLE_ID;
            i += CALL_ID_CHARS;
            continue;
        }
        if (len)
            out[n++] = CALL_CONTROL;
        memcpy(out + n, p.s + i, len ? len : 1);
        n += len ? len : 1;
        if (len)
            out[n++] = CALL_CONTROL;
        i += len ? len : 1;
    }
    if (out)
        out[n] = '\0';
    return out;
}

static char *form_text(const struct finding *x, struct part p, bool ends)
{
    return p.n <= MAX_PART ? calls_coded(x, p, true, ends) : NULL;
}

static bool put(struct finding *x, char **to, struct part p)
{
    free(*to);
    *to = form_text(x, p, false);
    return *to || calls_fail(x, "it writes too much around calls");
}

/* What is behind a call, up to what is behind any answer. */
static struct part before_tail(const struct finding *x, const char *at)
{
    struct part p = trim_end(part(at, at + strlen(at)));
    const struct part tail = trim(x->tail);

    return tail.n && tail.n <= p.n && common_suffix(p, tail) == tail.n
               ? trim_end(without_end(p, tail.n))
               : p;
}

static bool put_end(struct finding *x, const char *at)
{
    const struct part p = before_tail(x, at);
    size_t n;

    x->f->end = form_text(x, p, true);
    if (!x->f->end)
        return calls_fail(x, "it writes too much behind calls");
    for (n = strlen(x->f->end); n && is_blank(x->f->end[n - 1]); n--)
        x->f->end[n - 1] = '\0';
    return true;
}

/* ---- before the name ------------------------------------------------------------- */

/* The marker that text begins with, whatever follows it. */
size_t calls_marker_len(const char *s)
{
    const char *end;

    if (*s == CALL_CONTROL)
        return (size_t)(strchr(s + 1, CALL_CONTROL) - s) + 1;
    if (*s == '<' && (end = strpbrk(s + 1, "<>\n")))
        return *end == '>' ? (size_t)(end - s) + 1 : 0;
    if (*s == '<') /* a tag with the name in it */
        return strlen(s) > 3 ? strlen(s) : 0;
    if (*s == '[') {
        size_t n = strspn(s + 1, "/ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

        return n > 1 && s[n + 1] == ']' ? n + 2 : 0;
    }
    return 0;
}

/* Whether text begins with a token that ends an answer. */
static bool begins_with_end(const struct finding *x, struct part p)
{
    int32_t id = -1;

    return p.n && control_at(x, p.s, p.n, &id) &&
           (tokenizer_is_end(x->tok, id) || id == x->c->end);
}

size_t calls_whole_tags(const char *s, size_t n)
{
    for (size_t i = n; i > 0 && s[i - 1] != '>' && s[i - 1] != '\n'; i--)
        if (s[i - 1] == '<')
            return i - 1;
    return n;
}

/* How many bytes of rendered calls come before what an answer has not. */
static size_t common_beginning(const struct finding *x, const char *text)
{
    const size_t n = common_prefix(part(x->answer, x->answer + strlen(x->answer)),
                                   part(text, text + strlen(text)));

    return calls_whole_tags(text, n);
}

static struct part without(struct part p, const char *marker)
{
    const size_t n = marker ? strlen(marker) : 0;

    while (p.n && is_blank(*p.s))
        p = from(p, 1);
    if (n && p.n >= n && !memcmp(p.s, marker, n))
        p = from(p, n);
    while (p.n && is_blank(*p.s))
        p = from(p, 1);
    return p;
}

/* An empty block of thoughts before a call is none of its. */
static struct part without_thoughts(const struct finding *x, struct part p)
{
    const struct chat_thinking *t = chat_template_thinking(x->c);

    return without(without(p, t ? t->begin : NULL), t ? t->end : NULL);
}

void calls_put_answer(struct finding *x, struct part p)
{
    free(x->f->answer);
    x->f->answer = form_text(x, trim(p), false);
    if (x->f->answer && !calls_marker_len(x->f->answer)) {
        free(x->f->answer);
        x->f->answer = NULL;
    }
}

/* Messages with a header: who receives it, its channel and its type. Templates write
 * one order; models write the receiver before the channel or behind it, and the type
 * with a marker, without one, or not at all.
 * Source: OpenAI, "harmony response format" (gpt-oss). */
#define CHANNEL "<|channel|>"
#define MESSAGE "<|message|>"

static bool put_heads(struct finding *x, struct part begin, struct part to,
                      struct part channel, struct part type)
{
    static const char *const marks[] = {"", " ", " <|constrain|>"};
    char head[MAX_PART], sep[MAX_PART];

    snprintf(head, sizeof head, "%.*s%.*s", (int)begin.n, begin.s, (int)to.n, to.s);
    for (int i = 0; i < (type.n ? 3 : 1); i++) {
        struct call_head *h = &x->f->heads[x->f->n_heads++];

        snprintf(sep, sizeof sep, "%.*s%s%.*s" MESSAGE, (int)channel.n, channel.s,
                 marks[i], i ? (int)type.n : 0, type.s);
        if (!put(x, &h->begin, part(head, head + strlen(head))) ||
            !put(x, &h->sep, part(sep, sep + strlen(sep))))
            return false;
    }
    return true;
}

/* A message of the calls' channel that nobody receives is a text. */
static bool put_preamble(struct finding *x, struct part channel)
{
    char text[MAX_PART];

    snprintf(text, sizeof text, "%.*s" MESSAGE, (int)channel.n, channel.s);
    return put(x, &x->f->preamble, part(text, text + strlen(text)));
}

/* The form's begin and sep are those of the last head. */
static bool find_headers(struct finding *x, struct part to, struct part sep)
{
    const struct part none = {"", 0}, mark = part(MESSAGE, &MESSAGE[strlen(MESSAGE)]);
    const struct chat_thinking *t = chat_template_thinking(x->c);
    const size_t n_channel = strlen(CHANNEL);
    struct part channel = sep, type, thoughts = none;
    struct call_form *f = x->f;

    if (!f->answer || common_suffix(sep, mark) < mark.n || sep.n < n_channel + mark.n ||
        memcmp(sep.s, CHANNEL, n_channel) != 0 || to.n + sep.n > MAX_PART / 2)
        return calls_fail(x, "it has no marker before a call");
    sep = without_end(sep, mark.n);
    for (channel.n = 0; channel.n < sep.n && !is_blank(sep.s[channel.n]);)
        channel.n++;
    type = trim(from(sep, channel.n));
    if (t && !strncmp(t->begin, CHANNEL, n_channel) && strstr(t->begin, MESSAGE))
        thoughts = part(t->begin, strstr(t->begin, MESSAGE));
    if (!put_preamble(x, channel) ||
        (thoughts.n && !put_heads(x, thoughts, to, none, type)) ||
        !put_heads(x, none, trim(to), channel, type) ||
        !put_heads(x, channel, to, none, type))
        return false;
    free(f->begin);
    free(f->sep);
    f->begin = f->heads[--f->n_heads].begin;
    f->sep = f->heads[f->n_heads].sep;
    f->n_trigger = strlen(f->begin);
    f->anywhere = true;
    return true;
}

/* What the template writes for calls, and not for an answer. sep: behind the name. */
static bool find_begin(struct finding *x, const char *name, struct part sep)
{
    const char *text = x->each[0];
    const size_t n = common_beginning(x, text);
    struct part p;
    const char *s;

    if (text + n > name)
        return calls_fail(x, "it writes the names of tools elsewhere");
    p = without_thoughts(x, part(text + n, name));
    if (!p.n)
        return calls_fail(x, "it has no marker before a call");
    if (begins_with_end(x, p))
        return calls_fail(x, "its calls are behind the end of an answer");
    calls_put_answer(x,
                     without_thoughts(x, part(x->answer + n, x->head.s + x->head.n)));
    if (!put(x, &x->f->begin, p))
        return false;
    s = x->f->begin;
    x->f->n_trigger = calls_marker_len(s);
    x->f->anywhere = x->f->n_trigger > 0;
    if (!x->f->anywhere && *s != '{' && *s != '[')
        return find_headers(x, part(text + n, name), sep);
    if (!x->f->anywhere)
        x->f->n_trigger = 1;
    return true;
}

/* ---- arguments as a JSON object -------------------------------------------------- */

/* The end of a JSON object at text, or NULL. */
static const char *object_end(const char *text)
{
    bool in_string = false;
    int depth = 0;

    for (const char *s = text; *s; s++) {
        if (in_string && *s == '\\' && s[1])
            s++;
        else if (*s == '"')
            in_string = !in_string;
        else if (!in_string)
            depth += (*s == '{') - (*s == '}');
        if (!depth)
            return s + 1;
    }
    return NULL;
}

bool calls_is_object(const char *text, const char *end, int i)
{
    const struct json_limit limit = {4096, 64};
    json_t *got = json_try(text, (size_t)(end - text), limit, 0);
    json_t *want = json_loads(call_probes[i].arguments, 0, NULL);
    const bool equal = got && want && json_equal(got, want);

    json_decref(got);
    json_decref(want);
    return equal;
}

/* The arguments of probe i behind its name, as JSON; *end is behind them. */
static const char *find_object(const char *name, int i, const char **end)
{
    const char *at = name + strlen(call_probes[i].name);

    for (at = strchr(at, '{'); at; at = strchr(at + 1, '{')) {
        *end = object_end(at);
        if (*end && calls_is_object(at, *end, i))
            return at;
    }
    return NULL;
}

static bool find_json(struct finding *x)
{
    const char *name = strstr(x->each[0], call_probes[0].name), *end;
    const char *object = name ? find_object(name, 0, &end) : NULL;
    struct part sep;

    if (!object)
        return false;
    sep = part(name + strlen(call_probes[0].name), object);
    return put(x, &x->f->sep, sep) && find_begin(x, name, sep) && put_end(x, end);
}

/* ---- arguments as parameters ----------------------------------------------------- */

/* What is written around the values of a call. */
struct around {
    struct part first;    /* before the first key */
    struct part value[2]; /* between a key and its value */
    struct part after[2],
        last[2]; /* behind a value and before a key; behind the last */
    bool python;
};

/* The text behind the next `what`; *before is what precedes it. */
static const char *pass(const char *at, const char *what, struct part *before)
{
    const char *found = at ? strstr(at, what) : NULL;

    if (!found)
        return NULL;
    *before = part(at, found);
    return found + strlen(what);
}

static bool look_around(struct finding *x, struct around *a)
{
    const char *at = strstr(x->each[0], call_probes[0].name);
    struct part again[2], ignored;

    at = pass(at, call_probes[0].name, &ignored);
    at = pass(at, "slmka", &a->first);
    at = pass(at, "slmva", &a->value[CALL_STRING]);
    at = pass(at, "slmkb", &a->after[CALL_STRING]);
    at = pass(at, "27182", &a->value[CALL_OTHER]);
    at = pass(at, "slmkc", &a->after[CALL_OTHER]);
    at = pass(at, "slmvc", &again[0]);
    at = pass(at, "slmkd", &again[1]);
    if (!at || !same(again[0], a->value[CALL_STRING]) ||
        !same(again[1], a->after[CALL_STRING]))
        return false;
    at += a->value[CALL_OTHER].n;
    a->python = !strncmp(at, "True", 4);
    if (strncmp(at, "true", 4) != 0 && !a->python)
        return false;
    a->last[CALL_OTHER] = before_tail(x, at + 4);
    at = x->each[1] ? strstr(x->each[1], "slmvf") : NULL;
    if (!at)
        return false;
    a->last[CALL_STRING] = before_tail(x, at + 5);
    return true;
}

/* How a text with a quote is written: as it is, or as JSON does. */
static bool find_quotes(struct finding *x, const struct around *a)
{
    const struct part s = a->value[CALL_STRING], o = a->value[CALL_OTHER];
    const bool quoted = s.n == o.n + 1 && s.s[o.n] == '"';

    if (!x->each[3])
        return false;
    if (quoted && strstr(x->each[3], "\"slm\\\"v\\\\g\""))
        x->f->quotes = true;
    return x->f->quotes || strstr(x->each[3], "slm\"v\\g");
}

static bool find_parameters(struct finding *x)
{
    const char *name = strstr(x->each[0], call_probes[0].name);
    struct around a;
    struct part rest[2], join[2], end[2];
    size_t n_open, n;

    if (!name || !look_around(x, &a))
        return calls_fail(x, "it writes arguments in a way that is not known here");
    if (!find_quotes(x, &a))
        return calls_fail(x, "it writes texts in a way that is not known here");
    n_open = common_suffix(a.first, a.after[0]);
    n = common_suffix(a.first, a.after[1]);
    n_open = n < n_open ? n : n_open;
    for (int k = 0; k < 2; k++) {
        rest[k] = without_end(a.after[k], n_open);
        n = common_prefix(rest[k], a.last[k]);
        join[k] = from(rest[k], n);
        end[k] = from(a.last[k], n);
        if (!put(x, &x->f->value[k], a.value[k]) ||
            !put(x, &x->f->close[k], part(rest[k].s, rest[k].s + n)))
            return false;
    }
    if (!same(join[0], join[1]) || !same(end[0], end[1]) ||
        (!x->f->quotes && !*x->f->close[CALL_STRING]) || !*x->f->value[CALL_OTHER] ||
        (!join[0].n && !n_open))
        return calls_fail(x, "it writes arguments in a way that is not known here");
    x->f->parameters = true;
    x->f->python = a.python;
    return find_begin(x, name, (struct part){"", 0}) &&
           put(x, &x->f->sep, without_end(a.first, n_open)) &&
           put(x, &x->f->open, from(a.first, a.first.n - n_open)) &&
           put(x, &x->f->join, join[0]) && put_end(x, end[0].s);
}

/* ---- several calls --------------------------------------------------------------- */

/* Where the last value of the call of probe 0 or 1 ends, behind its name. */
static const char *arguments_end(const struct finding *x, const char *name, int i)
{
    const char *last = i ? "slmvf" : x->f->python ? "True" : "true";
    const char *at, *end = NULL;

    if (!x->f->parameters)
        return find_object(name, i, &end) ? end : NULL;
    at = strstr(name, i ? "slmkf" : "slmkd");
    at = at ? strstr(at, last) : NULL;
    if (!at)
        return NULL;
    at += strlen(last);
    return i && x->f->quotes && *at == '"' ? at + 1 : at;
}

/* A number that counts calls becomes a hole: texts a and b differ in one digit. */
static bool unify(char *a, const char *b)
{
    size_t i = 0;

    while (a[i] && a[i] == b[i])
        i++;
    if (!a[i] && !b[i])
        return true;
    if (strlen(a) != strlen(b) || a[i] < '0' || a[i] > '9' || b[i] < '0' ||
        b[i] > '9' || strcmp(a + i + 1, b + i + 1) != 0)
        return false;
    a[i] = CALL_HOLE_NUMBER;
    return true;
}

/* What is between the arguments of call i and the next name, without what closes the
 * last value; NULL: another form. */
static char *between(struct finding *x, const char *const *name, int i)
{
    const char *end = arguments_end(x, name[i], i);
    char *text = end ? form_text(x, part(end, name[i + 1]), false) : NULL;
    const char *close =
        !x->f->parameters ? ""
                          : x->f->close[i && !x->f->quotes ? CALL_STRING : CALL_OTHER];
    const size_t n = strlen(close);

    if (text && !strncmp(text, close, n)) {
        memmove(text, text + n, strlen(text + n) + 1);
        return text;
    }
    free(text);
    return NULL;
}

/* Whether the second call has the separator of the first, but for numbers. */
static bool find_separator(struct finding *x, const char *name)
{
    const char *end, *object = find_object(name, 1, &end);
    char *sep;
    bool ok;

    if (x->f->parameters)
        return true;
    sep = object ? form_text(x, part(name + strlen(call_probes[1].name), object), false)
                 : NULL;
    ok = sep && unify(x->f->sep, sep);
    free(sep);
    return ok;
}

static bool find_mid(struct finding *x)
{
    const char *name[3];
    char *mid, *second;
    bool ok = x->two && x->three;

    for (int i = 0; ok && i < 3; i++)
        ok =
            (name[i] = strstr(i ? name[i - 1] : x->three, call_probes[i].name)) != NULL;
    if (!ok)
        return false;
    mid = between(x, name, 0);
    second = between(x, name, 1);
    ok = mid && second && *mid && unify(mid, second) && find_separator(x, name[1]);
    if (ok)
        x->f->mid = mid;
    else
        free(mid);
    free(second);
    return ok;
}

/* ---- the whole ------------------------------------------------------------------- */

struct part calls_rendered(const struct finding *x, const char *text)
{
    return without_thoughts(x, before_tail(x, text + common_beginning(x, text)));
}

bool calls_find_form(struct finding *x)
{
    *x->f = (struct call_form){.begin = NULL};
    if (!find_json(x)) {
        if (x->why)
            return false;
        call_form_free(x->f);
        if (!find_parameters(x))
            return false;
    }
    if (!x->f->n_heads)
        find_mid(x);
    return true;
}
