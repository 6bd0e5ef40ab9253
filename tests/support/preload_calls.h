/* SPDX-License-Identifier: MIT
 *
 * preload_calls.h - what weights_preload() says of its progress, and stopping it
 */
#ifndef SLM_TESTS_PRELOAD_CALLS_H
#define SLM_TESTS_PRELOAD_CALLS_H

#include "tests/support/test.h"

struct calls {
    int n, stop_at; /* 0: never */
    size_t done, total;
};

/* For weights_preload(), with a struct calls: each call is of more bytes than the last.
 */
static inline int note(void *arg, size_t done, size_t total)
{
    struct calls *c = arg;

    assert_true(done > c->done && done <= total);
    c->done = done;
    c->total = total;
    return ++c->n == c->stop_at;
}

#endif
