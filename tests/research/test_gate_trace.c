/* SPDX-License-Identifier: MIT
 *
 * test_gate_trace.c - recorded turns: what is read, what is refused, and their noise
 */
#include "tests/support/test.h"

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
    };

    return cmocka_run_group_tests(tests, make_path, remove_path);
}
