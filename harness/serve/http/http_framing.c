/* SPDX-License-Identifier: MIT
 *
 * http_framing.c - requests whose end or host could be read in two ways
 *
 * libmicrohttpd takes one of the ways and treats what follows as the next
 * request. A proxy in front that takes the other one, and shares connections between
 * clients, would have one client's body read as another's request. So they are refused,
 * and the connection ends.
 *
 * Source: RFC 9112, sections 3.2, 5.1 and 6.3; RFC 9110, section 5.6.2 (tokens).
 */
#include <string.h>
#include <strings.h>

#include "harness/serve/http/server_impl.h"

struct framing {
    int n_lengths, n_codings, n_hosts;
    const char *wrong;
};

static bool is_token(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789!#$%&'*+-.^_`|~";

    return *name && !name[strspn(name, letters)];
}

static enum MHD_Result look_at(void *framing, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
    struct framing *f = framing;
    const char *text = value ? value : "";

    (void)kind;
    if (!is_token(name)) {
        f->wrong = "a header's name is none";
    } else if (!strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
        f->n_lengths++;
        if (!*text || text[strspn(text, "0123456789")])
            f->wrong = "Content-Length is no number";
    } else if (!strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        f->n_codings++;
        if (strcasecmp(text, "chunked"))
            f->wrong = "Transfer-Encoding is something else than chunked";
    } else if (!strcasecmp(name, MHD_HTTP_HEADER_HOST)) {
        f->n_hosts++;
    }
    return MHD_YES;
}

bool http_check_framing(struct exchange *x, const char *version)
{
    struct framing f = {.wrong = NULL};

    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, look_at, &f);
    if (f.n_lengths + f.n_codings > 1)
        f.wrong = "there are several of Content-Length and Transfer-Encoding";
    else if (f.n_codings && !strcmp(version, MHD_HTTP_VERSION_1_0))
        f.wrong = "HTTP/1.0 has no Transfer-Encoding";
    else if (f.n_hosts > 1)
        f.wrong = "there are several Host headers";
    else if (x->has_zero)
        f.wrong = "the path has a zero";
    if (!f.wrong)
        return true;
    x->closes = true;
    return refuse(&x->refusal, 400, "ambiguous_request", NULL,
                  "the request can be read in several ways: %s", f.wrong);
}
