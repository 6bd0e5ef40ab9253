/* SPDX-License-Identifier: MIT
 *
 * test_users.c - rows of bench load as series, levels, answers and comparisons
 */
#include "harness/judge/users/users.h"

#include <math.h>

#include "tests/support/test.h"

static uint64_t seed = 7;

static double uniform(void)
{
    return (double)(test_random(&seed) >> 11) * 0x1p-53;
}

/* ---- shares ---------------------------------------------------------------------- */

static void shares_are_judged(void **state)
{
    double lo, hi;

    (void)state;
    slo_binomial(29, 29, &lo, &hi);
    assert_true(fabs(lo - pow(0.05, 1.0 / 29)) < 1e-9);
    assert_true(hi == 1);
    slo_binomial(0, 0, &lo, &hi);
    assert_true(lo == 0 && hi == 1);
    assert_int_equal(slo_judge(28, 28, 0.9), SLO_UNDECIDED);
    assert_int_equal(slo_judge(29, 29, 0.9), SLO_MEETS);
    assert_int_equal(slo_judge(45, 50, 0.9), SLO_UNDECIDED);
    assert_int_equal(slo_judge(30, 50, 0.9), SLO_MISSES);
    assert_int_equal(slo_judge(0, 0, 0.9), SLO_UNDECIDED);
}

/* At the limit itself, where nine of ten requests meet it, each verdict is wrong with
 * 5 % probability at most. */
static void errors_are_rare(void **state)
{
    int n_meets = 0, n_misses = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        size_t k = 0;

        for (int j = 0; j < 60; j++)
            k += uniform() < 0.9;
        const enum row_slo_verdict v = slo_judge(k, 60, 0.9);

        n_meets += v == SLO_MEETS;
        n_misses += v == SLO_MISSES;
    }
    assert_in_range(n_meets, 1, 130);
    assert_in_range(n_misses, 1, 130);
}

static void limits_are_read(void **state)
{
    struct err err = ERR_INIT;
    struct slo slo;

    (void)state;
    assert_int_equal(slo_parse(&slo, "reading", &err), ST_OK);
    assert_true(slo.ttft_s == 5 && slo.tpot_ms == 250);
    assert_string_equal(slo_users(&slo, 1), "user who reads the stream");
    assert_int_equal(slo_parse(&slo, "0.5s/40ms", &err), ST_OK);
    assert_true(slo.ttft_s == 0.5 && slo.tpot_ms == 40);
    assert_string_equal(slo_users(&slo, 3), "users");
    assert_int_equal(slo_parse(&slo, "5s/0ms", &err), ST_USAGE);
}

/* ---- rows ------------------------------------------------------------------------ */

/* n_met of 60 requests meet both limits. */
static struct row make_row(const char *engine, int n_users, int round, double tok_per_s,
                           int n_met)
{
    struct row r;

    row_init(&r);
    r.kind = ROW_LOAD;
    r.load_mode = LOAD_MODE_CLOSED;
    r.status = ROW_STATUS_OK;
    r.attempt = round;
    r.n_users = n_users;
    r.tok_per_s = tok_per_s;
    r.tok_per_s_lo = 0.9 * tok_per_s;
    r.tok_per_s_hi = 1.1 * tok_per_s;
    r.ttft_p90_s = 0.5 * n_users;
    r.tpot_p90_ms = 20;
    r.n_requests = 60;
    r.n_failed = 0;
    r.n_ttft_met = n_met;
    r.n_tpot_met = 60;
    r.little = 1;
    r.window_s = 100;
    r.e2e_p50_s = 1;
    snprintf(r.engine, sizeof r.engine, "%s", engine);
    snprintf(r.model, sizeof r.model, "m-%s",
             engine); /* servers name it as they like */
    snprintf(r.prompt_lengths, sizeof r.prompt_lengths, "512");
    snprintf(r.output_lengths, sizeof r.output_lengths, "128");
    snprintf(r.slo, sizeof r.slo, "reading");
    snprintf(r.validity, sizeof r.validity, "valid");
    return r;
}

