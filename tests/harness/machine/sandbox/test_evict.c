/* SPDX-License-Identifier: MIT
 *
 * test_evict.c - files that leave the page cache, and what stays
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/machine/sandbox/sandbox.h"

/* 8 MiB of file, in the page cache. path is filled in. */
static void cached_file(char path[64])
{
    static char block[1 << 20];

    snprintf(path, 64, "slm-test-evict-XXXXXX"); /* in the build tree: a real disk */
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 8; i++)
        assert_int_equal(write(fd, block, sizeof block), sizeof block);
    close(fd);
}

static size_t resident_bytes(int fd, void *map, size_t n)
{
    static unsigned char vec[1 << 16];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = 0;

    (void)fd;
    assert_int_equal(mincore(map, n, vec), 0);
    for (size_t i = 0; i < n / page; i++)
        bytes += (vec[i] & 1u) * page;
    return bytes;
}

static void evicts(void **state)
{
    const size_t n = 8 << 20;
    struct err err = ERR_INIT;
    uint64_t stayed = 1;
    char path[64];

    (void)state;
    cached_file(path);
    const int fd = open(path, O_RDONLY);
    void *map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(resident_bytes(fd, map, n), n);
    assert_int_equal(file_evict(path, &stayed, &err), ST_OK);
    const size_t left = resident_bytes(fd, map, n);
    munmap(map, n);
    close(fd);
    unlink(path);
    if (stayed == n && left == n)
        skip(); /* a file system in memory: nowhere else to put it */
    assert_int_equal(stayed, 0);
    assert_int_equal(left, 0);
}

/* Pages that somebody has mapped and touched stay, and are told of. */
static void tells_what_stayed(void **state)
{
    const size_t n = 8 << 20, held = 1 << 20;
    struct err err = ERR_INIT;
    uint64_t stayed = 0;
    char path[64];

    (void)state;
    cached_file(path);
    const int fd = open(path, O_RDONLY);
    volatile char *map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    for (size_t i = 0; i < held; i += 4096)
        assert_int_equal(map[i], 'x');
    assert_int_equal(file_evict(path, &stayed, &err), ST_OK);
    munmap((void *)map, n);
    close(fd);
    unlink(path);
    assert_true(stayed >= held);
}

static void evict_names_the_file(void **state)
{
    struct err err = ERR_INIT;
    uint64_t stayed = 5;

    (void)state;
    assert_int_equal(file_evict("/nowhere/x.gguf", &stayed, &err), ST_IO);
    assert_non_null(strstr(err.msg, "/nowhere/x.gguf"));
    err_clear(&err);
    assert_int_equal(file_evict("/tmp", &stayed, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "not a regular file"));
    assert_int_equal(stayed, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evicts),
        cmocka_unit_test(tells_what_stayed),
        cmocka_unit_test(evict_names_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
