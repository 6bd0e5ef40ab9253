/* SPDX-License-Identifier: MIT
 *
 * record.c - events of a reply as times and counts
 */
#include "harness/client/record.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/json_read.h"
#include "harness/base/format.h"

#define MAX_TOKENS_REPORTED \
    INT64_C(100000000) /* a larger number is no count of tokens */
#define QUOTED 140     /* bytes that a clause quotes */

void load_record_free(struct load_record *r)
{
    free(r->gap_ms);
    free(r->gap_tokens);
    r->gap_ms = NULL;
    r->gap_tokens = NULL;
    r->gap_cap = 0;
}

void load_record_fail(struct load_record *r, const char *fmt, ...)
{
    char text[400];
    va_list args;

    if (r->end == LOAD_FAILED)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    text_harmless(r->why, sizeof r->why, text);
    r->end = LOAD_FAILED;
}

/* ---- what an event has ----------------------------------------------------------- */

static void take_count(const json_t *object, const char *key, int64_t *out)
{
    const json_t *v = json_object_get(object, key);

    int64_t n;

    if (json_whole(v, &n) && n >= 0 && n <= MAX_TOKENS_REPORTED)
        *out = n;
}

static void take_usage(struct load_record *r, const json_t *event)
{
    const json_t *usage = json_object_get(event, "usage");
    const json_t *timings = json_object_get(event, "timings"); /* llama-server's */

    if (json_is_object(timings)) {
        take_count(timings, "cache_n", &r->n_cached);
        take_count(timings, "predicted_n", &r->n_counted);
    }
    if (!json_is_object(usage))
        return;
    take_count(usage, "prompt_tokens", &r->n_prompt);
    take_count(usage, "completion_tokens", &r->n_tokens);
    take_count(json_object_get(usage, "prompt_tokens_details"), "cached_tokens",
               &r->n_cached);
    take_count(json_object_get(usage, "completion_tokens_details"), "reasoning_tokens",
               &r->n_reasoning);
}

static bool is_text(const json_t *v)
{
    return json_string_length(v) && !json_no_number(v);
}

static bool is_visible(const json_t *v)
{
    const char *text = is_text(v) ? json_string_value(v) : "";

    return text[strspn(text, " \t\r\n")] != '\0';
}

enum piece { NO_PIECE, THOUGHT, BLANK, VISIBLE, CALL };

/* What a choice has: text of a chat or of a completion, a part of a call of a tool, or
 * a thought (llama-server and older vLLM, then Ollama and vLLM). */
static enum piece piece_of(const json_t *choice)
{
    const json_t *delta = json_object_get(choice, "delta");
    const json_t *content = json_object_get(delta, "content");
    const json_t *text = json_object_get(choice, "text");
    const json_t *calls = json_object_get(delta, "tool_calls");
    const json_t *call = json_object_get(json_array_get(calls, 0), "function");

    if (is_text(json_object_get(call, "name")) ||
        is_text(json_object_get(call, "arguments")))
        return CALL;
    if (is_visible(content) || is_visible(text))
        return VISIBLE;
    if (is_text(json_object_get(delta, "reasoning_content")) ||
        is_text(json_object_get(delta, "reasoning")))
        return THOUGHT;
    return is_text(content) || is_text(text) ? BLANK : NO_PIECE;
}

/* All pieces so far were thoughts. */
static void take_back(struct load_record *r)
{
    r->visible_ns = 0;
    r->n_thoughts = r->n_pieces;
}

/* What a piece of content is where a server leaves thoughts in it: all up to
 * ANSWER_THINK_END is a thought, and so is what begins with ANSWER_THINK_BEGIN, though
 * its end never comes. */
static enum piece within_content(struct load_reply *p, const json_t *content,
                                 enum piece is)
{
    const char *text = json_string_value(content), *rest = NULL;
    const size_t n = json_string_length(content);

