/* SPDX-License-Identifier: MIT
 *
 * test_gate_trace.c - recorded turns: what is read, what is refused, and their noise
 */
#include "tests/support/tree_root.h"

#include <math.h>

#include "harness/decide/gate/gate_run.h"
#include "research/gate_trace.h"

#define N 120

static char path[] = "/tmp/slm-trace-XXXXXX.txt";

static void write_text(const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

/* N turns of 20 ms and 30 ms, two by two. */
static size_t make_text(char *text, size_t cap)
{
    size_t n = (size_t)snprintf(text, cap, "# a machine; a model\r\n# more\n\n");

    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(text + n, cap - n, "%s\n", i % 4 < 2 ? "20" : "30.0");
    return n;
}

static void turns_are_read(void **state)
{
    char text[2048];
    struct gate_trace t;
    struct err err = ERR_INIT;

    (void)state;
    write_text(text, make_text(text, sizeof text));
    assert_int_equal(gate_trace_read(&t, path, &err), ST_OK);
    assert_int_equal(t.n, N);
    assert_string_equal(t.about, "a machine; a model");
    assert_memory_equal(t.name, "slm-trace-", 10);
    assert_null(strchr(t.name, '.'));
    assert_true(fabs(t.log_time[0] - log(0.02)) < 1e-12);
    assert_true(fabs(t.log_time[2] - log(0.03)) < 1e-12);
    gate_trace_free(&t);
}

/* Rounds of 20 20 30 30 say nothing, so all their noise is what is put into them. */
static void noise_is_that_of_rounds(void **state)
{
    double v[4 * 50];
    const struct gate_trace t = {.log_time = v, .n = 4 * 50};

    (void)state;
    for (int i = 0; i < 4 * 50; i++)
        v[i] = log(i % 4 < 2 ? 0.02 : 0.03) + (i % 4 == 0 ? (i % 8 ? 0.1 : -0.1) : 0);
    /* A round is half of +0.1 or -0.1. */
    assert_true(fabs(gate_trace_noise(&t) - 0.05 * sqrt(50 / 49.0)) < 1e-12);
}

static void refuse(const char *text, size_t n, const char *says)
{
    struct gate_trace t;
    struct err err = ERR_INIT;

    write_text(text, n);
    assert_int_equal(gate_trace_read(&t, path, &err), ST_INPUT);
    if (!strstr(err.msg, says))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    assert_null(t.log_time);
}

static void other_files_are_refused(void **state)
{
    static const char *const bad[] = {"0",   "-1",   "nan",      "inf",  "1e99",
                                      "20x", "20 3", "0x1p2000", "1e-9", "--"};
    char text[2048];
    const size_t n = make_text(text, sizeof text);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char odd[2100];
        const size_t n_odd =
            (size_t)snprintf(odd, sizeof odd, "%.*s%s\n", (int)n, text, bad[i]);

        refuse(odd, n_odd, "line 124");
    }
    refuse(text, 0, "has 0 turns");
    refuse(text, n / 2, "at least 100");
    text[n - 3] = '\0';
    refuse(text, n, "not a text of turns");
}

/* Wherever it is cut, it is read or refused; what is read has all whole lines. */
static void any_cut_is_safe(void **state)
{
    char text[2048];
    const size_t n = make_text(text, sizeof text);

    (void)state;
    for (size_t cut = 0; cut < n; cut++) {
        struct gate_trace t;
        struct err err = ERR_INIT;

        write_text(text, cut);
        if (gate_trace_read(&t, path, &err) == ST_OK)
            assert_in_range(t.n, GATE_TRACE_MIN, N);
        for (size_t i = 0; i < t.n; i++)
            assert_true(fabs(t.log_time[i] - log(i % 4 < 2 ? 0.02 : 0.03)) < 1e-12);
        gate_trace_free(&t);
    }
}

/* B takes half as long again, in every metric; what is measured once a launch, and the
 * second metric, are no turns of the first. */
static size_t make_rounds(char *text, size_t cap)
{
    size_t n = (size_t)snprintf(text, cap, "%s", GATE_ROUNDS_HEADER);

    for (int i = 1; i <= 30; i++) {
        const char *order = i % 3 ? "ABBA" : "BAAB";
        double t[4];

        for (int k = 0; k < 4; k++)
            t[k] = (order[k] == 'B' ? 1.5e-4 : 1e-4) * (i == 7 && k == 2 ? 2 : 1);
        n += (size_t)snprintf(
            text + n, cap - n,
            "%d,1,AB,1,\"peak memory\",MiB,12,13,,,0.1,\"\"\n"
            "%d,1,%s,1,\"decode, depth 0\",tok/s,%g,%g,%g,%g,0.4,\"x\"\n"
            "%d,1,%s,1,\"prefill\",tok/s,1,2,3,4,0.4,\"\"\n",
            i, i, order, t[0], t[1], t[2], t[3], i, order);
    }
    return n;
}

static void rounds_of_a_gate_are_a_trace(void **state)
{
    char text[8192];
    struct gate_trace t;
    struct err err = ERR_INIT;
    const size_t n = make_rounds(text, sizeof text);

    (void)state;
    assert_true(n < sizeof text);
    write_text(text, n);
    assert_int_equal(gate_trace_read(&t, path, &err), ST_OK);
    assert_int_equal(t.n, 120);
    assert_string_equal(t.about, "decode, depth 0");
    for (size_t i = 0; i < t.n; i++)
        assert_true(fabs(t.log_time[i] - log(i == 26 ? 2e-4 : 1e-4)) < 1e-9);
    gate_trace_free(&t);
    for (size_t cut = 0; cut < n; cut += 7) {
        err_clear(&err);
        write_text(text, cut);
        gate_trace_read(&t, path, &err);
        gate_trace_free(&t);
    }
    strstr(text, "0.0001")[0] = '-';
    refuse(text, n, "a turn of -0.0001 seconds");
}

