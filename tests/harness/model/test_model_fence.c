/* SPDX-License-Identifier: MIT
 *
 * test_model_fence.c - behind its fence a command reads weights through the ring that
 * it has made before, and makes no other
 */
#include "tests/support/test.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/weights/stream_io.h"
#include "harness/model/model_fence.h"

struct found {
    enum status status;
    bool has_ring, is_filtered;
    char way[16], text[8]; /* how a file was read, and what is in it */
    char second[16];       /* how it is read while the ring is in use */
    int setup;             /* errno of making a ring */
};

/* As weights are streamed; in a child, which ends with its files. */
static enum status read_file(struct found *f, struct err *err)
{
    FILE *file = tmpfile();
    const struct stream_read read = {.dst = f->text, .bytes = 7, .tag = 1};
    struct stream_result result;
    struct stream_io io, second;
    enum status st;

    if (!file || fputs("weights", file) < 0 || fflush(file))
        return ST_IO;
    st = model_fence_enter(err);
    if (!st)
        st = stream_io_open(&io, fileno(file), STREAM_RING_DEPTH, model_ring(), err);
    if (st)
        return st;
    snprintf(f->way, sizeof f->way, "%s", io.class->name);
    st = stream_io_open(&second, fileno(file), STREAM_RING_DEPTH, model_ring(), err);
    if (st)
        return st;
    snprintf(f->second, sizeof f->second, "%s", second.class->name);
    stream_io_close(&second);
    if (io.class->submit(io.state, &read) || io.class->wait(io.state, &result, 1) != 1)
        st = ST_IO;
    stream_io_close(&io);
    return st;
}

static void look_around(struct found *f)
{
    struct err err = ERR_INIT;

    f->status = read_file(f, &err);
    f->has_ring = model_ring() != NULL;
    f->is_filtered = prctl(PR_GET_SECCOMP) == 2;
    f->setup = syscall(SYS_io_uring_setup, 1, NULL) < 0 ? errno : 0;
}

static void a_command_has_one_ring(void **state)
{
    struct found f = {.status = ST_IO};
    int pipe_fd[2];
    pid_t child;

    (void)state;
    assert_int_equal(pipe(pipe_fd), 0);
    child = test_fork();
    if (!child) {
        look_around(&f);
        _exit(write(pipe_fd[1], &f, sizeof f) != sizeof f);
    }
    close(pipe_fd[1]);
    assert_int_equal(read(pipe_fd[0], &f, sizeof f), sizeof f);
    close(pipe_fd[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(f.status, ST_OK);
    assert_string_equal(f.text, "weights");
    assert_string_equal(f.way, f.has_ring ? "io_uring" : "pread");
    if (!f.is_filtered)
        skip(); /* a kernel without filters */
    assert_string_equal(f.second, "pread");
    assert_int_equal(f.setup, EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_has_one_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
