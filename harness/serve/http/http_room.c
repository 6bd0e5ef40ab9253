/* SPDX-License-Identifier: MIT
 *
 * http_room.c - requests that leave no room for a reply
 *
 * libmicrohttpd has one memory for a connection: the bytes that it reads, a record of
 * each header, argument and cookie, and the header of the reply. Where the first two
 * leave nothing for the last it closes the connection, and whether they do depends on
 * how the bytes came. libmicrohttpd 0.9 does not notice where records of arguments find
 * no room. So what all may take at most is counted here, and a request that may leave
 * too little is refused without that memory. Arguments are counted one by one, as
 * libmicrohttpd finds them: a zero in the URI does not end its search.
 */
#include <string.h>
#include <sys/socket.h>

#include "harness/serve/http/server_impl.h"

/* What libmicrohttpd keeps of a header, an argument, a cookie: seven words, aligned. */
#define RECORD_BYTES 64

/* It reads into half of the memory first. Where a header fills that, it adds an eighth
 * of what is left, and reads what comes behind the header, too. */
#define FIRST_BYTES (SERVER_CONNECTION_BYTES / 2)
#define MORE_BYTES  (3u << 10)

/* The header of a reply with all that http_reply.c may add. */
#define REPLY_BYTES (3u << 10)

/* Whether that is so after `bytes` of lines, next to what is kept of them. */
static bool is_enough(size_t bytes, size_t kept)
{
    const size_t read = bytes + MORE_BYTES;

    return (read > FIRST_BYTES ? read : FIRST_BYTES) + kept + REPLY_BYTES <=
           SERVER_CONNECTION_BYTES;
}

bool http_query_has_room(const struct exchange *x, const char *text)
{
    const int n =
        MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, NULL, NULL);

    return is_enough((size_t)(text - x->uri) + strlen(text),
                     (size_t)(n + 1) * RECORD_BYTES);
}

struct held {
    size_t n, cookies, trailers;
};

static enum MHD_Result count(void *held, enum MHD_ValueKind kind, const char *name,
                             const char *value)
{
    struct held *h = held;
    const size_t bytes = strlen(name) + strlen(": \r\n") + (value ? strlen(value) : 0);

    h->n++;
    if (kind == MHD_COOKIE_KIND)
        h->cookies += bytes; /* of its copy of that header */
    else if (kind == MHD_FOOTER_KIND)
        h->trailers += bytes;
    return MHD_YES;
}

bool http_has_room(const struct exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const size_t header = info ? info->header_size : 0;
    struct held h = {0, 0, 0};
    size_t kept;

    MHD_get_connection_values(x->connection,
                              (enum MHD_ValueKind)(MHD_HEADER_KIND | MHD_COOKIE_KIND |
                                                   MHD_GET_ARGUMENT_KIND |
                                                   MHD_FOOTER_KIND),
                              count, &h);
    kept = h.n * RECORD_BYTES + h.cookies;
    if (x->closes)
        kept += header; /* lines that are continued are copied */
    return is_enough(header + h.trailers, kept);
}

enum MHD_Result http_cut_off(struct exchange *x)
{
    x->cut = true;
    if (x->client) {
        http_send_refusal(x->client, &x->refusal);
        shutdown(x->client->fd, SHUT_RDWR);
    }
    return MHD_NO;
}

enum MHD_Result http_refuse_without_room(struct exchange *x)
{
    refuse(&x->refusal, 431, "headers_too_large", NULL,
           "the headers are too many or too large");
    return http_cut_off(x);
}