static void one_server(void **state)
{
    const struct row rows[] = {make_row("", 1, 1, 10, 60), make_row("", 4, 1, 18, 20),
                               make_row("", 2, 1, 15, 60), make_row("", 3, 1, 17, 56),
                               make_row("", 3, 2, 17.5, 60)};
    struct err err = ERR_INIT;
    struct users u;
    char text[600] = "";

    (void)state;
    assert_int_equal(users_find(&u, rows, 5, &err), ST_OK);
    assert_int_equal(u.n, 1);
    assert_int_equal(u.v[0].n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(u.v[0].level[i].n_users, i + 1);
    /* 56 of 60 alone decide nothing, 116 of 120 do */
    assert_int_equal(slo_judge(56, 60, SLO_SHARE), SLO_UNDECIDED);
    assert_int_equal(u.v[0].level[2].verdict, SLO_MEETS);
    assert_int_equal(u.v[0].level[2].n_rows, 2);
    assert_true(fabs(u.v[0].level[2].tok_per_s.v - 17.25) < 1e-9);
    assert_true(fabs(u.v[0].level[2].tok_per_s.lo - 0.9 * 17) < 1e-9);
    assert_true(fabs(u.v[0].level[2].tok_per_s.hi - 1.1 * 17.5) < 1e-9);
    assert_true(!isfinite(u.v[0].level[2].ttft_p90_s.hi));
    assert_int_equal(u.v[0].carries, 3);
    assert_int_equal(u.v[0].misses, 4);
    users_answer(&u, text, sizeof text);
    assert_string_equal(text,
                        "Serves 3 users who read the stream (p90 TTFT 1.5 s, 20 ms a "
                        "token); the 4th waits.");
    users_free(&u);

    assert_int_equal(users_find(&u, &rows[3], 1, &err), ST_OK);
    users_answer(&u, text, sizeof text);
    assert_string_equal(text,
                        "It is undecided whether it can serve any user within "
                        "5 s to the first token and 250 ms per token: give it more "
                        "requests, or time for them (--requests, --level-time).");
    users_free(&u);
}

/* What the answer to these rows of one server is. */
static void assert_answer(const struct row *rows, size_t n, const char *answer)
{
    struct err err = ERR_INIT;
    struct users u;
    char text[600];

    assert_int_equal(users_find(&u, rows, n, &err), ST_OK);
    users_answer(&u, text, sizeof text);
    assert_string_equal(text, answer);
    users_free(&u);
}

static void answers_are_sentences(void **state)
{
    static const struct {
        int carries;
        const char *next;
    } ends[] = {{1, "2nd"},   {2, "3rd"},   {3, "4th"},     {10, "11th"},
                {11, "12th"}, {12, "13th"}, {20, "21st"},   {21, "22nd"},
                {22, "23rd"}, {23, "24th"}, {100, "101st"}, {110, "111th"}};
    struct row rows[2];

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char text[200];

        rows[0] = make_row("", ends[i].carries, 1, 10, 60);
        rows[1] = make_row("", ends[i].carries + 1, 1, 10, 20);
        rows[0].ttft_p90_s = 4.1;
        rows[0].tpot_p90_ms = 210;
        snprintf(
            text, sizeof text,
            "Serves %d user%s who read%s the stream (p90 TTFT 4.1 s, 210 ms a token); "
            "the %s waits.",
            ends[i].carries, ends[i].carries == 1 ? "" : "s",
            ends[i].carries == 1 ? "s" : "", ends[i].next);
        assert_answer(rows, 2, text);
    }
    /* not even one */
    rows[0] = make_row("", 1, 1, 10, 20);
    assert_answer(
        rows, 1,
        "Serves no user who reads the stream (with one, p90 TTFT 0.50 s, 20 ms a "
        "token).");
    rows[0].n_failed = 30;
    assert_answer(
        rows, 1,
        "Serves no user who reads the stream (with one, 30 of 60 requests fail).");
    /* one more, and a server that has no place refuses it */
    rows[0] = make_row("", 1, 1, 10, 60);
    rows[1] = make_row("", 2, 1, 10, 30);
    rows[1].n_failed = rows[1].n_tpot_met = 30;
    assert_answer(
        rows, 2,
        "Serves 1 user who reads the stream (p90 TTFT 0.50 s, 20 ms a token); the "
        "2nd makes requests fail.");
    /* nothing is sure, but two are too many */
    rows[0] = make_row("", 1, 1, 10, 56);
    rows[1] = make_row("", 2, 1, 10, 20);
    assert_answer(
        rows, 2,
        "It is undecided whether it can serve any user within 5 s to the first "
        "token and 250 ms per token: give it more requests, or time for them "
        "(--requests, --level-time); 2 are too many.");
}

