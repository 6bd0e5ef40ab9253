/* SPDX-License-Identifier: MIT
 *
 * test_sysfile.c - files of /proc and /sys: lists of CPUs, keys, words, any length
 */
#include "tests/support/tree_root.h"

#include "harness/base/sysfile.h"

struct seen {
    int n, cpu[64];
};

static void note_cpu(void *arg, int cpu)
{
    struct seen *s = arg;

    if (s->n < 64)
        s->cpu[s->n] = cpu;
    s->n++;
}

static void parses_cpu_lists(void **state)
{
    static const char *const wrong[] = {"a",    "3-1", "1-",          "-1",
                                        "1,,2", "1 ;", "99999999999", "0-4000000000"};
    struct seen s = {0};

    (void)state;
    assert_true(text_cpu_list("\t0-2,5\n", note_cpu, &s));
    assert_int_equal(s.n, 4);
    assert_int_equal(s.cpu[2], 2);
    assert_int_equal(s.cpu[3], 5);
    assert_true(text_cpu_list("", note_cpu, &s));
    assert_true(text_cpu_list("7\nMems_allowed: 0-9", note_cpu, &s));
    assert_int_equal(s.n, 5);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (i != 5) /* "1 ;": ends at the blank */
            assert_false(text_cpu_list(wrong[i], note_cpu, &s));
    }
}

static void reads_keys_and_numbers(void **state)
{
    uint64_t v = 7;

    (void)state;
    assert_true(text_key_u64("a 1\nab 2\nb:  3\n", "b", &v));
    assert_int_equal(v, 3);
    assert_true(text_key_u64("\n\nab 2\n", "ab", &v));
    assert_int_equal(v, 2);
    assert_false(text_key_u64("abc 2\n", "ab", &v));
    assert_false(text_key_u64("ab -2\n", "ab", &v));
    assert_int_equal(v, 2);
    assert_true(text_key_u64("x 99999999999999999999999\n", "x", &v));
    assert_true(v == UINT64_MAX);
    tree_put(root, "/n", "max\n");
    assert_true(sysfile_u64(root, "/n", &v) && v == UINT64_MAX);
    tree_put(root, "/n", "words\n");
    assert_false(sysfile_u64(root, "/n", &v));
    assert_false(sysfile_u64(root, "/none", &v));
    assert_true(text_has_word("cpuset cpu,memory", "cpu"));
    assert_false(text_has_word("cpuset cpuacct", "cpu"));
    assert_false(text_has_word("cpu", ""));
}

static void reads_files_of_any_length(void **state)
{
    const size_t n = 100000;
    char *text = malloc(n + 1), small[8];

    (void)state;
    memset(text, 'x', n);
    text[n] = '\0';
    tree_put(root, "/long", text);
    char *got = sysfile_read_all(root, "/long");
    assert_non_null(got);
    assert_string_equal(got, text);
    assert_int_equal(sysfile_read(root, "/long", small, sizeof small), 7);
    assert_string_equal(small, "xxxxxxx");
    assert_int_equal(sysfile_read(root, "/none", small, sizeof small), -1);
    assert_string_equal(small, "");
    free(got);
    free(text);
}

static void finds_what_is_behind_a_name(void **state)
{
    char text[64];

    (void)state;
    tree_put(root, "/proc/7/stat", "7 (a) (b c) S 1 2\n");
    assert_string_equal(sysfile_stat(root, "7", text, sizeof text), " S 1 2");
    tree_put(root, "/proc/7/task/8/stat", "8 (d)\n");
    assert_string_equal(sysfile_stat(root, "7/task/8", text, sizeof text), "");
    tree_put(root, "/proc/9/stat", "9 (e");
    assert_null(sysfile_stat(root, "9", text, sizeof text));
    assert_null(sysfile_stat(root, "10", text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_cpu_lists),
        cmocka_unit_test_setup_teardown(reads_keys_and_numbers, make_root, remove_root),
        cmocka_unit_test_setup_teardown(reads_files_of_any_length, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(finds_what_is_behind_a_name, make_root,
                                        remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
