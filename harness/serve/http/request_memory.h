/* SPDX-License-Identifier: MIT
 *
 * request_memory.h - limits of the memory that requests may take at one moment
 *
 * A model is planned for the memory that is left (pool_plan.h). On a small machine that
 * plan leaves requests less than they may take where there is enough; all limits are
 * scaled down with it then, so that together they keep it.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_SERVE_HTTP_REQUEST_MEMORY_H
#define SLM_HARNESS_SERVE_HTTP_REQUEST_MEMORY_H

#include <stdint.h>

/* All bodies that come at one time, in bodies of the largest size. */
#define REQUEST_MAX_BODIES 16

/* Bytes of all requests together, and of one. */
struct request_memory {
    uint64_t bodies, body;    /* while they come */
    uint64_t answers, answer; /* that do not stream, until they are sent */
    uint64_t streams, stream; /* events that clients have not taken yet */
    uint64_t schemas;         /* of answers, as grammars */
};

/* Bodies of up to max_body bytes; all limits within `bytes`, or as large as they are
 * anywhere where that is 0. */
struct request_memory request_memory_within(uint64_t max_body, uint64_t bytes);

/* What they take together. */
uint64_t request_memory_bytes(const struct request_memory *m);

#endif
