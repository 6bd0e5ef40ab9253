/* SPDX-License-Identifier: MIT
 *
 * test_row_chunks.c - chunks of rows: they cover the range, get shorter, and threads
 * that take them end together
 */
#include "engine/forward/row_chunks.h"
#include "tests/support/test.h"

enum { MAX_THREADS = 64, PANEL = KERN_PANEL_ROWS };

/* Rows of matrices of real models, of vocabularies, and odd ones. */
static const size_t SIZES[] = {1,    15,   16,    17,    32,    100,   512,    1024,
                               2560, 4096, 5120,  5121,  9728,  11008, 14336,  18944,
                               4864, 896,  32000, 49152, 32768, 65024, 151936, 262144};
static const int PARTS[] = {1, 2, 3, 4, 8, 16, 1024};

#define N(a) (sizeof(a) / sizeof(a)[0])

static size_t step_of(size_t rows)
{
    return rows >= ROW_CHUNKS_LONG ? ROW_CHUNKS_LONG : PANEL;
}

/* All chunks in order; the shortest of several threads' are a unit long. */
static void check_chunks(size_t n, int n_threads, int n_parts, size_t unit)
{
    struct row_chunks c = row_chunks_of(n, n_threads, n_parts, unit);
    size_t expect = 0, before = SIZE_MAX, i, begin, end, n_units = 0;

    for (i = 0; row_chunks_get(&c, i, &begin, &end); i++) {
        assert_int_equal(begin, expect);
        assert_true(end > begin && end <= n);
        assert_true(begin % unit == 0);
        assert_true(end == n || (end - begin) % step_of(end - begin) == 0);
        assert_true(end - begin <= before);
        before = end - begin;
        n_units += before <= unit;
        expect = end;
    }
    assert_int_equal(expect, n);
    assert_false(row_chunks_get(&c, i, &begin, &end));
    assert_false(row_chunks_get(&c, i + 1000, &begin, &end));
    if (n_threads == 1)
        assert_true(i <= (size_t)n_parts);
    else if (n_parts > 1 && n >= (size_t)n_threads * unit)
        assert_true(n_units >= (size_t)n_threads);
}

static void chunks_cover_the_range_and_get_shorter(void **state)
{
    (void)state;
    for (size_t s = 0; s < N(SIZES); s++)
        for (size_t p = 0; p < N(PARTS); p++)
            for (int n_threads = 1; n_threads <= MAX_THREADS; n_threads++) {
                check_chunks(SIZES[s], n_threads, PARTS[p], PANEL);
                check_chunks(SIZES[s], n_threads, PARTS[p], (size_t)2 * PANEL);
            }
    for (size_t n = 0; n < 700; n++)
        for (int n_threads = 1; n_threads <= 5; n_threads++)
            check_chunks(n, n_threads, 2, PANEL);
}

/* Whoever skips chunks that others take gets the same as who sees all. */
static void chunks_may_be_skipped(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (size_t s = 0; s < N(SIZES); s++)
        for (int n_threads = 1; n_threads <= 20; n_threads++) {
            struct row_chunks all = row_chunks_of(SIZES[s], n_threads, 3, PANEL);
            struct row_chunks some = all;

            for (size_t i = 0, a, b, begin, end; row_chunks_get(&all, i, &a, &b); i++)
                if (test_random(&seed) % 4 == 0) {
                    assert_true(row_chunks_get(&some, i, &begin, &end));
                    assert_true(begin == a && end == b);
                }
        }
}

/* n rows taken by threads of which thread t needs slowness[t] for a row: who is ready
 * first takes the next chunk. The first chunks are one thread's each. Returns the time
 * between the first and the last end. */
static uint64_t play(size_t n, int n_threads, int n_parts, const uint64_t *slowness)
{
    struct row_chunks c = row_chunks_of(n, n_threads, n_parts, PANEL);
    uint64_t ready[MAX_THREADS] = {0}, first = UINT64_MAX, last = 0;
    size_t i = 0, begin, end;

    for (; i < (size_t)n_threads && row_chunks_get(&c, i, &begin, &end); i++)
        ready[i] = (end - begin) * slowness[i];
    while (row_chunks_get(&c, i++, &begin, &end)) {
        int t = 0;

        for (int k = 1; k < n_threads; k++)
            if (ready[k] < ready[t])
                t = k;
        ready[t] += (end - begin) * slowness[t];
    }
    for (int t = 0; t < n_threads; t++) {
        first = ready[t] < first ? ready[t] : first;
        last = ready[t] > last ? ready[t] : last;
    }
    return last - first;
}

static void threads_of_one_speed_get_equal_shares(void **state)
{
    uint64_t slowness[MAX_THREADS];

    (void)state;
    for (int t = 0; t < MAX_THREADS; t++)
        slowness[t] = 1;
    for (size_t s = 0; s < N(SIZES); s++)
        for (size_t p = 0; p < N(PARTS); p++)
            for (int n_threads = 2; n_threads <= MAX_THREADS; n_threads++)
                assert_true(play(SIZES[s], n_threads, PARTS[p], slowness) <= PANEL);
}

/* Threads whose times for a row differ by up to a third end within the time that the
 * slowest needs for three panels with three parts, for one with four. If one needs
 * twice as long as all others, four panels with three parts, one with eight. */
static void threads_of_unequal_speed_end_together(void **state)
{
    static const struct {
        bool one_is_slow;
        int n_parts;
        uint64_t n_panels;
    } cases[] = {{false, 3, 3}, {false, 4, 1}, {true, 3, 4}, {true, 8, 1}};
    uint64_t slowness[MAX_THREADS], seed = 7;

    (void)state;
    for (size_t i = 0; i < N(cases); i++)
        for (size_t s = 0; s < N(SIZES); s++)
            for (int n_threads = 2; n_threads <= MAX_THREADS; n_threads++) {
                const uint64_t slowest = cases[i].one_is_slow ? 200 : 133;

                for (int t = 0; t < n_threads; t++)
                    slowness[t] =
                        100 + (cases[i].one_is_slow ? 0 : test_random(&seed) % 34);
                if (cases[i].one_is_slow)
                    slowness[n_threads / 2] = slowest;
                assert_true(play(SIZES[s], n_threads, cases[i].n_parts, slowness) <=
                            cases[i].n_panels * PANEL * slowest);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_cover_the_range_and_get_shorter),
        cmocka_unit_test(chunks_may_be_skipped),
        cmocka_unit_test(threads_of_one_speed_get_equal_shares),
        cmocka_unit_test(threads_of_unequal_speed_end_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
