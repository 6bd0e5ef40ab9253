/* SPDX-License-Identifier: MIT
 *
 * api_reply_calls.c - calls of tools, from the bytes of pieces; in OpenAI's JSON
 *
 * Source: OpenAI's API reference, "The chat completion object" and "chunk object".
 */
#include <string.h>

#include "engine/base/random.h"
#include "harness/serve/api/api_reply.h"

/* Bytes up to the next call, name or arguments. */
static size_t run(const char *bytes, size_t n)
{
    size_t i = 0;

    while (i < n && bytes[i] != CALL_NAME && bytes[i] != CALL_ARGUMENTS)
        i++;
    return i;
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

/* Call number i. Its identity has nine letters and digits: what the strictest of
 * templates takes (Mistral's). */
static void begin(const struct reply_calls *c, int i, struct reply_call *call,
                  const struct reply_call_part *name)
{
    static const char letters[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const size_t len = name->len < CALL_MAX_NAME ? name->len : CALL_MAX_NAME;
    uint64_t state = c->seed + (uint64_t)i, bits = random_bits(&state);

    *call = (struct reply_call){.arguments = ""};
    memcpy(call->name, name->text, len);
    for (int k = 0; k < CALL_ID_CHARS; k++, bits /= 62)
        call->id[k] = letters[bits % 62];
}

void reply_calls_begin(struct reply_calls *c, struct reply_call *call,
                       const struct reply_call_part *name)
{
    begin(c, c->n++, call, name);
}

bool reply_calls_read(const struct reply_calls *c, size_t *at, int i,
                      struct reply_call *call)
{
    const char *bytes = c->list.text + *at;
    size_t left = c->list.len - *at;
    struct reply_call_part part;

    if (!left || !reply_calls_next(&bytes, &left, &part))
        return false;
    begin(c, i, call, &part);
    if (left && *bytes != CALL_NAME && reply_calls_next(&bytes, &left, &part)) {
        call->arguments = part.text;
        call->n_arguments = part.len;
    }
    *at = c->list.len - left;
    return true;
}

/* Up to the arguments. */
static void put_begin(struct textbuf *out, const struct reply_call *call)
{
    textbuf_printf(
        out, "\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":", call->id);
    textbuf_put_json(out, call->name, strlen(call->name));
    textbuf_puts(out, ",\"arguments\":");
}

void reply_calls_put(struct textbuf *out, const struct reply_calls *c)
{
    struct reply_call call;
    size_t at = 0;

    out->failed |= c->list.failed;
    textbuf_puts(out, ",\"tool_calls\":[");
    for (int i = 0; reply_calls_read(c, &at, i, &call); i++) {
        textbuf_puts(out, i ? ",{" : "{");
        put_begin(out, &call);
        textbuf_put_json(out, call.arguments, call.n_arguments);
        textbuf_puts(out, "}}");
    }
    textbuf_puts(out, "]");
}

void reply_calls_deltas(struct textbuf *out, struct reply_calls *c, const char *bytes,
                        size_t n)
{
    struct reply_call_part part;
    struct reply_call call;

    for (bool some = false; reply_calls_next(&bytes, &n, &part); some = true) {
        textbuf_printf(out, "%s{\"index\":%d,", some ? "," : "",
                       part.begins ? c->n : c->n - 1);
        if (part.begins) {
            reply_calls_begin(c, &call, &part);
            put_begin(out, &call);
            textbuf_puts(out, "\"\"}}");
        } else {
            textbuf_puts(out, "\"function\":{\"arguments\":");
            textbuf_put_json(out, part.text, part.len);
            textbuf_puts(out, "}}");
        }
    }
}
