/* SPDX-License-Identifier: MIT
 *
 * test_cache_sets.c - a set is evicted once, and then read again as the caches have it
 *
 * Evictions are counted by an evict_from_caches() of our own, which the linker takes
 * instead of the kernels'.
 */
#include "tests/support/test.h"

#include <stdatomic.h>

#include "harness/machine/cache.h"
#include "kernels/probe/evict.h"

static _Atomic(uintptr_t) base; /* of the buffer: the lowest address of all */
static atomic_size_t last;      /* bytes of the eviction there */
static atomic_int n_sets, in_a_row, most_in_a_row;

/* The first thread's share begins where every set does. */
void evict_from_caches(const void *p, size_t bytes)
{
    if (!base)
        base = (uintptr_t)p;
    if ((uintptr_t)p != base)
        return;
    n_sets++;
    in_a_row = bytes == last ? in_a_row + 1 : 1;
    last = bytes;
    most_in_a_row = in_a_row > most_in_a_row ? in_a_row : most_in_a_row;
}

/* A size is looked at twice at most before another. */
static void a_set_is_evicted_once(void **state)
{
    struct topology *t = calloc(1, sizeof *t);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(topology_read(t, "", &err), ST_OK);
    t->threads_default = 1; /* which evicts whole sets, from their beginning */
    t->llc_bytes = 16 << 20;
    assert_int_equal(cache_find(t, &err), ST_OK);
    assert_true(n_sets > 0);
    assert_in_range(most_in_a_row, 1, 3);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_set_is_evicted_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
