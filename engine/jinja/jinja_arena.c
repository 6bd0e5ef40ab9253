/* SPDX-License-Identifier: MIT
 *
 * jinja_arena.c - memory that is freed all at once, and the way out of a failure
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/jinja_impl.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define ALIGNMENT   16

struct arena_block {
    struct arena_block *next;
    _Alignas(ALIGNMENT) char bytes[];
};

void jinja_arena_fail(struct arena *a, enum status code, const char *fmt, ...)
{
    char text[sizeof a->err->msg];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(a->err, code, "chat template, line %d: %s", a->line, text);
    longjmp(a->fail, 1);
}

static void add_block(struct arena *a, size_t least)
{
    const size_t bytes = least > BLOCK_BYTES ? least : BLOCK_BYTES;
    struct arena_block *block = malloc(sizeof *block + bytes);

    if (!block)
        jinja_arena_fail(a, ST_NO_MEMORY, "no memory to %s it", a->what);
    block->next = a->blocks;
    a->blocks = block;
    a->at = block->bytes;
    a->end = block->bytes + bytes;
}

void *jinja_arena_alloc(struct arena *a, size_t bytes)
{
    const size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *p;

    if (bytes > a->limit || whole > a->limit - a->used)
        jinja_arena_fail(a, ST_INPUT, "it takes more than %zu MiB of memory to %s it",
                         a->limit >> 20, a->what);
    if ((size_t)(a->end - a->at) < whole)
        add_block(a, whole);
    p = a->at;
    a->at += whole;
    a->used += whole;
    memset(p, 0, bytes);
    return p;
}

void jinja_arena_free(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;

        free(a->blocks);
        a->blocks = next;
    }
    a->at = a->end = NULL;
}