    for (size_t i = 0; i < n && !rest; i++) {
        if (!p->n_content && strchr(" \t\r\n", text[i]))
            continue;
        memmove(p->tail, p->tail + 1, sizeof p->tail - 1);
        p->tail[sizeof p->tail - 1] = text[i];
        p->n_content++;
        if (p->n_content == strlen(ANSWER_THINK_BEGIN) &&
            !memcmp(p->tail + 1, ANSWER_THINK_BEGIN, p->n_content)) {
            p->thinks = true;
            take_back(p->r);
        } else if (!memcmp(p->tail, ANSWER_THINK_END, sizeof p->tail)) {
            p->thinks = false;
            p->answers = true;
            take_back(p->r);
            rest = text + i + 1;
        }
    }
    return p->thinks                                   ? THOUGHT
           : !rest                                     ? is
           : rest + strspn(rest, " \t\r\n") < text + n ? VISIBLE
                                                       : THOUGHT;
}

static bool grow_gaps(struct load_record *r)
{
    const size_t cap = r->gap_cap ? 2 * r->gap_cap : 64;
    float *ms = realloc(r->gap_ms, cap * sizeof *ms);
    int *tokens = ms ? realloc(r->gap_tokens, cap * sizeof *tokens) : NULL;

    r->gap_ms = ms ? ms : r->gap_ms;
    if (!tokens)
        return false;
    r->gap_tokens = tokens;
    r->gap_cap = cap;
    return true;
}

static bool keep_gap(struct load_record *r, float ms, int n_tokens)
{
    const size_t n = (size_t)r->n_pieces - 1;

    if (n == r->gap_cap && !grow_gaps(r))
        return false;
    r->gap_ms[n] = ms;
    r->gap_tokens[n] = n_tokens;
    return true;
}

/* Half a character waits for its other half, so that a piece may be of several tokens.
 */
static int tokens_of_piece(const struct load_reply *p)
{
    const int64_t n = p->r->n_counted - p->n_counted;

    return n > 1 ? (int)n : 1;
}

static void take_piece(struct load_reply *p, enum piece is)
{
    struct load_record *r = p->r;
    const int n_tokens = tokens_of_piece(p);

    if (r->n_pieces >= LOAD_PIECES_MAX(r->n_requested)) {
        load_record_fail(r, "sent %d pieces of text for %d requested tokens",
                         r->n_pieces + 1, r->n_requested);
        return;
    }
    if (!r->n_pieces)
        r->n_first_tokens = n_tokens;
    else if (!keep_gap(r, (float)((double)(p->now_ns - r->last_ns) * 1e-6), n_tokens)) {
        load_record_fail(r, "no memory for its times");
        return;
    }
    r->first_ns = r->n_pieces ? r->first_ns : p->now_ns;
    r->last_ns = p->text_ns = p->now_ns;
    if (is >= VISIBLE && !r->visible_ns)
        r->visible_ns = p->now_ns;
    r->n_thoughts += is == THOUGHT;
    r->has_calls |= is == CALL;
    r->n_pieces++;
    p->n_counted = r->n_counted;
}

/* The message of an error: OpenAI's shape, that of older vLLM and of others. */
static const char *error_text(const json_t *body)
{
    const json_t *error = json_object_get(body, "error");
    const json_t *texts[] = {json_object_get(error, "message"), error,
                             json_object_get(body, "message"),
                             json_object_get(body, "detail")};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (is_text(texts[i]))
            return json_string_value(texts[i]);
    return NULL;
}

static bool take_event(void *arg, const char *data, size_t len)
{
    struct load_reply *p = arg;
    struct load_record *r = p->r;
    const json_t *choices, *choice, *content, *error;
    enum piece piece;
    json_t *event;

    if (p->is_done)
        return true; /* nothing counts after the end */
    if (len == 6 && !memcmp(data, "[DONE]", 6)) {
        p->is_done = true;
        return true;
    }
    event = json_try(data, len, (struct json_limit){SSE_MAX_EVENT, SSE_MAX_EVENT},
                     JSON_LOSSY);
    if (!json_is_object(event) && p->has_ended) {
        json_decref(event);
        return false; /* the stream ended within it */
    }
    if (!json_is_object(event)) {
        load_record_fail(r, "an event is no JSON object: %.*s",
                         len < QUOTED ? (int)len : QUOTED, data);
        json_decref(event);
        return false;
    }
    error = json_object_get(event, "error");
    if ((error && !json_is_null(error)) || p->sse.is_error) {
        const char *text = error_text(event);

        load_record_fail(r, "the server's error: %.80s",
                         text ? text : "without a message");
    }
    take_usage(r, event);
    choices = json_object_get(event, "choices");
    choice = json_array_get(choices, 0);
    piece = piece_of(choice);
    content = json_object_get(json_object_get(choice, "delta"), "content");
    if (is_text(content) && !p->answers && (piece == VISIBLE || piece == BLANK))
        piece = within_content(p, content, piece);
    if (piece != NO_PIECE)
        take_piece(p, piece);
    if (p->answer && !answer_add(p->answer, json_object_get(choice, "delta")))
        load_record_fail(r, "no memory for the answer");
    if (p->answer && p->answer->n_bytes > LOAD_TEXT_MAX(r->n_requested))
        load_record_fail(r, "sent %zu bytes of text for %d requested tokens",
                         p->answer->n_bytes, r->n_requested);
    p->is_over |= is_text(json_object_get(choice, "finish_reason"));
    json_decref(event);
    return r->end != LOAD_FAILED;
}

