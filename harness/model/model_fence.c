/* SPDX-License-Identifier: MIT
 *
 * model_fence.c - a ring that only reads, made before the fence
 */
#include "harness/model/model_fence.h"

#include "harness/machine/fence/fence.h"

struct stream_ring *model_ring(void)
{
    static struct stream_ring *ring;
    static bool tried;
    struct err ignored = ERR_INIT;

    if (!tried && stream_ring_make(&ring, &ignored))
        ring = NULL;
    tried = true;
    return ring;
}

int model_ring_fd(void)
{
    const struct stream_ring *ring = model_ring();

    return ring ? stream_ring_fd(ring) : -1;
}

enum status model_fence_enter(struct err *err)
{
    return fence_enter_calls(model_ring_fd(), err);
}
