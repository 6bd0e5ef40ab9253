/* SPDX-License-Identifier: MIT
 *
 * status.h - error codes and messages
 *
 * A fallible function returns enum status and takes a struct err * last. On
 * failure the err holds a code and one sentence that names the object, the
 * value seen, the limit, and the way out where there is one; out-parameters are
 * untouched. The first error wins: setting an err that is set changes nothing,
 * so clean-up code may fail without hiding the first cause.
 *
 * Threading: one thread per err.
 */
#ifndef SLM_ENGINE_BASE_STATUS_H
#define SLM_ENGINE_BASE_STATUS_H

enum status {
    ST_OK = 0,
    ST_CHECK,       /* the check itself failed: a regression, a mismatch */
    ST_USAGE,       /* wrong option, argument or configuration */
    ST_INPUT,       /* the content of a file is invalid */
    ST_IO,          /* the system failed a read, a write, an open */
    ST_NO_MEMORY,   /* memory or disk space too small */
    ST_PERMISSION,  /* access denied */
    ST_UNSUPPORTED, /* not possible on this machine */
    ST_INTERRUPTED, /* the user asked to stop */
    ST_PARTIAL,     /* a part failed, the rest is done */
};

struct err {
    enum status code; /* ST_OK: no error yet */
    char msg[1024];   /* one sentence, no newline */
};

#define ERR_INIT                 \
    {                            \
        .code = ST_OK, .msg = "" \
    }

/* Record a failure (unless e holds one, or is NULL) and return code. What the message
 * quotes may be anybody's: it is made harmless (utf8_harmless()). */
enum status err_set(struct err *e, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set(), with ": <strerror(errno)>" appended. */
enum status err_set_errno(struct err *e, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

void err_clear(struct err *e);

/* Process exit code: 0 ok, 1 the check failed, 2 bad usage or input, 3 not
 * possible on this machine, 4 done in part, 130 interrupted. */
int status_exit_code(enum status code);

#endif
