/* SPDX-License-Identifier: MIT
 *
 * test_launch_place.c - words of a server's command, and CPUs apart
 */
#include "harness/measure/engines/launch.h"

#include "tests/support/test.h"

static void check(const char *command, const char *model)
{
    char buf[64] = "";

    assert_int_equal(launch_option(command, 'm', "model", buf, sizeof buf),
                     model != NULL);
    if (model)
        assert_string_equal(buf, model);
}

static void words(void **state)
{
    (void)state;
    check("llama-server -m a.gguf --port 1", "a.gguf");
    check("llama-server --model a.gguf", "a.gguf");
    check("llama-server --model=a.gguf", "a.gguf");
    check("s -m 'my model.gguf' -t 2", "my model.gguf");
    check("s -m \"my model\".gguf", "my model.gguf");
    check("s -m '$HOME/a'", "$HOME/a");
    check("s -m $HOME/a", NULL); /* the shell's to say */
    check("s -m a\\ b", NULL);
    check("s -m 'a", NULL);
    check("s -m", NULL);
    check("s -mm a --models b", NULL);
    check("", NULL);
    check("s -m 0123456789012345678901234567890123456789012345678901234567890123456789",
          NULL);
}

/* Cores of two hyperthreads each, all allowed. */
static struct topology machine(int n_cores)
{
    struct topology t = {.n_cpus = 2 * n_cores,
                         .n_cores = n_cores,
                         .n_allowed = 2 * n_cores,
                         .n_allowed_cores = n_cores};

    for (int i = 0; i < t.n_cpus; i++)
        t.cpu[i] = (struct topo_cpu){.os_id = 10 + i,
                                     .core = i % n_cores,
                                     .sibling = i / n_cores,
                                     .allowed = true};
    return t;
}

static void cpus_apart(void **state)
{
    static struct topology t;
    static struct launch_place p;

    (void)state;
    t = machine(3);
    launch_place_find(&p, "s -m a -t 2", &t);
    assert_true(p.is_apart);
    assert_int_equal(p.n_client, 2); /* a core's */
    assert_int_equal(p.client[0], 12);
    assert_int_equal(p.client[1], 15);
    assert_int_equal(p.n_server, 4);
    launch_place_find(&p, "s -m a --threads 3", &t); /* it needs them all */
    assert_false(p.is_apart);
    assert_int_equal(p.n_threads, 3);
    launch_place_find(&p, "s -m a", &t); /* nobody knows */
    assert_false(p.is_apart);
    assert_int_equal(p.n_threads, 0);
    launch_place_find(&p, "s -t all", &t);
    assert_false(p.is_apart);
    t.cpu[2].allowed = t.cpu[5].allowed = false;
    t.n_allowed_cores = 2;
    launch_place_find(&p, "s -t 1", &t);
    assert_true(p.is_apart && p.n_client == 2 && p.client[0] == 11 && p.n_server == 2);
}

static void cpus_given(void **state)
{
    struct err err = ERR_INIT;
    static struct topology t;
    static struct launch_place p;

    (void)state;
    t = machine(2); /* 10 to 13 */
    launch_place_find(&p, "s -t 3", &t);
    assert_false(p.is_pinned);
    assert_int_equal(launch_place_set(&p, "12,10", &t, &err), ST_OK);
    assert_true(p.is_pinned && p.is_apart);
    assert_int_equal(p.n_threads, 3);
    assert_int_equal(p.n_server, 2);
    assert_int_equal(p.server[0], 12);
    assert_int_equal(p.server[1], 10);
    assert_int_equal(p.n_client, 2);
    assert_int_equal(p.client[0], 11);
    assert_int_equal(p.client[1], 13);
    assert_int_equal(launch_place_set(&p, "10-13", &t, &err), ST_OK);
    assert_true(p.is_pinned); /* we share */
    assert_false(p.is_apart);
    assert_int_equal(launch_place_set(&p, "9", &t, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(cpus_apart),
        cmocka_unit_test(cpus_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
