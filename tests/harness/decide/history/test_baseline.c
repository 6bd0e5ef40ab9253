/* SPDX-License-Identifier: MIT
 *
 * test_baseline.c - new runs against their history: Student's t, the rule, which past
 * runs count, and what is refused
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/history/baseline.h"
#include "harness/decide/history/baseline_rule.h"

static void students_t_is_the_tables(void **state)
{
    static const struct {
        double p, t;
        size_t df;
    } known[] = {{0.975, 12.706, 1}, {0.99, 6.965, 2},  {0.95, 2.353, 3},
                 {0.99, 3.747, 4},   {0.975, 2.571, 5}, {0.99, 2.821, 9},
                 {0.95, 1.725, 20},  {0.99, 2.423, 40}, {0.999, 3.261, 50}};

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t df = known[i].df;

        assert_true(fabs(student_below(known[i].t, df) - known[i].p) < 5e-5);
        assert_true(fabs(student_below(-known[i].t, df) - 1 + known[i].p) < 5e-5);
        assert_true(fabs(student_quantile(known[i].p, df) - known[i].t) < 1e-3);
        assert_true(fabs(student_below(0, df) - 0.5) < 1e-12);
        assert_true(student_below(1e9, df) > 0.999999 && student_below(-1e9, df) >= 0);
    }
}

/* By hand: middle 2, deviation sqrt(2.5) = 1.5811, times sqrt(1 + 1/5). */
static void an_interval_is_as_by_hand(void **state)
{
    const double old[] = {0.02, 0, 0.04, 0.01, 0.03}, fresh = -0.05;
    const struct gate_rule rule = gate_rule_default();
    const double scale = 0.015811 * sqrt(1.2);
    struct baseline_effect e;

    (void)state;
    baseline_judge(&e, old, 5, &fresh, 1, &rule);
    assert_true(fabs(log(e.effect.ratio) + 0.07) < 1e-9);
    assert_true(fabs(log(e.effect.hi) + 0.07 - 2.776 * scale) < 1e-4);
    assert_true(fabs(log(e.effect.lo) + 0.07 + 2.776 * scale) < 1e-4);
    assert_true(fabs(e.spread - 0.015811) < 1e-5);
    const double t = (-0.07 - log(0.98)) / scale;
    assert_true(fabs(e.effect.p_fail - student_below(t, 4)) < 1e-4);
    assert_true(fabs(e.effect.p_fail + e.effect.p_pass - 1) < 1e-9);
    assert_true(fabs(-log(1 - e.min_margin) - 2.132 * scale) < 1e-4);
}

/* Two outliers of twelve change next to nothing; figures without scatter are no reason
 * to be sure of a thousandth. */
static void outliers_and_constants_do_no_harm(void **state)
{
    double old[] = {0,      0.01,  -0.01,  0.005, -0.005, 0.008,
                    -0.008, 0.002, -0.002, 0.006, -0.006, 0.001};
    const struct gate_rule rule = gate_rule_default();
    const double fresh[] = {-0.06, -0.5, -0.05}, now = -0.06;
    struct baseline_effect clean, dirty;

    (void)state;
    baseline_judge(&clean, old, 12, &now, 1, &rule);
    assert_true(fabs(log(clean.effect.ratio) + 0.06) < 0.001);
    old[0] = -0.2;
    old[5] = -0.15;
    baseline_judge(&dirty, old, 12, fresh, 3, &rule); /* by their median, and surer */
    assert_true(fabs(log(dirty.effect.lo) + 0.06) < 0.8 * fabs(log(clean.effect.lo)));
    baseline_judge(&dirty, old, 12, &now, 1, &rule);
    assert_true(dirty.spread < 2 * clean.spread);
    assert_true(fabs(dirty.effect.ratio - clean.effect.ratio) < 0.005);
    assert_true(dirty.effect.p_fail < 0.01);

    for (int i = 0; i < 12; i++)
        old[i] = 1;
    const double same = 0.9995;
    baseline_judge(&clean, old, 12, &same, 1, &rule);
    assert_true(clean.effect.lo < 0.9985 && clean.effect.hi > 1);
    assert_true(clean.effect.p_pass < 0.001);
}

