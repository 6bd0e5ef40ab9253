/* SPDX-License-Identifier: MIT
 *
 * engine_child.c - waiting for another program
 */
#include "harness/measure/engines/engine_child.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/patience.h"
#include "harness/measure/engines/engine_output.h"

#define TICK_MS 200

static void take(struct engine_child *c, const char *text, size_t len)
{
    if (c->n_output + len + 2 > ENGINE_MAX_OUTPUT) {
        c->end = ENGINE_TALKS;
        return;
    }
    memcpy(c->output + c->n_output, text, len);
    c->n_output += len;
}

static void take_line(void *arg, const char *line, size_t len)
{
    take(arg, line, len);
    take(arg, "\n", 1);
}

/* What has no end of a line yet counts, too: there may never be one. */
static void check_rest(struct engine_child *c, const struct child *child)
{
    size_t n;

    child_rest(child, &n);
    if (c->n_output + n + 2 > ENGINE_MAX_OUTPUT)
        c->end = ENGINE_TALKS;
}

/* Until its end, or the reason to end it. */
static void wait_for(struct engine_child *c, struct child *child)
{
    const uint64_t begin = clock_ns();
    struct patience waits = patience_begin(begin);
    bool is_open = true;

    while (c->end == ENGINE_ENDED && !child_has_ended(child)) {
        struct pollfd pfd[] = {{.fd = is_open ? child->out : -1, .events = POLLIN},
                               {.fd = child->keeper_end}};

        child_poll(pfd, 2, TICK_MS);
        if (pfd->revents) {
            is_open = child_read_lines(child, take_line, c);
            check_rest(c, child);
        }
        c->wall_s = (double)(clock_ns() - begin) * 1e-9;
        if (interrupted())
            c->end = ENGINE_INTERRUPTED;
        else if (patience_look(&waits, clock_ns()) > c->limit_s)
            c->end = ENGINE_HUNG;
        if (c->tick)
            c->tick(c->arg, c->wall_s);
    }
    c->wall_s = (double)(clock_ns() - begin) * 1e-9;
}

/* Its end and that of all it has started, whose output then ends, too. */
static void reap(struct engine_child *c, struct child *child)
{
    const bool is_over = c->end == ENGINE_ENDED;
    char words[STDERR_TAIL_BYTES + 1];
    const char *rest;
    size_t n;

    c->wstatus = child_reap(child, is_over ? UINT64_C(1000000000) : 0, &c->usage, NULL);
    while (is_over && c->end == ENGINE_ENDED) {
        struct pollfd pfd = {.fd = child->out, .events = POLLIN};

        if (child_poll(&pfd, 1, TICK_MS) <= 0 || !child_read_lines(child, take_line, c))
            break;
    }
    rest = child_rest(child, &n);
    if (n)
        take(c, rest, n);
    c->output[c->n_output] = '\0';
    child_stderr_tail(child, words, sizeof words);
    n = strlen(words);
    text_harmless(c->last_words, sizeof c->last_words,
                  n > ENGINE_WORDS ? words + n - ENGINE_WORDS : words);
}

enum status engine_child_run(struct engine_child *c, struct err *err)
{
    struct child child = CHILD_INIT;
    enum status st;

    c->end = ENGINE_ENDED;
    c->output = malloc(ENGINE_MAX_OUTPUT);
    if (!c->output)
        return err_set(err, ST_NO_MEMORY, "no memory for the output of a program");
    st = child_start(&child, &c->params, err);
    if (st == ST_OK) {
        wait_for(c, &child);
        reap(c, &child);
    }
    child_close(&child);
    return st;
}

void engine_child_free(struct engine_child *c)
{
    free(c->output);
    c->output = NULL;
}
