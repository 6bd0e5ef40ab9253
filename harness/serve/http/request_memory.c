/* SPDX-License-Identifier: MIT
 *
 * request_memory.c - the limits, scaled
 */
#include "harness/serve/http/request_memory.h"

#define MIB ((uint64_t)1 << 20)

/* The largest body that is reckoned with: a limit of more is none. */
#define MAX_BODY ((uint64_t)1 << 50)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t request_memory_bytes(const struct request_memory *m)
{
    return m->bodies + m->answers + m->streams + m->schemas;
}

struct request_memory request_memory_within(uint64_t max_body, uint64_t bytes)
{
    const uint64_t body = least(max_body, MAX_BODY);
    struct request_memory m = {.bodies = REQUEST_MAX_BODIES * body,
                               .answers = 128 * MIB,
                               .streams = 64 * MIB,
                               .schemas = 128 * MIB};
    const uint64_t all = request_memory_bytes(&m), others = all - m.bodies;
    const double share = (double)bytes / (double)(least(m.bodies, others) + others);
    uint64_t *const each[] = {&m.answers, &m.streams, &m.schemas};

    if (bytes && bytes < all) { /* bodies have half of it at most, or what is left */
        for (int i = 0; share < 1 && i < 3; i++)
            *each[i] = (uint64_t)((double)*each[i] * share);
        m.bodies = 0;
        m.bodies = bytes - request_memory_bytes(&m);
    }
    m.body = least(body, m.bodies);
    m.answer = least(12 * MIB, m.answers);
    m.stream = least(MIB, m.streams);
    return m;
}
