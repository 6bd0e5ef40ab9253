/* SPDX-License-Identifier: MIT
 *
 * test_history_sim.c - invented histories are what they claim, alarms are counted as
 * they should be, and change points beat thresholds on them
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/history/history_report.h"
#include "research/history_sim.h"

static void change_points_are_where_they_are_said_to_be(void **state)
{
    double before = 0, after = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        const enum history_noise noise = (enum history_noise)(seed % HISTORY_N_NOISES);
        struct sim_history h;

        sim_history_make(&h, noise, seed % 4, seed);
        assert_int_equal(h.n_changes, seed % 4);
        assert_in_range(h.n, 60, SIM_MAX_RUNS);
        for (size_t b = 0; b < h.n_changes; b++) {
            const size_t from = b ? h.at[b - 1] : 0;
            const size_t to = b + 1 < h.n_changes ? h.at[b + 1] : h.n;

            assert_true(h.at[b] >= from + 10 && to >= h.at[b] + 10);
            assert_true(fabs(h.size[b]) >= 0.01 && fabs(h.size[b]) <= 0.1);
            if (noise != HISTORY_GAUSSIAN)
                continue;
            const double sign = h.size[b] > 0 ? 1 : -1;
            before += sign * log(h.v[h.at[b] - 1]);
            after += sign * log(h.v[h.at[b]]);
            after -= fabs(h.size[b]);
        }
    }
    /* the sum of 150 steps of one run to the next, their sizes taken off */
    assert_true(fabs(after - before) < 4 * 0.02 * sqrt(2 * 150.0));
}

static void thresholds_compare_as_they_say(void **state)
{
    const double v[] = {100, 100, 104, 100, 100, 100, 100, 94};
    size_t at[8];

    (void)state;
    assert_int_equal(sim_threshold_alarms(at, v, 8, 0.035, 1), 3);
    assert_true(at[0] == 2 && at[1] == 3 && at[2] == 7);
    assert_int_equal(sim_threshold_alarms(at, v, 8, 0.05, 5), 1);
    assert_int_equal(at[0], 7);
    assert_int_equal(sim_threshold_alarms(at, v, 8, 0.1, 5), 0);
}

static void alarms_are_counted_once_each(void **state)
{
    const struct sim_history h = {
        .n = 100, .n_changes = 2, .at = {30, 60}, .size = {0.015, -0.07}};
    const struct sim_history quiet = {.n = 80};
    const size_t at[] = {25, 35, 36, 90};
    struct sim_score s = {0};

    (void)state;
    assert_true(sim_precision(&s) == 1 && sim_recall(&s) == 1);
    sim_score_add(&s, &h, at, 4);
    assert_int_equal(s.n_changes, 2);
    assert_int_equal(s.n_found, 1);
    assert_int_equal(s.n_alarms, 4);
    assert_int_equal(s.n_true, 2);
    assert_true(s.band_changes[0] == 1 && s.band_found[0] == 1);
    assert_true(s.band_changes[2] == 1 && s.band_found[2] == 0);
    sim_score_add(&s, &quiet, at, 1);
    sim_score_add(&s, &quiet, at, 0);
    assert_true(s.n_quiet == 2 && s.n_quiet_alarmed == 1 && s.n_runs == 260);
    assert_true(fabs(sim_precision(&s) - 0.4) < 1e-12);
}

/* At this size an honest repetition with another seed may differ by a few percent; the
 * bounds are far from what change points reach and from what thresholds do. */
static void change_points_are_calm_and_find_most(void **state)
{
    struct err err = ERR_INIT;
    struct sim_histories s, again;

    (void)state;
    assert_int_equal(sim_histories_run(&s, 64, 5, &err), ST_OK);
    assert_int_equal(s.n, 64);
    assert_int_equal(s.all[0].n_changes, 96);
    assert_true(sim_precision(&s.all[0]) > 0.85);
    assert_true(sim_recall(&s.all[0]) > 0.55);
    assert_true(s.all[0].band_found[2] * 10 >= s.all[0].band_changes[2] * 9);
    assert_true(s.all[0].n_quiet_alarmed <= 1);
    for (size_t i = 1; i < SIM_N_FINDERS; i++)
        assert_true(sim_precision(&s.all[i]) < 0.6 || sim_recall(&s.all[i]) < 0.4);
    assert_int_equal(sim_histories_run(&again, 64, 5, &err), ST_OK);
    assert_memory_equal(&s, &again, sizeof s);
}