/* Two tries of 20 requests decide together, and neither supports a 90th percentile. */
static void figures_that_are_not_known_are_not_said(void **state)
{
    struct row rows[] = {make_row("", 1, 1, 10, 20), make_row("", 1, 2, 10, 20)};
    struct err err = ERR_INIT;
    struct users u;
    char text[600];

    (void)state;
    for (int i = 0; i < 2; i++) {
        rows[i].n_requests = rows[i].n_tpot_met = 20;
        rows[i].ttft_p90_s = rows[i].tpot_p90_ms = NAN;
    }
    assert_answer(rows, 2,
                  "Serves 1 user who reads the stream, the largest number tried.");
    assert_int_equal(users_find(&u, rows, 2, &err), ST_OK);
    users_append_choice(&u, 1, text, sizeof text);
    assert_string_equal(text, "1 user who reads the stream: take  (m-).");
    users_free(&u);
    rows[0].ttft_p90_s = rows[1].ttft_p90_s = 4; /* answers of one token */
    assert_answer(rows, 2,
                  "Serves 1 user who reads the stream (p90 TTFT 4.0 s), the largest "
                  "number tried.");
}

/* Disturbed rows count for the verdict, and for figures where there are no others. */
static void disturbed_rows(void **state)
{
    struct row rows[] = {make_row("", 1, 1, 10, 60), make_row("", 1, 2, 30, 60),
                         make_row("", 2, 1, 40, 60), make_row("", 3, 1, 40, 60)};
    struct err err = ERR_INIT;
    struct users u;

    (void)state;
    snprintf(rows[1].validity, sizeof rows[1].validity, "disturbed: steal 9 %%");
    rows[2].little = 1.5;
    snprintf(rows[2].validity, sizeof rows[2].validity, "disturbed: Little's law");
    rows[3].status = ROW_STATUS_ERROR;
    assert_int_equal(users_find(&u, rows, 4, &err), ST_OK);
    assert_int_equal(u.v[0].n, 2); /* the third has no figure */
    assert_true(u.v[0].level[0].tok_per_s.v == 10 && !u.v[0].level[0].is_doubtful);
    assert_true(!u.v[0].level[0].doubts_little);
    assert_int_equal(u.v[0].level[0].n_requests, 120);
    assert_true(u.v[0].level[1].is_doubtful && u.v[0].level[1].doubts_little);
    users_free(&u);
}

/* A level that was measured again by a run that was gone on with: the later row counts.
 */
static void what_is_measured_again_counts_once(void **state)
{
    struct row rows[] = {make_row("", 1, 1, 10, 60), make_row("", 2, 1, NAN, 0),
                         make_row("", 2, 1, 18, 60)};

    (void)state;
    rows[1].status = ROW_STATUS_ERROR; /* the server had ended */
    rows[1].n_failed = 60;
    rows[1].n_tpot_met = 0;
    assert_answer(rows, 3,
                  "Serves 2 users who read the stream (p90 TTFT 1.0 s, 20 ms a token), "
                  "the largest number tried.");
}

/* A number of users at which every request fails was measured, and is missed: by a
 * server that falls over as by one that refuses. */
static void failures_are_misses(void **state)
{
    struct row rows[] = {make_row("a", 1, 1, 10, 60), make_row("a", 2, 1, NAN, 0),
                         make_row("b", 1, 1, 9, 60), make_row("b", 2, 1, 12, 60)};
    struct err err = ERR_INIT;
    struct users u;
    char text[600];

    (void)state;
    rows[1].status = ROW_STATUS_ERROR;
    rows[1].n_failed = 60;
    rows[1].n_tpot_met = 0;
    rows[1].ttft_p90_s = rows[1].tpot_p90_ms = NAN;
    assert_answer(
        rows, 2,
        "Serves 1 user who reads the stream (p90 TTFT 0.50 s, 20 ms a token); the "
        "2nd makes requests fail.");
    assert_int_equal(users_find(&u, rows, 4, &err), ST_OK);
    users_answer(&u, text, sizeof text);
    assert_string_equal(
        text,
        "b serves 2 users who read the stream (the largest number tried), a 1; at 1 "
        "user b has 0.90 x the tok/s of a (one round, so without an "
        "interval).");
    users_free(&u);
}

