/* SPDX-License-Identifier: MIT
 *
 * test_history_files.c - databases: what was stored comes back, damaged ones are
 * refused, several write
 */
#include "tests/support/result_scratch.h"

#include <math.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_options.h"
#include "harness/decide/history/series.h"
#include "harness/rows/result_set.h"

static void a_database_gives_back_what_it_got(void **state)
{
    struct err err = ERR_INIT;
    struct result_set a = {0}, b = {0};
    char path[256];
    size_t n_new = 0;

    (void)state;
    strcpy(path, scratch_path("same.db"));
    assert_int_equal(result_set_read(&a, EXAMPLE, NULL, &err), ST_OK);
    assert_int_equal(a.n_runs, 1);
    assert_true(a.n_rows > 20 && a.runs[0].has_machine);
    a.rows[0].pages = row_enum_value(&choices_pages, "64k"); /* of a newer program */
    assert_int_equal(history_db_record(path, &a, NULL, &n_new, &err), ST_OK);
    assert_int_equal(n_new, a.n_rows);
    assert_int_equal(history_db_record(path, &a, NULL, &n_new, &err), ST_OK);
    assert_int_equal(n_new, 0);
    assert_int_equal(result_set_read(&b, path, NULL, &err), ST_OK);
    assert_int_equal(b.n_runs, 1);
    assert_int_equal(b.n_rows, a.n_rows);
    assert_string_equal(b.runs[0].id, a.runs[0].id);
    assert_string_equal(b.runs[0].commit, a.runs[0].commit);
    assert_true(b.runs[0].has_machine);
    assert_true(machine_key_same(&a.runs[0].machine, &b.runs[0].machine, NULL, 0));
    for (size_t i = 0; i < a.n_rows; i++) { /* in another order */
        size_t k = 0, n_fields;
        const struct field *f = row_fields(&n_fields);

        while (k < b.n_rows && strcmp(a.rows[i].utc, b.rows[k].utc) != 0)
            k++;
        assert_true(k < b.n_rows);
        for (size_t c = 0; c < n_fields; c++) {
            char x[512], y[512];

            assert_string_equal(row_cell(&a.rows[i], &f[c], x, sizeof x),
                                row_cell(&b.rows[k], &f[c], y, sizeof y));
        }
    }
    unlink(path);
    result_set_free(&a);
    result_set_free(&b);
}

/* Whatever is done to the file: rows, or one sentence. */
static void a_damaged_database_is_refused(void **state)
{
    const struct machine_key key = example_key();
    const double speed[] = {5, 6, 7, 8};
    struct result_set h = made(speed, 4, &key);
    struct err err = ERR_INIT;
    uint64_t seed = 5;
    char path[256];
    size_t bytes, n_new, n_refused = 0;

    (void)state;
    strcpy(path, scratch_path("hurt.db"));
    assert_int_equal(history_db_record(path, &h, NULL, &n_new, &err), ST_OK);
    result_set_free(&h);
    char *whole = test_read_file(path, &bytes), *hurt = malloc(bytes);
    for (int i = 0; i < 400; i++) {
        const size_t len = i < 100 ? test_random(&seed) % bytes : bytes;
        FILE *f = fopen(path, "wb");

        memcpy(hurt, whole, bytes);
        for (int k = 0; k < (i < 100 ? 0 : 1 + i / 20); k++)
            hurt[i < 250 ? test_random(&seed) % 1024 : test_random(&seed) % bytes] =
                (char)test_random(&seed);
        fwrite(hurt, 1, len, f);
        fclose(f);
        err = (struct err)ERR_INIT;
        memset(&h, 0, sizeof h);
        if (result_set_read(&h, path, NULL, &err)) {
            n_refused++;
            assert_true(strlen(err.msg) > 20);
        }
        result_set_free(&h);
    }
    assert_true(n_refused > 100);
    unlink(path);
    free(whole);
    free(hurt);
}

