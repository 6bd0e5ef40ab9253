/* SPDX-License-Identifier: MIT
 *
 * http.c - what libmicrohttpd calls: connections, requests, routes, what is refused
 *
 * A request that is refused by its headers is refused when its body has come and been
 * dropped, so that the client, which writes first, can read why; at once, where it
 * waits for a "100 Continue", or would send too much.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/clock.h"
#include "harness/serve/http/server_impl.h"

/* Retry-After in seconds while the model is being loaded. */
#define RETRY_LOADING_S 5

/* Retry-After in seconds when there is no memory for another body. */
#define RETRY_BODIES_S 1

/* ---- connections ----------------------------------------------------------------- */

/* libmicrohttpd has the address and the descriptor of every connection. */

static void find_peer(struct client *c, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    listen_name_peer(&c->peer, info->client_addr);
}

static void add_client(struct server *s, struct MHD_Connection *connection,
                       void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct client *c = calloc(1, sizeof *c);

    s->metrics.n_connections++;
    *context = c;
    if (!c)
        return; /* its requests are refused */
    c->fd = info->connect_fd;
    c->since_ns = clock_ns();
    find_peer(c, connection);
    c->next = s->clients;
    if (c->next)
        c->next->prev = c;
    s->clients = c;
}

static void end_request(struct exchange *x, bool complete)
{
    struct metrics *m = &x->s->metrics;

    if (x->status)
        metrics_reply(m, x->route, x->status);
    if (!complete)
        m->n_gone++;
    if (x->s->params.log && x->seen)
        http_log(x, complete);
    exchange_free(x);
}

/* libmicrohttpd completes a request before it closes the connection, but not where a
 * second error meets the request after its own reply to the first, nor where it has no
 * memory for that reply or the connection cannot be waited for. */
static void remove_client(struct server *s, struct client *c)
{
    s->metrics.n_connections--;
    s->retry_ns = 0; /* there may be room for another one */
    if (!c)
        return;
    if (c->x)
        end_request(c->x, false);
    if (c->next)
        c->next->prev = c->prev;
    if (c->prev)
        c->prev->next = c->next;
    else
        s->clients = c->next;
    free(c);
}

void http_connection(void *server, struct MHD_Connection *connection, void **context,
                     enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        add_client(server, connection, context);
    else
        remove_client(server, *context);
}

static enum metrics_route find_route(const char *path)
{
    static const char models[] = "/v1/models";

    for (int route = 0; route < ROUTE_OTHER; route++)
        if (!strcmp(path, metrics_route_name((enum metrics_route)route)))
            return (enum metrics_route)route;
    return !strncmp(path, models, strlen(models)) && path[strlen(models)] == '/'
               ? ROUTE_MODELS
               : ROUTE_OTHER;
}

static void set_path(struct exchange *x, const char *path, size_t n)
{
    snprintf(x->path, sizeof x->path, "%.*s", (int)n, path);
    x->route = find_route(x->path);
}

/* The path as it came is for a request whose headers never end. */
void *http_begin(void *server, const char *uri, struct MHD_Connection *connection)
{
    struct exchange *x = exchange_new(server, connection);

    if (!x)
        return NULL;
    if (!uri) /* from libmicrohttpd before 0.9.74, where the line has none */
        uri = "";
    x->has_bad_path = strchr(uri, ' ') || strstr(uri, "%00"); /* ends the path */
    x->uri = uri;
    x->uri_bytes = strlen(uri);
    set_path(x, uri, strcspn(uri, "?"));
    return x;
}

/* Names and values of arguments, each before it is kept; then the path. */
size_t http_decode(void *server, struct MHD_Connection *connection, char *text)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const struct client *c = info ? info->socket_context : NULL;

    (void)server;
    if (c && c->x && !c->x->cut && !http_query_has_room(c->x, text))
        http_refuse_without_room(c->x);
    return MHD_http_unescape(text);
}

