/* SPDX-License-Identifier: MIT
 *
 * test_resident.c - memory that must stay resident: recorded, and of this process
 */
#include "harness/measure/worker/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/tree.h"

#define MIB ((size_t)1 << 20)

static char root[64];

static void a_recorded_status_is_added_up(void **state)
{
    uint64_t bytes = 7;

    (void)state;
    tree_new(root);
    assert_false(resident_read(root, &bytes)); /* no such file */
    tree_put(root, "/proc/self/status", "Name:\tbench\nVmRSS:\t  900 kB\n");
    assert_false(resident_read(root, &bytes)); /* an old kernel */
    assert_int_equal(bytes, 7);
    tree_put(root, "/proc/self/status",
             "VmRSS:\t  900 kB\nRssAnon:\t  600 kB\nRssFile:\t  200 kB\n"
             "RssShmem:\t  100 kB\nVmPTE:\t  8 kB\nVmSwap:\t  16 kB\n");
    assert_true(resident_read(root, &bytes));
    assert_int_equal(bytes, 624 * 1024);
    tree_remove(root);
}

static uint64_t now(void)
{
    uint64_t bytes = 0;

    if (!resident_read("", &bytes))
        skip();
    return bytes;
}

/* Pages of memory are written by code that sanitizers do not watch, and mapped behind
 * their back: what they keep for either would count, too. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void
touch(volatile char *p, size_t size)
{
    for (size_t i = 0; i < size; i += 4096)
        p[i] = 1;
}

static void *map(size_t size, int prot, int flags, int fd)
{
    const long p = syscall(SYS_mmap, NULL, size, prot, flags, fd, 0L);

    assert_true(p != -1);
    return (void *)(uintptr_t)p;
}

/* 64 MiB of anonymous memory count, as many of a file do not. Kernels count in batches,
 * so the figures are not exact. */
static void anonymous_memory_counts_and_files_do_not(void **state)
{
    const size_t size = 64 * MIB;
    FILE *f = tmpfile();
    uint64_t begin = now();

    (void)state;
    char *anon = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    touch(anon, size);
    const uint64_t with_anon = now();
    assert_in_range(with_anon - begin, size - 8 * MIB, size + 8 * MIB);

    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), (off_t)size), 0);
    char *file = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f));
    touch(file, size);
    assert_in_range(now(), with_anon - 8 * MIB, with_anon + 8 * MIB);
    munmap(file, size);
    munmap(anon, size);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recorded_status_is_added_up),
        cmocka_unit_test(anonymous_memory_counts_and_files_do_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