static void another_schema_is_refused(void **state)
{
    static const char *const sql[] = {
        "CREATE TABLE other (a)",
        "PRAGMA application_id = 1397509474; CREATE TABLE machines (machine, name, "
        "profile); CREATE VIEW rows AS SELECT 1 AS run",
        "PRAGMA application_id = 1397509474; CREATE TABLE machines (machine, name, "
        "profile); CREATE TABLE rows (run, utc)",
        "PRAGMA application_id = 1397509474; CREATE TABLE machines (machine, name, "
        "profile); CREATE TABLE rows (run, run_utc, commit_id, version, compiler, "
        "host, "
        "machine, utc, tok_per_s); INSERT INTO rows VALUES (1,2,3,4,5,6,7,'u','fast')",
        "PRAGMA application_id = 1397509474; CREATE TABLE machines (machine, name, "
        "profile); CREATE TABLE rows (run, run_utc, commit_id, version, compiler, "
        "host, "
        "machine, utc, ctx); INSERT INTO rows VALUES (1,2,3,4,5,6,7,'u',1e300)",
        "PRAGMA application_id = 1397509474; CREATE TABLE machines (machine, name, "
        "profile); CREATE TABLE rows (run, run_utc, commit_id, version, compiler, "
        "host, machine, utc, model AS (printf('%.*c', 60000, 'x')), "
        "quant AS (printf('%.*c', 60000, 'y')) STORED)",
        "PRAGMA application_id = 1397509474; CREATE TABLE rows (run, utc); CREATE "
        "TABLE "
        "machines (machine, name, profile AS (hex(zeroblob(30000))))",
        "PRAGMA application_id = 1397509474; CREATE TABLE machines (machine, name, "
        "profile); CREATE TABLE rows (run, run_utc, commit_id, version, compiler, "
        "host, machine, utc, model); "
        "INSERT INTO rows VALUES (1,2,3,4,5,6,7,'u',printf('%.*c', 70000, 'x'))",
    };
    static const char *const said[] = {
        "another program",           "another program",
        "no column run_utc",         "tok_per_s is not a number",
        "ctx is not a whole number", "generated columns",
        "generated columns",         "too big"};
    const struct machine_key key = example_key();
    const double speed = 5;

    (void)state;
    for (size_t i = 0; i < sizeof sql / sizeof sql[0]; i++) {
        struct err err = ERR_INIT;
        struct result_set h = {0}, one = made(&speed, 1, &key);
        char path[256];
        sqlite3 *db;
        size_t n_new = 77;

        strcpy(path, scratch_path("other.db"));
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        assert_int_equal(result_set_read(&h, path, NULL, &err), ST_INPUT);
        if (!strstr(err.msg, said[i]))
            fail_msg("%zu: %s", i, err.msg);
        result_set_free(&h);
        if (i < 2) {
            err = (struct err)ERR_INIT;
            assert_int_equal(history_db_record(path, &one, NULL, &n_new, &err),
                             ST_INPUT);
            assert_int_equal(n_new, 77);
        }
        result_set_free(&one);
    }
}

static void columns_are_added(void **state)
{
    const struct machine_key key = example_key();
    const double speed[] = {5, 6};
    struct result_set h = made(speed, 1, &key), more = made(speed, 2, &key), all = {0};
    struct err err = ERR_INIT;
    char path[256];
    size_t n_new;
    sqlite3 *db;

    (void)state;
    strcpy(path, scratch_path("old.db"));
    assert_int_equal(history_db_record(path, &h, NULL, &n_new, &err), ST_OK);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "ALTER TABLE rows DROP COLUMN mbu", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    more.rows[1].mbu = 0.5;
    assert_int_equal(history_db_record(path, &more, "later", &n_new, &err), ST_OK);
    assert_int_equal(n_new, 1);
    assert_int_equal(result_set_read(&all, path, NULL, &err), ST_OK);
    assert_int_equal(all.n_rows, 2);
    assert_true(isnan(all.rows[0].mbu) && fabs(all.rows[1].mbu - 0.5) < 1e-9);
    assert_string_equal(all.runs[0].commit, "c0");
    assert_string_equal(all.runs[1].commit, "later");
    unlink(path);
    result_set_free(&h);
    result_set_free(&more);
    result_set_free(&all);
}

static void writers_wait_for_each_other(void **state)
{
    const struct machine_key key = example_key();
    struct err err = ERR_INIT;
    struct result_set all = {0};
    char path[256];

    (void)state;
    strcpy(path, scratch_path("many.db"));
    for (int w = 0; w < 6; w++)
        if (fork() == 0) {
            const double speed[] = {1, 2, 3, 4, 5};
            struct result_set h = made(speed, 5, &key);
            size_t n_new;
            int failed = 0;

            /* three pairs write the same, each five times */
            for (size_t i = 0; i < 5; i++)
                snprintf(h.runs[i].id, sizeof h.runs[i].id, "%d-%zu", w / 2, i);
            for (int i = 0; i < 5; i++)
                failed |= history_db_record(path, &h, NULL, &n_new, &err) != ST_OK;
            result_set_free(&h);
            _exit(failed);
        }
    for (int w = 0, status; w < 6; w++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(result_set_read(&all, path, NULL, &err), ST_OK);
    assert_int_equal(all.n_rows, 15);
    assert_int_equal(all.n_runs, 15);
    result_set_free(&all);
}

static bool goes_back;

/* In place of the C library's: a clock that somebody sets back an hour at each look. */
time_t time(time_t *out)
{
    static time_t set_back;
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (goes_back)
        t.tv_sec -= set_back += 3600;
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

static void a_comparison_takes_time_whatever_the_clock_does(void **state)
{
    const char *rows[] = {EXAMPLE};
    int codes[3];
    const struct history_options o = {
        .path = EXAMPLE, .rows = {rows, 1}, .codes = codes};
    struct gate_result *r = calloc(1, sizeof *r);
    struct err err = ERR_INIT;

    (void)state;
    goes_back = true;
    assert_int_equal(history_compare(&o, r, &err), ST_UNSUPPORTED); /* one run */
    goes_back = false;
    assert_true(r->seconds >= 0 && r->seconds < 600);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_gives_back_what_it_got),
        cmocka_unit_test(a_damaged_database_is_refused),
        cmocka_unit_test(another_schema_is_refused),
        cmocka_unit_test(columns_are_added),
        cmocka_unit_test(writers_wait_for_each_other),
        cmocka_unit_test(a_comparison_takes_time_whatever_the_clock_does),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
