/* SPDX-License-Identifier: MIT
 *
 * status.c - error values: first error wins, one sentence each
 */
#include "engine/base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"

__attribute__((format(printf, 3, 0))) static enum status
err_setv(struct err *e, enum status code, const char *fmt, va_list ap)
{
    char text[sizeof e->msg];

    if (e && e->code == ST_OK) {
        e->code = code;
        vsnprintf(text, sizeof text, fmt, ap);
        utf8_harmless(e->msg, sizeof e->msg, text, strlen(text));
    }
    return code;
}

enum status err_set(struct err *e, enum status code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err_setv(e, code, fmt, ap);
    va_end(ap);
    return code;
}

enum status err_set_errno(struct err *e, enum status code, const char *fmt, ...)
{
    const int saved = errno;
    va_list ap;

    if (e && e->code == ST_OK) {
        va_start(ap, fmt);
        err_setv(e, code, fmt, ap);
        va_end(ap);
        const size_t used = strlen(e->msg);
        snprintf(e->msg + used, sizeof e->msg - used, ": %s", strerror(saved));
    }
    return code;
}

void err_clear(struct err *e)
{
    e->code = ST_OK;
    e->msg[0] = '\0';
}

int status_exit_code(enum status code)
{
    switch (code) {
    case ST_OK:
        return 0;
    case ST_CHECK:
        return 1;
    case ST_USAGE:
    case ST_INPUT:
    case ST_IO:
        return 2;
    case ST_NO_MEMORY:
    case ST_PERMISSION:
    case ST_UNSUPPORTED:
        return 3;
    case ST_PARTIAL:
        return 4;
    case ST_INTERRUPTED:
        return 130;
    }
    return 2;
}
