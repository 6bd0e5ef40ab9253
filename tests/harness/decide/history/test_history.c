/* SPDX-License-Identifier: MIT
 *
 * test_history.c - rows of many runs: profiles of machines, series
 */
#include "tests/support/result_scratch.h"

#include <math.h>

#include "harness/decide/history/series.h"
#include "harness/rows/result_set.h"

static void machines_are_told_apart(void **state)
{
    const struct machine_key a = example_key();
    struct machine_key b = a;
    char why[256], name[256];

    (void)state;
    assert_string_equal(machine_key_name(&a, name, sizeof name),
                        "Intel(R) Xeon(R) Processor, 2 CPUs, 23.54 GiB, kvm");
    assert_true(machine_key_same(&a, &b, why, sizeof why));
    strcpy(b.text[MACHINE_MEMORY], "23.48 GiB");
    assert_true(machine_key_same(&a, &b, why, sizeof why));
    strcpy(b.text[MACHINE_MEMORY], "16.00 GiB");
    assert_false(machine_key_same(&a, &b, why, sizeof why));
    assert_string_equal(why, "its memory is '23.54 GiB', here '16.00 GiB'");

    b = a; /* a level that the older build did not know is no difference */
    strcat(b.text[MACHINE_ISA], " +amx");
    assert_true(machine_key_same(&a, &b, why, sizeof why));
    memcpy(strstr(b.text[MACHINE_ISA], "+avx512vbmi"), "-", 1);
    assert_false(machine_key_same(&a, &b, why, sizeof why));
    assert_false(machine_key_same(&b, &a, why, sizeof why));
    for (int i = 0; i < MACHINE_N_FIELDS; i++) {
        b = a;
        strcpy(b.text[i], "-scalar");
        assert_false(machine_key_same(&a, &b, why, sizeof why));
    }
}

/* Older records have names of CPUs as the firmware pads them. */
static void blanks_are_no_other_machine(void **state)
{
    const struct machine_key a = example_key();
    json_t *object = machine_key_json(&a);
    struct machine_key b;

    (void)state;
    json_object_set_new(object, "CPU",
                        json_string(" Intel(R)  Xeon(R) Processor        "));
    assert_true(machine_key_from_json(&b, object));
    assert_true(machine_key_same(&b, &a, NULL, 0));
    assert_true(machine_key_hash(&b) == machine_key_hash(&a));
    json_decref(object);
}

static void a_foreign_topology_is_no_machine(void **state)
{
    const char *const texts[] = {"{}", "[]", "{\"cpu\":1,\"limits\":{},\"memory\":{}}",
                                 "{\"cpu\":{},\"limits\":[],\"memory\":{}}"};
    char name[64];
    struct machine_key key;
    json_t *object;

    (void)state;
    assert_false(machine_key_read(&key, NULL));
    for (size_t i = 0; i < 4; i++) {
        object = json_loads(texts[i], 0, NULL);
        assert_false(machine_key_read(&key, object));
        assert_false(machine_key_from_json(&key, object));
        json_decref(object);
    }
    object = json_loads("{\"cpu\":{\"model\":7,\"isa\":[1],\"caches\":{\"a\":1}},"
                        "\"limits\":{\"cpu_quota\":\"x\"},\"memory\":{}}",
                        0, NULL);
    assert_true(machine_key_read(&key, object));
    assert_string_equal(key.text[MACHINE_CPU], "unknown");
    assert_string_equal(key.text[MACHINE_MEMORY], "unknown");
    assert_string_equal(machine_key_name(&key, name, sizeof name), "0 CPUs");
    json_decref(object);
}

