/* SPDX-License-Identifier: MIT
 *
 * test_launch_evict.c - all files of a server's model leave the page cache
 */
#include "harness/measure/engines/launch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/test.h"

#define FILE_BYTES (4u << 20)
#define HELD       (1u << 20)

/* In the build tree: a real disk. */
static void put_file(const char *path)
{
    static char block[FILE_BYTES];
    const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, block, sizeof block), sizeof block);
    close(fd);
}

/* What somebody holds of the second part stays, and is in the sum: so all parts were
 * asked to leave, though the command names the first alone. */
static void all_parts_leave(void **state)
{
    static const char first[] = "slm-evict-00001-of-00002.gguf";
    static const char second[] = "slm-evict-00002-of-00002.gguf";
    char command[128];

    (void)state;
    put_file(first);
    put_file(second);
    const int fd = open(second, O_RDONLY);
    volatile char *map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    for (size_t i = 0; i < HELD; i += 4096)
        assert_int_equal(map[i], 0);
    snprintf(command, sizeof command, "server -m %s --port 1", first);
    const int64_t stayed = launch_evict(command);
    munmap((void *)(uintptr_t)map, FILE_BYTES);
    const int64_t later = launch_evict(command);
    close(fd);
    unlink(first);
    unlink(second);
    assert_in_range(stayed, HELD, 2 * FILE_BYTES);
    assert_true(later == 0 || later == 2 * FILE_BYTES); /* a file system in memory */
}

static void a_command_without_a_model(void **state)
{
    (void)state;
    assert_int_equal(launch_evict("server --port 1"), -1);
    assert_int_equal(launch_evict("server -m no-such-file.gguf"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_parts_leave),
        cmocka_unit_test(a_command_without_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
