/* SPDX-License-Identifier: MIT
 *
 * refusal.c - an error as HTTP and JSON
 */
#include "harness/serve/api/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"

bool refuse(struct refusal *r, int http, const char *code, const char *param,
            const char *fmt, ...)
{
    char text[480];
    va_list args;

    if (r->http)
        return false;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->http = http;
    r->code = code;
    utf8_harmless(r->param, sizeof r->param, param ? param : "",
                  param ? strlen(param) : 0);
    utf8_harmless(r->message, sizeof r->message, text, strlen(text));
    return false;
}

bool refuse_err(struct refusal *r, const struct err *err, const char *param)
{
    const bool own = err->code == ST_USAGE || err->code == ST_INPUT;

    return refuse(r,
                  own                         ? 400
                  : err->code == ST_NO_MEMORY ? 503
                                              : 500,
                  NULL, param, "%s", err->msg);
}

static const char *type_of(int http)
{
    return http == 401   ? "authentication_error"
           : http == 429 ? "rate_limit_error"
           : http >= 500 ? "server_error"
                         : "invalid_request_error";
}

static void put_or_null(struct textbuf *out, const char *text)
{
    if (text && *text)
        textbuf_put_json(out, text, strlen(text));
    else
        textbuf_puts(out, "null");
}

void refusal_put(struct textbuf *out, const struct refusal *r)
{
    textbuf_puts(out, "{\"error\":{\"message\":");
    textbuf_put_json(out, r->message, strlen(r->message));
    textbuf_printf(out, ",\"type\":\"%s\",\"param\":", type_of(r->http));
    put_or_null(out, r->param);
    textbuf_puts(out, ",\"code\":");
    put_or_null(out, r->code);
    textbuf_puts(out, "}}");
}

const char *refusal_type(int http)
{
    return http == 401   ? "authentication_error"
           : http == 403 ? "permission_error"
           : http == 404 ? "not_found_error"
           : http == 413 ? "request_too_large"
           : http == 429 ? "rate_limit_error"
           : http == 503 ? "overloaded_error"
           : http >= 500 ? "api_error"
                         : "invalid_request_error";
}

void refusal_put_typed(struct textbuf *out, const struct refusal *r)
{
    textbuf_printf(out, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":",
                   refusal_type(r->http));
    textbuf_put_json(out, r->message, strlen(r->message));
    textbuf_puts(out, "}}");
}

void refusal_put_text(struct textbuf *out, const struct refusal *r)
{
    textbuf_puts(out, "{\"error\":");
    textbuf_put_json(out, r->message, strlen(r->message));
    textbuf_puts(out, "}");
}
