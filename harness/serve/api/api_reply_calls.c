/* SPDX-License-Identifier: MIT
 *
 * api_reply_calls.c - calls of tools in OpenAI's JSON, from the bytes of pieces
 *
 * Source: OpenAI's API reference, "The chat completion object" and "chunk object".
 */
#include <string.h>

#include "engine/base/random.h"
#include "harness/serve/api/api_reply.h"

/* Nine letters and digits: what the strictest of templates takes (Mistral's). */
void reply_calls_id(const struct reply_calls *c, int i, char id[CALL_ID_CHARS + 1])
{
    static const char letters[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t state = c->seed + (uint64_t)i, bits = random_bits(&state);

    for (int k = 0; k < CALL_ID_CHARS; k++, bits /= 62)
        id[k] = letters[bits % 62];
    id[CALL_ID_CHARS] = '\0';
}

/* Bytes up to the next call, name or arguments. */
static size_t run(const char *bytes, size_t n)
{
    size_t i = 0;

    while (i < n && bytes[i] != CALL_NAME && bytes[i] != CALL_ARGUMENTS)
        i++;
    return i;
}

/* The text within a JSON string. */
static void put_inside(struct textbuf *out, const char *bytes, size_t n)
{
    const size_t at = out->len;

    textbuf_put_json(out, bytes, n);
    if (out->failed || out->len < at + 2)
        return;
    memmove(out->text + at, out->text + at + 1, out->len - at - 2);
    out->len -= 2;
}

static void begin_call(struct textbuf *out, struct reply_calls *c)
{
    char id[CALL_ID_CHARS + 1];

    reply_calls_id(c, c->n, id);
    textbuf_printf(out, "\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":\"",
                   id);
    c->n++;
    c->in_name = true;
}

void reply_calls_add(struct reply_calls *c, const char *bytes, size_t n)
{
    while (n) {
        const size_t more = run(bytes, n);

        put_inside(&c->list, bytes, more);
        bytes += more;
        n -= more;
        if (!n)
            break;
        if (*bytes == CALL_NAME) {
            textbuf_puts(&c->list, c->n ? "\"}},{" : "{");
            begin_call(&c->list, c);
        } else {
            textbuf_puts(&c->list, "\",\"arguments\":\"");
            c->in_name = false;
        }
        bytes++;
        n--;
    }
}

void reply_calls_keep(struct reply_calls *c, const char *bytes, size_t n)
{
    if (n)
        textbuf_put(&c->list, bytes, n);
    for (size_t i = 0; i < n; i++)
        c->n += bytes[i] == CALL_NAME;
}

void reply_calls_put(struct textbuf *out, const struct reply_calls *c)
{
    textbuf_puts(out, ",\"tool_calls\":[");
    textbuf_put(out, c->list.text, c->list.len);
    textbuf_puts(out, c->in_name ? "\",\"arguments\":\"\"}}]" : "\"}}]");
}

/* A name comes whole: its reader gives it where it ends. */
bool reply_calls_next(const char **bytes, size_t *n, struct reply_call_part *part)
{
    while (*n) {
        const char first = **bytes;
        const size_t mark = first == CALL_NAME || first == CALL_ARGUMENTS;

        *part = (struct reply_call_part){first == CALL_NAME, *bytes + mark,
                                         run(*bytes + mark, *n - mark)};
        *bytes += mark + part->len;
        *n -= mark + part->len;
        if (part->begins || part->len)
            return true;
    }
    return false;
}

void reply_calls_deltas(struct textbuf *out, struct reply_calls *c, const char *bytes,
                        size_t n)
{
    struct reply_call_part p;

    for (bool some = false; reply_calls_next(&bytes, &n, &p); some = true) {
        textbuf_printf(out, "%s{\"index\":%d,", some ? "," : "",
                       p.begins ? c->n : c->n - 1);
        if (p.begins)
            begin_call(out, c);
        else
            textbuf_puts(out, "\"function\":{\"arguments\":\"");
        put_inside(out, p.text, p.len);
        textbuf_puts(out, p.begins ? "\",\"arguments\":\"\"}}" : "\"}}");
        c->in_name = p.begins;
    }
}