static void a_series_is_in_order_and_honest(void **state)
{
    const struct machine_key key = example_key();
    const double speed[] = {10, 11, 12, 13, 14, 15};
    const struct series_choice choice = {.metrics = "tok_per_s,mem_resident_bytes"};
    struct result_set h = made(speed, 6, &key);
    struct err err = ERR_INIT;
    struct result_run *run;
    struct series_set set;

    (void)state;
    strcpy(h.rows[1].validity, "disturbed: steal 9.0%");
    h.rows[2].status = ROW_STATUS_PARTIAL;
    strcpy(h.rows[0].utc, "2026-02-01T00:00:00Z"); /* the last, now */
    h.rows[3].placement = PLACEMENT_COMPACT;       /* another setting */
    h.rows[4].tuning = TUNED_SLOWER;               /* is the default in effect */
    for (int i = 0; i < 2; i++) {                  /* more rows of the last run */
        struct row r = h.rows[5];

        r.attempt = 2 + i;
        r.tok_per_s = i ? 17 : 99;
        if (!i)
            strcpy(r.validity, "disturbed: others 50.0%");
        assert_int_equal(result_set_add_row(&h, "made", &r, &err), ST_OK);
    }
    assert_int_equal(result_set_add_run(&h, "made", &run, &err), ST_OK); /* elsewhere */
    run->machine = key;
    run->has_machine = true;
    strcpy(run->machine.text[MACHINE_CPU], "another");
    struct row r = h.rows[5];
    assert_int_equal(result_set_add_row(&h, "made", &r, &err), ST_OK);

    assert_int_equal(series_make(&set, &h, &choice, &err), ST_OK);
    assert_int_equal(set.n, 6); /* two settings and another machine, two columns */
    const struct series *s = &set.v[0];
    assert_string_equal(s->name, "m, decode, 2 threads, depth 0");
    assert_int_equal(s->n, 3);
    assert_int_equal(s->n_disturbed, 1);
    assert_true(s->v[0].v == 14 && s->v[1].v == 16 && s->v[2].v == 10);
    assert_int_equal(s->v[2].run, 0);
    assert_string_equal(set.v[1].name, "m, decode, 2 threads, depth 0, compact");
    assert_int_equal(set.v[2].n, 1);
    assert_non_null(strstr(set.v[2].name, ", machine "));
    assert_true(fabs(set.v[3].v[0].v - 0.5) < 1e-9); /* GiB */
    series_free(&set);

    const struct series_choice other = {
        .metrics = "tok_per_s", .only = "compact", .disturbed = true};
    assert_int_equal(series_make(&set, &h, &other, &err), ST_OK);
    assert_int_equal(set.n, 1);
    series_free(&set);
    const struct series_choice wrong = {.metrics = "tok_per_s,speed"};
    assert_int_equal(series_make(&set, &h, &wrong, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "mem_peak_bytes"));
    result_set_free(&h);
}

/* Runs of one commit, an hour apart: one value, the median, for each three hours. */
static void a_session_has_one_value(void **state)
{
    const double speed[] = {10, 12, 11, 20, 21, 30};
    const struct machine_key key = example_key();
    const struct series_choice joined = {.metrics = "tok_per_s"};
    const struct series_choice each = {.metrics = "tok_per_s", .each_row = true};
    struct result_set h = made(speed, 6, &key);
    struct err err = ERR_INIT;
    struct series_set set;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        snprintf(h.rows[i].utc, sizeof h.rows[i].utc, "2026-03-01T%02d:00:00Z", (int)i);
        strcpy(h.runs[i].commit, i < 5 ? "a" : "b");
    }
    assert_int_equal(series_make(&set, &h, &joined, &err), ST_OK);
    assert_int_equal(set.v[0].n, 3);
    assert_int_equal(set.v[0].n_joined, 3);
    assert_true(set.v[0].v[0].v == 11 && set.v[0].v[1].v == 20.5);
    assert_true(set.v[0].v[2].v == 30);
    series_free(&set);
    assert_int_equal(series_make(&set, &h, &each, &err), ST_OK);
    assert_int_equal(set.v[0].n, 6);
    series_free(&set);
    result_set_free(&h);
    assert_true(isnan(series_seconds("yesterday")));
    assert_true(series_seconds("1970-01-02T00:00:01Z") == 86401);
    assert_true(series_one_session("2026-03-01T00:00:00Z", "2026-03-01T02:59:59Z"));
    assert_false(series_one_session("2026-03-01T00:00:00Z", "2026-03-01T03:00:00Z"));
    assert_true(series_one_session("2026-03-01T00:00:00Z", "10000-01-01T00:00:00Z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_are_told_apart),
        cmocka_unit_test(blanks_are_no_other_machine),
        cmocka_unit_test(a_foreign_topology_is_no_machine),
        cmocka_unit_test(a_series_is_in_order_and_honest),
        cmocka_unit_test(a_session_has_one_value),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