/* Lines of rounds.csv that are no rounds of four turns are passed over. */
static void other_lines_are_no_rounds(void **state)
{
    static const char *const others[] = {
        "1,1,AB,1,\"decode, depth 0\",tok/s,1,2,3,4,0.4,\"\"", /* of two turns */
        "1,1,ABBA,1,\"decode, depth 0\",tok/s,1,2,3,4",        /* cut short */
        "1,1,ABBA,1,\"decode, depth 0\",tok/s,1,2,3",
        "1,1,ABCA,1,\"decode, depth 0\",tok/s,1,2,3,4,0.4,\"\"",
        "# a comment",
        "",
    };
    char text[9000];
    struct err err = ERR_INIT;
    struct gate_trace t;
    size_t n = make_rounds(text, sizeof text);

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", others[i]);
    write_text(text, n);
    assert_int_equal(gate_trace_read(&t, path, &err), ST_OK);
    assert_int_equal(t.n, 120);
    gate_trace_free(&t);
    n += (size_t)snprintf(text + n, sizeof text - n,
                          "1,1,ABBA,1,\"decode, depth 0\",tok/s,1,inf,3,4,0.4,\"\"\n");
    refuse(text, n, "a turn of inf seconds");
    n = (size_t)snprintf(text, sizeof text, GATE_ROUNDS_HEADER "%s\n", others[0]);
    refuse(text, n, "has 0 turns");
}

/* A comment behind the first turn words nothing about all of them. */
static void late_comments_are_not_about_it(void **state)
{
    char text[2048];
    struct err err = ERR_INIT;
    struct gate_trace t;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " 20 \t\n%s",
                              i == 3 ? "# late\n" : "");
    write_text(text, n);
    assert_int_equal(gate_trace_read(&t, path, &err), ST_OK);
    assert_int_equal(t.n, N);
    assert_string_equal(t.about, "");
    gate_trace_free(&t);
}

static void a_trace_has_a_limit(void **state)
{
    const size_t n = 2 * (size_t)(GATE_TRACE_MAX + 1);
    char *text = malloc(n);
    struct err err = ERR_INIT;
    struct gate_trace t;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < n; i += 2)
        memcpy(text + i, "5\n", 2);
    refuse(text, n, "has more than 1000000 turns");
    write_text(text, n - 2);
    assert_int_equal(gate_trace_read(&t, path, &err), ST_OK);
    assert_int_equal(t.n, GATE_TRACE_MAX);
    gate_trace_free(&t);
    free(text);
}

/* A trace is called as its file without the ending, a gate's rounds as their folder. */
static void traces_have_names(void **state)
{
    static const struct {
        const char *file, *name;
    } cases[] = {
        {"/a.trace", "a"},
        {"/a.b.txt", "a.b"},
        {"/plain", "plain"},
        {"/.hidden", ".hidden"},
        {"/a,b\"c'd.txt", "a_b_c_d"},
        {"/a\033[31m.txt", "a\\x1b[31m"},
        {"/gate-1/" GATE_ROUNDS_NAME, "gate-1"},
        {"/gate,2/" GATE_ROUNDS_NAME, "gate_2"},
        {"/" GATE_ROUNDS_NAME ".old", GATE_ROUNDS_NAME},
        {"/a-name-of-more-than-sixty-characters-which-no-table-has-room-for.txt",
         "a-name-of-more-than-sixty-characters-which-no-table-has-room"},
    };
    char text[2048], full[300], dir[4096];
    struct err err = ERR_INIT;
    struct gate_trace t;

    (void)state;
    text[make_text(text, sizeof text)] = '\0';
    make_root(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tree_put(root, cases[i].file, text);
        snprintf(full, sizeof full, "%s%s", root, cases[i].file);
        assert_int_equal(gate_trace_read(&t, full, &err), ST_OK);
        assert_string_equal(t.name, cases[i].name);
        gate_trace_free(&t);
    }
    /* without a folder before it */
    assert_non_null(getcwd(dir, sizeof dir));
    assert_int_equal(chdir(root), 0);
    tree_put(root, "/" GATE_ROUNDS_NAME, text);
    assert_int_equal(gate_trace_read(&t, GATE_ROUNDS_NAME, &err), ST_OK);
    assert_string_equal(t.name, "rounds");
    gate_trace_free(&t);
    assert_int_equal(gate_trace_read(&t, "gate-1/" GATE_ROUNDS_NAME, &err), ST_OK);
    assert_string_equal(t.name, "gate-1");
    gate_trace_free(&t);
    assert_int_equal(chdir(dir), 0);
    remove_root(state);
}

static int make_path(void **state)
{
    const int fd = mkstemps(path, 4);

    (void)state;
    return fd < 0 || close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_read),
        cmocka_unit_test(noise_is_that_of_rounds),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(any_cut_is_safe),
        cmocka_unit_test(rounds_of_a_gate_are_a_trace),
        cmocka_unit_test(other_lines_are_no_rounds),
        cmocka_unit_test(late_comments_are_not_about_it),
        cmocka_unit_test(a_trace_has_a_limit),
        cmocka_unit_test(traces_have_names),
    };

    return cmocka_run_group_tests(tests, make_path, remove_path);
}
