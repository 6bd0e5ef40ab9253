/* SPDX-License-Identifier: MIT
 *
 * test_worker_client.c - programs that answer, give up, die, say nothing or nonsense
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/measure/worker/worker_client.h"

#define HELLO "echo '{\"turn\": 1, \"version\": \"9.9\"}'\nread line\n"

struct got {
    double ms;
    char phase[16];
    int n_messages;
};

static void on_tick(void *arg, const char *what, double fraction)
{
    struct got *got = arg;

    if (what && fraction > 0)
        snprintf(got->phase, sizeof got->phase, "%s", what);
}

static void on_message(void *arg, const json_t *message)
{
    struct got *got = arg;
    const json_t *list = json_object_get(message, "ms");

    got->n_messages++;
    for (size_t i = 0; i < json_array_size(list); i++)
        got->ms += json_number_value(json_array_get(list, i));
}

/* poll() fails with EINVAL for more descriptors than a process may open. */
static void break_poll(bool broken)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = broken ? 0 : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A program of these lines is asked for "point", which "done" answers, and ended. */
static enum status play(struct worker_client *c, struct sandbox *sandbox,
                        const char *script, bool hears, struct got *got,
                        struct err *err)
{
    char path[] = "/tmp/test_worker_client.XXXXXX";
    const struct worker_params p = {
        .who = "it",
        .program = path,
        .command = "worker",
        .timeout_s = strstr(script, "uptime") || strstr(script, "STOP") ? 2
                     : strstr(script, "while")                          ? 1.3
                     : strstr(script, "sleep")                          ? 0.4
                                                                        : 60,
        .sandbox = sandbox,
        .tick = on_tick,
        .hear = hears ? on_message : NULL,
        .arg = got};
    const int fd = mkstemp(path);
    json_t *answer = NULL;
    enum status st;

    assert_true(fd >= 0);
    dprintf(fd, "#!/bin/sh\n%s\n", script);
    fchmod(fd, 0700);
    close(fd);
    memset(got, 0, sizeof *got);
    assert_int_equal(worker_client_start(c, &p, err), ST_OK);
    break_poll(strstr(script, "# no poll"));
    st = worker_client_greet(c, err);
    if (st == ST_OK)
        st = worker_client_request(c, json_pack("{s:i}", "point", 1), "done",
                                   "being asked", &answer, err);
    worker_client_end(c, c->end == WORKER_SILENT);
    break_poll(false);
    json_decref(answer);
    unlink(path);
    return st;
}

static void it_answers_and_ends(void **state)
{
    struct worker_client c;
    struct got got;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        play(&c, NULL,
             HELLO "[ \"$line\" = '{\"point\":1}' ] && echo '{\"phase\": \"load\", "
                   "\"fraction\": 0.5}' && echo '{\"ms\": [1.5, 2]}'\n"
                   "echo '{\"ms\": [4]}'; echo '{\"done\": true}'; read line\nexit 7",
             true, &got, &err),
        ST_OK);
    assert_int_equal(c.end, WORKER_RUNS);
    assert_int_equal(WEXITSTATUS(c.wstatus), 7);
    assert_string_equal(c.version, "9.9");
    assert_string_equal(got.phase, "load");
    assert_true(got.ms == 7.5);
    worker_client_close(&c);
}

static void it_says_why_it_gives_up(void **state)
{
    struct worker_client c;
    struct got got;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(play(&c, NULL,
                          HELLO "echo '{\"error\": \"out of luck\", \"code\": 2}'\n"
                                "exit 2",
                          true, &got, &err),
                     (enum status)2);
    assert_int_equal(c.end, WORKER_GAVE_UP);
    assert_string_equal(c.error, "out of luck");
    assert_int_equal(c.error_status, 2);
    assert_non_null(strstr(err.msg, "out of luck"));
    worker_client_close(&c);
}

/* What it had measured is there, and its last output is known. */
static void it_dies(void **state)
{
    struct worker_client c;
    struct got got;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        play(&c, NULL, HELLO "echo '{\"ms\": [8]}'\necho farewell >&2\nkill -SEGV $$",
             true, &got, &err),
        ST_IO);
    assert_int_equal(c.end, WORKER_DIED);
    assert_true(WIFSIGNALED(c.wstatus));
    assert_true(got.ms == 8);
    assert_non_null(strstr(err.msg, "died of signal 11"));
    assert_non_null(strstr(err.msg, "while being asked; its last output: farewell"));
    worker_client_close(&c);

    err_clear(&err);
    assert_int_equal(play(&c, NULL, "exit 3", true, &got, &err), ST_CHECK);
    assert_int_equal(c.end, WORKER_DIED);
    assert_int_equal(WEXITSTATUS(c.wstatus), 3);
    assert_string_equal(err.msg, "");
    worker_client_close(&c);
}

