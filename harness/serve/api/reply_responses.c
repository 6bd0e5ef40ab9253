/* SPDX-License-Identifier: MIT
 *
 * reply_responses.c - answers in the words of OpenAI's Responses API
 *
 * The end of each item of a stream, and of the stream, repeats its text.
 */
#include <string.h>

#include "harness/serve/api/reply_form.h"

static void put_text(struct textbuf *out, const char *text)
{
    textbuf_put_json(out, text, strlen(text));
}

/* ---- a response ------------------------------------------------------------------ */

static void put_head(struct textbuf *out, const struct reply_head *head,
                     const char *status)
{
    textbuf_printf(out,
                   "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,"
                   "\"status\":\"%s\",\"model\":",
                   head->id, head->created, status);
    put_text(out, head->model);
    if (head->echo && *head->echo) {
        textbuf_puts(out, ",");
        textbuf_puts(out, head->echo);
    }
}

static void put_usage(struct textbuf *out, const struct reply_usage *u)
{
    textbuf_printf(out,
                   "\"usage\":{\"input_tokens\":%lld,\"input_tokens_details\":"
                   "{\"cached_tokens\":%lld},\"output_tokens\":%lld,"
                   "\"output_tokens_details\":{\"reasoning_tokens\":%lld},"
                   "\"total_tokens\":%lld}",
                   u->n_prompt, u->n_cached, u->n_generated, u->n_thought,
                   u->n_prompt + u->n_generated);
}

static const char *status_of(const struct reply_ending *e)
{
    return e->end == COMPLETION_STOP ? "completed" : "incomplete";
}

/* Behind the items of "output". */
static void put_ending(struct textbuf *out, const struct reply_ending *e)
{
    textbuf_printf(out, "],\"incomplete_details\":%s,",
                   e->end == COMPLETION_STOP ? "null"
                                             : "{\"reason\":\"max_output_tokens\"}");
    put_usage(out, &e->usage);
    textbuf_puts(out, "}");
}

/* ---- items ----------------------------------------------------------------------- */

static const char *prefix_of(enum reply_block kind)
{
    return kind == BLOCK_THOUGHT ? "rs" : kind == BLOCK_CALL ? "fc" : "msg";
}

/* An item of a call, up to its arguments. */
static void begin_call(struct textbuf *out, const struct reply_head *head,
                       const struct reply_blocks *b, const char *status)
{
    textbuf_printf(out,
                   "{\"id\":\"fc_%s_%d\",\"status\":\"%s\",\"type\":\"function_call\","
                   "\"call_id\":\"%s\",\"name\":",
                   head->id, b->n, status, b->id);
    put_text(out, b->name);
    textbuf_puts(out, ",\"arguments\":");
}

static void put_part(struct textbuf *out, enum reply_block kind, const char *text,
                     size_t len)
{
    textbuf_puts(out, kind == BLOCK_THOUGHT
                          ? "{\"type\":\"reasoning_text\",\"text\":"
                          : "{\"type\":\"output_text\",\"annotations\""
                            ":[],\"logprobs\":[],\"text\":");
    textbuf_put_json(out, text ? text : "", len);
    textbuf_puts(out, "}");
}

