/* SPDX-License-Identifier: MIT
 *
 * test_pathlist.c - an output that is an input is found, whatever its name
 */
#include "tests/support/tree.h"

#include <unistd.h>

#include "harness/base/pathlist.h"

static char root[64];

static const char *at(const char *path)
{
    static char full[8][160];
    static int i;

    i = (i + 1) % 8;
    snprintf(full[i], sizeof full[i], "%s%s", root, path);
    return full[i];
}

static enum status check(const struct path_list *inputs, const char *out)
{
    struct err err = ERR_INIT;
    const enum status st = path_list_check_output(inputs, out, &err);

    if (st) {
        assert_non_null(strstr(err.msg, "would replace"));
        assert_non_null(strstr(err.msg, out));
    }
    return st;
}

static void outputs_are_compared_by_file(void **state)
{
    struct path_list inputs = {0};
    struct err err = ERR_INIT;

    (void)state;
    tree_new(root);
    tree_put(root, "/a.gguf", "a");
    tree_put(root, "/b.gguf.part", "b");
    tree_put(root, "/c.gguf", "c");
    assert_int_equal(link(at("/a.gguf"), at("/hard")), 0);
    assert_int_equal(symlink("a.gguf", at("/soft")), 0);
    assert_int_equal(symlink("nowhere", at("/dangling")), 0);
    assert_int_equal(path_list_add(&inputs, at("/a.gguf"), &err), ST_OK);
    assert_int_equal(path_list_add(&inputs, NULL, &err), ST_OK);
    assert_int_equal(path_list_add(&inputs, at("/b.gguf.part"), &err), ST_OK);
    assert_int_equal(path_list_add(&inputs, at("/missing"), &err), ST_OK);
    assert_int_equal(path_list_add(&inputs, "/dev/null", &err), ST_OK);
    assert_int_equal(inputs.n, 4);

    assert_int_equal(check(&inputs, at("/a.gguf")), ST_USAGE);
    assert_int_equal(check(&inputs, at("/./a.gguf")), ST_USAGE);
    assert_int_equal(check(&inputs, at("/hard")), ST_USAGE);
    assert_int_equal(check(&inputs, at("/soft")), ST_USAGE);
    assert_int_equal(check(&inputs, at("/b.gguf")), ST_USAGE); /* its .part */
    assert_int_equal(check(&inputs, at("/c.gguf")), ST_OK);
    assert_int_equal(check(&inputs, at("/new")), ST_OK);
    assert_int_equal(check(&inputs, at("/dangling")), ST_OK);
    assert_int_equal(check(&inputs, "/dev/null"), ST_OK);
    assert_int_equal(check(&inputs, "-"), ST_OK);
    assert_int_equal(check(&inputs, NULL), ST_OK);
    path_list_free(&inputs);
    tree_remove(root);
}

static void outputs_that_cannot_be_written_are_refused_at_once(void **state)
{
    const struct path_list none = {0};
    struct err err = ERR_INIT;

    (void)state;
    tree_new(root);
    tree_put(root, "/a", "a");
    assert_int_equal(path_list_check_output(&none, at("/none/a"), &err), ST_IO);
    assert_non_null(strstr(err.msg, "cannot be written"));
    err_clear(&err);
    assert_int_equal(path_list_check_output(&none, at("/a/b"), &err), ST_IO);
    err_clear(&err);
    assert_int_equal(path_list_check_output(&none, root, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "folder"));
    err_clear(&err);
    assert_int_equal(chmod(root, 0500), 0);
    assert_int_equal(path_list_check_output(&none, at("/new"), &err),
                     geteuid() ? ST_PERMISSION : ST_OK);
    err_clear(&err);
    assert_int_equal(path_list_check_output(&none, "/dev/stdout", &err), ST_OK);
    assert_int_equal(chmod(root, 0700), 0);
    tree_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_compared_by_file),
        cmocka_unit_test(outputs_that_cannot_be_written_are_refused_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