static void two_servers(void **state)
{
    static const double noise[] = {1, 1.02, 0.98};
    struct row rows[12];
    struct err err = ERR_INIT;
    struct users_pair p;
    struct users u;
    char text[600];
    size_t n = 0;

    (void)state;
    for (int round = 1; round <= 3; round++) {
        const double slow = round == 2 ? 0.5 : 1; /* the machine, for both */

        rows[n++] = make_row("llama", 2, round, slow * 10, 10);
        rows[n++] = make_row("slm", 2, round, slow * 14 * noise[round - 1], 60);
        rows[n++] = make_row("slm", 1, round, slow * 8, 60);
        rows[n++] = make_row("llama", 1, round, slow * 8, 60);
    }
    assert_int_equal(users_find(&u, rows, n, &err), ST_OK);
    assert_int_equal(u.n, 2);
    assert_string_equal(u.v[0].name, "llama");
    assert_int_equal(users_compare_at(&u.v[1], &u.v[0]), 2);
    users_compare(&p, &u, &u.v[1], &u.v[0], 2);
    assert_int_equal(p.n, 3);
    assert_true(fabs(p.ratio - 1.4 * cbrt(1.02 * 0.98)) < 1e-9);
    /* t of 2 degrees of freedom times the standard error of three logarithms */
    const double mean = (log(1.02) + log(0.98)) / 3;
    const double squares =
        mean * mean + pow(log(1.02) - mean, 2) + pow(log(0.98) - mean, 2);

    assert_true(fabs(log(p.hi / p.ratio) - 4.3027 * sqrt(squares / 2 / 3)) < 1e-4);
    assert_true(fabs(log(p.ratio / p.lo) - log(p.hi / p.ratio)) < 1e-9);
    assert_false(p.is_doubtful);
    users_answer(&u, text, sizeof text);
    assert_string_equal(
        text,
        "slm serves 2 users who read the stream (the largest number tried), llama "
        "1; at 2 users slm has 1.40 x the tok/s of llama [1.33, "
        "1.47], 3 rounds.");
    users_free(&u);

    assert_int_equal(users_find(&u, rows, 4, &err), ST_OK); /* one round: no interval */
    users_compare(&p, &u, &u.v[1], &u.v[0], 2);
    assert_true(p.n == 1 && fabs(p.ratio - 1.4) < 1e-9 && isnan(p.lo) && isnan(p.hi));
    users_compare(&p, &u, &u.v[1], &u.v[0], 8);
    assert_int_equal(p.n, 0);
    users_answer(&u, text, sizeof text);
    assert_non_null(strstr(text, "1.40 x the tok/s of llama (one round, so without an "
                                 "interval)."));
    users_free(&u);
}

/* Two tries of a ladder's level are of one round, whoever needed them. */
static void a_second_try_is_no_round(void **state)
{
    struct row rows[] = {make_row("a", 2, 1, 10, 56),  make_row("b", 2, 1, 8, 56),
                         make_row("a", 2, 2, 12, 170), make_row("b", 2, 2, 8, 170),
                         make_row("a", 2, 3, 12, 60),  make_row("b", 2, 3, 10, 56),
                         make_row("b", 2, 4, 10, 170)};
    struct err err = ERR_INIT;
    struct users_pair p;
    struct users u;

    (void)state;
    for (int i = 0; i < 7; i++)
        rows[i].round = (rows[i].attempt + 1) / 2;
    assert_int_equal(users_find(&u, rows, 7, &err), ST_OK);
    users_compare(&p, &u, &u.v[0], &u.v[1], 2);
    assert_int_equal(p.n, 2);
    assert_true(fabs(p.ratio - sqrt(1.5 * 1.2)) < 1e-9);
    users_free(&u);
    for (int i = 0; i < 7; i++) /* older rows have none */
        rows[i].round = FIELD_NO_INT;
    assert_int_equal(users_find(&u, rows, 6, &err), ST_OK);
    users_compare(&p, &u, &u.v[0], &u.v[1], 2);
    assert_int_equal(p.n, 3);
    users_free(&u);
}

