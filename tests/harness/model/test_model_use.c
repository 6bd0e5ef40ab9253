/* SPDX-License-Identifier: MIT
 *
 * test_model_use.c - a file that another process uses is not removed
 */
#include "tests/support/tree.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/machine/fence/fence.h"
#include "harness/model/modelref.h"

static char root[64], path[80];

static int setup(void **state)
{
    (void)state;
    tree_new(root);
    tree_put(root, "/model", "model");
    snprintf(path, sizeof path, "%s/model", root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_remove(root);
    return 0;
}

/* A process that uses the file until it is ended. */
static pid_t another_user(void)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = test_fork();
    if (!pid) {
        byte = model_use(path) ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void the_last_user_removes(void **state)
{
    pid_t other;

    (void)state;
    assert_true(model_use(path));
    assert_true(model_use(path)); /* twice is once */
    other = another_user();
    assert_false(model_remove_unused(path));
    assert_int_equal(access(path, F_OK), 0);
    kill(other, SIGKILL); /* however it ends */
    waitpid(other, NULL, 0);
    assert_true(model_remove_unused(path));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(model_remove_unused(path)); /* gone it is */
    assert_false(model_use(path));
}

/* Its filter of system calls refuses locks. */
static void a_server_keeps_what_it_used_before_its_fence(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    pid = test_fork();
    if (!pid) {
        const char *const files[] = {path};
        struct fence_state fence;
        struct err err = ERR_INIT;

        _exit(model_use(path) &&
                      !fence_enter(&(struct fence){.reads = files, .n_reads = 1},
                                   &fence, &err) &&
                      model_use(path)
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A link that lies where a model should be is not followed. */
static void links_are_left(void **state)
{
    char link[80];

    (void)state;
    snprintf(link, sizeof link, "%s/link", root);
    assert_int_equal(symlink(path, link), 0);
    model_remove_unused(link);
    assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_last_user_removes),
        TEST(a_server_keeps_what_it_used_before_its_fence),
        TEST(links_are_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
