/* SPDX-License-Identifier: MIT
 *
 * test.h - what every test program needs besides cmocka
 */
#ifndef SLM_TESTS_TEST_H
#define SLM_TESTS_TEST_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/support/traps/wide_reads.h"

#define TEST_DATA SLM_SOURCE_DIR "/tests/data/"

/* cmocka's own takes NAN and INFINITY as equal to anything, and compares floats. */
static inline void test_float_equal(double a, double b, double epsilon,
                                    const char *file, int line)
{
    const double apart = a > b ? a - b : b - a;

    if (a == b || apart <= epsilon)
        return;
    print_error("%.17g is not %.17g within %g\n", a, b, epsilon);
    _fail(file, line);
}
#undef assert_float_equal
#define assert_float_equal(a, b, epsilon) \
    test_float_equal((a), (b), (epsilon), __FILE__, __LINE__)

/* A child that ends with this process: a test that fails leaves none behind, for whose
 * output ctest would wait. */
static inline pid_t test_fork(void)
{
    const pid_t pid = fork();

    if (!pid)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

/* n bytes that end exactly at an unreadable page: reading or writing one byte
 * further faults; on an emulator that reads too much, only writing does. Release with
 * guard_free(p, n). */
static inline void *guard_alloc(size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (n + page - 1) / page * page;
    char *base = mmap(NULL, whole + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(base != MAP_FAILED);
    assert_int_equal(
        mprotect(base + whole, page, emulator_reads_wide() ? PROT_READ : PROT_NONE), 0);
    return base + whole - n;
}

static inline void guard_free(void *p, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (n + page - 1) / page * page;

    munmap((char *)p + n - whole, whole + page);
}

/* Tests that go over many shapes take one in test_thin() of them: 1 unless
 * SLM_TEST_THIN is set, as it is on emulated CPUs, with sanitizers and in ci/test
 * (tests/CMakeLists.txt). From THIN_SMALL on they leave out the large shapes that are
 * there whatever it is. */
#define THIN_SMALL 100

static inline unsigned test_thin(void)
{
    const char *text = getenv("SLM_TEST_THIN");
    const unsigned long n = text != NULL ? strtoul(text, NULL, 10) : 1;

    return n > 0 ? (unsigned)n : 1;
}

/* A whole file, malloc'ed. */
static inline void *test_read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    void *data;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    data = malloc(*bytes);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, f), *bytes);
    fclose(f);
    return data;
}

/* splitmix64: a generator of test data, the same on every machine. */
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [-1, 1). */
static inline float test_random_float(uint64_t *state)
{
    return (float)((double)(test_random(state) >> 11) * 0x1p-52 - 1.0);
}

#endif
