/* SPDX-License-Identifier: MIT
 *
 * allocations.c - what the linker calls in place of malloc() and its kind
 */
#include "tests/fuzz/support/allocations.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_size_t n_allocations, which_fails;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
FILE *__real_open_memstream(char **text, size_t *n);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
FILE *__wrap_open_memstream(char **text, size_t *n);
int __wrap_asprintf(char **text, const char *fmt, ...);

size_t allocations_fail_at(size_t which)
{
    which_fails = which;
    return atomic_exchange(&n_allocations, 0);
}

static bool fails(void)
{
    const bool now = ++n_allocations == which_fails;

    if (now)
        errno = ENOMEM;
    return now;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return fails() ? NULL : __real_reallocarray(p, n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, n);
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
    return fails() ? NULL : __real_strndup(s, n);
}

FILE *__wrap_open_memstream(char **text, size_t *n)
{
    return fails() ? NULL : __real_open_memstream(text, n);
}

int __wrap_asprintf(char **text, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (fails())
        return -1;
    va_start(ap, fmt);
    n = vasprintf(text, fmt, ap);
    va_end(ap);
    return n;
}
