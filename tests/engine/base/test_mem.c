/* SPDX-License-Identifier: MIT
 *
 * test_mem.c - page-aligned memory: alignment, zeroes, guards, errors
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "engine/base/mem.h"

static void allocates(enum mem_pages pages, size_t alignment)
{
    const size_t sizes[] = {0, 1, 4096, 100000, ((size_t)2 << 20) + 1, (size_t)5 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct err err = ERR_INIT;
        struct mem m = {0};

        assert_int_equal(mem_alloc(&m, sizes[i], pages, "test", &err), ST_OK);
        assert_non_null(m.base);
        assert_int_equal((uintptr_t)m.base % alignment, 0);
        assert_int_equal(m.bytes, sizes[i]);
        assert_true(m.mapped >= sizes[i]);
        assert_int_equal(m.pages, pages);
        for (size_t k = 0; k < sizes[i]; k += 511)
            assert_int_equal(((char *)m.base)[k], 0);
        memset(m.base, 0x5a, sizes[i]);
        assert_true(mem_huge_bytes(m.base, sizes[i]) <= sizes[i]);
        mem_free(&m);
        assert_null(m.base);
        mem_free(&m);
    }
}

static void small_pages(void **state)
{
    struct err err = ERR_INIT;
    struct mem m;

    (void)state;
    allocates(MEM_PAGES_4K, (size_t)sysconf(_SC_PAGESIZE));

    /* Huge pages were refused for this memory, wherever they are the rule. */
    assert_int_equal(mem_alloc(&m, (size_t)8 << 20, MEM_PAGES_4K, "test", &err), ST_OK);
    memset(m.base, 1, m.bytes);
    assert_int_equal(mem_huge_bytes(m.base, m.bytes), 0);
    mem_free(&m);
}

/* Whether the kernel gives huge pages to those who ask. */
static bool huge_pages_offered(void)
{
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    char line[128] = "";

    if (!f)
        return false;
    const bool read = fgets(line, sizeof line, f) != NULL;

    fclose(f);
    return read && !strstr(line, "[never]");
}

static void huge_pages(void **state)
{
    struct err err = ERR_INIT;
    struct mem a, b;

    (void)state;
    allocates(MEM_PAGES_2M, (size_t)2 << 20);
    if (!huge_pages_offered())
        return;

    /* Neighbours are counted apart: only the touched one has pages. */
    assert_int_equal(mem_alloc(&a, (size_t)8 << 20, MEM_PAGES_2M, "a", &err), ST_OK);
    assert_int_equal(mem_alloc(&b, (size_t)8 << 20, MEM_PAGES_2M, "b", &err), ST_OK);
    memset(a.base, 1, a.bytes);
    assert_int_equal(mem_huge_bytes(a.base, a.bytes) % ((size_t)2 << 20), 0);
    assert_int_equal(mem_huge_bytes(b.base, b.bytes), 0);
    mem_free(&a);
    mem_free(&b);
}

static void too_much(void **state)
{
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, (size_t)1 << 62};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct err err = ERR_INIT;
        struct mem m = {.bytes = 123};

        assert_int_equal(mem_alloc(&m, sizes[i], MEM_PAGES_2M, "KV cache", &err),
                         ST_NO_MEMORY);
        assert_non_null(strstr(err.msg, "KV cache"));
        assert_int_equal(m.bytes, 123);
    }
}

/* Writing one byte at p must kill a child. */
static void faults_at(volatile char *p)
{
    const pid_t child = fork();
    int how;

    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *p = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGSEGV);
}

static void guards(void **state)
{
    struct err err = ERR_INIT;
    struct mem m;

    (void)state;
    assert_int_equal(mem_alloc(&m, 4096 * 16, MEM_PAGES_4K, "test", &err), ST_OK);
    faults_at((char *)m.base - 1);
    faults_at((char *)m.base + m.bytes);
    mem_free(&m);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(mem_pages_name(MEM_PAGES_4K), "4k");
    assert_string_equal(mem_pages_name(MEM_PAGES_2M), "2m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_pages), cmocka_unit_test(huge_pages),
        cmocka_unit_test(too_much),    cmocka_unit_test(guards),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
