/* SPDX-License-Identifier: MIT
 *
 * test_history_gates.c - gates into a database and back, and what a stranger has put
 * there instead
 */
#include "tests/support/test.h"

#include <sqlite3.h>
#include <unistd.h>

#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_gates.h"
#include "tests/support/gate_fixture.h"

static char scratch[] = "test_history_gates_XXXXXX";
static char path[64];

static int make_scratch(void **state)
{
    (void)state;
    if (!mkdtemp(scratch))
        return -1;
    snprintf(path, sizeof path, "%s/h.db", scratch);
    return 0;
}

static int remove_scratch(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(scratch);
}

/* A gate of two measures, on a machine. */
static struct gate_result *make_gate(const char *when)
{
    struct gate_result *r = fixture_result();

    fixture_metric(r, "decode, depth 0", 0.9, 0.002, 14);
    fixture_metric(r, "prefill", 1, 0.002, 14);
    r->metric[1].b = NAN;
    r->metric[1].less_is_better = true;
    r->verdict = GATE_FAIL;
    r->has_machine = true;
    for (int i = 0; i < MACHINE_N_FIELDS; i++)
        snprintf(r->machine.text[i], sizeof r->machine.text[i], "text %d", i);
    snprintf(r->host, sizeof r->host, "somewhere");
    snprintf(r->when, sizeof r->when, "%s", when);
    return r;
}

static size_t add(const char *when, const char *name)
{
    struct gate_result *r = make_gate(when);
    struct err err = ERR_INIT;
    size_t n_new = 99;

    if (name)
        snprintf(r->side[1].name, sizeof r->side[1].name, "%s", name);
    if (history_gates_add(path, r, &n_new, &err))
        fail_msg("%s", err.msg);
    free(r);
    return n_new;
}

static void run_sql(const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void a_gate_comes_back_as_it_was(void **state)
{
    struct history_gates gates;
    struct gate_result *r = make_gate("2026-01-15T10:15:00Z");
    struct err err = ERR_INIT;

    (void)state;
    unlink(path);
    assert_int_equal(add(r->when, NULL), 2);
    assert_int_equal(add(r->when, NULL), 0);
    assert_int_equal(add("2026-01-14T10:15:00Z", NULL), 2);
    assert_int_equal(history_gates_read(&gates, path, &err), ST_OK);
    assert_int_equal(gates.n, 4);
    assert_string_equal(gates.v[0].utc, "2026-01-14T10:15:00Z");
    assert_string_equal(gates.v[0].gate, gates.v[1].gate);
    for (size_t i = 0; i < 2; i++) {
        const struct history_gate *g = &gates.v[2 + i];
        const struct gate_metric *m = &r->metric[i];

        assert_string_equal(g->utc, r->when);
        assert_string_equal(g->verdict, "fail");
        assert_string_equal(g->measure, m->name);
        assert_string_equal(g->measure_verdict, gate_verdict_word(m->verdict));
        assert_string_equal(g->a_commit, "0123456");
        assert_string_equal(g->b_commit, "89abcde");
        assert_string_equal(g->model, r->model);
        assert_non_null(strstr(g->machine_name, "text 0"));
        assert_true(g->ratio == m->effect.ratio && g->ratio_lo == m->effect.lo &&
                    g->ratio_hi == m->effect.hi && g->p_fail == m->effect.p_fail &&
                    g->margin == m->margin && g->a == m->a);
        assert_true(g->less_is_better == (i == 1));
    }
    assert_true(isnan(gates.v[3].b));
    history_gates_free(&gates);
    free(r);
}

/* By a clock that stands still, or of two that end at once. */
static void two_gates_of_one_second_are_two(void **state)
{
    struct gate_result *r = make_gate("1970-01-01T00:00:25Z");
    struct history_gates gates;
    struct err err = ERR_INIT;
    size_t n_new = 0;

    (void)state;
    unlink(path);
    assert_int_equal(add(r->when, NULL), 2);
    r->metric[0].b *= 0.7;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(history_gates_add(path, r, &n_new, &err), ST_OK);
        assert_int_equal(n_new, i ? 0 : 2);
    }
    assert_int_equal(add(r->when, NULL), 0);
    assert_int_equal(history_gates_read(&gates, path, &err), ST_OK);
    assert_int_equal(gates.n, 4);
    history_gates_free(&gates);
    free(r);
}

static void rows_of_sweeps_and_gates_share_a_file(void **state)
{
    struct result_set h = {.n_rows = 0};
    struct history_gates gates;
    struct result_run *run;
    struct row row;
    struct err err = ERR_INIT;
    size_t n_new = 0;

    (void)state;
    unlink(path);
    row_init(&row);
    assert_int_equal(result_set_add_run(&h, "made", &run, &err), ST_OK);
    assert_int_equal(result_set_add_row(&h, "made", &row, &err), ST_OK);
    assert_int_equal(history_db_record(path, &h, NULL, &n_new, &err), ST_OK);
    result_set_free(&h);
    assert_int_equal(history_gates_read(&gates, path, &err), ST_OK);
    assert_int_equal(gates.n, 0);
    history_gates_free(&gates);

    assert_int_equal(add("2026-01-15T10:15:00Z", NULL), 2);
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_OK);
    assert_int_equal(h.n_rows, 1);
    result_set_free(&h);
    assert_int_equal(history_gates_read(&gates, path, &err), ST_OK);
    assert_int_equal(gates.n, 2);
    history_gates_free(&gates);
}