void http_completed(void *server, struct MHD_Connection *connection, void **context,
                    enum MHD_RequestTerminationCode how)
{
    (void)server;
    (void)connection;
    if (*context)
        end_request(*context, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *context = NULL;
}

/* ---- what is refused by its headers ---------------------------------------------- */

static const char *header(const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

static bool is_method(const struct exchange *x, const char *method)
{
    return !strcmp(x->method, method);
}

static bool check_route(struct exchange *x)
{
    const bool post = is_method(x, MHD_HTTP_METHOD_POST);
    const bool get =
        is_method(x, MHD_HTTP_METHOD_GET) || is_method(x, MHD_HTTP_METHOD_HEAD);

    if (x->route == ROUTE_OTHER)
        return refuse(&x->refusal, 404, "unknown_url", NULL,
                      "there is no %.120s here; see /v1/models, /v1/chat/completions, "
                      "/v1/completions, /v1/responses, /v1/messages, "
                      "/v1/messages/count_tokens, /v1/embeddings, /tokenize, "
                      "/detokenize, /apply-template, /health and /metrics",
                      x->path);
    if (x->route <= ROUTE_TEMPLATE ? !post : !get)
        return refuse(&x->refusal, 405, "method_not_allowed", NULL,
                      "%s is not possible with %s", x->method, x->path);
    return true;
}

/* Whether the client has access; and which one it is, for queues. */
static bool check_client(struct exchange *x)
{
    const struct server_params *p = &x->s->params;
    const char *host = header(x, MHD_HTTP_HEADER_HOST);
    int key;

    x->client_key = x->client->peer.key; /* who has none was cut off */
    if (!p->keys) {
        if (!p->at->loopback || listen_is_own_name(host))
            return true;
        return refuse(&x->refusal, 403, "foreign_host", NULL,
                      "the header Host names %.80s; this server, which has no keys, "
                      "answers requests to an address or to localhost",
                      host);
    }
    if (x->route == ROUTE_HEALTH)
        return true;
    key = header(x, MHD_HTTP_HEADER_AUTHORIZATION)
              ? apikeys_find(p->keys, header(x, MHD_HTTP_HEADER_AUTHORIZATION))
              : apikeys_find_bare(p->keys, header(x, "X-Api-Key"));
    if (key < 0)
        return refuse(&x->refusal, 401, "invalid_api_key", NULL,
                      "the header Authorization has no valid key: Bearer KEY (or "
                      "X-Api-Key: KEY)");
    x->client_key = (uint64_t)key;
    return true;
}

static bool is_type(const char *type, const char *name)
{
    const size_t n = strlen(name);

    return !strncasecmp(type, name, n) && strchr("; \t", type[n]);
}

/* Whether a page in a browser may have sent it: a browser names the page's origin, or
 * where the request comes from, in each request with a body. */
static bool may_be_browser(const struct exchange *x)
{
    static const char *const own[] = {"Origin",         "Referer",
                                      "Sec-Fetch-Site", "Sec-Fetch-Mode",
                                      "Sec-Fetch-Dest", "Cookie"};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (header(x, own[i]))
            return true;
    return false;
}

/* A page may send a body of no type, or as a form, without a request for permission. So
 * that is read from programs alone: "curl -d" sends JSON as a form. */
static bool is_json(const struct exchange *x)
{
    const char *type = header(x, MHD_HTTP_HEADER_CONTENT_TYPE);

    if (type && is_type(type, "application/json"))
        return true;
    return (!type || is_type(type, "application/x-www-form-urlencoded")) &&
           !may_be_browser(x);
}

static bool too_large(struct exchange *x)
{
    return refuse(&x->refusal, 413, "too_large", NULL,
                  "the body is larger than %llu bytes",
                  (unsigned long long)x->s->memory.body);
}

static bool check_body(struct exchange *x)
{
    const char *length = header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *coding = header(x, MHD_HTTP_HEADER_CONTENT_ENCODING);

    if (!length && !header(x, MHD_HTTP_HEADER_TRANSFER_ENCODING))
        return refuse(&x->refusal, 411, "length_required", NULL,
                      "the request has no body; it is a JSON object");
    if (!is_json(x))
        return refuse(&x->refusal, 415, "unsupported_media_type", NULL,
                      "the header Content-Type must be application/json");
    if (coding && strcasecmp(coding, "identity"))
        return refuse(&x->refusal, 415, "unsupported_media_type", NULL,
                      "a body with the Content-Encoding %.40s is not read", coding);
    if (length && strtoull(length, NULL, 10) > x->s->memory.body)
        return too_large(x);
    return true;
}

/* A browser sends "OPTIONS" before a page of another origin sends a request. */
static bool is_preflight(const struct exchange *x)
{
    return x->s->params.cors && is_method(x, MHD_HTTP_METHOD_OPTIONS);
}

static enum MHD_Result look_at_headers(struct exchange *x, const char *url,
                                       const char *method, const char *version)
{
    const char *length, *expect;
    bool is_clear;

    snprintf(x->method, sizeof x->method, "%s", method);
    set_path(x, url, strlen(url));
    /* The version stands behind the URI, unless a zero ends that before. */
    x->has_bad_path |= version != x->uri + x->uri_bytes + 1;
    is_clear = http_check_framing(x, method, version);
    if (!http_has_room(x))
        return http_refuse_without_room(x);
    if (!is_clear)
        return http_cut_off(x); /* its lines may take memory that is not counted */
    if (is_preflight(x))
        return MHD_YES;
    if (check_client(x) && check_route(x) && x->route <= ROUTE_TEMPLATE)
        check_body(x);
    if (!x->refusal.http)
        return MHD_YES;
    length = header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    expect = header(x, MHD_HTTP_HEADER_EXPECT);
    if (expect || (length && strtoull(length, NULL, 10) > SERVER_MAX_DROPPED))
        return http_reply_refusal(x);
    return MHD_YES;
}

/* ---- the body, and the answer ---------------------------------------------------- */

/* Memory for one body there is; for as many as there are connections there is not. */
static bool check_bodies(struct exchange *x, size_t n)
{
    const struct server *s = x->s;

    if (s->metrics.body_bytes + n <= s->memory.bodies)
        return true;
    x->refusal.retry_after_s = RETRY_BODIES_S;
    return refuse(&x->refusal, 503, NULL, NULL,
                  "too many large bodies come at this moment");
}

static enum MHD_Result take_body(struct exchange *x, const char *bytes, size_t n)
{
    if (!x->refusal.http && x->body.len + n > x->s->memory.body)
        too_large(x);
    if (!x->refusal.http)
        check_bodies(x, n);
    if (x->refusal.http || x->route > ROUTE_TEMPLATE || is_preflight(x)) {
        exchange_drop_body(x);
        x->n_dropped += n;
        return x->n_dropped > SERVER_MAX_DROPPED ? MHD_NO : MHD_YES;
    }
    exchange_add_body(x, bytes, n);
    if (x->body.failed)
        refuse(&x->refusal, 503, NULL, NULL, "no memory for the body");
    return MHD_YES;
}

static bool check_state(struct exchange *x)
{
    if (x->s->stops)
        return refuse(&x->refusal, 503, "stopping", NULL, "the server is stopping");
    if (x->s->model.scheduler)
        return true;
    x->refusal.retry_after_s = RETRY_LOADING_S;
    return refuse(&x->refusal, 503, "loading", NULL, "the model is being loaded");
}

static enum MHD_Result enqueue(struct exchange *x)
{
    if (!check_state(x))
        return http_reply_refusal(x);
    return exchange_enqueue(x) ? MHD_YES : http_reply_refusal(x);
}

static enum MHD_Result preflight(struct exchange *x)
{
    struct textbuf none = {.text = NULL};

    return http_reply(x, MHD_HTTP_NO_CONTENT, "text/plain", &none);
}

/* All of the request is here. */
static enum MHD_Result answer(struct exchange *x)
{
    static const size_t n = sizeof "/v1/models/" - 1;

    if (!http_has_room(x)) /* there may be trailers by now */
        return http_refuse_without_room(x);
    if (is_preflight(x))
        return preflight(x);
    if (x->refusal.http)
        return http_reply_refusal(x);
    if (x->route <= ROUTE_TEMPLATE)
        return enqueue(x);
    if (x->route == ROUTE_MODELS)
        return http_reply_models(x, strlen(x->path) >= n ? x->path + n : NULL);
    return x->route == ROUTE_METRICS ? http_reply_metrics(x) : http_reply_health(x);
}

/* The exchange was suspended, and there is something to send. */
static enum MHD_Result go_on(struct exchange *x)
{
    if (x->refusal.http)
        return http_reply_refusal(x);
    return x->state == EXCHANGE_STREAMS ? http_reply_stream(x) : http_reply_answer(x);
}

enum MHD_Result http_request(void *server, struct MHD_Connection *connection,
                             const char *url, const char *method, const char *version,
                             const char *upload, size_t *upload_len, void **context)
{
    struct exchange *x = *context;
    enum MHD_Result result;

    (void)server;
    (void)connection;
    if (!x || !x->client || x->cut)
        return MHD_NO;
    if (!x->seen) {
        x->seen = true;
        return look_at_headers(x, url, method, version);
    }
    if (*upload_len) {
        result = take_body(x, upload, *upload_len);
        *upload_len = 0;
        return result;
    }
    if (x->state == EXCHANGE_COMES)
        return answer(x);
    return x->status ? MHD_YES : go_on(x);
}
