/* SPDX-License-Identifier: MIT
 *
 * test_figures.c - figures of runs whose truth is known: users of a server that takes
 * the same time for each request, and sends its tokens at the same pace
 */
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>

#include "harness/serve/load/figures.h"

enum { N_TOKENS = 64 };

#define TTFT_S   0.5
#define GAP_MS   10.0F
#define E2E_S    (TTFT_S + (N_TOKENS - 1) * 0.01)
#define START_NS 1000000000

static uint64_t ns_of(double s)
{
    return START_NS + (uint64_t)(s * 1e9);
}

static struct load_record make_record(double sent_s, double slower)
{
    struct load_record r = {.sent_ns = ns_of(sent_s),
                            .scheduled_ns = ns_of(sent_s),
                            .first_ns = ns_of(sent_s + TTFT_S),
                            .last_ns = ns_of(sent_s + E2E_S * slower),
                            .done_ns = ns_of(sent_s + E2E_S * slower),
                            .n_requested = N_TOKENS,
                            .n_pieces = N_TOKENS,
                            .n_prompt = 128,
                            .n_tokens = N_TOKENS,
                            .n_cached = -1,
                            .end = LOAD_OK};

    r.gap_ms = malloc((N_TOKENS - 1) * sizeof *r.gap_ms);
    assert_non_null(r.gap_ms);
    for (int i = 0; i < N_TOKENS - 1; i++)
        r.gap_ms[i] = GAP_MS;
    return r;
}

/* n_users at a time, each n_each requests, one after another; the users begin a little
 * apart. Of the last requests nobody sends another one. */
static struct load_result make_run(int n_users, int n_each)
{
    struct load_result r = {.n = (size_t)n_users * (size_t)n_each};

    r.records = calloc(r.n, sizeof *r.records);
    assert_non_null(r.records);
    for (int k = 0; k < n_each; k++)
        for (int u = 0; u < n_users; u++)
            r.records[k * n_users + u] = make_record(k * E2E_S + u * 1e-3, 1);
    r.begin_ns = START_NS;
    r.end_ns = r.records[r.n - 1].sent_ns;
    return r;
}

static void free_run(struct load_result *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->records[i].gap_ms);
    free(r->records);
}

static struct load_figures figures_of(const struct load_result *r, int n_users)
{
    struct load_figures f;
    struct err err = ERR_INIT;

    assert_int_equal(load_figures_make(&f, r, n_users, NULL, 20, &err), ST_OK);
    return f;
}

static void throughput_is_the_servers(void **state)
{
    (void)state;
    for (int n_users = 1; n_users <= 8; n_users *= 2) {
        const double truth = n_users * N_TOKENS / E2E_S;
        struct load_result r = make_run(n_users, 30);
        const struct load_figures f = figures_of(&r, n_users);

        assert_true(fabs(f.tok_per_s / truth - 1) < 0.02);
        assert_true(f.tok_per_s_lo <= truth * 1.001 && f.tok_per_s_hi >= truth * 0.999);
        assert_true(fabs(f.little - 1) < 0.05);
        assert_true(fabs(f.in_flight - n_users) < 0.05 * n_users);
        assert_true(fabs(f.e2e_s.p50.value - E2E_S) < 1e-6);
        free_run(&r);
    }
}

/* All requests that count were sent at nearly the same time: nothing can be counted
 * between the first and the last of these times. */
static void few_requests_do_not_make_it_fast(void **state)
{
    (void)state;
    for (int n_each = 2; n_each <= 4; n_each++) {
        const double truth = 8 * N_TOKENS / E2E_S;
        struct load_result r = make_run(8, n_each);
        const struct load_figures f = figures_of(&r, 8);

        assert_true(fabs(f.tok_per_s / truth - 1) < 0.05);
        assert_true(f.tok_per_s_lo <= f.tok_per_s && f.tok_per_s_hi >= f.tok_per_s);
        /* both ends of a window have a request of each user */
        assert_true(isnan(f.little) ? fabs(f.req_per_s * E2E_S / 8 - 1) < 0.02
                                    : fabs(f.little - 1) < 0.5);
        free_run(&r);
    }
}

/* A request that failed has no tokens, but took its time, and its user's pause. */
static void failures_are_not_throughput(void **state)
{
    const double mean_s = E2E_S + LOAD_PAUSE_S / 4;
    struct load_result r = make_run(4, 2);
    struct load_figures f;

    (void)state;
    r.records[5].end = LOAD_FAILED;
    f = figures_of(&r, 4);
    assert_int_equal(f.n, 4);
    assert_int_equal(f.n_failed, 1);
    assert_true(fabs(f.tok_per_s / (3 * N_TOKENS / mean_s) - 1) < 0.001);
    assert_true(fabs(f.req_per_s / (4 / mean_s) - 1) < 0.001);
    assert_true(fabs(f.in_flight / (4 * E2E_S / mean_s) - 1) < 0.001);
    free_run(&r);
}

