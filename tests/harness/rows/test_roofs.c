/* SPDX-License-Identifier: MIT
 *
 * test_roofs.c - roofs of one sweep held against each other
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/rows/roofs.h"

static struct row row_of(int n_threads, double gbps)
{
    struct row r;

    row_init(&r);
    r.kind = POINT_DECODE;
    snprintf(r.validity, sizeof r.validity, "valid");
    r.limiter = LIMITER_MEMORY;
    snprintf(r.cpus, sizeof r.cpus, "0-%d", n_threads - 1);
    r.n_threads = n_threads;
    r.roof_gbps = gbps;
    return r;
}

static void mark_all(struct row *rows, size_t n)
{
    struct err err = ERR_INIT;

    assert_int_equal(roof_mark_all(rows, n, &err), ST_OK);
}

static void low_roofs_are_marked(void **state)
{
    struct row rows[] = {row_of(2, 50), row_of(2, 41), row_of(2, 43), row_of(2, 51),
                         row_of(1, 25)};

    (void)state;
    mark_all(rows, 5);
    assert_string_equal(rows[0].validity, "valid");
    assert_string_equal(rows[1].validity,
                        "disturbed: memory gave 41.0 GB/s, at other points 50.0");
    assert_int_equal(rows[1].limiter, LIMITER_NOISE);
    assert_string_equal(rows[1].limiter_why,
                        "memory gave 41.0 GB/s, at other points 50.0");
    for (int i = 2; i < 5; i++)
        assert_string_equal(rows[i].validity, "valid");
}

/* Steps with a chunk of a prompt are run by the threads of prefill. */
static void chunks_have_roofs_of_prefill(void **state)
{
    struct row rows[] = {row_of(2, 50), row_of(2, 41), row_of(2, 51), row_of(2, 25)};

    (void)state;
    rows[1].n_threads = rows[3].n_threads = 1;
    rows[1].n_threads_prefill = rows[3].n_threads_prefill = 2;
    rows[1].n_chunk = 32; /* the other one has none */
    mark_all(rows, 4);
    assert_string_equal(rows[1].validity,
                        "disturbed: memory gave 41.0 GB/s, at other points 50.0");
    assert_string_equal(rows[3].validity, "valid");
}

/* Rows of bench load are held against each other, whatever server, and not against
 * points, whose roof is that of their own weights. */
static void servers_have_roofs(void **state)
{
    struct row rows[] = {row_of(2, 50), row_of(2, 30), row_of(2, 29), row_of(2, 20)};

    (void)state;
    for (int i = 1; i < 4; i++) {
        rows[i].kind = ROW_LOAD;
        rows[i].limiter = FIELD_NO_ENUM;
        rows[i].file_bytes = i == 3 ? FIELD_NO_INT : 1 << 20;
    }
    mark_all(rows, 4);
    for (int i = 0; i < 3; i++)
        assert_string_equal(rows[i].validity, "valid");
    assert_string_equal(rows[3].validity,
                        "disturbed: memory gave 20.0 GB/s, at other points 29.0");
    assert_int_equal(rows[3].limiter, FIELD_NO_ENUM);
}

/* What one row has got is not what the others should have: the reference is the upper
 * quartile, and of three and more never the highest. */
static void a_lucky_roof_marks_no_other(void **state)
{
    struct row few[] = {row_of(2, 80), row_of(2, 50), row_of(2, 49)};
    struct row many[] = {row_of(2, 50), row_of(2, 80), row_of(2, 51),
                         row_of(2, 49), row_of(2, 30), row_of(2, 50)};

    (void)state;
    mark_all(few, 3);
    mark_all(many, 6);
    for (int i = 0; i < 3; i++)
        assert_string_equal(few[i].validity, "valid");
    for (int i = 0; i < 6; i++)
        assert_string_equal(many[i].validity,
                            i == 4
                                ? "disturbed: memory gave 30.0 GB/s, at other points "
                                  "51.0"
                                : "valid");
}

/* What is drawn for a row is not its own minute's roof. */
static void the_best_roof_is_the_undisturbed_machine_s(void **state)
{
    struct row rows[] = {row_of(2, 50), row_of(2, 30), row_of(2, 52), row_of(2, 49),
                         row_of(2, 80), row_of(1, 70), row_of(2, 51), row_of(4, 40)};
    const struct row *v[8];
    bool doubtful;

    (void)state;
    for (int i = 0; i < 8; i++)
        v[i] = &rows[i];
    strcpy(rows[1].validity, "disturbed: others 40 %");
    strcpy(rows[7].validity, "disturbed: others 40 %");
    assert_float_equal(roof_best(&rows[1], v, 8, &doubtful), 52,
                       0); /* 80: a lucky one */
    assert_false(doubtful);
    assert_float_equal(roof_best(&rows[5], v, 8, &doubtful), 70, 0);
    assert_float_equal(roof_best(&rows[7], v, 8, &doubtful), 40, 0);
    assert_true(doubtful);
    rows[0].limiter = LIMITER_PAGING; /* it is probed through a buffer */
    assert_true(isnan(roof_best(&rows[0], v, 8, &doubtful)));
    assert_true(isnan(roof_best(&rows[2], v, 0, &doubtful)));
}

/* Where most rows are disturbed, a quarter of them still shows what memory gives. */
static void disturbed_rows_may_be_the_most(void **state)
{
    struct row rows[] = {row_of(2, 50), row_of(2, 30), row_of(2, 31), row_of(2, 49)};

    (void)state;
    mark_all(rows, 4);
    assert_string_equal(rows[0].validity, "valid");
    assert_int_equal(rows[1].limiter, LIMITER_NOISE);
    assert_int_equal(rows[2].limiter, LIMITER_NOISE);
    assert_string_equal(rows[3].validity, "valid");
}

