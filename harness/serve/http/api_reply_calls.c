/* SPDX-License-Identifier: MIT
 *
 * api_reply_calls.c - calls of tools in OpenAI's JSON, from the bytes of pieces
 *
 * Source: OpenAI's API reference, "The chat completion object" and "chunk object".
 */
#include <string.h>

#include "engine/base/random.h"
#include "engine/grammar/call_form.h"
#include "harness/serve/http/api_reply.h"

/* Nine letters and digits: what the strictest of templates takes (Mistral's). */
static void put_id(struct textbuf *out, const struct reply_calls *c)
{
    static const char letters[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t state = c->seed + (uint64_t)c->n, bits = random_bits(&state);
    char id[CALL_ID_CHARS + 1] = "";

    for (int i = 0; i < CALL_ID_CHARS; i++, bits /= 62)
        id[i] = letters[bits % 62];
    textbuf_puts(out, id);
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
    textbuf_puts(out, "\"id\":\"");
    put_id(out, c);
    textbuf_puts(out, "\",\"type\":\"function\",\"function\":{\"name\":\"");
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

void reply_calls_put(struct textbuf *out, const struct reply_calls *c)
{
    textbuf_puts(out, ",\"tool_calls\":[");
    textbuf_put(out, c->list.text, c->list.len);
    textbuf_puts(out, c->in_name ? "\",\"arguments\":\"\"}}]" : "\"}}]");
}

/* A name comes whole: its reader gives it where it ends. */
void reply_calls_deltas(struct textbuf *out, struct reply_calls *c, const char *bytes,
                        size_t n)
{
    bool some = false;

    while (n) {
        const bool begins = *bytes == CALL_NAME;
        size_t more;

        if (begins || *bytes == CALL_ARGUMENTS) {
            bytes++;
            n--;
        }
        more = run(bytes, n);
        if (!begins && !more)
            continue;
        textbuf_printf(out, "%s{\"index\":%d,", some ? "," : "",
                       begins ? c->n : c->n - 1);
        if (begins)
            begin_call(out, c);
        else
            textbuf_puts(out, "\"function\":{\"arguments\":\"");
        put_inside(out, bytes, more);
        textbuf_puts(out, begins ? "\",\"arguments\":\"\"}}" : "\"}}");
        c->in_name = begins;
        some = true;
        bytes += more;
        n -= more;
    }
}