/* ---- reports of a real history's form -------------------------------------------- */

#define N 40

static void build(struct result_set *h, struct series_set *set, const char *metric)
{
    const struct series_choice choice = {.metrics = metric};
    struct err err = ERR_INIT;
    uint64_t seed = 4;

    memset(h, 0, sizeof *h);
    for (size_t i = 0; i < N; i++) {
        struct result_run *run;
        struct row r;

        assert_int_equal(result_set_add_run(h, "made", &run, &err), ST_OK);
        snprintf(run->commit, sizeof run->commit, "c|%zu", i);
        row_init(&r);
        snprintf(r.utc, sizeof r.utc, "2026-02-01T00:%02zu:00Z", i);
        r.kind = POINT_DECODE;
        strcpy(r.model, "m<1>");
        r.status = ROW_STATUS_OK;
        strcpy(r.validity, "valid");
        r.tok_per_s = (i < 25 ? 10 : 9) * (1 + 0.01 * (double)test_random_float(&seed));
        r.load_s = (i < 25 ? 4 : 3) * (1 + 0.01 * (double)test_random_float(&seed));
        assert_int_equal(result_set_add_row(h, "made", &r, &err), ST_OK);
    }
    assert_int_equal(series_make(set, h, &choice, &err), ST_OK);
}

static void a_change_has_commit_size_and_direction(void **state)
{
    struct err err = ERR_INIT;
    struct history_report r;
    struct series_set set;
    struct result_set h;
    char *text = NULL;
    size_t len;
    FILE *f;

    (void)state;
    build(&h, &set, "tok_per_s,load_s");
    assert_int_equal(history_report_make(&r, &h, &set, 500, &err), ST_OK);
    assert_int_equal(r.n, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct history_change *c = &r.v[i].change[0];
        const double ratio = i ? 0.75 : 0.9;

        assert_int_equal(r.v[i].n_changes, 1);
        assert_int_equal(c->at.at, 25);
        assert_true(c->size.lo <= ratio && ratio <= c->size.hi);
        assert_true(fabs(c->size.ratio - ratio) < 0.01);
        assert_int_equal(c->worse, i == 0); /* less time to load is better */
        assert_string_equal(result_run_commit(&h.runs[r.v[i].v[25].run]).text, "c|25");
    }
    f = open_memstream(&text, &len);
    history_report_markdown(f, &r);
    fclose(f);
    assert_non_null(strstr(text, "| m&lt;1\\>, decode | c\\|25 | c\\|24 | -10."));
    assert_non_null(strstr(text, "- c\\|25 changed 2 series, by -2"));
    assert_non_null(strstr(text, " %: 1 worse.\n"));
    free(text);
    json_t *object = history_report_json(&r);
    const json_t *line = json_array_get(json_object_get(object, "series"), 0);
    const json_t *change = json_array_get(json_object_get(line, "changes"), 0);
    assert_int_equal(json_integer_value(json_object_get(change, "index")), 25);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(change, "first"), "commit")),
        "c|25");
    assert_int_equal(json_array_size(json_object_get(line, "values")), N);
    json_decref(object);
    history_report_free(&r);

    /* the last runs alone have none */
    assert_int_equal(history_report_make(&r, &h, &set, 12, &err), ST_OK);
    assert_int_equal(r.n_changes, 0);
    assert_int_equal(r.v[0].n, 12);
    history_report_free(&r);
    assert_int_equal(history_report_make(&r, &h, &set, 5, &err), ST_OK);
    assert_int_equal(r.n_thin, 2);
    history_report_free(&r);
    series_free(&set);
    result_set_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(change_points_are_where_they_are_said_to_be),
        cmocka_unit_test(thresholds_compare_as_they_say),
        cmocka_unit_test(alarms_are_counted_once_each),
        cmocka_unit_test(change_points_are_calm_and_find_most),
        cmocka_unit_test(a_change_has_commit_size_and_direction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
