/* SPDX-License-Identifier: MIT
 *
 * sse.c - lines, fields and events
 */
#include "harness/client/sse.h"

#include <stdlib.h>
#include <string.h>

/* Room for n more bytes and a zero. */
static enum sse_status make_room(char **buf, size_t *cap, size_t used, size_t n)
{
    size_t wanted = *cap ? *cap : 512;
    char *grown;

    if (n > SSE_MAX_EVENT || used > SSE_MAX_EVENT - n)
        return SSE_TOO_LONG;
    while (wanted < used + n + 1)
        wanted *= 2;
    if (wanted == *cap)
        return SSE_OK;
    grown = realloc(*buf, wanted);
    if (!grown)
        return SSE_NO_MEMORY;
    *buf = grown;
    *cap = wanted;
    return SSE_OK;
}

static enum sse_status add_data(struct sse *s, const char *text, size_t len)
{
    enum sse_status st = make_room(&s->data, &s->data_cap, s->n_data, len + 1);

    if (st)
        return st;
    if (s->has_data)
        s->data[s->n_data++] = '\n';
    memcpy(s->data + s->n_data, text, len);
    s->n_data += len;
    s->has_data = true;
    return SSE_OK;
}

/* Its lines are there, if it has any. */
static enum sse_status end_event(struct sse *s, sse_event_fn *fn, void *arg)
{
    const bool wanted = s->has_data;
    const size_t n = s->n_data;
    enum sse_status st = SSE_OK;

    s->has_data = false;
    s->n_data = 0;
    if (wanted) {
        s->n_events++;
        s->data[n] = '\0';
        st = fn(arg, s->data, n) ? SSE_OK : SSE_STOPPED;
    }
    s->is_error = false;
    return st;
}

/* What a field is given, without the blank behind the colon. */
static const char *value_of(const char *line, size_t *len, const char *colon)
{
    const char *end = line + *len, *value = colon ? colon + 1 : end;

    value += value < end && *value == ' ';
    *len = (size_t)(end - value);
    return value;
}

/* The whole line in s->line. */
static enum sse_status take_line(struct sse *s, sse_event_fn *fn, void *arg)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *line = s->line;
    size_t len = s->n_line, name;
    const char *colon;

    if (!s->has_begun && len >= 3 && !memcmp(line, mark, 3)) {
        line += 3;
        len -= 3;
    }
    s->has_begun = true;
    s->n_line = 0;
    if (!len)
        return end_event(s, fn, arg);
    colon = memchr(line, ':', len);
    name = colon ? (size_t)(colon - line) : len;
    if (name == 4 && !memcmp(line, "data", 4)) {
        const char *value = value_of(line, &len, colon);

        return add_data(s, value, len);
    }
    if (name == 5 && !memcmp(line, "event", 5)) {
        const char *value = value_of(line, &len, colon);

        s->is_error = len == 5 && !memcmp(value, "error", 5);
        return SSE_OK;
    }
    s->n_odd_lines += !(colon == line || (name == 5 && !memcmp(line, "retry", 5)) ||
                        (name == 2 && !memcmp(line, "id", 2)));
    return SSE_OK;
}

enum sse_status sse_feed(struct sse *s, const char *bytes, size_t len, sse_event_fn *fn,
                         void *arg)
{
    size_t at = 0;

    while (at < len) {
        size_t n = 0;
        enum sse_status st;

        if (s->after_return && bytes[at] == '\n') {
            s->after_return = false;
            at++;
            continue;
        }
        s->after_return = false;
        while (at + n < len && bytes[at + n] != '\n' && bytes[at + n] != '\r')
            n++;
        st = make_room(&s->line, &s->line_cap, s->n_line, n);
        if (st)
            return st;
        memcpy(s->line + s->n_line, bytes + at, n);
        s->n_line += n;
        at += n;
        if (at == len)
            break;
        s->after_return = bytes[at++] == '\r';
        st = take_line(s, fn, arg);
        if (st)
            return st;
    }
    return SSE_OK;
}

enum sse_status sse_end(struct sse *s, sse_event_fn *fn, void *arg)
{
    const enum sse_status st = s->n_line ? take_line(s, fn, arg) : SSE_OK;

    return st ? st : end_event(s, fn, arg);
}

void sse_free(struct sse *s)
{
    free(s->line);
    free(s->data);
    memset(s, 0, sizeof *s);
}
