/* SPDX-License-Identifier: MIT
 *
 * oracle.c - bounds of CPU time and memory, messages, files of a fuzz target
 *
 * Memory is counted by the hooks of the sanitizer's allocator, which see every library.
 */
#include "tests/fuzz/support/oracle.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <sanitizer/allocator_interface.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/support/allocations.h"

/* Without a sanitizer (research/branches) memory is not counted. */
#pragma weak __sanitizer_install_malloc_and_free_hooks
#pragma weak __sanitizer_get_allocated_size

static struct {
    atomic_bool on;
    atomic_llong bytes; /* allocated since the reader was called */
    long long max_bytes;
    bool lacks_memory;
    size_t input_bytes;
    const struct fuzz_bound *bound;
} now;

/* Without memory a target's own promises cannot hold: it is left here. */
static jmp_buf without_memory;

_Noreturn void fuzz_fail(const char *fmt, ...)
{
    va_list ap;

    if (now.lacks_memory)
        longjmp(without_memory, 1);
    now.on = false;
    fputs("fuzz: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}

/* ---- memory ---------------------------------------------------------------------- */

static void allocated(const volatile void *p, size_t n)
{
    (void)p;
    if (!now.on)
        return;
    if (atomic_fetch_add(&now.bytes, (long long)n) + (long long)n > now.max_bytes)
        fuzz_fail("an input of %zu bytes takes more than %lld MiB of memory; the last "
                  "allocation is of %zu bytes",
                  now.input_bytes, now.max_bytes >> 20, n);
}

static void freed(const volatile void *p)
{
    if (now.on && p)
        now.bytes -= (long long)__sanitizer_get_allocated_size(p);
}

static void set_memory_bound(void)
{
    now.max_bytes =
        (long long)(now.bound->bytes + now.bound->bytes_per_byte * now.input_bytes);
}

void fuzz_input_grows(size_t more_bytes)
{
    now.input_bytes += more_bytes;
    set_memory_bound();
}

/* ---- one input ------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The lowest free descriptor. */
static int free_descriptor(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

/* Reads it with one allocation after the other failing: the first ones, and then as
 * many as there is time for, further and further apart. */
static void run_without_memory(fuzz_reader *read, const uint8_t *data, size_t size)
{
    const double end = cpu_seconds() + 2;
    size_t n;

    allocations_fail_at(SIZE_MAX);
    read(data, size);
    n = allocations_fail_at(0);
    for (size_t which = 1; which <= n && cpu_seconds() < end; which += 1 + which / 64) {
        allocations_fail_at(which);
        now.lacks_memory = true;
        if (!setjmp(without_memory))
            read(data, size);
        now.lacks_memory = false;
    }
    allocations_fail_at(0);
}

int fuzz_run(fuzz_reader *read, const uint8_t *data, size_t size,
             const struct fuzz_bound *bound)
{
    static bool hooked;
    int n_slow = 0, n_leaks = 0, tries = 0;
    double took, limit;

    if (!hooked && __sanitizer_install_malloc_and_free_hooks &&
        !__sanitizer_install_malloc_and_free_hooks(allocated, freed))
        fuzz_fail("the sanitizer takes no more allocation hooks");
    hooked = true;
    do {
        const int descriptor = free_descriptor();

        now.bound = bound;
        now.input_bytes = size;
        set_memory_bound();
        now.bytes = 0;
        took = cpu_seconds();
        now.on = true;
        read(data, size);
        now.on = false;
        took = cpu_seconds() - took;
        limit = bound->cpu_s + bound->cpu_s_per_byte * (double)now.input_bytes;
        n_slow += took > limit;
        n_leaks += free_descriptor() != descriptor;
    } while (++tries < 3 && (n_slow == tries || n_leaks == tries));
    if (n_slow == tries)
        fuzz_fail("an input of %zu bytes takes %.1f s of CPU time; the limit is %.1f s",
                  now.input_bytes, took, limit);
    if (n_leaks == tries)
        fuzz_fail("a file is left open");
    if (getenv("FUZZ_FAIL_ALLOCATIONS"))
        run_without_memory(read, data, size);
    return 0;
}

bool fuzz_accepted(enum status st, struct err *err)
{
    const bool lacks_memory = now.lacks_memory;

    now.lacks_memory = false; /* what is promised here holds without memory, too */
    if (st == ST_OK) {
        if (err->code != ST_OK || err->msg[0])
            fuzz_fail("success with the message '%s'", err->msg);
        now.lacks_memory = lacks_memory;
        return true;
    }
    if (err->code != st)
        fuzz_fail("status %d with the code %d in its message", (int)st, (int)err->code);
    if (!err->msg[0])
        fuzz_fail("status %d without a message", (int)st);
    for (const char *c = err->msg; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            fuzz_fail("a message with the control character %d", *c);
    now.lacks_memory = lacks_memory;
    err_clear(err);
    return false;
}

/* ---- files ----------------------------------------------------------------------- */

static char directory[256];

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f)
{
    (void)s;
    (void)type;
    (void)f;
    return remove(path);
}

static void remove_directory(void)
{
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_dir(void)
{
    const char *above = getenv("TMPDIR");

    if (directory[0])
        return directory;
    snprintf(directory, sizeof directory, "%s/fuzz-XXXXXX",
             above && strlen(above) < 200 ? above : "/tmp");
    if (!mkdtemp(directory))
        fuzz_fail("cannot make the directory %s", directory);
    atexit(remove_directory);
    return directory;
}

const char *fuzz_path(const char *name)
{
    static char path[8][PATH_MAX];
    static unsigned next;
    char *p = path[next++ % 8];

    snprintf(p, sizeof path[0], "%s/%s", fuzz_dir(), name);
    return p;
}

const char *fuzz_file(const char *name, const void *data, size_t size)
{
    const char *path = fuzz_path(name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        fuzz_fail("cannot write %s", path);
    close(fd);
    return path;
}
