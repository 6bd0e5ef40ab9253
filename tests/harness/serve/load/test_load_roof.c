/* SPDX-License-Identifier: MIT
 *
 * test_load_roof.c - what passes over memory say of a row of bench load
 */
#include "harness/serve/load/load_roof.h"

#include <math.h>

#include "tests/support/test.h"

static void servers_that_are_here(void **state)
{
    (void)state;
    assert_true(load_roof_is_here("http://127.0.0.1:8080"));
    assert_true(load_roof_is_here("http://127.0.0.1/v1"));
    assert_true(load_roof_is_here("http://localhost"));
    assert_true(load_roof_is_here("https://[::1]:443/v1"));
    assert_false(load_roof_is_here("http://10.0.0.1:8080"));
    assert_false(load_roof_is_here("http://localhost.example.org:80"));
    assert_false(load_roof_is_here("http://127.example.org"));
    assert_false(load_roof_is_here("http://127.0.0.1.example.org"));
}

/* Four cores of one thread each. */
static struct topology machine(void)
{
    struct topology t = {
        .n_cpus = 4, .n_cores = 4, .n_allowed = 4, .n_allowed_cores = 4};

    for (int i = 0; i < 4; i++)
        t.cpu[i] = (struct topo_cpu){.os_id = i, .core = i, .allowed = true};
    return t;
}

static void it_reads_where_the_server_is(void **state)
{
    static struct topology t;
    static struct load_roof r;
    struct launch_place place;
    struct err err = ERR_INIT;

    (void)state;
    t = machine();
    assert_int_equal(load_roof_place(&r, &t, NULL, 0, &err), ST_OK);
    assert_int_equal(r.n_threads, 4); /* it may use them all */
    assert_int_equal(r.n_server_threads, 0);
    launch_place_find(&place, "s -t 2", &t); /* 0 to 2 are its, 3 is the client's */
    assert_int_equal(load_roof_place(&r, &t, &place, 7, &err), ST_OK);
    assert_int_equal(r.n_threads, 2);
    assert_true(r.cpus[0] < 3 && r.cpus[1] < 3 && r.cpus[0] != r.cpus[1]);
    launch_place_find(&place, "s -t 9", &t);
    assert_int_equal(load_roof_place(&r, &t, &place, 7, &err), ST_OK);
    assert_int_equal(r.n_threads, 4);
    assert_int_equal(r.n_server_threads, 9); /* as it says; more than there are CPUs */
}

static struct load_roof roof_of(double before, double after)
{
    struct load_roof r = {.n_server_threads = 2, .n_threads = 2, .cpus = {4, 5}};

    for (int i = 0; i < 5; i++) {
        r.before.gbps[r.before.n++] = before + 0.01 * i;
        r.after.gbps[r.after.n++] = after + 0.01 * i;
    }
    return r;
}

static void a_row_has_both_ends(void **state)
{
    struct load_roof r = roof_of(30, 31);
    struct row row;

    (void)state;
    row_init(&row);
    snprintf(row.validity, sizeof row.validity, "valid");
    load_roof_note(&r, &row);
    assert_true(fabs(row.roof_gbps - 30.52) < 0.011);
    assert_true(row.roof_gbps_lo < row.roof_gbps && row.roof_gbps < row.roof_gbps_hi);
    assert_string_equal(row.cpus, "4-5");
    assert_int_equal(row.n_threads, 2);
    assert_string_equal(row.validity, "valid");
    assert_string_equal(row.detail, "");
}

static void a_host_that_slowed_disturbs(void **state)
{
    struct load_roof r = roof_of(30, 20);
    struct row row;

    (void)state;
    row_init(&row);
    snprintf(row.validity, sizeof row.validity, "valid");
    load_roof_note(&r, &row);
    assert_string_equal(row.validity,
                        "disturbed: memory gave 30.0 GB/s before and 20.0 after");
    snprintf(row.validity, sizeof row.validity, "disturbed: steal 9 %%");
    load_roof_note(&r, &row);
    assert_string_equal(
        row.validity,
        "disturbed: steal 9 %, memory gave 30.0 GB/s before and 20.0 after");
}

/* A server that still computes: what is known of the other end, and why not of this. */
static void an_end_that_is_missing_is_said(void **state)
{
    struct load_roof r = roof_of(30, 20);
    struct row row;

    (void)state;
    r.after.n = 0;
    snprintf(r.after.why, sizeof r.after.why, "the server was not idle within 10 s");
    row_init(&row);
    snprintf(row.validity, sizeof row.validity, "valid");
    snprintf(row.detail, sizeof row.detail, "1 of 30 requests failed");
    load_roof_note(&r, &row);
    assert_true(fabs(row.roof_gbps - 30.02) < 0.011 && isnan(row.roof_gbps_lo));
    assert_string_equal(row.validity, "valid");
    assert_string_equal(row.detail, "1 of 30 requests failed; no bandwidth after: the "
                                    "server was not idle within 10 s");
    r.before.n = 0;
    row_init(&row);
    load_roof_note(&r, &row);
    assert_true(isnan(row.roof_gbps));
    assert_string_equal(row.cpus, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_that_are_here),
        cmocka_unit_test(it_reads_where_the_server_is),
        cmocka_unit_test(a_row_has_both_ends),
        cmocka_unit_test(a_host_that_slowed_disturbs),
        cmocka_unit_test(an_end_that_is_missing_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