static void failing_needs_three(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    struct baseline_effect e[3] = {{.effect = {.p_fail = 0.004, .p_pass = 0.996}},
                                   {.effect = {.p_fail = 0.9, .p_pass = 0.04}},
                                   {.effect = {.p_fail = 0.4, .p_pass = 0.6}}};
    size_t n_fresh[3] = {3, 1, 3};
    enum gate_verdict verdict, of[3];
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(baseline_decide(&verdict, of, &rule, e, n_fresh, 2, &err), ST_OK);
    assert_int_equal(verdict, GATE_FAIL);
    assert_true(of[0] == GATE_FAIL && of[1] == GATE_PASS);
    /* of three metrics it is 0.012 */
    assert_int_equal(baseline_decide(&verdict, of, &rule, e, n_fresh, 3, &err), ST_OK);
    assert_true(verdict == GATE_UNCLEAR && of[0] == GATE_UNCLEAR);
    n_fresh[0] = 2;
    assert_int_equal(baseline_decide(&verdict, of, &rule, e, n_fresh, 1, &err), ST_OK);
    assert_int_equal(verdict, GATE_UNCLEAR);
    assert_int_equal(baseline_decide(&verdict, of, &rule, e + 1, n_fresh, 1, &err),
                     ST_OK);
    assert_int_equal(verdict, GATE_PASS);
}

/* ---- histories ------------------------------------------------------------------- */

static struct machine_key key(const char *cpu)
{
    struct machine_key k;

    for (int i = 0; i < MACHINE_N_FIELDS; i++)
        strcpy(k.text[i], "same");
    strcpy(k.text[MACHINE_CPU], cpu);
    return k;
}

static struct row *add_run(struct result_set *h, size_t day, double speed)
{
    struct err err = ERR_INIT;
    struct result_run *run;
    struct row r;

    assert_int_equal(result_set_add_run(h, "made", &run, &err), ST_OK);
    snprintf(run->id, sizeof run->id, "%zu-%zu", day, h->n_runs);
    snprintf(run->commit, sizeof run->commit, "c%zu", day);
    run->has_machine = true;
    run->machine = key("here");
    row_init(&r);
    snprintf(r.utc, sizeof r.utc, "2026-%02d-%02dT00:00:00Z", (int)(1 + day / 28 % 12),
             (int)(1 + day % 28));
    r.kind = POINT_DECODE;
    strcpy(r.model, "m");
    strcpy(r.quant, "Q4_0");
    r.placement = PLACEMENT_SPREAD;
    r.status = ROW_STATUS_OK;
    strcpy(r.validity, "valid");
    r.n_threads = 2;
    r.ctx = 0;
    r.attempt = 1;
    r.tok_per_s = speed;
    r.load_s = 1 / speed;
    assert_int_equal(result_set_add_row(h, "made", &r, &err), ST_OK);
    return &h->rows[h->n_rows - 1];
}

/* n days around the speed, 1 % apart at most. */
static void add_days(struct result_set *h, size_t from, size_t n, double speed)
{
    uint64_t seed = from + 1;

    for (size_t i = 0; i < n; i++)
        add_run(h, from + i, speed * (1 + 0.005 * (double)test_random_float(&seed)));
}

static const struct baseline_margins margins = {0.05, 0.02};
static const struct series_choice both = {.metrics = "tok_per_s,load_s"};