static void begin_item(struct textbuf *out, const struct reply_head *head,
                       enum reply_block kind, int n, const char *status)
{
    textbuf_printf(out, "{\"id\":\"%s_%s_%d\",\"status\":\"%s\",", prefix_of(kind),
                   head->id, n, status);
    textbuf_puts(out,
                 kind == BLOCK_THOUGHT
                     ? "\"type\":\"reasoning\",\"summary\":[],\"content\":["
                     : "\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
}

static void put_item(struct textbuf *out, const struct reply_head *head,
                     enum reply_block kind, int n, const char *text, size_t len,
                     const char *status)
{
    begin_item(out, head, kind, n, status);
    put_part(out, kind, text, len);
    textbuf_puts(out, "]}");
}

/* Arguments that were cut are given as far as they came. */
static void put_calls(struct textbuf *out, const struct reply_head *head, int n,
                      const struct reply_ending *e)
{
    struct reply_calls calls = {.seed = e->calls->seed};
    struct reply_blocks b = {.n = n};
    const char *bytes = e->calls->list.text;
    size_t left = e->calls->list.len;
    struct reply_call_part name, arguments;

    while (reply_calls_next(&bytes, &left, &name)) {
        reply_blocks_name(&b, &calls, &name);
        if (!left || *bytes == CALL_NAME ||
            !reply_calls_next(&bytes, &left, &arguments))
            arguments = (struct reply_call_part){.text = ""};
        textbuf_puts(out, b.n ? "," : "");
        begin_call(out, head, &b, left ? "completed" : status_of(e));
        textbuf_put_json(out, arguments.text, arguments.len);
        textbuf_puts(out, "}");
        b.n++;
    }
}

static void whole(struct textbuf *out, const struct reply_head *head,
                  const struct textbuf *text, const struct textbuf *thought,
                  const struct reply_ending *ending)
{
    int n = 0;

    out->failed |= text->failed | thought->failed;
    put_head(out, head, status_of(ending));
    textbuf_puts(out, ",\"output\":[");
    if (thought->len)
        put_item(out, head, BLOCK_THOUGHT, n++, thought->text, thought->len,
                 "completed");
    if (text->len || (!n && !ending->calls->list.len)) {
        textbuf_puts(out, n ? "," : "");
        put_item(out, head, BLOCK_TEXT, n++, text->text, text->len, status_of(ending));
    }
    put_calls(out, head, n, ending);
    put_ending(out, ending);
    textbuf_puts(out, "\n");
}

/* ---- a stream -------------------------------------------------------------------- */

/* event: NAME, and its data up to what is its own. */
static void begin_event(struct textbuf *out, struct reply_blocks *b, const char *name)
{
    textbuf_printf(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d,",
                   name, name, b->n_events++);
}

static void end_event(struct textbuf *out)
{
    textbuf_puts(out, "}\n\n");
}

static void begin(struct textbuf *out, const struct reply_head *head,
                  struct reply_blocks *b)
{
    static const char *const names[] = {"response.created", "response.in_progress"};

    if (b->n_events)
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin_event(out, b, names[i]);
        textbuf_puts(out, "\"response\":");
        put_head(out, head, "in_progress");
        textbuf_puts(out, ",\"output\":[],\"incomplete_details\":null,\"usage\":null}");
        end_event(out);
    }
}

/* Where in the output: members of most events. */
static void put_place(struct textbuf *out, const struct reply_head *head,
                      const struct reply_blocks *b, enum reply_block kind)
{
    textbuf_printf(out,
                   "\"item_id\":\"%s_%s_%d\",\"output_index\":%d,"
                   "\"content_index\":0,",
                   prefix_of(kind), head->id, b->n, b->n);
}

static void put_part_event(struct textbuf *out, const struct reply_head *head,
                           struct reply_blocks *b, const char *name)
{
    begin_event(out, b, name);
    put_place(out, head, b, b->open);
    textbuf_puts(out, "\"part\":");
    put_part(out, b->open, b->text.text, b->text.len);
    end_event(out);
}

/* The item of the open block, whole. */
static void put_open(struct textbuf *out, const struct reply_head *head,
                     const struct reply_blocks *b, const char *status)
{
    if (b->open != BLOCK_CALL) {
        put_item(out, head, b->open, b->n, b->text.text, b->text.len, status);
        return;
    }
    begin_call(out, head, b, status);
    textbuf_put_json(out, b->text.text ? b->text.text : "", b->text.len);
    textbuf_puts(out, "}");
}

static void put_done(struct textbuf *out, const struct reply_head *head,
                     struct reply_blocks *b)
{
    const bool thinks = b->open == BLOCK_THOUGHT;

    if (b->open == BLOCK_CALL) {
        begin_event(out, b, "response.function_call_arguments.done");
        textbuf_printf(out,
                       "\"item_id\":\"fc_%s_%d\",\"output_index\":%d,\"arguments\":",
                       head->id, b->n, b->n);
        textbuf_put_json(out, b->text.text ? b->text.text : "", b->text.len);
        end_event(out);
        return;
    }
    begin_event(out, b,
                thinks ? "response.reasoning_text.done" : "response.output_text.done");
    put_place(out, head, b, b->open);
    textbuf_puts(out, thinks ? "\"text\":" : "\"logprobs\":[],\"text\":");
    textbuf_put_json(out, b->text.text ? b->text.text : "", b->text.len);
    end_event(out);
    put_part_event(out, head, b, "response.content_part.done");
}

