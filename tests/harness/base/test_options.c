/* SPDX-License-Identifier: MIT
 *
 * test_options.c - the option table and the number parsers
 */
#include "tests/support/test.h"

#include <limits.h>

#include "harness/base/format.h"
#include "harness/base/options.h"
#include "harness/base/parse.h"
#include "harness/base/suggest.h"

struct values {
    bool json;
    const char *model, *draft;
    int n;
    double temp;
    uint64_t mem;
    struct int_list threads;
    struct str_list models;
};

static enum status parse(struct values *v, struct opt_args *args, const char *line,
                         struct err *err)
{
    static char buf[256];
    static char *argv[32]; /* args->v points into it */
    char *save = NULL;
    int argc = 0;
    const struct opt opts[] = {
        OPT_FLAG(0, "json", &v->json, "print JSON"),
        OPT_STR('o', "output", &v->model, "FILE", "a file"),
        OPT_STR(0, "draft", &v->draft, "MODEL", "one model"),
        OPT_INT('n', "tokens", &v->n, "N", "how many", 1, 100),
        OPT_DOUBLE(0, "temp", &v->temp, "T", "temperature", 0, 10),
        OPT_BYTES(0, "mem", &v->mem, "LIMIT", "limit"),
        OPT_INTS('t', "threads", &v->threads, "LIST", "threads", 1, 64),
        OPT_STRS('m', "model", &v->models, "FILE", "models"),
        OPT_END,
    };
    const struct opt_usage usage = {.synopsis = "test", .about = "About."};

    snprintf(buf, sizeof buf, "%s", line);
    for (char *w = strtok_r(buf, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    argv[argc] = NULL;
    return opt_parse(args, argc, argv, opts, &usage, err);
}

static void test_values(void **state)
{
    struct values v = {.n = 5};
    struct opt_args args;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(parse(&v, &args,
                           "test first --json -n 7 --temp=0.5 --mem 6G -t 1,2,4-6 -m a "
                           "--model b -- --last",
                           &err),
                     ST_OK);
    assert_true(v.json);
    assert_int_equal(v.n, 7);
    assert_true(v.temp == 0.5);
    assert_true(v.mem == (uint64_t)6 << 30);
    assert_int_equal(v.threads.n, 5);
    assert_int_equal(v.threads.v[2], 4);
    assert_int_equal(v.threads.v[4], 6);
    assert_int_equal(v.models.n, 2);
    assert_string_equal(v.models.v[1], "b");
    assert_int_equal(args.n, 2);
    assert_string_equal(args.v[0], "first");
    assert_string_equal(args.v[1], "--last");
    free(v.threads.v);
    free(v.models.v);
}

static void expect_usage(const char *line, const char *fragment)
{
    struct values v = {.n = 5};
    struct opt_args args;
    struct err err = ERR_INIT;

    assert_int_equal(parse(&v, &args, line, &err), ST_USAGE);
    if (!strstr(err.msg, fragment))
        fail_msg("'%s' gave '%s', which does not hold '%s'", line, err.msg, fragment);
    assert_int_equal(v.n, 5);
    free(v.threads.v);
    free(v.models.v);
}

static void test_errors(void **state)
{
    (void)state;
    expect_usage("test --tokenz 3", "did you mean --tokens?");
    expect_usage("test --nonsense", "no option --nonsense");
    expect_usage("test -q", "no option -q");
    expect_usage("test -n", "needs a value");
    expect_usage("test --json=yes", "test: --json takes no value");
    expect_usage("test -n 0", "outside 1..100");
    expect_usage("test -n 3x", "not a whole number");
    expect_usage("test -n 99999999999999999999", "outside");
    expect_usage("test --temp nan", "not a number");
    expect_usage("test --temp 11", "outside 0..10");
    expect_usage("test --mem 6Q", "not a size");
    expect_usage("test --mem -1", "not a size");
    expect_usage("test -t 3-1", "range");
    expect_usage("test -t ,", "--threads: ',' has an empty item");
    expect_usage("test -t 1,,2", "--threads: '1,,2' has an empty item");
    expect_usage("test -t 1,", "--threads: '1,' has an empty item");
    expect_usage("test --threads=", "--threads: an empty list");
    expect_usage("test -t 1,65", "outside 1..64");
    expect_usage("test --isa-disable avx9", "no ISA level 'avx9'");
    expect_usage("test --isa-disable am", "amx (amx_int8 and amx_bf16)");
    expect_usage("test --draft a --draft b",
                 "--draft is given twice, as a and b, and test takes one");
}

static void test_given_twice(void **state)
{
    struct values v = {.n = 5};
    struct opt_args args;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        parse(&v, &args, "test -n 7 -n 8 --draft a --draft=a -o x --output y", &err),
        ST_OK);
    assert_int_equal(v.n, 8);
    assert_string_equal(v.draft, "a");
    assert_string_equal(v.model, "y");
}

static void test_bytes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"none", 0},
        {"1B", 1},
        {"1048576", 1 << 20},
        {"512M", 512u << 20},
        {"1.5GiB", (uint64_t)3 << 29},
        {"4kB", 4096},
        {"2g", (uint64_t)2 << 30},
    };
    char buf[32];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = ERR_INIT;
        uint64_t bytes = 77;

        assert_int_equal(parse_bytes(rows[i].text, "x", &bytes, &err), ST_OK);
        assert_true(bytes == rows[i].bytes);
    }
    for (int i = 0; i < 2; i++) {
        struct err err = ERR_INIT;
        uint64_t bytes;

        assert_int_equal(parse_bytes(i ? "1000" : "6", "--mem", &bytes, &err),
                         ST_USAGE);
        assert_string_equal(err.msg,
                            i ? "--mem: '1000' has no unit; write 1000M for 1000 MiB"
                              : "--mem: '6' has no unit; write 6G for 6 GiB");
    }
    assert_string_equal(format_bytes(buf, sizeof buf, 0), "0 B");
    assert_string_equal(format_bytes(buf, sizeof buf, 1536), "1.50 KiB");
    assert_string_equal(format_bytes(buf, sizeof buf, (uint64_t)6 << 30), "6.00 GiB");
    assert_string_equal(format_duration(buf, sizeof buf, 65), "1:05 min");
}

