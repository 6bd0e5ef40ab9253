/* SPDX-License-Identifier: MIT
 *
 * pack_file.h - making the packed file of a model
 */
#ifndef SLM_TESTS_PACK_FILE_H
#define SLM_TESTS_PACK_FILE_H

#include "tests/support/test.h"

#include "engine/base/thread_pool.h"
#include "engine/pack/pack.h"
#include "kernels/isa.h"

/* Skips the test where nothing can be packed. */
static inline void needs_panels(void)
{
    struct kern_set kern;

    kern_select(&kern, isa_usable());
    if (!kern.pack[KERN_FMT_q8_0])
        skip();
}

static inline struct pack_result pack_file(const char *from, const char *to,
                                           int n_threads)
{
    struct thread_pool *pool = NULL;
    struct pack_result r = {0};
    struct err err = ERR_INIT;
    struct gguf *g = NULL;

    if (thread_pool_start(&pool, n_threads, NULL, &err) || gguf_open(&g, from, &err) ||
        pack_write(&r, g, to, pool, NULL, NULL, &err))
        fail_msg("%s: %s", from, err.msg);
    gguf_close(g);
    thread_pool_stop(pool);
    return r;
}

#endif