/* What differs between series of one server is in their names. */
static void names(void **state)
{
    struct row rows[] = {make_row("a", 1, 1, 10, 60), make_row("a", 1, 1, 20, 60),
                         make_row("", 1, 1, 20, 60)};
    struct err err = ERR_INIT;
    struct users u;

    (void)state;
    snprintf(rows[1].prompt_lengths, sizeof rows[1].prompt_lengths, "100-900");
    snprintf(rows[2].server_url, sizeof rows[2].server_url, "http://127.0.0.1:8080");
    assert_int_equal(users_find(&u, rows, 3, &err), ST_OK);
    assert_int_equal(u.n, 3);
    assert_string_equal(u.v[0].name, "127.0.0.1:8080");
    assert_string_equal(u.v[1].name, "a, 100-900 + 128 tokens");
    assert_string_equal(u.v[2].name, "a, 512 + 128 tokens");
    users_free(&u);
    assert_int_equal(users_find(&u, rows, 0, &err), ST_OK);
    assert_int_equal(u.n, 0);
    users_free(&u);
}

/* Levels of an open loop are rates, which closed loops do not know. */
static void open_loops(void **state)
{
    struct row rows[] = {make_row("a", 2, 1, 10, 60), make_row("a", 0, 1, 10, 60),
                         make_row("a", 0, 1, 9, 60), make_row("a", 0, 2, 11, 30)};
    struct err err = ERR_INIT;
    struct users u;

    (void)state;
    for (int i = 1; i < 4; i++) {
        rows[i].load_mode = LOAD_MODE_OPEN;
        rows[i].n_users = FIELD_NO_INT;
        rows[i].rate_asked = i == 1 ? 2 : 0.5;
        rows[i].goodput_per_s = i;
        rows[i].goodput_per_s_lo = 0.5 * i;
        rows[i].goodput_per_s_hi = 2.0 * i;
        rows[i].prefix_hit_pct = 10 * i;
    }
    assert_int_equal(users_find(&u, rows, 4, &err), ST_OK);
    assert_true(u.n == 1 && u.v[0].n == 1 && u.v[0].level[0].n_users == 2);
    assert_true(isnan(u.v[0].level[0].more[USERS_GOODPUT].v));
    assert_false(users_has_plot(&u, USERS_OPEN));
    users_free(&u);
    assert_int_equal(users_find_open(&u, rows, 4, &err), ST_OK);
    assert_true(u.n == 1 && u.v[0].n == 2);
    const struct users_level *slow = &u.v[0].level[0], *fast = &u.v[0].level[1];

    assert_true(slow->rate == 0.5 && slow->n_rows == 2 && slow->n_requests == 120);
    assert_true(fast->rate == 2 && fast->n_rows == 1 && !fast->n_users);
    assert_true(slow->more[USERS_GOODPUT].v == 2.5);
    assert_true(slow->more[USERS_GOODPUT].lo == 1 && slow->more[USERS_GOODPUT].hi == 6);
    assert_true(slow->more[USERS_HIT].v == 25);
    assert_true(users_has_plot(&u, USERS_OPEN));
    assert_false(users_has_plot(&u, USERS_TURNS));
    users_free(&u);
}

/* ---- a number of users ----------------------------------------------------------- */

static void the_server_for_so_many(void **state)
{
    struct row rows[] = {
        make_row("llama", 2, 1, 15, 60), make_row("llama", 4, 1, 20, 60),
        make_row("llama", 8, 1, 21, 10), make_row("slm", 2, 1, 18, 60),
        make_row("slm", 6, 1, 30, 60),   make_row("slow", 1, 1, 4, 20)};
    struct err err = ERR_INIT;
    struct users u;
    char text[600];

    (void)state;
    for (int i = 3; i < 5; i++)
        rows[i].n_threads = 2;
    assert_int_equal(users_find(&u, rows, 6, &err), ST_OK);
    assert_string_equal(users_choose(&u, 3)->name, "slm");
    assert_int_equal(users_level_for(users_choose(&u, 3), 3)->n_users, 6);
    users_append_choice(&u, 3, text, sizeof text);
    assert_string_equal(
        text, "3 users who read the stream: take slm (m-slm, 2 threads), p90 TTFT "
              "3.0 s and 20 ms a token with 6. Enough, too: llama (4). Not: "
              "slow (0).");
    users_append_choice(&u, 2, text, sizeof text);
    assert_string_equal(
        text, "2 users who read the stream: take slm (m-slm, 2 threads), p90 TTFT "
              "1.0 s and 20 ms a token. It serves 6, the largest number tried. Enough, "
              "too: llama (4). Not: slow (0).");
    assert_null(users_choose(&u, 7));
    users_append_choice(&u, 7, text, sizeof text);
    assert_string_equal(
        text, "no measured server is sure to serve 7 users who read the stream: "
              "llama serves 4, slm 6, slow 0. Undecided for this number: llama, slm; "
              "measure with `bench load --users 7`");
    users_free(&u);
    assert_int_equal(users_find(&u, rows, 3, &err), ST_OK);
    users_append_choice(&u, 9, text, sizeof text);
    assert_string_equal(
        text,
        "no measured server is sure to serve 9 users who read the stream: "
        "llama serves 4; a smaller model, fewer bits per weight or more CPUs may, "
        "and `bench load` measures them");
    users_free(&u);
}