/* A server with one place refuses three of four users at once; they come back after a
 * second each time. Its throughput is that of one user, whatever they ask. */
static void refusals_are_not_throughput(void **state)
{
    struct load_result r = {.n = 12};
    struct load_figures f;

    (void)state;
    r.records = calloc(r.n, sizeof *r.records);
    assert_non_null(r.records);
    for (size_t i = 0; i < r.n; i++) {
        r.records[i] = make_record((double)(i / 4) * E2E_S, i % 4 ? 0.001 : 1);
        if (i % 4 == 0)
            continue;
        r.records[i].end = LOAD_FAILED;
        r.records[i].n_pieces = 0;
        r.records[i].is_refusal = true;
        r.records[i].retry_after = E2E_S;
    }
    r.begin_ns = START_NS;
    r.end_ns = r.records[r.n - 1].sent_ns;
    f = figures_of(&r, 4);
    assert_int_equal(f.n_failed, 6);
    assert_true(isnan(f.little)); /* the window is short */
    assert_true(fabs(f.tok_per_s / (N_TOKENS / E2E_S) - 1) < 0.01);
    free_run(&r);
}

/* Answers of any length at one speed: the time of each says nothing of how sure the
 * throughput is. */
static void long_answers_do_not_make_it_unsure(void **state)
{
    struct load_result r = make_run(8, 3);
    struct load_figures f;

    (void)state;
    for (size_t i = 0; i < r.n; i++) {
        struct load_record *q = &r.records[i];

        q->n_tokens = 10 + 10 * (int)(i % 5);
        q->last_ns = q->done_ns = q->sent_ns + (uint64_t)q->n_tokens * 20000000;
    }
    f = figures_of(&r, 8);
    assert_true(isnan(f.little));
    assert_true(fabs(f.tok_per_s - 8 / 0.02) < 1);
    assert_true(f.tok_per_s_hi - f.tok_per_s_lo < 1);
    free_run(&r);
}

/* Requests that stop after half of their text have a gap that nothing ends: where one
 * in ten gaps is such, the 90th percentile is not known. */
static void gaps_of_failures_have_no_end(void **state)
{
    struct load_result r = make_run(1, 60);
    struct load_figures f;

    (void)state;
    for (size_t i = 0; i < r.n; i++)
        r.records[i].n_pieces = 11;
    f = figures_of(&r, 1);
    assert_true(fabs(f.itl_ms.p90.value - (double)GAP_MS) < 1e-6);
    for (size_t i = 0; i < r.n; i++)
        if (i % 4) {
            r.records[i].n_pieces = 6;
            r.records[i].end = LOAD_FAILED;
        }
    f = figures_of(&r, 1);
    assert_true(fabs(f.itl_ms.p50.value - (double)GAP_MS) < 1e-6);
    assert_true(isnan(f.itl_ms.p90.value));
    free_run(&r);
}

/* Nor does it in a window that is long enough to count what comes in it: here every
 * fourth one fails after 48 of its 64 tokens. */
static void pieces_of_failures_are_not_throughput(void **state)
{
    struct load_result r = make_run(4, 40);
    struct load_figures f;

    (void)state;
    for (size_t i = 3; i < r.n; i += 4) {
        r.records[i].end = LOAD_FAILED;
        r.records[i].n_pieces = 48;
        r.records[i].n_tokens = -1;
    }
    f = figures_of(&r, 4);
    assert_true(isfinite(f.little)); /* it was the window */
    assert_true(fabs(f.tok_per_s / (3 * N_TOKENS / E2E_S) - 1) < 0.03);
    free_run(&r);
}

/* Of every prompt the server's template is cached, of some more. */
static void cold_and_cached_are_kept_apart(void **state)
{
    struct load_result r = make_run(1, 40);
    struct load_figures f;

    (void)state;
    for (size_t i = 0; i < r.n; i++) {
        r.records[i].n_cached = i % 2 ? 100 : 20;
        r.records[i].first_ns -= i % 2 ? 200000000 : 0;
    }
    f = figures_of(&r, 1);
    assert_int_equal(f.n_cached, f.n / 2 + f.n % 2); /* the first is warm-up */
    assert_true(fabs(f.ttft_cold_s - TTFT_S) < 1e-6);
    assert_true(fabs(f.ttft_cached_s - (TTFT_S - 0.2)) < 1e-6);
    /* four are no median */
    for (size_t i = 0; i < r.n; i++)
        r.records[i].n_cached = i < 36 ? 20 : 100;
    f = figures_of(&r, 1);
    assert_true(f.n_cached == 4 && isnan(f.ttft_cached_s));
    free_run(&r);
}