static void close_block(struct textbuf *out, const struct reply_head *head,
                        struct reply_blocks *b, const char *status)
{
    if (!b->open)
        return;
    put_done(out, head, b);
    begin_event(out, b, "response.output_item.done");
    textbuf_printf(out, "\"output_index\":%d,\"item\":", b->n);
    put_open(out, head, b, status);
    end_event(out);
    textbuf_puts(&b->done, b->n ? "," : "");
    put_open(&b->done, head, b, status);
    out->failed |= b->text.failed | b->done.failed;
    textbuf_clear(&b->text);
    b->open = BLOCK_NONE;
    b->n++;
}

static void open_block(struct textbuf *out, const struct reply_head *head,
                       struct reply_blocks *b, enum reply_block kind)
{
    if (b->open == kind)
        return;
    close_block(out, head, b, "completed");
    b->open = kind;
    begin_event(out, b, "response.output_item.added");
    textbuf_printf(out, "\"output_index\":%d,\"item\":", b->n);
    begin_item(out, head, kind, b->n, "in_progress");
    textbuf_puts(out, "]}");
    end_event(out);
    put_part_event(out, head, b, "response.content_part.added");
}

static void put_delta(struct textbuf *out, const struct reply_head *head,
                      struct reply_blocks *b, enum reply_block kind, const char *text,
                      size_t len)
{
    if (!len)
        return;
    open_block(out, head, b, kind);
    textbuf_put(&b->text, text, len);
    begin_event(out, b,
                kind == BLOCK_THOUGHT ? "response.reasoning_text.delta"
                                      : "response.output_text.delta");
    put_place(out, head, b, kind);
    textbuf_puts(out,
                 kind == BLOCK_THOUGHT ? "\"delta\":" : "\"logprobs\":[],\"delta\":");
    textbuf_put_json(out, text, len);
    end_event(out);
}

static void open_call(struct textbuf *out, const struct reply_head *head,
                      struct reply_blocks *b, struct reply_calls *calls,
                      const struct reply_call_part *name)
{
    close_block(out, head, b, "completed");
    reply_blocks_name(b, calls, name);
    b->open = BLOCK_CALL;
    begin_event(out, b, "response.output_item.added");
    textbuf_printf(out, "\"output_index\":%d,\"item\":", b->n);
    begin_call(out, head, b, "in_progress");
    textbuf_puts(out, "\"\"}");
    end_event(out);
}

static void put_arguments(struct textbuf *out, const struct reply_head *head,
                          struct reply_blocks *b, const struct reply_call_part *more)
{
    textbuf_put(&b->text, more->text, more->len);
    begin_event(out, b, "response.function_call_arguments.delta");
    textbuf_printf(out,
                   "\"item_id\":\"fc_%s_%d\",\"output_index\":%d,\"delta\":", head->id,
                   b->n, b->n);
    textbuf_put_json(out, more->text, more->len);
    end_event(out);
}

static void part(struct textbuf *out, const struct reply_head *head,
                 struct reply_blocks *b, const struct reply_part *p,
                 struct reply_calls *calls)
{
    const char *bytes = p->call;
    size_t left = p->n_call;
    struct reply_call_part call;

    begin(out, head, b);
    put_delta(out, head, b, BLOCK_THOUGHT, p->thought, p->n_thought);
    put_delta(out, head, b, BLOCK_TEXT, p->text, p->len);
    while (reply_calls_next(&bytes, &left, &call)) {
        if (call.begins)
            open_call(out, head, b, calls, &call);
        else
            put_arguments(out, head, b, &call);
    }
}

static void finish(struct textbuf *out, const struct reply_head *head,
                   struct reply_blocks *b, const struct reply_ending *ending)
{
    begin(out, head, b);
    if (!b->n && !b->open)
        open_block(out, head, b, BLOCK_TEXT);
    close_block(out, head, b, status_of(ending));
    begin_event(out, b,
                ending->end == COMPLETION_STOP ? "response.completed"
                                               : "response.incomplete");
    textbuf_puts(out, "\"response\":");
    put_head(out, head, status_of(ending));
    textbuf_puts(out, ",\"output\":[");
    if (b->done.len)
        textbuf_put(out, b->done.text, b->done.len);
    put_ending(out, ending);
    end_event(out);
}

static void fail(struct textbuf *out, const struct reply_head *head,
                 struct reply_blocks *b, const struct refusal *r)
{
    begin(out, head, b);
    begin_event(out, b, "error");
    textbuf_printf(out, "\"code\":\"%s\",\"param\":null,\"message\":",
                   r->code ? r->code : "server_error");
    put_text(out, r->message);
    end_event(out);
}

const struct reply_form reply_responses = {whole, part, finish, fail};
