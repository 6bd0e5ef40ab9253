/* SPDX-License-Identifier: MIT
 *
 * Samples of launches: a real table, one of somebody else, one cut short at any byte.
 */
#include "harness/rows/samples.h"

#include <math.h>
#include <unistd.h>

#include "harness/rows/result_set.h"
#include "tests/support/test.h"
#include "tests/support/tree_root.h"

static enum status read_text(struct samples *s, const char *text, size_t len)
{
    char path[128];
    struct err err = ERR_INIT;

    snprintf(path, sizeof path, "%s/samples.csv", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite(text, 1, len, f);
    fclose(f);
    return samples_read(s, root, &err);
}

static const struct launch_samples *find(const struct samples *s, const char *point,
                                         int64_t attempt)
{
    struct row r;

    row_init(&r);
    snprintf(r.point, sizeof r.point, "%s", point);
    r.attempt = attempt;
    return samples_of(s, &r);
}

/* Every row of a recorded sweep that has samples has as many as it says. */
static void recorded_sweep(void **state)
{
    static const char dir[] = SLM_SOURCE_DIR "/results/examples/zen5-2vcpu";
    struct err err = ERR_INIT;
    struct samples s;
    struct result_set set;
    size_t n_found = 0;

    (void)state;
    assert_int_equal(samples_read(&s, dir, &err), ST_OK);
    assert_int_equal(result_set_open(&set, dir, RESULT_LAST, &err), ST_OK);
    const struct row *rows = set.parts[0].rows;
    const size_t n = set.parts[0].n;
    for (size_t i = 0; i < n; i++) {
        const struct launch_samples *l = samples_of(&s, &rows[i]);

        if (!l)
            continue;
        assert_int_equal(l->n, rows[i].n_samples);
        n_found++;
    }
    assert_int_equal(n_found, n);
    assert_int_equal(s.n, n);
    result_set_free(&set);
    samples_free(&s);
}

static void no_file(void **state)
{
    struct err err = ERR_INIT;
    struct samples s;
    char path[128];

    (void)state;
    assert_int_equal(samples_read(&s, "/nowhere", &err), ST_OK);
    assert_int_equal(s.n, 0);
    assert_null(find(&s, "a", 1));
    samples_free(&s);
    snprintf(path, sizeof path, "%s/samples.csv", root);
    unlink(path);
    assert_int_equal(symlink("samples.csv", path), 0);
    assert_int_equal(samples_read(&s, root, &err), ST_IO);
    unlink(path);
}

static void foreign_lines(void **state)
{
    static const char text[] =
        SAMPLES_HEADER "b,2,0,4\n"
                       "b,2,1,5\n"
                       "\n"
                       "a,1,0,nan\n"
                       "a,1,0,-1\n"
                       "a,1,0,inf\n"
                       "a,1,0\n"
                       "a,1,-1,1\n"
                       "a,99999999999999999999,0,1\n"
                       "a,1,99999999999999999999,1\n"
                       "a,,0,1\n"
                       "a,1x,0,1\n"
                       "a,1,0,\n"
                       "a,1,0,0\n"
                       "a,1,0,1x\n"
                       "a\n"
                       "\"a\"x,1,0,1\n"
                       "\"a\"\n"
                       "a,one,0,1\n"
                       "a,1,0,1,1\n"
                       "\"a,b\",1,0,7.5\n"
                       "\"a,b,1,0,7.5\n"
                       "b,1,0,1\n"
                       "b,3,1,1\n" /* its first is missing */
                       "c,3,1,1\n" /* of another launch, and not its first */
                       "b,2,0,8\n" /* once more: the later one counts */
                       "b,2,1,9\n"
                       "b,2,2,10\n"
                       "c,1,0,1"; /* cut short */
    struct samples s;

    (void)state;
    assert_int_equal(read_text(&s, text, strlen(text)), ST_OK);
    assert_int_equal(s.n, 5);
    assert_int_equal(find(&s, "b", 2)->n, 3);
    assert_int_equal(find(&s, "b", 3)->n, 1);
    assert_int_equal(find(&s, "c", 3)->n, 1);
    assert_true(find(&s, "b", 2)->ms[0] == 8 && find(&s, "b", 2)->ms[2] == 10);
    assert_int_equal(find(&s, "b", 1)->n, 1);
    assert_true(find(&s, "a,b", 1)->ms[0] == 7.5);
    assert_null(find(&s, "a", 1));
    assert_null(find(&s, "c", 1));
    samples_free(&s);
}

/* A zero byte spoils its line, and no line after it. */
static void zeros(void **state)
{
    static const char text[] =
        SAMPLES_HEADER "a,1,0,4\n\0\0\0b,1,0,5\nc,1,0,6\0,7\nd,1,0,8\n";
    struct samples s;

    (void)state;
    assert_int_equal(read_text(&s, text, sizeof text - 1), ST_OK);
    assert_int_equal(s.n, 2);
    assert_non_null(find(&s, "a", 1));
    assert_true(find(&s, "d", 1)->ms[0] == 8);
    samples_free(&s);
}

/* Cells of requests may be empty; a launch that stands there twice counts once. */
static void requests(void **state)
{
    static const char text[] = REQUESTS_HEADER "a,1,0,0.5,20,1.5,\n"
                                               "a,1,1,,,,7\n"
                                               "a,1,2,0.25,,0.25,0,inf,3\n"
                                               "a,1,3,0.25,1,1\n"         /* too few */
                                               "a,1,3,0.25,1,1,1,1,1,1\n" /* too many */
                                               "a,1,3,nan,1,1,1\n"
                                               "a,1,3,-1,1,1,1\n"
                                               "a,1,3,1x,1,1,1\n"
                                               "a,1,3,1,1,1,x\n"
                                               "b,1,0,9,9,9,9\n"
                                               "b,1,0,8,8,8,8\n"
                                               "b,1,1,1,1"; /* cut short */
    struct err err = ERR_INIT;
    char path[128];
    struct samples s;

    (void)state;
    snprintf(path, sizeof path, "%s/" REQUESTS_CSV, root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(requests_read(&s, root, &err), ST_OK);
    assert_int_equal(s.n, 2);
    const struct launch_samples *l = find(&s, "a", 1);

    assert_int_equal(l->n, 3);
    assert_true(l->ms[REQUEST_TTFT_S] == 0.5 && l->ms[REQUEST_E2E_S] == 1.5);
    assert_true(isnan(l->ms[REQUEST_CACHED_TOKENS]));
    assert_true(isnan(l->ms[REQUEST_CELLS + REQUEST_TTFT_S]));
    assert_true(l->ms[REQUEST_CELLS + REQUEST_CACHED_TOKENS] == 7);
    assert_true(l->ms[2 * REQUEST_CELLS + REQUEST_CACHED_TOKENS] == 0);
    /* files of earlier versions have no more columns */
    assert_true(isnan(l->ms[REQUEST_VISIBLE_S]) && isnan(l->ms[REQUEST_TURN]));
    assert_true(isinf(l->ms[2 * REQUEST_CELLS + REQUEST_VISIBLE_S]));
    assert_true(l->ms[2 * REQUEST_CELLS + REQUEST_TURN] == 3);
    assert_int_equal(find(&s, "b", 1)->n, 1);
    assert_true(find(&s, "b", 1)->ms[REQUEST_TTFT_S] == 8);
    samples_free(&s);
}

/* Of a table that was cut short the lines that are whole remain. */
static void truncated(void **state)
{
    static const char text[] = SAMPLES_HEADER "a,1,0,1.5\na,1,1,2.5\n\"b,c\",2,0,3\n";

    (void)state;
    for (size_t len = 0; len <= strlen(text); len++) {
        struct samples s;
        size_t n_lines = 0, n = 0;

        for (size_t i = 0; i < len; i++)
            n_lines += text[i] == '\n';
        assert_int_equal(read_text(&s, text, len), ST_OK);
        for (size_t i = 0; i < s.n; i++)
            n += s.v[i].n;
        assert_int_equal(n, n_lines ? n_lines - 1 : 0);
        samples_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_sweep), cmocka_unit_test(no_file),
        cmocka_unit_test(foreign_lines),  cmocka_unit_test(zeros),
        cmocka_unit_test(requests),       cmocka_unit_test(truncated),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
