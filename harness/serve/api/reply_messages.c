/* SPDX-License-Identifier: MIT
 *
 * reply_messages.c - answers in the words of Anthropic's Messages API
 *
 * Tokens from kept prompts are no part of input_tokens. Their number is known when the
 * answer ends, so a stream begins with all of the prompt's.
 */
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/reply_form.h"

static void put_text(struct textbuf *out, const char *text)
{
    textbuf_put_json(out, text, strlen(text));
}

static void put_usage(struct textbuf *out, const struct reply_usage *u)
{
    textbuf_printf(out,
                   "\"usage\":{\"input_tokens\":%lld,\"cache_creation_input_tokens\":0,"
                   "\"cache_read_input_tokens\":%lld,\"output_tokens\":%lld}",
                   u->n_prompt - u->n_cached, u->n_cached, u->n_generated);
}

static void put_reason(struct textbuf *out, const struct reply_ending *e)
{
    textbuf_printf(out, "\"stop_reason\":\"%s\",\"stop_sequence\":",
                   e->stop                                    ? "stop_sequence"
                   : e->end == COMPLETION_STOP && e->calls->n ? "tool_use"
                   : e->end == COMPLETION_STOP                ? "end_turn"
                                                              : "max_tokens");
    if (e->stop)
        put_text(out, e->stop);
    else
        textbuf_puts(out, "null");
}

static void put_head(struct textbuf *out, const struct reply_head *head)
{
    textbuf_printf(out,
                   "{\"id\":\"%s\",\"type\":\"message\",\"role\":\"assistant\","
                   "\"model\":",
                   head->id);
    put_text(out, head->model);
    textbuf_puts(out, ",\"content\":[");
}

