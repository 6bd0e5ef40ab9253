/* SPDX-License-Identifier: MIT
 *
 * weights_memory.c - weights in anonymous memory that the caller filled
 */
#include "engine/weights/weights_impl.h"

/* The caller wrote the image, so its pages are in memory. */
static enum status preload(struct weights *w, struct thread_pool *pool,
                           int (*progress)(void *arg, size_t done, size_t total),
                           void *arg, struct err *err)
{
    (void)pool;
    if (progress && progress(arg, weights_bytes(w), weights_bytes(w)))
        return err_set(err, ST_INTERRUPTED, "interrupted");
    return ST_OK;
}

const struct weights_policy weights_policy_memory = {
    .preload = preload,
};
