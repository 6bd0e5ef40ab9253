/* SPDX-License-Identifier: MIT
 *
 * test_synth_file.c - a random model as a file: whole or not at all
 */
#include "tests/support/synth_image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "engine/engine.h"
#include "engine/gguf/gguf.h"
#include "engine/synth/synth_parts.h"

/* ---- files ----------------------------------------------------------------------- */

static char dir[] = "/tmp/slm_synth_XXXXXX";

static char path[64], part[80];

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    snprintf(part, sizeof part, "%s.part", path);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    unlink(part);
    return rmdir(dir);
}

static void write_junk(const char *name, size_t n)
{
    FILE *f = fopen(name, "wb");

    assert_non_null(f);
    while (n--)
        fputc('x', f);
    assert_int_equal(fclose(f), 0);
}

static void file_is_the_image(void **state)
{
    struct err err = ERR_INIT;
    struct synth_plan *other;
    struct gguf *g;
    struct synth_image m;

    (void)state;
    m = synth_image_make(&tiny, QUANTMIX_Q5_K_S, 1);
    assert_false(synth_file_is(m.plan, path));
    write_junk(part, 9 << 20); /* left by a killed run, longer than the model */
    assert_int_equal(synth_write_file(m.plan, path, NULL, NULL, &err), ST_OK);
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_int_equal(gguf_image_bytes(g), m.bytes);
    assert_memory_equal(gguf_image(g), m.data, m.bytes);
    gguf_close(g);

    assert_true(synth_file_is(m.plan, path));
    assert_int_equal(synth_plan_make(&other, &tiny, QUANTMIX_Q5_K_S, 2, &err), ST_OK);
    assert_false(synth_file_is(other, path));
    synth_plan_free(other);
    assert_int_equal(truncate(path, (off_t)m.bytes - 1), 0);
    assert_false(synth_file_is(m.plan, path));
    synth_image_drop(&m);
}

/* A pipe that nobody writes to, in a cache that others may write into. */
static void a_pipe_is_no_file(void **state)
{
    struct synth_image m = synth_image_make(&tiny, QUANTMIX_Q5_K_S, 1);

    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(10); /* ends a test that waits for a writer */
    assert_false(synth_file_is(m.plan, path));
    alarm(0);
    assert_int_equal(unlink(path), 0);
    synth_image_drop(&m);
}

static int stop_at_once(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    return done <= total;
}

static void interruption_leaves_nothing_behind(void **state)
{
    struct err err = ERR_INIT;
    struct synth_image m;

    (void)state;
    unlink(path);
    m = synth_image_make(&tiny, QUANTMIX_F32, 1);
    assert_int_equal(synth_write_file(m.plan, path, stop_at_once, NULL, &err),
                     ST_INTERRUPTED);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(part, F_OK), -1);
    err_clear(&err);
    assert_int_equal(synth_write_memory(m.plan, m.data, stop_at_once, NULL, &err),
                     ST_INTERRUPTED);
    synth_image_drop(&m);
}

static enum status write_to(const struct synth_shape *s, const char *name,
                            struct err *err)
{
    struct synth_plan *plan;

    err_clear(err);
    assert_int_equal(synth_plan_make(&plan, s, QUANTMIX_Q8_0, 1, err), ST_OK);
    const enum status st = synth_write_file(plan, name, NULL, NULL, err);
    synth_plan_free(plan);
    return st;
}

static void places_that_cannot_be_written(void **state)
{
    struct synth_shape huge = tiny;
    struct err err = ERR_INIT;

    (void)state;
    huge.n_layers = 4096;
    huge.n_embd = 1 << 18;
    huge.n_ff = 1 << 20;
    assert_int_equal(write_to(&huge, path, &err), ST_NO_MEMORY);
    assert_non_null(strstr(err.msg, "GB are free there"));
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(write_to(&tiny, "/nowhere/m.gguf", &err), ST_IO);
    assert_non_null(strstr(err.msg, "/nowhere/m.gguf"));
    assert_int_equal(write_to(&tiny, dir, &err), ST_USAGE);
    assert_int_equal(write_to(&tiny, "/dev/null", &err), ST_USAGE);

    const int fd = open(part, O_RDWR | O_CREAT, 0644); /* another process at work */
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(write_to(&tiny, path, &err), ST_IO);
    assert_non_null(strstr(err.msg, "another process is making"));
    close(fd);
    assert_int_equal(write_to(&tiny, path, &err), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_is_the_image),
        cmocka_unit_test(a_pipe_is_no_file),
        cmocka_unit_test(interruption_leaves_nothing_behind),
        cmocka_unit_test(places_that_cannot_be_written),
    };

    return cmocka_run_group_tests_name("synth_file", tests, make_dir, remove_dir);
}