/* ---- the reply ------------------------------------------------------------------- */

void load_reply_begin(struct load_reply *p, struct load_record *r)
{
    load_reply_free(p);
    *p = (struct load_reply){.r = r};
}

void load_reply_free(struct load_reply *p)
{
    sse_free(&p->sse);
    free(p->body.v);
    p->body = (struct answer_text){.v = NULL};
}

static bool begins_with(const char *line, size_t len, const char *name)
{
    const size_t n = strlen(name);

    return len >= n && !strncasecmp(line, name, n);
}

static void take_header(struct load_reply *p, const char *line, size_t len)
{
    char value[32] = "";
    double s;

    if (begins_with(line, len, "HTTP/")) {
        const char *at = memchr(line, ' ', len);

        /* a reason need not follow it */
        snprintf(value, sizeof value, "%.*s", at && line + len - at >= 4 ? 4 : 0,
                 at ? at : line);
        p->r->http_status = atoi(value);
        p->is_events = false; /* of the last header, should there be several */
        return;
    }
    if (begins_with(line, len, "Content-Type:")) {
        size_t at = 13;

        while (at < len && line[at] == ' ')
            at++;
        p->is_events = begins_with(line + at, len - at, "text/event-stream");
    }
    if (begins_with(line, len, "Retry-After:")) {
        snprintf(value, sizeof value, "%.*s", len - 12 < 24 ? (int)(len - 12) : 24,
                 line + 12);
        s = strtod(value, NULL);
        if (isfinite(s) && s > 0)
            p->r->retry_after = s;
    }
}

bool load_reply_header(struct load_reply *p, const char *line, size_t len)
{
    p->n_header_bytes += len;
    if (p->n_header_bytes > LOAD_HEADERS_MAX_BYTES) {
        load_record_fail(p->r, "headers and trailers of more than %u KiB",
                         LOAD_HEADERS_MAX_BYTES >> 10);
        return false;
    }
    while (len && (line[len - 1] == '\r' || line[len - 1] == '\n'))
        len--;
    take_header(p, line, len);
    return true;
}

static bool is_embedding(const struct load_reply *p)
{
    return p->is_vector && p->r->http_status == 200;
}

static bool keep(struct load_reply *p, const char *bytes, size_t len)
{
    const size_t n = p->body.n;
    const size_t room = n < LOAD_PLAIN_MAX_BYTES ? LOAD_PLAIN_MAX_BYTES - n : 0;

    if (is_embedding(p) && p->body.n + len > LOAD_VECTOR_MAX_BYTES)
        load_record_fail(p->r, "the embedding is longer than %u MiB",
                         LOAD_VECTOR_MAX_BYTES >> 20);
    else if (!answer_text_add(&p->body, bytes,
                              is_embedding(p) || len < room ? len : room))
        load_record_fail(p->r, "no memory for the reply");
    return p->r->end != LOAD_FAILED;
}

/* An embedding is a piece, which came whole, and its tokens are those of the prompt. */
static void take_vector(struct load_reply *p)
{
    struct load_record *r = p->r;
    const struct json_limit limit = {LOAD_VECTOR_MAX_BYTES, 200000};
    json_t *o = json_try(p->body.v ? p->body.v : "", p->body.n, limit, JSON_LOSSY);
    const json_t *data = json_object_get(o, "data");
    const json_t *v = json_object_get(json_array_get(data, 0), "embedding");

    if (!json_array_size(v) && !json_string_length(v)) {
        load_record_fail(r, "the reply has no embedding");
    } else {
        take_usage(r, o);
        r->n_tokens = r->n_prompt;
        r->n_pieces = 1;
        r->first_ns = r->visible_ns = r->last_ns = p->now_ns;
        r->end = LOAD_OK;
    }
    json_decref(o);
}

