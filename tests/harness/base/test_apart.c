/* SPDX-License-Identifier: MIT
 *
 * test_apart.c - work in a process of its own: its result, its errors, its end
 */
#include "tests/support/test.h"

#include "harness/base/interrupt.h"
#include "harness/base/apart.h"

struct sum {
    int value;
    char text[20];
};

static int outside;

static enum status add(void *result, const void *arg, struct err *err)
{
    struct sum *s = result;
    const int *v = arg;

    (void)err;
    assert_int_equal(s->value, 0);
    s->value = v[0] + v[1];
    snprintf(s->text, sizeof s->text, "in %s", "a child");
    outside = 1;
    return ST_OK;
}

static enum status refuse(void *result, const void *arg, struct err *err)
{
    ((struct sum *)result)->value = 7;
    return err_set(err, ST_CHECK, "%s", (const char *)arg);
}

static enum status die(void *result, const void *arg, struct err *err)
{
    (void)result;
    (void)arg;
    (void)err;
    kill(getpid(), SIGKILL);
    return ST_OK;
}

static enum status wait_for_interrupt(void *result, const void *arg, struct err *err)
{
    (void)result;
    kill(*(const pid_t *)arg, SIGTERM); /* the parent alone */
    while (!interrupted())
        usleep(1000);
    return err_set(err, ST_INTERRUPTED, "stopped cleanly");
}

static void test_result(void **state)
{
    const int v[] = {3, 4};
    struct sum s = {.value = 1};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(apart_run(add, &s, sizeof s, v, &err), ST_OK);
    assert_int_equal(s.value, 7);
    assert_string_equal(s.text, "in a child");
    assert_int_equal(outside, 0);
}

static void test_errors(void **state)
{
    struct sum s = {.value = 1};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(apart_run(refuse, &s, sizeof s, "why", &err), ST_CHECK);
    assert_string_equal(err.msg, "why");
    assert_int_equal(s.value, 7);
    err = (struct err)ERR_INIT;
    assert_int_equal(apart_run(die, &s, sizeof s, NULL, &err), ST_IO);
    assert_non_null(strstr(err.msg, "signal 9"));
}

static void test_interrupt(void **state)
{
    const pid_t parent = getpid();
    struct sum s;
    struct err err = ERR_INIT;

    (void)state;
    interrupt_catch();
    assert_int_equal(apart_run(wait_for_interrupt, &s, sizeof s, &parent, &err),
                     ST_INTERRUPTED);
    assert_string_equal(err.msg, "stopped cleanly");
    interrupt_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_interrupt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