static void only_the_past_since_the_last_change_counts(void **state)
{
    struct gate_result *r = calloc(1, sizeof *r);
    struct result_set old = {0}, fresh = {0};
    struct err err = ERR_INIT;
    char text[1024];

    (void)state;
    add_days(&old, 0, 15, 12); /* before a change */
    add_days(&old, 15, 15, 10);
    add_days(&old, 40, 20, 20); /* after the new rows */
    for (int i = 0; i < 3; i++) {
        add_run(&fresh, 31, 10);
        add_run(&old, 31, 10); /* and these are the new rows, stored already */
        strcpy(old.runs[old.n_runs - 1].id, fresh.runs[fresh.n_runs - 1].id);
    }
    r->rule = gate_rule_default();
    assert_int_equal(baseline_compare(r, &old, &fresh, &both, &margins, &err), ST_OK);
    assert_int_equal(r->mode, GATE_MODE_BASELINE);
    assert_int_equal(r->n_metrics, 2);
    assert_int_equal(r->verdict, GATE_PASS);
    assert_string_equal(r->metric[0].name, "decode, 2 threads, depth 0");
    assert_string_equal(r->metric[1].name, "load_s, decode, 2 threads, depth 0");
    assert_true(fabs(r->metric[0].a - 10) < 0.1 && fabs(r->metric[0].b - 10) < 1e-9);
    assert_true(r->metric[1].less_is_better && fabs(r->metric[1].a - 0.1) < 0.001);
    assert_true(fabs(r->metric[1].effect.ratio - r->metric[0].effect.ratio) < 1e-6);
    assert_string_equal(r->model, "m Q4_0");
    assert_string_equal(r->settings, "15 stored runs since c15, 2026-01-16");
    assert_string_equal(r->side[0].commit, "c29");
    assert_string_equal(r->side[1].commit, "c31");
    assert_string_equal(r->notes, "");
    assert_int_equal(r->n_launches, 3);

    /* slower: fails, and says since when */
    for (size_t i = 0; i < fresh.n_rows; i++) {
        fresh.rows[i].tok_per_s = 9.2;
        fresh.rows[i].load_s = 1 / 9.2;
    }
    memset(r, 0, sizeof *r);
    r->rule = gate_rule_default();
    assert_int_equal(baseline_compare(r, &old, &fresh, &both, &margins, &err), ST_OK);
    assert_int_equal(r->verdict, GATE_FAIL);
    assert_true(r->metric[0].effect.ratio < 0.93 && r->metric[1].effect.ratio < 0.93);
    gate_sentence(r, text, sizeof text);
    assert_non_null(strstr(text, "changes from c29 to c31"));

    /* of three nights it is surer */
    for (size_t i = 0; i < fresh.n_rows; i++)
        snprintf(fresh.rows[i].utc, sizeof fresh.rows[i].utc, "2026-02-%02dT00:00:00Z",
                 (int)(4 + i % 9));
    const double p = r->metric[0].effect.p_fail;
    memset(r, 0, sizeof *r);
    r->rule = gate_rule_default();
    assert_int_equal(baseline_compare(r, &old, &fresh, &both, &margins, &err), ST_OK);
    assert_true(r->metric[0].effect.p_fail < p / 2);

    /* one new run alone may have been disturbed */
    fresh.n_rows = fresh.n_runs = 1;
    memset(r, 0, sizeof *r);
    r->rule = gate_rule_default();
    assert_int_equal(baseline_compare(r, &old, &fresh, &both, &margins, &err), ST_OK);
    assert_int_equal(r->verdict, GATE_UNCLEAR);
    assert_non_null(strstr(gate_sentence(r, text, sizeof text), "measure 3 times"));
    result_set_free(&old);
    result_set_free(&fresh);
    free(r);
}

static void refused(struct result_set *old, struct result_set *fresh, enum status code,
                    const char *text)
{
    const struct series_choice choice = {.metrics = "tok_per_s"};
    struct gate_result *r = calloc(1, sizeof *r);
    struct err err = ERR_INIT;

    r->rule = gate_rule_default();
    assert_int_equal(baseline_compare(r, old, fresh, &choice, &margins, &err), code);
    if (!strstr(err.msg, text))
        fail_msg("'%s' does not say '%s'", err.msg, text);
    free(r);
}