bool load_reply_feed(struct load_reply *p, const char *bytes, size_t len,
                     uint64_t now_ns)
{
    p->now_ns = now_ns;
    p->n_bytes += len;
    if (p->n_bytes > LOAD_REPLY_MAX_BYTES) {
        load_record_fail(p->r, "the reply is longer than %u MiB",
                         LOAD_REPLY_MAX_BYTES >> 20);
        return false;
    }
    if (is_embedding(p) || !p->is_events || p->r->http_status != 200)
        return keep(p, bytes, len);
    switch (sse_feed(&p->sse, bytes, len, take_event, p)) {
    case SSE_OK:
        return true;
    case SSE_TOO_LONG:
        load_record_fail(p->r, "an event is longer than %u KiB", SSE_MAX_EVENT >> 10);
        return false;
    case SSE_NO_MEMORY:
        load_record_fail(p->r, "no memory for an event");
        return false;
    default:
        return false;
    }
}

/* The message in the body of an error, or else its text as it is. */
static void append_body(const struct load_reply *p, char *buf, size_t cap)
{
    const struct json_limit limit = {LOAD_PLAIN_MAX_BYTES, LOAD_PLAIN_MAX_BYTES};
    const char *plain = p->body.v ? p->body.v : "", *text;
    size_t len = p->body.n;
    json_t *body = json_try(plain, len, limit, JSON_LOSSY);

    for (; len && strchr("\r\n \t", *plain); len--)
        plain++;
    text = error_text(body);
    if (text)
        snprintf(buf, cap, ": %.*s", QUOTED, text);
    else if (len && *plain != '<') /* a page has no message in this few letters */
        snprintf(buf, cap, ": %.*s", len < QUOTED ? (int)len : QUOTED, plain);
    for (size_t n = strlen(buf); n && strchr("\r\n \t", buf[n - 1]); n--)
        buf[n - 1] = '\0';
    json_decref(body);
}

/* A reply that is not 200: the number, and the message in its body. */
static void note_status(struct load_reply *p)
{
    struct load_record *r = p->r;
    char message[QUOTED + 8] = "";

    append_body(p, message, sizeof message);
    r->is_refusal = r->http_status == 429 || r->http_status == 503;
    if (r->http_status >= 300 && r->http_status < 400)
        load_record_fail(r, "HTTP %d: it points elsewhere, which is not followed",
                         r->http_status);
    else if (r->is_refusal && r->retry_after > 0)
        load_record_fail(r, "HTTP %d, retry after %.0f s%s", r->http_status,
                         r->retry_after, message);
    else
        load_record_fail(r, "HTTP %d%s", r->http_status, message);
}

void load_reply_end(struct load_reply *p, uint64_t now_ns)
{
    struct load_record *r = p->r;
    char message[QUOTED + 8] = "";

    r->done_ns = now_ns;
    p->has_ended = true;
    if (r->end == LOAD_RUNNING && r->http_status == 200 && p->is_events)
        sse_end(&p->sse, take_event, p);
    r->has_too_many = r->n_tokens > r->n_requested && r->n_tokens > r->n_pieces;
    if (r->has_too_many || (r->n_pieces && !r->n_tokens))
        r->n_tokens = -1; /* no count of this text */
    if (r->end != LOAD_RUNNING)
        return;
    if (r->http_status != 200)
        note_status(p);
    else if (p->is_vector)
        take_vector(p);
    else if (!p->is_events) {
        append_body(p, message, sizeof message);
        load_record_fail(r, "the reply is no stream of events (text/event-stream)%s",
                         message);
    } else if (!p->sse.n_events && p->sse.n_odd_lines)
        load_record_fail(r, "the reply has no event, and %zu other lines",
                         p->sse.n_odd_lines);
    else if (!r->n_pieces) {
        r->is_empty = p->is_done || p->is_over;
        load_record_fail(r, "the answer is empty");
    } else if (!p->is_done && !p->is_over)
        load_record_fail(r, "the stream ended after %d pieces, before the answer did",
                         r->n_pieces);
    else
        r->end = LOAD_OK;
}
