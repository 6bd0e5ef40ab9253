/* SPDX-License-Identifier: MIT
 *
 * answer.c - deltas as a message
 */
#include "harness/client/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"

bool answer_text_add(struct answer_text *t, const char *bytes, size_t n)
{
    if (n && t->n + n > t->cap) {
        const size_t cap = 2 * (t->n + n);
        char *more = realloc(t->v, cap);

        if (!more)
            return false;
        t->v = more;
        t->cap = cap;
    }
    if (n)
        memcpy(t->v + t->n, bytes, n);
    t->n += n;
    return true;
}

/* Appends a string; anything else is nothing. */
static bool append(struct answer *a, struct answer_text *t, const json_t *v)
{
    const char *text = json_no_number(v) ? NULL : json_string_value(v);
    const size_t n = text ? json_string_length(v) : 0;

    if (!answer_text_add(t, text, n))
        return false;
    a->n_bytes += n;
    return true;
}

static void keep(char *buf, size_t cap, const json_t *v)
{
    if (json_text(v) && json_string_length(v))
        snprintf(buf, cap, "%s", json_text(v));
}

/* A part of the call with its index; without one, of the last call. */
static bool add_call(struct answer *a, const json_t *part)
{
    const json_t *function = json_object_get(part, "function");
    int64_t index = (int64_t)a->n_calls - (a->n_calls > 0);

    json_whole(json_object_get(part, "index"), &index);
    if (index < 0 || index >= ANSWER_MAX_CALLS)
        return true;
    if ((size_t)index >= a->n_calls)
        a->n_calls = (size_t)index + 1;
    keep(a->call[index].id, sizeof a->call[index].id, json_object_get(part, "id"));
    keep(a->call[index].name, sizeof a->call[index].name,
         json_object_get(function, "name"));
    return append(a, &a->call[index].arguments, json_object_get(function, "arguments"));
}

bool answer_add(struct answer *a, const json_t *delta)
{
    const json_t *calls = json_object_get(delta, "tool_calls");
    bool ok = append(a, &a->text, json_object_get(delta, "content"));

    for (size_t i = 0; i < json_array_size(calls) && ok; i++)
        ok = add_call(a, json_array_get(calls, i));
    return ok;
}

/* Without thoughts. */
static struct answer_text visible(const struct answer_text *whole)
{
    const size_t n_begin = strlen(ANSWER_THINK_BEGIN), n_end = strlen(ANSWER_THINK_END);
    struct answer_text t = *whole;
    char *end = t.n ? memmem(t.v, t.n, ANSWER_THINK_END, n_end) : NULL;

    if (end) {
        t.n -= (size_t)(end - t.v) + n_end;
        t.v = end + n_end;
    }
    for (; t.n && strchr(" \t\r\n", *t.v); t.n--)
        t.v++;
    if (!end && t.n >= n_begin && !memcmp(t.v, ANSWER_THINK_BEGIN, n_begin))
        return (struct answer_text){.n = 0}; /* thoughts, cut off */
    return end ? t : *whole;
}

json_t *answer_message(const struct answer *a)
{
    const struct answer_text text = visible(&a->text);
    json_t *message = json_pack("{s:s, s:s%}", "role", "assistant", "content",
                                text.v ? text.v : "", text.n);
    json_t *calls = a->n_calls ? json_array() : NULL;
    bool ok = message && (calls || !a->n_calls);

    for (size_t i = 0; i < a->n_calls && ok; i++) {
        const struct answer_call *c = &a->call[i];

        ok = !json_array_append_new(
            calls, json_pack("{s:s, s:s, s:{s:s, s:s%}}", "id", c->id, "type",
                             "function", "function", "name", c->name, "arguments",
                             c->arguments.v ? c->arguments.v : "{}",
                             c->arguments.v ? c->arguments.n : (size_t)2));
    }
    if (calls && (!ok || json_object_set(message, "tool_calls", calls)))
        ok = false;
    json_decref(calls);
    if (ok)
        return message;
    json_decref(message);
    return NULL;
}

void answer_free(struct answer *a)
{
    free(a->text.v);
    for (size_t i = 0; i < a->n_calls; i++)
        free(a->call[i].arguments.v);
    memset(a, 0, sizeof *a);
}
