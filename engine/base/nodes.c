/* SPDX-License-Identifier: MIT
 *
 * nodes.c - NUMA nodes: getcpu(), set_mempolicy(), mbind() and move_pages(), as the
 * kernel has them: the C library has none of them, and libnuma no more than this
 */
#include "engine/base/nodes.h"

#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void add_own(void *arg, int thread, int n_threads)
{
    _Atomic uint64_t *nodes = arg;
    unsigned cpu, node;

    (void)thread;
    (void)n_threads;
    if (!syscall(SYS_getcpu, &cpu, &node, NULL) && node < NODES_MAX)
        atomic_fetch_or(nodes, UINT64_C(1) << node);
}

uint64_t nodes_of_threads(struct thread_pool *pool)
{
    _Atomic uint64_t nodes = 0;

    if (pool)
        thread_pool_run(pool, add_own, &nodes);
    else
        add_own(&nodes, 0, 1);
    return nodes;
}

/* Several nodes, and no policy of whoever started this process. */
static bool may_spread(uint64_t nodes)
{
    int mode = MPOL_DEFAULT;

    return nodes & (nodes - 1) &&
           !syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) &&
           mode == MPOL_DEFAULT;
}

/* One bit more than there are: the kernel leaves the last one out. */
#define N_BITS (NODES_MAX + 1UL)

bool nodes_spread_begin(uint64_t nodes)
{
    return may_spread(nodes) &&
           !syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &nodes, N_BITS);
}

void nodes_spread_memory(void *addr, size_t bytes, uint64_t nodes)
{
    if (may_spread(nodes))
        syscall(SYS_mbind, addr, bytes, MPOL_INTERLEAVE, &nodes, N_BITS, 0U);
}

void nodes_spread_end(void)
{
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL);
}

/* Pages at equal distances would all be on one node where pages come from nodes in
 * turn: page i is where the fraction of i times the golden ratio points to. */
#define GOLDEN 0x9e3779b97f4a7c15u

size_t nodes_of_memory(const void *addr, size_t bytes, size_t n_on[NODES_MAX])
{
    enum { N_PAGES = 4096, N_AT_ONCE = 256 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)addr / page * page;
    const size_t n_pages =
        bytes ? ((uintptr_t)addr + bytes - begin + page - 1) / page : 0;
    const size_t n = n_pages < N_PAGES ? n_pages : N_PAGES;
    size_t n_found = 0;

    memset(n_on, 0, NODES_MAX * sizeof *n_on);
    for (size_t i = 0; i < n; i += N_AT_ONCE) {
        const size_t n_now = n - i < N_AT_ONCE ? n - i : N_AT_ONCE;
        void *at[N_AT_ONCE];
        int node[N_AT_ONCE];

        for (size_t k = 0; k < n_now; k++) {
            const uint64_t point = (uint64_t)(i + k) * GOLDEN;
            const size_t which =
                n == n_pages ? i + k
                             : (size_t)((unsigned __int128)point * n_pages >> 64);

            at[k] = (void *)(begin + which * page);
            node[k] = -1;
        }
        if (syscall(SYS_move_pages, 0, n_now, at, NULL, node, 0) < 0)
            break;
        for (size_t k = 0; k < n_now; k++) {
            if (node[k] < 0 || node[k] >= NODES_MAX)
                continue;
            n_on[node[k]]++;
            n_found++;
        }
    }
    return n_found;
}
