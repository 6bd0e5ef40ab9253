/* SPDX-License-Identifier: MIT
 *
 * http_reply.c - replies: JSON, a stream of events, what goes with each
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/serve/http/server_impl.h"

/* Bytes of a stream that libmicrohttpd reads at once. */
#define STREAM_BLOCK 4096

/* Length limit of the header names that a page wants to send. */
#define MAX_WANTED 1000

/* The reply to a preflight request: any header may be sent, as clients have some of
 * their own. */
static void add_preflight(const struct exchange *x, struct MHD_Response *response)
{
    const char *wanted = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND,
                                                     "Access-Control-Request-Headers");

    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST");
    MHD_add_response_header(response, "Access-Control-Allow-Headers",
                            wanted && strlen(wanted) <= MAX_WANTED
                                ? wanted
                                : "Authorization, Content-Type");
    MHD_add_response_header(response, "Access-Control-Max-Age", "3600");
}

/* The methods that a route has. */
static const char *methods(const struct exchange *x)
{
    const bool post = x->route <= ROUTE_TEMPLATE;

    return x->s->params.cors ? post ? "POST, OPTIONS" : "GET, HEAD, OPTIONS"
           : post            ? "POST"
                             : "GET, HEAD";
}

static void add_headers(const struct exchange *x, struct MHD_Response *response,
                        const char *type)
{
    char seconds[16];

    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (x->closes)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (x->s->params.cors) {
        MHD_add_response_header(response, "Access-Control-Allow-Origin",
                                x->s->params.cors);
        MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                MHD_HTTP_HEADER_RETRY_AFTER);
        MHD_add_response_header(response, "Vary", "Origin");
    }
    if (x->refusal.retry_after_s) {
        snprintf(seconds, sizeof seconds, "%d", x->refusal.retry_after_s);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    if (x->refusal.http == 401)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (x->refusal.http == 405)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, methods(x));
    if (!strcmp(x->method, MHD_HTTP_METHOD_OPTIONS) && x->s->params.cors)
        add_preflight(x, response);
}

static enum MHD_Result send_response(struct exchange *x, int status, const char *type,
                                     struct MHD_Response *response)
{
    enum MHD_Result sent;

    if (!response)
        return MHD_NO;
    add_headers(x, response, type);
    sent = MHD_queue_response(x->connection, (unsigned)status, response);
    MHD_destroy_response(response);
    x->status = status;
    if (x->state != EXCHANGE_STREAMS) {
        x->state = EXCHANGE_ANSWERED;
        if (!x->end_ns)
            x->end_ns = clock_ns();
    }
    return sent;
}

enum MHD_Result http_reply(struct exchange *x, int status, const char *type,
                           struct textbuf *body)
{
    struct MHD_Response *response;

    if (body->failed) {
        textbuf_free(body);
        return MHD_NO;
    }
    response = MHD_create_response_from_buffer(body->len, body->text ? body->text : "",
                                               body->text ? MHD_RESPMEM_MUST_FREE
                                                          : MHD_RESPMEM_PERSISTENT);
    if (response)
        *body = (struct textbuf){0}; /* libmicrohttpd's */
    textbuf_free(body);
    return send_response(x, status, type, response);
}

void http_put_refusal(struct textbuf *out, const struct exchange *x,
                      const struct refusal *refusal)
{
    static const char ollama[] = "/api/"; /* its clients read an error as a text */

    if (!strncmp(x->path, ollama, strlen(ollama)))
        refusal_put_text(out, refusal);
    else if (x->route == ROUTE_MESSAGES || x->route == ROUTE_COUNT)
        refusal_put_typed(out, refusal);
    else
        refusal_put(out, refusal);
    textbuf_puts(out, "\n");
}

enum MHD_Result http_reply_refusal(struct exchange *x)
{
    struct textbuf body = {.text = NULL};

    http_put_refusal(&body, x, &x->refusal);
    return http_reply(x, x->refusal.http, "application/json", &body);
}

