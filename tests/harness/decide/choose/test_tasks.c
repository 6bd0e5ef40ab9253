/* SPDX-License-Identifier: MIT
 *
 * test_tasks.c - tasks from JSON lines, and which answers are right
 */
#include "tests/support/test.h"

#include "harness/decide/choose/tasks.h"

static char path[] = "/tmp/test_tasks_XXXXXX";

static void write_file(const char *text, size_t len)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    fclose(f);
}

static void test_read(void **state)
{
    static const char text[] =
        "{\"prompt\": \"a\", \"answers\": [\"b\", \"c d\"]}\r\n"
        " \t\r\n"
        "{\"prompt\": \"e\", \"schema\": {\"type\": \"integer\"}, \"max_tokens\": 7, "
        "\"id\": 1}";
    struct tasks t;
    struct err err = ERR_INIT;

    (void)state;
    write_file(text, sizeof text - 1);
    assert_int_equal(tasks_read(&t, path, &err), ST_OK);
    assert_int_equal(t.n, 2);
    assert_string_equal(t.v[0].prompt, "a");
    assert_int_equal(t.v[0].n_answers, 2);
    assert_string_equal(t.v[0].answers[1], "c d");
    assert_int_equal(t.v[0].max_tokens, TASKS_MAX_TOKENS);
    assert_null(t.v[0].schema);
    assert_string_equal(t.v[1].schema, "{\"type\":\"integer\"}");
    assert_int_equal(t.v[1].n_answers, 0);
    assert_int_equal(t.v[1].max_tokens, 7);
    tasks_free(&t);
    /* cut anywhere: tasks, or one sentence with the line */
    for (size_t n = 0; n < sizeof text - 1; n++) {
        struct err why = ERR_INIT;

        write_file(text, n);
        if (tasks_read(&t, path, &why))
            assert_true(strstr(why.msg, ", line ") || strstr(why.msg, "has no tasks"));
        tasks_free(&t);
    }
}

static void refuse(const char *text, const char *why)
{
    struct tasks t;
    struct err err = ERR_INIT;

    write_file(text, strlen(text));
    assert_int_equal(tasks_read(&t, path, &err), ST_INPUT);
    if (!strstr(err.msg, why))
        fail_msg("'%s' does not have '%s'", err.msg, why);
    tasks_free(&t);
}

static void test_refused(void **state)
{
    (void)state;
    refuse("", "has no tasks");
    refuse("\n\nnonsense", "line 3: a task is a JSON object");
    refuse("[1]", "line 1: a task is a JSON object");
    refuse("{\"prompt\": \"\", \"answers\": [\"a\"]}", "the text 'prompt'");
    refuse("{\"prompt\": \"a\"}", "'answers' or a 'schema'");
    refuse("{\"prompt\": \"a\", \"answers\": []}", "'answers' or a 'schema'");
    refuse("{\"prompt\": \"a\", \"answers\": [\"b\"], \"schema\": {}}", "one of them");
    refuse("{\"prompt\": \"a\", \"answers\": [1]}", "a list of texts");
    refuse("{\"prompt\": \"a\", \"answers\": [\"\"]}", "a list of texts");
    refuse("{\"prompt\": \"a\", \"answers\": [\"b\"], \"max_tokens\": 0}",
           "a number from 1 to");
    refuse("{\"prompt\": \"a\", \"answers\": [\"b\"], \"max_tokens\": 1000001}",
           "a number from 1 to 1000000");
    refuse("{\"prompt\": \"a\", \"answers\": [\"b\"], \"max_tokens\": \"9\"}",
           "a number from 1 to");
    refuse("{\"answers\": [\"a\"]}", "the text 'prompt'");
    refuse("{\"prompt\": \"a\", \"schema\": {\"type\": \"x\"}}", "the type 'x'");
}

/* The largest file there may be is read, one more task is refused. */
static void test_limit(void **state)
{
    static const char line[] = "{\"prompt\": \"a\", \"answers\": [\"b\"]}\n";
    char *text = malloc((TASKS_MAX + 1) * (sizeof line - 1) + 1);
    struct tasks t;
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i <= TASKS_MAX; i++)
        strcpy(text + i * (sizeof line - 1), line);
    refuse(text, "more than");
    write_file(text, TASKS_MAX * (sizeof line - 1));
    assert_int_equal(tasks_read(&t, path, &err), ST_OK);
    assert_int_equal(t.n, TASKS_MAX);
    tasks_free(&t);
    free(text);
}

static void test_answers(void **state)
{
    static char *answers[] = {"Paris", "the city", "42", "(a)"};
    const struct task t = {.answers = answers, .n_answers = 4};

    (void)state;
    assert_true(task_accepts(&t, "Paris"));
    assert_true(task_accepts(&t, " \n paris, of course"));
    assert_true(task_accepts(&t, "THE CITY of light"));
    assert_true(task_accepts(&t, "42."));
    assert_true(task_accepts(&t, "(a)b"));
    assert_false(task_accepts(&t, "Parisian"));
    assert_false(task_accepts(&t, "Paris\xc3\xa9"));
    assert_false(task_accepts(&t, "421"));
    assert_false(task_accepts(&t, "It is Paris"));
    assert_false(task_accepts(&t, ""));
    assert_false(task_accepts(&t, "Par"));
}

static int make_file(void **state)
{
    const int fd = mkstemp(path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_answers),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