static void begin_call(struct textbuf *out, const struct reply_blocks *b)
{
    textbuf_printf(out, "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":", b->id);
    put_text(out, b->name);
    textbuf_puts(out, ",\"input\":");
}

/* ---- a whole answer -------------------------------------------------------------- */

static bool is_object(const char *text, size_t len)
{
    json_t *value =
        json_try(text, len, (struct json_limit){SIZE_MAX, API_MAX_VALUES}, 0);
    const bool is = json_is_object(value);

    json_decref(value);
    return is;
}

/* An input is an object: one that was cut has no members. */
static void put_calls(struct textbuf *out, const struct reply_calls *all, bool some)
{
    struct reply_calls calls = {.seed = all->seed};
    struct reply_blocks b = {.n = 0};
    const char *bytes = all->list.text;
    size_t left = all->list.len;
    struct reply_call_part name, input;

    while (reply_calls_next(&bytes, &left, &name)) {
        reply_blocks_name(&b, &calls, &name);
        if (!left || *bytes == CALL_NAME || !reply_calls_next(&bytes, &left, &input))
            input = (struct reply_call_part){.text = ""};
        textbuf_puts(out, some ? "," : "");
        begin_call(out, &b);
        if (is_object(input.text, input.len))
            textbuf_put(out, input.text, input.len);
        else
            textbuf_puts(out, "{}");
        textbuf_puts(out, "}");
        some = true;
    }
}

static void whole(struct textbuf *out, const struct reply_head *head,
                  const struct textbuf *text, const struct textbuf *thought,
                  const struct reply_ending *ending)
{
    out->failed |= text->failed | thought->failed;
    put_head(out, head);
    if (thought->len) {
        textbuf_puts(out, "{\"type\":\"thinking\",\"thinking\":");
        textbuf_put_json(out, thought->text, thought->len);
        textbuf_puts(out, ",\"signature\":\"\"}");
    }
    if (text->len || (!thought->len && !ending->calls->list.len)) {
        textbuf_puts(out, thought->len ? ",{\"type\":\"text\",\"text\":"
                                       : "{\"type\":\"text\",\"text\":");
        textbuf_put_json(out, text->text ? text->text : "", text->len);
        textbuf_puts(out, "}");
    }
    put_calls(out, ending->calls, text->len || thought->len);
    textbuf_puts(out, "],");
    put_reason(out, ending);
    textbuf_puts(out, ",");
    put_usage(out, &ending->usage);
    textbuf_puts(out, "}\n");
}

/* ---- a stream -------------------------------------------------------------------- */

static void begin(struct textbuf *out, const struct reply_head *head,
                  struct reply_blocks *b)
{
    if (b->n_events++)
        return;
    textbuf_puts(out, "event: message_start\ndata: {\"type\":\"message_start\","
                      "\"message\":");
    put_head(out, head);
    textbuf_puts(out, "],\"stop_reason\":null,\"stop_sequence\":null,");
    put_usage(out, &(struct reply_usage){.n_prompt = head->n_prompt});
    textbuf_puts(out, "}}\n\n");
}

static void close_block(struct textbuf *out, struct reply_blocks *b)
{
    if (b->open)
        textbuf_printf(out,
                       "event: content_block_stop\ndata: {\"type\":"
                       "\"content_block_stop\",\"index\":%d}\n\n",
                       b->n++);
    b->open = BLOCK_NONE;
}

static void open_block(struct textbuf *out, struct reply_blocks *b,
                       enum reply_block kind)
{
    if (b->open == kind)
        return;
    close_block(out, b);
    b->open = kind;
    textbuf_printf(out,
                   "event: content_block_start\ndata: {\"type\":"
                   "\"content_block_start\",\"index\":%d,\"content_block\":%s}\n\n",
                   b->n,
                   kind == BLOCK_TEXT ? "{\"type\":\"text\",\"text\":\"\"}"
                                      : "{\"type\":\"thinking\",\"thinking\":\"\","
                                        "\"signature\":\"\"}");
}

static void put_delta(struct textbuf *out, struct reply_blocks *b,
                      enum reply_block kind, const char *text, size_t len)
{
    if (!len)
        return;
    open_block(out, b, kind);
    textbuf_printf(out,
                   "event: content_block_delta\ndata: {\"type\":"
                   "\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":%s:",
                   b->n,
                   kind == BLOCK_TEXT ? "\"text_delta\",\"text\""
                                      : "\"thinking_delta\",\"thinking\"");
    textbuf_put_json(out, text, len);
    textbuf_puts(out, "}}\n\n");
}

static void open_call(struct textbuf *out, struct reply_blocks *b,
                      struct reply_calls *calls, const struct reply_call_part *name)
{
    close_block(out, b);
    reply_blocks_name(b, calls, name);
    b->open = BLOCK_CALL;
    textbuf_printf(out,
                   "event: content_block_start\ndata: {\"type\":"
                   "\"content_block_start\",\"index\":%d,\"content_block\":",
                   b->n);
    begin_call(out, b);
    textbuf_puts(out, "{}}}\n\n");
}

static void put_input(struct textbuf *out, const struct reply_blocks *b,
                      const struct reply_call_part *more)
{
    textbuf_printf(out,
                   "event: content_block_delta\ndata: {\"type\":"
                   "\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":"
                   "\"input_json_delta\",\"partial_json\":",
                   b->n);
    textbuf_put_json(out, more->text, more->len);
    textbuf_puts(out, "}}\n\n");
}

static void part(struct textbuf *out, const struct reply_head *head,
                 struct reply_blocks *b, const struct reply_part *p,
                 struct reply_calls *calls)
{
    const char *bytes = p->call;
    size_t left = p->n_call;
    struct reply_call_part call;

    begin(out, head, b);
    put_delta(out, b, BLOCK_THOUGHT, p->thought, p->n_thought);
    put_delta(out, b, BLOCK_TEXT, p->text, p->len);
    while (reply_calls_next(&bytes, &left, &call)) {
        if (call.begins)
            open_call(out, b, calls, &call);
        else
            put_input(out, b, &call);
    }
}

static void finish(struct textbuf *out, const struct reply_head *head,
                   struct reply_blocks *b, const struct reply_ending *ending)
{
    begin(out, head, b);
    if (!b->n && !b->open)
        open_block(out, b, BLOCK_TEXT);
    close_block(out, b);
    textbuf_puts(out, "event: message_delta\ndata: {\"type\":\"message_delta\","
                      "\"delta\":{");
    put_reason(out, ending);
    textbuf_puts(out, "},");
    put_usage(out, &ending->usage);
    textbuf_puts(out,
                 "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void fail(struct textbuf *out, const struct reply_head *head,
                 struct reply_blocks *b, const struct refusal *r)
{
    (void)head;
    (void)b;
    textbuf_puts(out, "event: error\ndata: ");
    refusal_put_typed(out, r);
    textbuf_puts(out, "\n\n");
}

const struct reply_form reply_messages = {whole, part, finish, fail};
