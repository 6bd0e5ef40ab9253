/* SPDX-License-Identifier: MIT
 *
 * test_nodes.c - NUMA nodes of threads and of memory, on a machine that may have one:
 * what ci/machines does on two
 */
#include "tests/support/test.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/mem.h"
#include "engine/base/nodes.h"

static bool has_nodes(void)
{
    return !access("/sys/devices/system/node/node0", F_OK);
}

static size_t sum(const size_t n_on[NODES_MAX])
{
    size_t n = 0;

    for (int i = 0; i < NODES_MAX; i++)
        n += n_on[i];
    return n;
}

/* The caller is on one node, the pool on no more than it has threads, and the caller's
 * is one of a pool's that it is pinned with. */
static void threads_have_nodes(void **state)
{
    struct thread_pool *pool;
    struct err err = ERR_INIT;
    const uint64_t own = nodes_of_threads(NULL);
    uint64_t all;

    (void)state;
    assert_true(own && !(own & (own - 1)));
    assert_int_equal(thread_pool_start(&pool, 2, NULL, &err), ST_OK);
    all = nodes_of_threads(pool);
    assert_true(all);
    assert_true(__builtin_popcountll(all) <= 2);
    thread_pool_stop(pool);
}

/* Only pages that were touched are on a node; many pages are looked at by sample. */
static void memory_has_nodes(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t sizes[] = {page, 100 * page, 4096 * page, 10000 * page};
    size_t n_on[NODES_MAX];

    (void)state;
    if (!has_nodes())
        skip();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct err err = ERR_INIT;
        struct mem m;
        const size_t n = sizes[i] / page < 4096 ? sizes[i] / page : 4096;

        assert_int_equal(mem_alloc(&m, sizes[i], MEM_PAGES_4K, "test", &err), ST_OK);
        assert_int_equal(nodes_of_memory(m.base, m.bytes, n_on), 0);
        assert_int_equal(sum(n_on), 0);
        memset(m.base, 1, m.bytes / 2);
        const size_t half = nodes_of_memory(m.base, m.bytes, n_on);
        assert_int_equal(sum(n_on), half);
        assert_in_range(half, n / 2 - n / 20, n / 2 + n / 20 + 1);
        memset(m.base, 1, m.bytes);
        assert_int_equal(nodes_of_memory(m.base, m.bytes, n_on), n);
        assert_int_equal(sum(n_on), n);
        /* from the middle of a page to the middle of another */
        assert_int_equal(nodes_of_memory((char *)m.base + page / 2, page / 4, n_on), 1);
        mem_free(&m);
    }
    assert_int_equal(nodes_of_memory(n_on, 0, n_on), 0);
}

static int policy(void)
{
    int mode = -1;

    return syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) ? -1 : mode;
}

/* One node is no spread; a policy that was there stays. */
static void spreads_over_several(void **state)
{
    const uint64_t own = nodes_of_threads(NULL);

    (void)state;
    if (policy() < 0)
        skip();
    assert_false(nodes_spread_begin(0));
    assert_false(nodes_spread_begin(own));
    assert_int_equal(policy(), MPOL_DEFAULT);
    if (!access("/sys/devices/system/node/node1", F_OK)) {
        assert_true(nodes_spread_begin(3));
        assert_int_equal(policy(), MPOL_INTERLEAVE);
        nodes_spread_end();
        assert_int_equal(policy(), MPOL_DEFAULT);
    }
    assert_false(syscall(SYS_set_mempolicy, MPOL_BIND, &own, NODES_MAX + 1UL));
    assert_false(nodes_spread_begin(own | 3));
    assert_int_equal(policy(), MPOL_BIND);
    nodes_spread_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_have_nodes),
        cmocka_unit_test(memory_has_nodes),
        cmocka_unit_test(spreads_over_several),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