static void test_seconds(void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } rows[] = {{"90", 90},    {"90s", 90},  {"1.5m", 90},
                {"2min", 120}, {"1h", 3600}, {"500ms", 0.5}};
    static const char *const bad[] = {"", "5y", "m", "5 m", "2h5m", "nan", "1e9"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = ERR_INIT;
        double v = 0;

        assert_int_equal(parse_duration(rows[i].text, "x", 0, 1e4, &v, &err), ST_OK);
        assert_true(v == rows[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = ERR_INIT;
        double v = 0;

        assert_int_equal(parse_duration(bad[i], "x", 0, 1e4, &v, &err), ST_USAGE);
    }
}

static void test_percent(void **state)
{
    static const char *const good[] = {"2", "2%", "2.0 %"};
    static const char *const bad[] = {"", " 2", "2%%", "two", "nan", "51", "0", "2x"};
    double v = 0;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct err err = ERR_INIT;

        assert_int_equal(parse_percent(good[i], "x", 1e-4, 0.5, &v, &err), ST_OK);
        assert_true(v == 0.02);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = ERR_INIT;

        assert_int_equal(parse_percent(bad[i], "x", 1e-4, 0.5, &v, &err), ST_USAGE);
        assert_true(v == 0.02);
    }
}

static void test_suggest(void **state)
{
    static const char *const names[] = {"sweep", "synth", "topo"};

    (void)state;
    assert_string_equal(suggest("swep", names, 3), "sweep");
    assert_string_equal(suggest("tops", names, 3), "topo");
    assert_string_equal(suggest("sewep", names, 3), "sweep"); /* swapped letters */
    assert_string_equal(suggest("otpo", names, 3), "topo");
    assert_null(suggest("gate", names, 3));
}

/* A text of some bytes may name a thousand times as many numbers: reading them takes
 * time in proportion, and there is a limit. */
static void test_long_lists(void **state)
{
    static const char item[] = ",1-4096";
    static char text[300 * (sizeof item - 1)];
    struct int_list list = {NULL, 0};
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < 256; i++)
        strcat(text, item);
    assert_int_equal(parse_counts(text + 1, "x", "", 1, 4096, &list, &err), ST_OK);
    assert_int_equal(list.n, 1 << 20);
    for (size_t i = 0; i < list.n; i++)
        assert_int_equal(list.v[i], 1 + i % 4096);
    free(list.v);
    strcat(text, ",7");
    assert_int_equal(parse_counts(text + 1, "x", "", 1, 4096, &list, &err), ST_USAGE);
    assert_string_equal(err.msg, "x: more than 1048576 numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_errors),
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_percent),     cmocka_unit_test(test_suggest),
        cmocka_unit_test(test_given_twice), cmocka_unit_test(test_long_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
