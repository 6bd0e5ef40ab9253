/* SPDX-License-Identifier: MIT
 *
 * completion_text.c - whole characters, and stop strings
 */
#include "harness/serve/scheduler/completion_text.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define REPLACEMENT     "\xef\xbf\xbd" /* U+FFFD */
#define REPLACEMENT_LEN ((size_t)3)

static enum status copy_stop(struct completion_text *t, const char *stop,
                             struct err *err)
{
    const size_t len = strlen(stop);

    if (len == 0)
        return err_set(err, ST_USAGE, "a stop string is empty; leave it out");
    if (!utf8_is_valid(stop, len))
        return err_set(err, ST_USAGE, "a stop string is not valid UTF-8");
    t->stops[t->n_stops] = strdup(stop);
    if (!t->stops[t->n_stops])
        return err_set(err, ST_NO_MEMORY, "no memory for a stop string");
    t->stop_len[t->n_stops++] = len;
    t->longest = len > t->longest ? len : t->longest;
    return ST_OK;
}

enum status completion_text_open(struct completion_text *t, const char *const *stops,
                                 int n_stops, struct err *err)
{
    enum status st = ST_OK;

    *t = (struct completion_text){.n_stops = 0};
    if (n_stops == 0)
        return ST_OK;
    t->stops = calloc((size_t)n_stops, sizeof *t->stops);
    t->stop_len = calloc((size_t)n_stops, sizeof *t->stop_len);
    if (!t->stops || !t->stop_len)
        st = err_set(err, ST_NO_MEMORY, "no memory for %d stop strings", n_stops);
    for (int i = 0; !st && i < n_stops; i++)
        st = copy_stop(t, stops[i], err);
    if (!st && !(t->held = malloc(t->longest + 4)))
        st = err_set(err, ST_NO_MEMORY, "no memory for stop strings");
    if (st)
        completion_text_close(t);
    return st;
}

void completion_text_close(struct completion_text *t)
{
    for (int i = 0; i < t->n_stops; i++)
        free(t->stops[i]);
    free(t->stops);
    free(t->stop_len);
    free(t->held);
    free(t->out);
    *t = (struct completion_text){.n_stops = 0};
}

/* Room for what n further bytes can become: each is malformed, and all that was held
 * back is given out. */
static enum status reserve(struct completion_text *t, size_t n, struct err *err)
{
    const size_t cap = t->longest + REPLACEMENT_LEN * (n + sizeof t->pending);
    char *more;

    t->n_out = 0;
    if (cap <= t->cap)
        return ST_OK;
    more = realloc(t->out, cap);
    if (!more)
        return err_set(err, ST_NO_MEMORY, "no memory for a text of %zu bytes", cap);
    t->out = more;
    t->cap = cap;
    return ST_OK;
}

/* Whether held[] ends with a stop string; *len is the longest one's length, t->stop
 * which one it is. */
static bool ends_with_stop(struct completion_text *t, size_t *len)
{
    *len = 0;
    for (int i = 0; i < t->n_stops; i++) {
        const size_t n = t->stop_len[i];

        if (n <= t->n_held && n > *len &&
            !memcmp(t->held + t->n_held - n, t->stops[i], n)) {
            *len = n;
            t->stop = i;
        }
    }
    return *len > 0;
}

/* Where the longest end of held[] begins that a stop string begins with. */
static size_t first_held(const struct completion_text *t)
{
    size_t longest = 0;

    for (int i = 0; i < t->n_stops; i++) {
        size_t n = t->stop_len[i] - 1;

        n = n < t->n_held ? n : t->n_held;
        while (n > longest && memcmp(t->held + t->n_held - n, t->stops[i], n) != 0)
            n--;
        longest = n > longest ? n : longest;
    }
    return t->n_held - longest;
}

static void give(struct completion_text *t, const char *bytes, size_t n)
{
    memcpy(t->out + t->n_out, bytes, n);
    t->n_out += n;
}

/* Give the first n bytes of held[] out, and keep the rest. */
static void release(struct completion_text *t, size_t n)
{
    give(t, t->held, n);
    t->n_held -= n;
    memmove(t->held, t->held + n, t->n_held);
}

static void add_char(struct completion_text *t, const char *c, size_t n)
{
    size_t len;

    t->n_chars++;
    if (t->n_stops == 0) {
        give(t, c, n);
        return;
    }
    memcpy(t->held + t->n_held, c, n);
    t->n_held += n;
    if (ends_with_stop(t, &len)) {
        give(t, t->held, t->n_held - len);
        t->n_held = 0;
        t->stopped = true;
    } else {
        release(t, first_held(t));
    }
}

/* Bytes of malformed s[len] for which there is one U+FFFD: as many as begin a
 * well-formed character, or one. */
static size_t malformed_len(const char *s, size_t len)
{
    size_t n = 1;

    while (n < len && utf8_char_len(s, n + 1) < 0)
        n++;
    return n;
}

/* Take the first character off pending[], if it is whole or malformed. So is U+0000,
 * which a request may not have: an answer must be fit to be sent back. */
static bool take_char(struct completion_text *t)
{
    const size_t len = (size_t)t->n_pending;
    const int n = !len ? -1 : *t->pending ? utf8_char_len(t->pending, len) : 0;
    size_t taken = (size_t)n;

    if (n < 0)
        return false;
    if (n > 0) {
        add_char(t, t->pending, taken);
    } else {
        taken = malformed_len(t->pending, len);
        add_char(t, REPLACEMENT, REPLACEMENT_LEN);
    }
    t->n_pending -= (int)taken;
    memmove(t->pending, t->pending + taken, (size_t)t->n_pending);
    return true;
}

enum status completion_text_add(struct completion_text *t, const char *bytes, size_t n,
                                struct err *err)
{
    const enum status st = reserve(t, n, err);

    for (size_t i = 0; !st && i < n && !t->stopped; i++) {
        t->pending[t->n_pending++] = bytes[i];
        while (!t->stopped && take_char(t))
            ;
    }
    return st;
}

/* completion_text_add() has reserved the room. */
void completion_text_end(struct completion_text *t)
{
    if (!t->stopped && t->n_pending)
        add_char(t, REPLACEMENT, REPLACEMENT_LEN);
    t->n_pending = 0;
    if (!t->stopped && t->n_held)
        release(t, t->n_held);
}
