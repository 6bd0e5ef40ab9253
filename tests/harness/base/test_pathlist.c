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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_compared_by_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