/* Who does not read it does not learn it. */
void http_send_refusal(struct client *c, const struct refusal *refusal)
{
    const bool is_head = !strcmp(c->x->method, MHD_HTTP_METHOD_HEAD);
    struct textbuf body = {.text = NULL}, text = {.text = NULL};

    http_put_refusal(&body, c->x, refusal);
    textbuf_printf(&text,
                   "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
                   "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                   refusal->http, MHD_get_reason_phrase_for((unsigned)refusal->http),
                   body.len);
    if (!is_head)
        textbuf_add(&text, &body);
    c->x->status = refusal->http;
    if (!text.failed)
        send(c->fd, text.text, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    textbuf_free(&body);
    textbuf_free(&text);
}

/* ---- answers --------------------------------------------------------------------- */

/* libmicrohttpd reads up to max bytes of the stream. */
static ssize_t read_stream(void *exchange, uint64_t pos, char *out, size_t max)
{
    struct exchange *x = exchange;
    struct textbuf *events;

    (void)pos;
    if (x->cut || !x->answer)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    events = answer_events(x->answer);
    x->sent_ns = clock_ns();
    if (textbuf_left(events)) {
        const size_t n = textbuf_take(events, out, max);

        exchange_count_stream(x);
        return (ssize_t)n;
    }
    if (answer_ended(x->answer))
        return MHD_CONTENT_READER_END_OF_STREAM;
    exchange_suspend(x);
    return 0;
}

enum MHD_Result http_reply_stream(struct exchange *x)
{
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, x, NULL);

    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    MHD_add_response_header(response, "X-Accel-Buffering",
                            "no"); /* nginx passes it on */
    return send_response(x, MHD_HTTP_OK, "text/event-stream; charset=utf-8", response);
}

enum MHD_Result http_reply_answer(struct exchange *x)
{
    struct textbuf body = {.text = NULL};

    const bool ok = answer_whole(x->answer, &body, &x->refusal);

    exchange_keep(x, body.cap);
    if (ok)
        return http_reply(x, MHD_HTTP_OK, "application/json", &body);
    textbuf_free(&body);
    return http_reply_refusal(x);
}

/* ---- the other routes ------------------------------------------------------------ */

enum MHD_Result http_reply_health(struct exchange *x)
{
    const bool ready = x->s->model.scheduler && !x->s->stops;
    struct textbuf body = {.text = NULL};

    textbuf_printf(&body, "{\"status\":\"%s\"}\n",
                   ready         ? "ok"
                   : x->s->stops ? "stopping"
                                 : "loading");
    return http_reply(x, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                      "application/json", &body);
}

static void put_model(struct textbuf *out, const struct server *s)
{
    textbuf_puts(out, "{\"id\":");
    textbuf_put_json(out, s->params.name, strlen(s->params.name));
    textbuf_puts(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"slmbench\"");
    if (s->model.scheduler)
        textbuf_printf(out, ",\"max_model_len\":%d", s->model.n_ctx);
    textbuf_puts(out, "}");
}

enum MHD_Result http_reply_models(struct exchange *x, const char *id)
{
    struct textbuf body = {.text = NULL};

    if (id && strcmp(id, x->s->params.name)) {
        refuse(&x->refusal, 404, "model_not_found", "model",
               "the model %.100s is not here; this server has %s", id,
               x->s->params.name);
        return http_reply_refusal(x);
    }
    if (!id)
        textbuf_puts(&body, "{\"object\":\"list\",\"data\":[");
    put_model(&body, x->s);
    textbuf_puts(&body, id ? "\n" : "]}\n");
    return http_reply(x, MHD_HTTP_OK, "application/json", &body);
}

enum MHD_Result http_reply_metrics(struct exchange *x)
{
    struct textbuf body = {.text = NULL};
    struct scheduler_stats stats;

    if (x->s->model.scheduler)
        scheduler_read_stats(x->s->model.scheduler, &stats);
    metrics_put(&body, &x->s->metrics, x->s->model.scheduler ? &stats : NULL);
    return http_reply(x, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                      &body);
}

/* ---- the log --------------------------------------------------------------------- */

void http_log(const struct exchange *x, bool complete)
{
    char method[48], path[120], when[32], line[400];
    struct answer_facts facts;

    snprintf(line, sizeof line, "%s %s %s %s %d %.3f s", format_now(when, sizeof when),
             x->client ? x->client->peer.text : "-",
             text_harmless(method, sizeof method, x->method),
             text_harmless(path, sizeof path, x->path), x->status,
             (double)(clock_ns() - x->begin_ns) * 1e-9);
    if (x->answer && answer_read_facts(x->answer, &facts))
        text_append(line, sizeof line,
                    "; prompt %lld (%lld cached), generated %lld, queued %.3f s, %s",
                    facts.n_prompt, facts.n_cached, facts.n_generated, facts.queue_s,
                    facts.reason);
    fprintf(stderr, "%s%s\n", line,
            x->cut      ? "; cut off or left"
            : !complete ? "; not all was taken"
                        : "");
}