/* An empty table of gates; a gate against stored rows; one without a machine. */
static void other_gates_come_back_too(void **state)
{
    struct history_gates gates;
    struct gate_result *r = make_gate("2026-01-16T10:15:00Z");
    struct err err = ERR_INIT;

    (void)state;
    unlink(path);
    add("2026-01-15T10:15:00Z", NULL);
    run_sql("DELETE FROM gates");
    assert_int_equal(history_gates_read(&gates, path, &err), ST_OK);
    assert_int_equal(gates.n, 0);
    history_gates_free(&gates);
    r->mode = GATE_MODE_BASELINE;
    r->has_machine = false;
    assert_int_equal(history_gates_add(path, r, NULL, &err), ST_OK);
    assert_int_equal(history_gates_read(&gates, path, &err), ST_OK);
    assert_int_equal(gates.n, 2);
    assert_string_equal(gates.v[0].mode, "baseline");
    assert_string_equal(gates.v[0].machine, "");
    assert_string_equal(gates.v[0].machine_name, "");
    history_gates_free(&gates);
    free(r);
}

static size_t printed(const struct history_gates *gates, const char *only,
                      uint64_t last, char **text)
{
    size_t n_bytes = 0;
    FILE *f = open_memstream(text, &n_bytes);

    assert_non_null(f);
    const size_t n = history_gates_print(f, gates, only, last);

    fclose(f);
    return n;
}

static void the_list_is_chosen_and_harmless(void **state)
{
    struct history_gates gates;
    struct err err = ERR_INIT;
    char *text = NULL;

    (void)state;
    unlink(path);
    add("2026-01-13T10:15:00Z", FIXTURE_HOSTILE);
    add("2026-01-14T10:15:00Z", NULL);
    add("2026-01-15T10:15:00Z", NULL);
    run_sql("UPDATE gates SET b_commit = '', model = 'm' || char(27) || '[31m' WHERE "
            "utc < '2026-01-14'");
    assert_int_equal(history_gates_read(&gates, path, &err), ST_OK);
    assert_int_equal(printed(&gates, NULL, 0, &text), 3);
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "2026-01-13T10:15:00Z  fail: m"));
    free(text);
    assert_int_equal(printed(&gates, "prefill", 2, &text), 2);
    assert_null(strstr(text, "2026-01-13"));
    free(text);
    assert_int_equal(printed(&gates, "tinyllama", 0, &text), 2);
    free(text);
    assert_int_equal(printed(&gates, "nothing", 0, &text), 0);
    free(text);

    json_t *list = history_gates_json(&gates, NULL, 1);

    assert_int_equal(json_array_size(list), 2);
    json_decref(list);
    history_gates_free(&gates);
}

/* A table whose columns have no type holds whole numbers, too. */
static void whole_numbers_are_numbers(void **state)
{
    struct history_gates gates;
    struct err err = ERR_INIT;

    (void)state;
    unlink(path);
    add("2026-01-15T10:15:00Z", NULL);
    run_sql("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
            "' REAL', '') WHERE name = 'gates'");
    run_sql("UPDATE gates SET seconds = 60, ratio = -3");
    assert_int_equal(history_gates_read(&gates, path, &err), ST_OK);
    assert_int_equal(gates.n, 2);
    assert_true(gates.v[0].seconds == 60 && gates.v[1].ratio == -3);
    history_gates_free(&gates);
}

static void refused(const char *sql, const char *says, bool in_reading)
{
    struct history_gates gates;
    struct gate_result *r = make_gate("2026-02-01T00:00:00Z");
    struct err err = ERR_INIT;

    unlink(path);
    add("2026-01-15T10:15:00Z", NULL);
    run_sql(sql);
    if (in_reading) {
        assert_int_equal(history_gates_read(&gates, path, &err), ST_INPUT);
        history_gates_free(&gates);
    } else {
        assert_int_equal(history_gates_add(path, r, NULL, &err), ST_INPUT);
    }
    assert_non_null(strstr(err.msg, says));
    free(r);
}

static void what_a_stranger_has_made_is_refused(void **state)
{
    (void)state;
    refused("UPDATE gates SET ratio = 'fast'", "column ratio is not a number", true);
    refused("UPDATE gates SET ratio = 1e999", "column ratio is not a number", true);
    refused("ALTER TABLE gates RENAME TO g; CREATE VIEW gates AS SELECT * FROM g",
            "not as `bench history add` makes them", true);
    refused("ALTER TABLE gates ADD COLUMN x AS (utc || 'y')",
            "not as `bench history add` makes them", true);
    refused("DROP TABLE gates; CREATE TABLE gates (gate)", "no such column", true);
    refused("UPDATE gates SET seconds = x'00'", "column seconds is not a number", true);
    refused("DROP TABLE gates; CREATE TABLE gates (gate)", "no column named", false);
    refused("CREATE UNIQUE INDEX u ON gates (measure)", "constraints that are not",
            false);
    refused("DROP TABLE machines; CREATE TABLE machines (machine)",
            "1 columns but 3 values", false);
    refused("CREATE INDEX i ON gates (abs(ratio))", "indexes of expressions", false);
    refused("ALTER TABLE gates ADD COLUMN x DEFAULT 3", "have defaults", false);
    refused("PRAGMA application_id = 1", "of another program", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gate_comes_back_as_it_was),
        cmocka_unit_test(two_gates_of_one_second_are_two),
        cmocka_unit_test(rows_of_sweeps_and_gates_share_a_file),
        cmocka_unit_test(other_gates_come_back_too),
        cmocka_unit_test(the_list_is_chosen_and_harmless),
        cmocka_unit_test(whole_numbers_are_numbers),
        cmocka_unit_test(what_a_stranger_has_made_is_refused),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