static void it_says_nothing(void **state)
{
    struct worker_client c;
    struct got got;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        play(&c, NULL, HELLO "echo '{\"ms\": [8]}'\nexec sleep 600", true, &got, &err),
        ST_IO);
    assert_int_equal(c.end, WORKER_SILENT);
    assert_true(WIFSIGNALED(c.wstatus));
    assert_non_null(strstr(err.msg, "has sent nothing for 0.4 s while being asked"));
    worker_client_close(&c);
}

/* Its answers, its end and its silence are found without poll(), too. */
static void poll_fails(void **state)
{
    static const char *const scripts[] = {
        HELLO "# no poll\necho '{\"ms\": [4]}'; echo '{\"done\": true}'; read line",
        HELLO "# no poll\nkill -SEGV $$", HELLO "# no poll\nexec sleep 600"};
    static const enum worker_end ends[] = {WORKER_RUNS, WORKER_DIED, WORKER_SILENT};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct worker_client c;
        struct got got;
        struct err err = ERR_INIT;

        assert_int_equal(play(&c, NULL, scripts[i], true, &got, &err),
                         i ? ST_IO : ST_OK);
        assert_int_equal(c.end, ends[i]);
        assert_true(got.ms == (i ? 0 : 4));
        worker_client_close(&c);
    }
}

/* Ctrl-Z, or a frozen container: both are stopped for longer than the silence that is
 * allowed, and neither is silent. */
static void a_stop_of_both_is_no_silence(void **state)
{
    const pid_t pid = test_fork();
    int status;

    (void)state;
    if (!pid) {
        struct worker_client c;
        struct got h;
        struct err err = ERR_INIT;
        char self[16];

        snprintf(self, sizeof self, "%d", (int)getpid());
        setenv("WHO_WAITS", self, 1);
        _exit(play(&c, NULL,
                   HELLO "kill -STOP $WHO_WAITS; sleep 2.2; kill -CONT $WHO_WAITS\n"
                         "sleep 0.1; echo '{\"done\": true}'; read line",
                   true, &h, &err) != ST_OK);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A loop without end reports nothing either. */
static void it_spins(void **state)
{
    struct worker_client c;
    struct got got;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(play(&c, NULL, HELLO "while :; do :; done", true, &got, &err),
                     ST_IO);
    assert_int_equal(c.end, WORKER_SILENT);
    worker_client_close(&c);
}

/* With a hundredth of a CPU it works for longer than the silence that is allowed. */
static void a_wait_for_a_quota_is_no_silence(void **state)
{
    const struct sandbox_limits limits = {.quota_cpus = 0.01};
    struct worker_client c;
    struct got got;
    struct err err = ERR_INIT;
    struct sandbox *sandbox;

    (void)state;
    if (sandbox_create_with(&sandbox, "", &limits, &err))
        skip();
    assert_int_equal(play(&c, sandbox,
                          HELLO "read now rest </proc/uptime; end=$((${now%.*} + 4))\n"
                                "while [ ${now%.*} -lt $end ]; do read now rest "
                                "</proc/uptime; done\n"
                                "echo '{\"done\": true}'; read line",
                          true, &got, &err),
                     ST_OK);
    worker_client_close(&c);
    sandbox_destroy(sandbox);
}

/* Its texts are printed: none clears the screen. */
static void its_texts_are_harmless(void **state)
{
    struct worker_client c;
    struct got got;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        play(&c, NULL,
             "printf '%s\\n' '{\"version\": \"9\\u001b[2J\"}'; read line\n"
             "printf '%s\\n' '{\"phase\": \"a\\u0007b\", \"fraction\": 0.5}' "
             "'{\"error\": \"c\\u001b[2Jd\", \"code\": 2}'\nexit 2",
             true, &got, &err),
        (enum status)2);
    assert_string_equal(c.version, "9\\x1b[2J");
    assert_string_equal(got.phase, "a\\x07b");
    assert_string_equal(c.error, "c\\x1b[2Jd");
    worker_client_close(&c);
}

static void it_says_nonsense(void **state)
{
    static const char *const scripts[] = {HELLO "echo 'what a nice day'; read line",
                                          HELLO "echo '{\"no\": 1}'; read line"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct worker_client c;
        struct got got;
        struct err err = ERR_INIT;

        assert_int_equal(play(&c, NULL, scripts[i], false, &got, &err), ST_IO);
        assert_int_equal(c.end, WORKER_UNEXPECTED);
        worker_client_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_answers_and_ends),
        cmocka_unit_test(it_says_why_it_gives_up),
        cmocka_unit_test(it_dies),
        cmocka_unit_test(it_says_nothing),
        cmocka_unit_test(poll_fails),
        cmocka_unit_test(it_spins),
        cmocka_unit_test(a_wait_for_a_quota_is_no_silence),
        cmocka_unit_test(a_stop_of_both_is_no_silence),
        cmocka_unit_test(its_texts_are_harmless),
        cmocka_unit_test(it_says_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