static void what_differs_is_named(void **state)
{
    struct result_set old = {0}, fresh = {0};
    struct row *row, was;

    (void)state;
    add_days(&old, 0, 4, 10);
    row = add_run(&fresh, 30, 10);
    was = *row;
    refused(&old, &fresh, ST_UNSUPPORTED,
            "4 stored runs do not say how far runs scatter; add 1 more");
    add_days(&old, 31, 9, 10);
    refused(
        &old, &fresh, ST_UNSUPPORTED,
        "(9 stored runs are later than the new rows, which are of 2026-02-03, and do "
        "not count; was a clock wrong?)");
    add_days(&old, 4, 10, 10);

    row->placement = PLACEMENT_COMPACT;
    refused(&old, &fresh, ST_UNSUPPORTED,
            "of the closest run, its placement is 'spread', here 'compact'");
    *row = was;
    strcpy(row->quant, "Q8_0");
    refused(&old, &fresh, ST_UNSUPPORTED, "its quant is 'Q4_0', here 'Q8_0'");
    *row = was;
    row->mem_limit_bytes = 6;
    refused(&old, &fresh, ST_UNSUPPORTED, "its mem_limit_bytes is '', here '6'");
    *row = was;
    fresh.runs[0].machine = key("elsewhere");
    refused(&old, &fresh, ST_UNSUPPORTED,
            "no stored run is from this machine: its CPU is 'here', here 'elsewhere'");
    fresh.runs[0].has_machine = false;
    refused(&old, &fresh, ST_UNSUPPORTED, "the machine of the new rows is not known");
    fresh.runs[0].has_machine = true;
    fresh.runs[0].machine = key("here");
    strcpy(row->validity, "disturbed: steal 20%");
    refused(&old, &fresh, ST_INPUT, "no new row is complete and undisturbed");
    *row = was;
    for (size_t i = 0; i < old.n_runs; i++)
        old.runs[i].has_machine = false;
    refused(&old, &fresh, ST_UNSUPPORTED,
            "the machine of the stored rows is not known");
    old.n_rows = 0;
    refused(&old, &fresh, ST_UNSUPPORTED, "no stored row has a value of tok_per_s");
    result_set_free(&old);
    result_set_free(&fresh);
}

/* What cannot be judged beside what can is reported; so is a history of one session. */
static void what_is_not_covered_is_told(void **state)
{
    const struct series_choice choice = {.metrics = "tok_per_s"};
    struct gate_result *r = calloc(1, sizeof *r);
    struct result_set old = {0}, fresh = {0};
    struct err err = ERR_INIT;

    (void)state;
    add_days(&old, 0, 12, 10);
    for (size_t i = 0; i < old.n_rows; i++)
        snprintf(old.rows[i].utc, sizeof old.rows[i].utc, "2026-01-01T00:%02d:00Z",
                 (int)(i % 60));
    add_run(&fresh, 30, 10);
    add_run(&fresh, 30, 10)->n_threads = 1;
    r->rule = gate_rule_default();
    assert_int_equal(baseline_compare(r, &old, &fresh, &choice, &margins, &err), ST_OK);
    assert_int_equal(r->n_metrics, 1);
    assert_non_null(strstr(r->notes, "1 series not judged. m Q4_0, decode, 1 thread"));
    assert_non_null(strstr(r->notes, "its n_threads is '2', here '1'"));
    assert_non_null(strstr(r->notes, "within three hours"));

    /* and nothing fails by it, however slow */
    for (int i = 0; i < 4; i++)
        add_run(&fresh, 30, 7);
    memset(r, 0, sizeof *r);
    r->rule = gate_rule_default();
    assert_int_equal(baseline_compare(r, &old, &fresh, &choice, &margins, &err), ST_OK);
    assert_int_equal(r->verdict, GATE_UNCLEAR);
    assert_true(r->metric[0].effect.p_fail < 0.001);
    assert_non_null(strstr(r->advice, "other hours and days"));

    /* nor by times that nobody can read: they do not show that days have passed */
    for (size_t i = 0; i < old.n_rows; i++)
        snprintf(old.rows[i].utc, sizeof old.rows[i].utc, "2026-01-%02dT00:00:00.5Z",
                 (int)(1 + i));
    memset(r, 0, sizeof *r);
    r->rule = gate_rule_default();
    assert_int_equal(baseline_compare(r, &old, &fresh, &choice, &margins, &err), ST_OK);
    assert_int_equal(r->verdict, GATE_UNCLEAR);
    assert_non_null(strstr(r->notes, "have no time that can be read"));
    result_set_free(&old);
    result_set_free(&fresh);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(students_t_is_the_tables),
        cmocka_unit_test(an_interval_is_as_by_hand),
        cmocka_unit_test(outliers_and_constants_do_no_harm),
        cmocka_unit_test(failing_needs_three),
        cmocka_unit_test(only_the_past_since_the_last_change_counts),
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(what_is_not_covered_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
