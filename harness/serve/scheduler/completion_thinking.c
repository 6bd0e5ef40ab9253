/* SPDX-License-Identifier: MIT
 *
 * completion_thinking.c - markers found byte by byte
 */
#include "harness/serve/scheduler/completion_thinking.h"

#include <string.h>

static bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

void completion_thinking_open(struct completion_thinking *t,
                              const struct chat_thinking *markers, bool runs,
                              bool keeps)
{
    *t = (struct completion_thinking){.markers = markers,
                                      .state = runs ? THINKING_RUNS : THINKING_STARTS,
                                      .drops_blanks = runs,
                                      .keeps = keeps};
}

static bool contains(const char *marker, const char *text, size_t n)
{
    for (size_t i = 0; marker && marker[i]; i++)
        if (!strncmp(marker + i, text, n))
            return true;
    return false;
}

bool completion_thinking_knows(const struct completion_thinking *t, const char *text,
                               size_t n)
{
    const struct chat_thinking *m = t->markers;

    if (!n || t->state == THINKING_OVER)
        return false;
    if (t->state == THINKING_RUNS)
        return contains(m->end, text, n);
    return contains(m->answer, text, n) ||
           (t->state == THINKING_STARTS && contains(m->begin, text, n));
}

/* How much of a marker held[] is, behind blanks. */
enum match { MATCH_NONE, MATCH_PART, MATCH_WHOLE };

static enum match match(const struct completion_thinking *t, const char *marker)
{
    const size_t len = marker ? strlen(marker) : 0;
    size_t i = 0;

    while (i < t->n_held && is_blank(t->held[i]))
        i++;
    if (!len || t->n_held - i > len || memcmp(t->held + i, marker, t->n_held - i) != 0)
        return MATCH_NONE;
    return t->n_held - i == len ? MATCH_WHOLE : MATCH_PART;
}

static void give(struct completion_thinking *t, size_t i, struct thinking_bytes *out)
{
    const char ch = t->held[i];

    if ((t->spelled[i] && (t->state == THINKING_RUNS || !t->keeps)) ||
        (t->drops_blanks && is_blank(ch)))
        return;
    t->drops_blanks = false;
    if (t->state == THINKING_RUNS)
        out->thought[out->n_thought++] = ch;
    else
        out->answer[out->n_answer++] = ch;
}

static void give_first(struct completion_thinking *t, struct thinking_bytes *out)
{
    give(t, 0, out);
    t->n_held--;
    memmove(t->held, t->held + 1, t->n_held);
    memmove(t->spelled, t->spelled + 1, t->n_held);
}

static void enter(struct completion_thinking *t, enum thinking_state state)
{
    t->state = state;
    t->n_held = 0;
    t->drops_blanks = true;
}

static void look(struct completion_thinking *t, struct thinking_bytes *out)
{
    const enum thinking_state state = t->state;
    const enum match first = state == THINKING_STARTS ? match(t, t->markers->begin)
                             : state == THINKING_RUNS ? match(t, t->markers->end)
                                                      : MATCH_NONE;
    const enum match answer =
        state == THINKING_RUNS ? MATCH_NONE : match(t, t->markers->answer);

    if (first == MATCH_WHOLE)
        enter(t, state == THINKING_STARTS ? THINKING_RUNS : THINKING_ANSWERS);
    else if (answer == MATCH_WHOLE)
        enter(t, THINKING_OVER);
    else if ((first == MATCH_PART || answer == MATCH_PART) &&
             t->n_held < THINKING_MAX_HELD)
        return;
    else if (state == THINKING_RUNS)
        give_first(t, out);
    else
        completion_thinking_end(t, out); /* it does not think, or no more */
}

void completion_thinking_add(struct completion_thinking *t, const char *bytes, size_t n,
                             bool spelled, struct thinking_bytes *out)
{
    for (size_t i = 0; i < n; i++) {
        t->held[t->n_held] = bytes[i];
        t->spelled[t->n_held++] = spelled;
        if (t->state == THINKING_OVER) {
            give_first(t, out);
            continue;
        }
        for (size_t before = 0; t->n_held && t->n_held != before;) {
            before = t->n_held;
            look(t, out);
        }
    }
}

/* Blanks and a part of the second marker at the end of thoughts that were cut off are
 * given as they are. */
void completion_thinking_end(struct completion_thinking *t, struct thinking_bytes *out)
{
    if (t->state != THINKING_RUNS)
        t->state = THINKING_OVER;
    for (size_t i = 0; i < t->n_held; i++)
        give(t, i, out);
    t->n_held = 0;
}