static struct row prefill_of(double gops)
{
    struct row r = row_of(2, 50);

    r.kind = POINT_PREFILL;
    r.roof_gops = gops;
    r.limiter = LIMITER_COMPUTE;
    return r;
}

/* The roof of prefill is the arithmetic peak: where it was low, something else had the
 * execution units, or the clock was lower. */
static void prefill_is_held_against_peaks(void **state)
{
    struct row rows[] = {prefill_of(900), prefill_of(600), prefill_of(910),
                         prefill_of(1500), row_of(2, 50)};

    (void)state;
    rows[0].roof_gbps = 10; /* that is not what limits it */
    rows[0].file_bytes = INT64_C(5000000000);
    mark_all(rows, 5);
    assert_string_equal(rows[0].validity, "valid");
    assert_string_equal(rows[1].validity,
                        "disturbed: the arithmetic peak was 600 GOPS, at other points "
                        "910");
    assert_int_equal(rows[1].limiter, LIMITER_NOISE);
    for (int i = 2; i < 5; i++)
        assert_string_equal(rows[i].validity, "valid");
}

static void only_what_can_be_compared_counts(void **state)
{
    struct row paging = row_of(2, 90), prefill = row_of(2, 20), empty = row_of(2, 0);
    struct row r = row_of(2, 50), other = row_of(2, 30), memory = row_of(2, 80);
    double best = 0;

    (void)state;
    paging.limiter = LIMITER_PAGING;
    prefill.kind = POINT_PREFILL;
    memory.pages = MEM_PAGES_2M;
    const struct row rows[] = {paging, prefill, empty, r, memory};

    assert_false(roof_is_low(&r, rows, 5, &best));
    assert_true(best == 50);
    assert_true(roof_is_low(&other, rows, 5, NULL));
    assert_false(roof_is_low(&prefill, rows, 5, NULL));
    assert_false(roof_is_low(&empty, rows, 5, NULL));
    assert_false(roof_is_low(&paging, rows, 5, NULL));
}

/* 2 MB read from a cache are no measure for 5 GB read from memory, but the other way
 * round they are: nothing is slower than a cache. */
static void a_small_model_is_no_measure_for_a_large_one(void **state)
{
    struct row rows[] = {row_of(2, 190), row_of(2, 45), row_of(2, 44), row_of(2, 20)};

    (void)state;
    rows[0].file_bytes = 2000000;
    rows[1].file_bytes = INT64_C(5000000000);
    rows[2].file_bytes = INT64_C(7000000000);
    rows[3].file_bytes = 2000000;
    mark_all(rows, 4);
    assert_string_equal(rows[0].validity, "valid");
    assert_string_equal(rows[1].validity, "valid");
    assert_string_equal(rows[2].validity, "valid");
    assert_string_equal(rows[3].validity,
                        "disturbed: memory gave 20.0 GB/s, at other points 45.0");
}

static void a_known_disturbance_keeps_its_name(void **state)
{
    struct row rows[] = {row_of(2, 50), row_of(2, 30)};

    (void)state;
    snprintf(rows[1].validity, sizeof rows[1].validity, "disturbed: steal 4 %%");
    mark_all(rows, 2);
    assert_string_equal(rows[1].validity, "disturbed: steal 4 %");
}

/* A table of somebody else may have as many rows as are read of one: in quadratic time
 * they take hours. A sample of them has the marks that roof_mark() makes one by one. */
static void a_large_table_is_marked_as_row_by_row(void **state)
{
    enum { N = 100000, STEP = 4001 };
    struct row *rows = malloc(N * sizeof *rows), before[N / STEP + 1];
    uint64_t x = 1;

    (void)state;
    assert_non_null(rows);
    for (size_t i = 0; i < N; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        rows[i] = row_of(1 + (int)(x >> 62), 20 + (double)(x >> 58));
        rows[i].file_bytes = (int64_t)(x >> 40 & 7) << 28;
        rows[i].kind = x >> 30 & 7 ? POINT_DECODE : POINT_PREFILL;
        rows[i].limiter = x >> 33 & 15 ? LIMITER_MEMORY : LIMITER_PAGING;
        rows[i].pages = (int)(x >> 37 & 1);
        if (rows[i].kind == POINT_PREFILL)
            rows[i].roof_gops = 500 + (double)(x >> 20 & 511);
        if (i % STEP == 0)
            before[i / STEP] = rows[i];
    }
    mark_all(rows, N);
    for (size_t i = 0; i < N; i += STEP) {
        const struct row marked = rows[i];

        rows[i] = before[i / STEP];
        roof_mark(&rows[i], rows, N); /* marks of others change no roof */
        assert_string_equal(marked.validity, rows[i].validity);
        assert_int_equal(marked.limiter, rows[i].limiter);
    }
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(low_roofs_are_marked),
        cmocka_unit_test(chunks_have_roofs_of_prefill),
        cmocka_unit_test(servers_have_roofs),
        cmocka_unit_test(a_lucky_roof_marks_no_other),
        cmocka_unit_test(the_best_roof_is_the_undisturbed_machine_s),
        cmocka_unit_test(disturbed_rows_may_be_the_most),
        cmocka_unit_test(prefill_is_held_against_peaks),
        cmocka_unit_test(only_what_can_be_compared_counts),
        cmocka_unit_test(a_small_model_is_no_measure_for_a_large_one),
        cmocka_unit_test(a_known_disturbance_keeps_its_name),
        cmocka_unit_test(a_large_table_is_marked_as_row_by_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
