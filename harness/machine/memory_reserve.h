/* SPDX-License-Identifier: MIT
 *
 * memory_reserve.h - memory that a model cannot have, because the process around it
 * needs it
 *
 * The one rule for points, plans, tuning, sessions (generate, chat, quality) and gates,
 * under a limit and without one: what is planned for one of them fits the others.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_MACHINE_MEMORY_RESERVE_H
#define SLM_HARNESS_MACHINE_MEMORY_RESERVE_H

#include <stdint.h>

/* The process without model, KV cache and scratch. */
#define RESERVE_OWN_BYTES (UINT64_C(24) << 20)

/* Page tables, libraries, and the page cache's readahead. */
#define RESERVE_SPARE_BYTES (UINT64_C(64) << 20)

/* The part of given bytes that a model that cannot be paged out may use. */
static inline uint64_t memory_for_model(uint64_t given)
{
    const uint64_t kept = RESERVE_OWN_BYTES + RESERVE_SPARE_BYTES;

    return given > kept ? given - kept : 0;
}

#endif
