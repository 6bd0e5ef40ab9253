/* SPDX-License-Identifier: MIT
 *
 * test_mapguard.c - a mapped file that shrinks is an error; any other SIGBUS is what it
 * was
 */
#include "tests/support/test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "engine/engine.h"
#include "engine/gguf/mapguard.h"

#define STORIES TEST_DATA "models/stories260K-f32.gguf"

struct mapped {
    char path[40];
    int fd;
    size_t bytes;
    volatile unsigned char *image;
};

static void map_file(struct mapped *m, size_t bytes)
{
    snprintf(m->path, sizeof m->path, "/tmp/test_mapguard.XXXXXX");
    m->fd = mkstemp(m->path);
    m->bytes = bytes;
    assert_true(m->fd >= 0);
    unlink(m->path);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(pwrite(m->fd, "\x11", 1, (off_t)i), 1);
    m->image = mmap(NULL, bytes, PROT_READ, MAP_SHARED, m->fd, 0);
    assert_true(m->image != MAP_FAILED);
}

static void unmap_file(struct mapped *m)
{
    munmap((void *)(uintptr_t)m->image, m->bytes);
    close(m->fd);
}

/* What is left stays readable, what is missing reads as zeros, and the loss belongs to
 * the file that shrank. */
static void shorter(void **state)
{
    struct mapguard *guard, *other;
    struct mapped m, whole;
    struct err err = ERR_INIT;

    (void)state;
    map_file(&m, 5 * 4096 + 10);
    map_file(&whole, 4096);
    assert_int_equal(mapguard_add(&guard, (void *)(uintptr_t)m.image, m.bytes, m.fd,
                                  "a\nfile", &err),
                     ST_OK);
    assert_int_equal(mapguard_add(&other, (void *)(uintptr_t)whole.image, whole.bytes,
                                  whole.fd, "whole", &err),
                     ST_OK);
    assert_int_equal(mapguard_check(guard, &err), ST_OK);
    assert_int_equal(ftruncate(m.fd, 4097), 0);
    assert_int_equal(m.image[4096], 0x11);
    assert_int_equal(mapguard_check(guard, &err), ST_OK);
    assert_int_equal(m.image[3 * 4096], 0);
    assert_int_equal(m.image[5 * 4096 + 9], 0);
    assert_int_equal(m.image[2 * 4096], 0);
    assert_int_equal(m.image[4096], 0x11);
    assert_int_equal(mapguard_check(guard, &err), ST_IO);
    assert_non_null(strstr(err.msg, "has become shorter while it was read"));
    assert_null(strchr(err.msg, '\n'));
    err_clear(&err);
    assert_int_equal(mapguard_check(other, &err), ST_OK);
    mapguard_remove(guard);
    mapguard_remove(other);
    mapguard_remove(NULL);
    unmap_file(&m);
    unmap_file(&whole);
    assert_int_equal(mapguard_check_all(&err), ST_IO);
    assert_non_null(strstr(err.msg, "file"));
}

/* A guard that was used before has forgotten what it lost. */
static void used_again(void **state)
{
    struct mapguard *guard;
    struct mapped m;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < 3; i++) {
        map_file(&m, 8192);
        assert_int_equal(mapguard_add(&guard, (void *)(uintptr_t)m.image, m.bytes, m.fd,
                                      "again", &err),
                         ST_OK);
        assert_int_equal(mapguard_check(guard, &err), ST_OK);
        assert_int_equal(ftruncate(m.fd, 0), 0);
        assert_int_equal(m.image[0], 0);
        assert_int_equal(mapguard_check(guard, &err), ST_IO);
        err_clear(&err);
        mapguard_remove(guard);
        unmap_file(&m);
    }
}

static int end_of(void (*fn)(void))
{
    int status = 0;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void guard_one(void)
{
    static struct mapguard *guard;
    static struct mapped m;

    signal(SIGBUS, SIG_DFL);
    map_file(&m, 4096);
    mapguard_add(&guard, (void *)(uintptr_t)m.image, m.bytes, m.fd, "one", NULL);
}

static void access_other(void)
{
    struct mapped m;

    guard_one();
    map_file(&m, 4096);
    if (ftruncate(m.fd, 0))
        return;
    (void)m.image[0];
}

static void send_it(void)
{
    guard_one();
    raise(SIGBUS);
}

/* In processes of their own, which begin without a handler. */
static void other_signals(void **state)
{
    (void)state;
    assert_int_equal(end_of(access_other), SIGBUS);
    assert_int_equal(end_of(send_it), SIGBUS);
}

/* A model that runs from its mapping. */
static void model(void **state)
{
    char path[] = "/tmp/test_mapguard.XXXXXX", command[160];
    const int32_t tokens[] = {1, 2, 3};
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    const int fd = mkstemp(path);
    struct slm *m;

    (void)state;
    assert_true(fd >= 0);
    snprintf(command, sizeof command, "cat '%s' > '%s'", STORIES, path);
    assert_int_equal(system(command), 0);
    p.path = path;
    p.residency = WEIGHTS_MMAP;
    p.n_threads = 2;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    assert_int_equal(slm_eval(m, tokens, 3, SLM_LOGITS_LAST, &err), ST_OK);
    assert_int_equal(ftruncate(fd, 65536), 0);
    assert_int_equal(slm_eval(m, tokens, 3, SLM_LOGITS_LAST, &err), ST_IO);
    assert_non_null(strstr(err.msg, "has become shorter while it was read"));
    assert_non_null(strstr(err.msg, path));
    slm_close(m);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_signals), cmocka_unit_test(shorter),
        cmocka_unit_test(used_again), cmocka_unit_test(model)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