/* Thoughts are first tokens, but not what the limits are about. */
static void limits_are_of_visible_tokens(void **state)
{
    const struct slo slo = {.name = "", .ttft_s = TTFT_S + 0.1, .tpot_ms = 1000};
    struct load_result r = make_run(1, 61);
    struct err err = ERR_INIT;
    struct load_figures f;

    (void)state;
    for (size_t i = 0; i < r.n; i++) {
        r.records[i].n_reasoning = 20;
        r.records[i].visible_ns =
            r.records[i].first_ns + (i % 2 ? 50000000 : 200000000);
    }
    r.records[60].visible_ns = 0;
    assert_int_equal(load_figures_make(&f, &r, 1, &slo, 20, &err), ST_OK);
    assert_int_equal(f.n_ttft_met, f.n / 2);
    assert_true(f.n_invisible == 1 && f.n_failed == 0 && f.reasoning_mean == 20);
    assert_true(fabs(f.ttft_s.p90.value - TTFT_S) < 1e-6);
    assert_true(fabs(f.visible_s.p90.value - TTFT_S - 0.2) < 1e-6);
    free_run(&r);
}

/* Conversations of two turns; 110 of the second one's 128 tokens were there before. */
static void turns_are_kept_apart(void **state)
{
    struct load_result r = make_run(1, 80);
    struct load_figures f;
    double cells[REQUEST_CELLS];

    (void)state;
    for (size_t i = 0; i < r.n; i++) {
        r.records[i].is_first = i == 4; /* a user that begins late */
        r.records[i].turn = (int)(i % 2) + 1;
        r.records[i].n_known = i % 2 ? 110 : 0;
        r.records[i].n_cached = i % 2 ? 100 : 4;
        r.records[i].first_ns -= i % 2 ? 400000000 : 0;
    }
    f = figures_of(&r, 1);
    assert_int_equal(f.n_warm_up, 5);
    assert_true(fabs(f.turn1_s.p90.value - TTFT_S) < 1e-6);
    assert_true(fabs(f.later_s.p90.value - (TTFT_S - 0.4)) < 1e-6);
    assert_true(fabs(f.prefix_hit - 52.0 / 128) < 0.01);
    assert_true(fabs(f.prefix_known - 55.0 / 128) < 0.01);
    load_request_cells(&r.records[7], cells);
    assert_true(cells[REQUEST_TURN] == 2);
    r.records[20].n_known = -1; /* nobody counted them */
    f = figures_of(&r, 1);
    assert_true(fabs(f.prefix_known - 55.0 / 128) < 0.02);
    free_run(&r);
}

/* Requests come every 10 ms; the server answers each in 50 ms, or one every 12.5 ms. */
static void a_backlog_is_seen(void **state)
{
    (void)state;
    for (int slow = 0; slow <= 1; slow++) {
        struct load_result r = {.n = 300};
        struct load_figures f;

        r.records = calloc(r.n, sizeof *r.records);
        assert_non_null(r.records);
        for (size_t i = 0; i < r.n; i++) {
            const double due_s = (double)i * 0.01;
            const double done_s = slow ? (double)i * 0.0125 : due_s;

            r.records[i] = make_record(due_s, 1);
            r.records[i].first_ns = r.records[i].last_ns = r.records[i].done_ns =
                ns_of(done_s + 0.05);
        }
        r.end_ns = r.records[r.n - 1].sent_ns;
        f = figures_of(&r, 0);
        if (slow)
            assert_true(fabs(f.backlog - 0.2) < 0.02 && f.backlog_p < 0.01);
        else
            assert_true(fabs(f.backlog) < 0.02);
        free_run(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(throughput_is_the_servers),
        cmocka_unit_test(few_requests_do_not_make_it_fast),
        cmocka_unit_test(failures_are_not_throughput),
        cmocka_unit_test(refusals_are_not_throughput),
        cmocka_unit_test(long_answers_do_not_make_it_unsure),
        cmocka_unit_test(gaps_of_failures_have_no_end),
        cmocka_unit_test(pieces_of_failures_are_not_throughput),
        cmocka_unit_test(cold_and_cached_are_kept_apart),
        cmocka_unit_test(limits_are_of_visible_tokens),
        cmocka_unit_test(turns_are_kept_apart),
        cmocka_unit_test(a_backlog_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
