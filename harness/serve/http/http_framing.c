/* SPDX-License-Identifier: MIT
 *
 * http_framing.c - requests whose end or host could be read in two ways
 *
 * libmicrohttpd takes one of the ways and treats what follows as the next
 * request. A proxy in front that takes the other one, and shares connections between
 * clients, would have one client's body read as another's request. So they are refused,
 * and the connection ends.
 *
 * What libmicrohttpd leaves out or joins (a line of a header that is continued, a zero,
 * a line without a name, a line that ends with LF alone, whatever is in a chunk's first
 * line) is not seen here. But it shows in the length of the whole header. Such requests
 * are answered, and no second one is read from their connection.
 *
 * Source: RFC 9112, sections 2.2, 3.2, 5, 6.3 and 7.1; RFC 9110, sections 5.5
 * and 5.6.2.
 */
#include <string.h>
#include <strings.h>

#include "harness/serve/http/server_impl.h"

struct framing {
    int n_lengths, n_codings, n_hosts;
    size_t n_bytes; /* of lines "Name: value" */
    const char *wrong;
};

static bool is_token(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789!#$%&'*+-.^_`|~";

    return *name && !name[strspn(name, letters)];
}

static bool is_plain(const char *value)
{
    for (; *value; value++)
        if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
            return false;
    return true;
}

static enum MHD_Result look_at(void *framing, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
    struct framing *f = framing;
    const char *text = value ? value : "";

    (void)kind;
    f->n_bytes += strlen(name) + strlen(": \r\n") + strlen(text);
    if (!is_token(name)) {
        f->wrong = "a header's name is none";
    } else if (!is_plain(text)) {
        f->wrong = "a header has a control character";
    } else if (!strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
        f->n_lengths++; /* it is a number, or libmicrohttpd has refused it */
    } else if (!strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        f->n_codings++;
        if (strcasecmp(text, "chunked"))
            f->wrong = "Transfer-Encoding is something else than chunked";
    } else if (!strcasecmp(name, MHD_HTTP_HEADER_HOST)) {
        f->n_hosts++;
    }
    return MHD_YES;
}

/* Whether the header consists of what was seen, written as nearly all programs do. */
static bool is_as_seen(const struct exchange *x, size_t n_bytes)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return info && info->header_size == n_bytes;
}

bool http_check_framing(struct exchange *x, const char *method, const char *version)
{
    const bool is_old = !strcmp(version, MHD_HTTP_VERSION_1_0);
    struct framing f = {.wrong = NULL};

    f.n_bytes = strlen(method) + x->uri_bytes + strlen(version) + strlen("  \r\n\r\n");
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, look_at, &f);
    x->closes = f.n_codings || !is_as_seen(x, f.n_bytes);
    if (f.n_lengths + f.n_codings > 1)
        f.wrong = "there are several of Content-Length and Transfer-Encoding";
    else if (f.n_codings && is_old)
        f.wrong = "HTTP/1.0 has no Transfer-Encoding";
    else if (f.n_hosts > 1)
        f.wrong = "there are several Host headers";
    else if (!f.n_hosts && !is_old)
        f.wrong = "there is no Host header";
    else if (x->has_bad_path)
        f.wrong = "the path has a blank or a zero";
    if (!f.wrong)
        return true;
    x->closes = true;
    return refuse(&x->refusal, 400, "ambiguous_request", NULL,
                  "the request can be read in several ways: %s", f.wrong);
}
