/* SPDX-License-Identifier: MIT
 *
 * test_jsonfile.c - files that nobody has vouched for: what they are, how large they
 * are, and how large they become
 */
#include "tests/support/tree_root.h"

#include <unistd.h>

#include "engine/base/infile.h"
#include "engine/base/jsonfile.h"

static const struct json_limit small = {100, 10};
static enum status parse(const char *text, struct err *err)
{
    struct jsonfile f;
    const enum status st =
        jsonfile_parse(&f, "some.json", text, strlen(text), small, 0, err);

    if (st == ST_OK)
        jsonfile_free(&f);
    return st;
}

static void values_are_counted(void **state)
{
    static const char *const fit[] = {"{}", "{\"a\":[1,2,3,4,5,6]}",
                                      "{\"a,[{\\\",,,,,,,,,,\": 1}"};
    static const char *const many[] = {"{\"a\":[1,2,3,4,5,6,7,8,9]}",
                                       "{\"a\":[[[[[[[[[[]]]]]]]]]]}",
                                       "{\"a\":1,\"b\":2,\"c\":3,\"d\":[[],[],[],[]]}"};

    (void)state;
    for (size_t i = 0; i < sizeof fit / sizeof *fit; i++) {
        struct err err = ERR_INIT;

        if (parse(fit[i], &err))
            fail_msg("%s: %s", fit[i], err.msg);
    }
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        struct err err = ERR_INIT;

        assert_int_equal(parse(many[i], &err), ST_INPUT);
        assert_non_null(strstr(err.msg, "some.json has"));
        assert_non_null(strstr(err.msg, "at most 10 in 100"));
    }
}

static void what_is_no_object_is_refused(void **state)
{
    static const char *const cases[][2] = {
        {"[]", "some.json holds no JSON object"},
        {"version https://git-lfs.github.com/spec/v1\n",
         "some.json is a Git LFS pointer; fetch the file itself"},
    };
    char dir[5000], *text = NULL;
    struct jsonfile f;
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err_clear(&err);
        assert_int_equal(parse(cases[i][0], &err), ST_INPUT);
        assert_non_null(strstr(err.msg, cases[i][1]));
    }
    memset(dir, 'd', sizeof dir - 1);
    dir[sizeof dir - 1] = '\0';
    err_clear(&err);
    assert_int_equal(jsonfile_load(&f, dir, "a.json", small, &err), ST_USAGE);
    assert_string_equal(err.msg, "the path of a.json is longer than 4095 bytes");
    err_clear(&err);
    assert_int_equal(jsonfile_read_text(&text, dir, "a.txt", 10, &err), ST_USAGE);
    assert_null(text);
    assert_false(jsonfile_exists(dir, "a.txt"));
}

/* No text is read behind its end, however it ends. */
static void cut_texts_are_counted(void **state)
{
    static const char whole[] = "{\"a\\\\\\\"\": [1, \"\\u0041\", {\"b\": null}]}";

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++) {
        char *text = malloc(n + 1); /* of its own, so that a sanitizer sees the end */
        struct err err = ERR_INIT;
        struct jsonfile f;

        memcpy(text, whole, n);
        if (jsonfile_parse(&f, "some.json", text, n, small, 0, &err) == ST_OK)
            jsonfile_free(&f);
        free(text);
    }
}

static void only_regular_files_are_read(void **state)
{
    static const struct {
        const char *name, *says;
    } cases[] = {
        {"pipe", "is a pipe or a device"}, {"zero", "is a pipe or a device"},
        {"folder", "is a folder"},         {"large", "has 101 bytes; at most 100"},
        {"none", "cannot open"},           {"dangling", "cannot open"}};
    char path[128], text[102];

    (void)state;
    memset(text, ' ', 101);
    text[101] = '\0';
    tree_put(root, "/large", text);
    tree_put(root, "/good", "{\"a\": 1}");
    tree_mkdir(root, "/folder");
    snprintf(path, sizeof path, "%s/pipe", root);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/zero", root);
    assert_int_equal(symlink("/dev/zero", path), 0);
    snprintf(path, sizeof path, "%s/dangling", root);
    assert_int_equal(symlink("/nowhere", path), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = ERR_INIT;
        struct jsonfile f;

        assert_int_not_equal(jsonfile_load(&f, root, cases[i].name, small, &err),
                             ST_OK);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
    struct err err = ERR_INIT;
    struct jsonfile f;

    assert_int_equal(jsonfile_load(&f, root, "good", small, &err), ST_OK);
    jsonfile_free(&f);
}

/* What cannot be looked at is not what is missing. */
static void missing_or_unknown(void **state)
{
    struct err err = ERR_INIT;
    char path[128];
    bool exists;

    (void)state;
    tree_put(root, "/good", "{}");
    assert_int_equal(jsonfile_find(&exists, root, "good", &err), ST_OK);
    assert_true(exists);
    assert_int_equal(jsonfile_find(&exists, root, "none/good", &err), ST_OK);
    assert_false(exists);
    assert_int_equal(jsonfile_find(&exists, root, "good/none", &err), ST_OK);
    assert_false(exists);
    snprintf(path, sizeof path, "%s/loop", root);
    assert_int_equal(symlink("loop", path), 0);
    assert_int_equal(jsonfile_find(&exists, root, "loop", &err), ST_IO);
    assert_non_null(strstr(err.msg, "cannot find out whether there is "));
    assert_false(jsonfile_exists(root, "loop"));
}

/* None is cut at a zero byte. */
static void texts_are_whole(void **state)
{
    struct err err = ERR_INIT;
    char path[128], *text;
    FILE *f;

    (void)state;
    tree_put(root, "/text", "{{ messages }}");
    assert_int_equal(jsonfile_read_text(&text, root, "text", 100, &err), ST_OK);
    assert_string_equal(text, "{{ messages }}");
    free(text);
    snprintf(path, sizeof path, "%s/text", root);
    f = fopen(path, "a");
    assert_non_null(f);
    assert_int_equal(fwrite("\0{{ more }}", 1, 11, f), 11);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(jsonfile_read_text(&text, root, "text", 100, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "zero byte"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(values_are_counted),    TEST(what_is_no_object_is_refused),
        TEST(cut_texts_are_counted), TEST(only_regular_files_are_read),
        TEST(missing_or_unknown),    TEST(texts_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