/* Rows that were measured under other limits are judged by their requests' times: a
 * failed request meets neither, an answer of one token is never slow. */
static void other_limits(void **state)
{
    enum { N = 40 };
    static double cells[N][REQUEST_CELLS];
    static char point[] = "load/u1";
    struct launch_samples own = {point, 1, cells[0], N, 2};
    struct samples requests = {.v = &own, .n = 1};
    struct row rows[] = {make_row("a", 1, 1, 10, 60), make_row("b", 1, 1, 10, 60),
                         make_row("c", 1, 1, 10, 60), make_row("d", 1, 1, 10, 60)};
    struct err err = ERR_INIT;
    struct slo slo;
    size_t n = 4;

    (void)state;
    assert_int_equal(slo_parse(&slo, "1s/50ms", &err), ST_OK);
    for (int i = 0; i < N; i++) {
        cells[i][REQUEST_TTFT_S] = i < 2 ? NAN : i < 7 ? 1.5 : 0.5;
        cells[i][REQUEST_TPOT_MS] = i < 2 || i == N - 1 ? NAN : 40;
        cells[i][REQUEST_VISIBLE_S] =
            i < 20 ? NAN : 0.7; /* of earlier versions: none */
    }
    snprintf(rows[0].point, sizeof rows[0].point, "%s", point);
    snprintf(rows[1].point, sizeof rows[1].point, "load/u2"); /* no times */
    snprintf(rows[2].slo, sizeof rows[2].slo, "1s/50ms");     /* as measured */
    rows[3].kind = POINT_DECODE;
    users_set_slo(rows, &n, &requests, &slo);
    assert_int_equal(n, 3);
    assert_string_equal(rows[0].slo, "1s/50ms");
    assert_int_equal(rows[0].n_requests, N);
    assert_int_equal(rows[0].n_ttft_met, N - 7);
    assert_int_equal(rows[0].n_tpot_met, N - 2);
    assert_int_equal(rows[0].slo_verdict, slo_judge_both(N - 7, N - 2, N));
    assert_true(fabs(rows[0].slo_met_pct - 100.0 * (N - 7) / N) < 1e-9);
    cells[N - 1][REQUEST_VISIBLE_S] = INFINITY; /* thoughts alone */
    cells[N - 2][REQUEST_VISIBLE_S] = 1.5;
    snprintf(rows[0].slo, sizeof rows[0].slo, "reading");
    users_set_slo(rows, &n, &requests, &slo);
    assert_int_equal(rows[0].n_ttft_met, N - 9);
    assert_string_equal(rows[1].engine, "c");
    assert_int_equal(rows[1].n_ttft_met, 60);
    assert_int_equal(rows[2].kind, POINT_DECODE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_judged),
        cmocka_unit_test(errors_are_rare),
        cmocka_unit_test(limits_are_read),
        cmocka_unit_test(one_server),
        cmocka_unit_test(answers_are_sentences),
        cmocka_unit_test(figures_that_are_not_known_are_not_said),
        cmocka_unit_test(disturbed_rows),
        cmocka_unit_test(failures_are_misses),
        cmocka_unit_test(what_is_measured_again_counts_once),
        cmocka_unit_test(two_servers),
        cmocka_unit_test(a_second_try_is_no_round),
        cmocka_unit_test(names),
        cmocka_unit_test(open_loops),
        cmocka_unit_test(the_server_for_so_many),
        cmocka_unit_test(other_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
