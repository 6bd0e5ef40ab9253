/* SPDX-License-Identifier: MIT
 *
 * test_history_db.c - databases that a stranger has made: rows without an end, schemas
 * that compute, journals that delete
 */
#include "tests/harness/decide/history/history_file.h"

#include <signal.h>
#include <sys/stat.h>

#include "harness/decide/history/history_db.h"
#include "harness/rows/result_set.h"

static void put_be32(unsigned char *at, size_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* All children of the interior page become the page `child`. */
static void point_to(unsigned char *page, size_t child)
{
    const int n_cells = page[3] << 8 | page[4];

    put_be32(page + 8, child);
    for (int i = 0; i < n_cells; i++)
        put_be32(page + (page[12 + 2 * i] << 8 | page[13 + 2 * i]), child);
}

/* Each interior page of the table has the next one as each of its children: some 50^12
 * rows in 200 KB. */
static void make_endless(const char *path, const char *in_leaf)
{
    size_t bytes, last = 0, leaf = 0, n = 0;
    unsigned char *whole = (unsigned char *)test_read_file(path, &bytes);

    for (size_t p = 1; p < bytes / PAGE; p++) {
        if (whole[p * PAGE] == 13 &&
            memmem(whole + p * PAGE, PAGE, in_leaf, strlen(in_leaf)))
            leaf = p;
        if (whole[p * PAGE] == 5 && last)
            point_to(whole + last * PAGE, p + 1);
        if (whole[p * PAGE] == 5) {
            last = p;
            n++;
        }
    }
    assert_true(n >= 10 && leaf);
    point_to(whole + last * PAGE, leaf + 1);
    FILE *f = fopen(path, "wb");
    fwrite(whole, 1, bytes, f);
    fclose(f);
    free(whole);
}

static void a_page_is_in_a_tree_once(void **state)
{
    char path[64];
    struct result_set h = {0};
    struct err err = ERR_INIT;

    (void)state;
    snprintf(path, sizeof path, "%s/tree.db", scratch);
    make(path, 3000, "");
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_OK);
    assert_int_equal(h.n_rows, 3000);
    result_set_free(&h);
    make_endless(path, "decode");
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "not a complete database"));
    assert_null(strstr(err.msg, "\\x0a"));
    result_set_free(&h);
}

/* Whatever the schema says of it besides. */
static void a_virtual_table_is_refused(void **state)
{
    static const char *const changes[] = {
        "UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE rows USING dbstat' WHERE "
        "name = 'rows'",
        "UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE machines USING dbstat', "
        "rootpage = 0 WHERE name = 'machines'",
        "UPDATE sqlite_schema SET sql = 'CREATE/**/VIRTUAL TABLE rows USING "
        "fts5(a)' WHERE name = 'rows'",
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 3, 'CREATE VIRTUAL TABLE "
        "gates USING dbstat')",
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char path[64], sql[400];
        struct result_set h = {0};
        struct err err = ERR_INIT;

        snprintf(path, sizeof path, "%s/virtual.db", scratch);
        snprintf(sql, sizeof sql, "PRAGMA writable_schema = ON; %s", changes[i]);
        make(path, 1, sql);
        if (result_set_read(&h, path, NULL, &err) != ST_INPUT)
            fail_msg("%s: %s", changes[i], err.msg);
        result_set_free(&h);
    }
}

/* The row of a stranger's database, and one that is added to it. */
static enum status add_one(const char *path, struct err *err)
{
    struct result_set h = {0};
    char other[64];
    size_t n_new = 0;
    enum status st;

    snprintf(other, sizeof other, "%s/other.db", scratch);
    make(other, 1, "UPDATE rows SET point = 'new'");
    assert_int_equal(result_set_read(&h, other, NULL, err), ST_OK);
    st = history_db_record(path, &h, NULL, &n_new, err);
    assert_int_equal(n_new, st == ST_OK);
    result_set_free(&h);
    return st;
}

/* The same of the tree that tables are listed in, which SQLite reads before all else.
 */
static void a_schema_has_an_end(void **state)
{
    char path[64], *more = calloc(1, 700 * 450), *at = more;
    struct result_set h = {0};
    struct err err = ERR_INIT;

    (void)state;
    snprintf(path, sizeof path, "%s/schema.db", scratch);
    for (int i = 0; i < 700; i++)
        at += sprintf(at, "CREATE TABLE t%d (a /* %0390d */);", i, 0);
    make(path, 1, more);
    free(more);
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_OK);
    result_set_free(&h);
    make_endless(path, "CREATE TABLE t");
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "not a complete database"));
    result_set_free(&h);
    err_clear(&err);
    assert_int_equal(add_one(path, &err), ST_INPUT);
    kill(getpid(), SIGTERM);
    err_clear(&err);
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_INTERRUPTED);
    interrupt_forget();
    result_set_free(&h);
}

static void no_row_is_left_out_or_deleted(void **state)
{
    static const char *const hostile[] = {
        "CREATE UNIQUE INDEX u ON rows (kind); " KEY,
        "DROP TABLE rows; CREATE TABLE rows (run, run_utc, commit_id, version, "
        "compiler, host, machine, point, attempt, utc, kind UNIQUE ON CONFLICT "
        "REPLACE, UNIQUE (run, point, attempt, utc)); INSERT INTO rows (run, kind) "
        "VALUES ('r', 'decode')",
        "DROP TABLE rows; CREATE TABLE rows (run, run_utc, commit_id, version, "
        "compiler, host, machine, point, attempt, utc, kind, x NOT NULL, UNIQUE (run, "
        "point, attempt, utc))",
        "CREATE UNIQUE INDEX k ON rows (run COLLATE NOCASE, point, attempt, utc)",
        "SELECT 1", /* without a key rows would be doubled */
    };
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/keys.db", scratch);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct err err = ERR_INIT;
        struct result_set h = {0};

        make(path, 1, hostile[i]);
        if (add_one(path, &err) != ST_INPUT)
            fail_msg("%s: %s", hostile[i], err.msg);
        err = (struct err)ERR_INIT;
        assert_int_equal(result_set_read(&h, path, NULL, &err), ST_OK);
        assert_int_equal(h.n_rows, i != 2);
        result_set_free(&h);
    }
}

static void nothing_is_computed_when_rows_are_added(void **state)
{
    static const char *const hostile[] = {
        "CREATE INDEX i ON rows (replace(hex(zeroblob(30000)), '00', run) LIKE "
        "'%r%r%r%r%r%x')",
        "CREATE INDEX i ON rows (run) WHERE length(run) > 1",
        "DROP TABLE rows; CREATE TABLE rows (run, run_utc, commit_id, version, "
        "compiler, "
        "host, machine, x DEFAULT (hex(zeroblob(30000))))",
        "DROP TABLE machines; CREATE TABLE machines (machine PRIMARY KEY, name, "
        "profile, x DEFAULT (random()))",
    };
    static const char *const harmless[] = {
        "", "CREATE INDEX i ON rows (utc, point)", "CREATE TABLE mine (a DEFAULT (1))",
        ("DROP TABLE machines; CREATE TABLE machines (machine PRIMARY KEY, name, "
         "profile, CHECK (length(replace(hex(zeroblob(30000)), '00', 'r')) = 1))")};
    char path[64], sql[512];

    (void)state;
    snprintf(path, sizeof path, "%s/schema.db", scratch);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct err err = ERR_INIT;

        make(path, 1, hostile[i]);
        assert_int_equal(history_db_check_output(path, &err), ST_INPUT);
        err = (struct err)ERR_INIT;
        assert_int_equal(add_one(path, &err), ST_INPUT);
        if (!strstr(err.msg, "defaults, indexes of expressions"))
            fail_msg("%s: %s", hostile[i], err.msg);
    }
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        struct err err = ERR_INIT;

        snprintf(sql, sizeof sql, "%s; " KEY, harmless[i]);
        make(path, 1, sql);
        if (history_db_check_output(path, &err))
            fail_msg("%s: %s", harmless[i], err.msg);
        if (add_one(path, &err))
            fail_msg("%s: %s", harmless[i], err.msg);
    }
}

/* Before rows are measured: what is no database is found, and nothing is left behind.
 */
static void an_output_is_checked_before(void **state)
{
    char path[64];
    struct err err = ERR_INIT;

    (void)state;
    snprintf(path, sizeof path, "%s/later.db", scratch);
    assert_int_equal(history_db_check_output(path, &err), ST_OK);
    assert_int_equal(access(path, F_OK), -1);
    FILE *f = fopen(path, "w");
    fputs("point,attempt\n", f);
    fclose(f);
    assert_int_equal(history_db_check_output(path, &err), ST_INPUT);
    err = (struct err)ERR_INIT;
    snprintf(path, sizeof path, "%s/later.csv", scratch);
    assert_int_equal(history_db_check_output(path, &err), ST_USAGE);
    err = (struct err)ERR_INIT;
    snprintf(path, sizeof path, "%s/no/later.db", scratch);
    assert_int_equal(history_db_check_output(path, &err), ST_IO);
}

/* What is left of a transaction of several databases: an original page, or none, the
 * name of the file that holds the journals' names, and its sum. */
static void write_journal(const char *path, const char *name)
{
    static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9,
                                          0x20, 0xa1, 0x63, 0xd7};
    unsigned char number[4];
    size_t sum = 0;
    FILE *f = fopen(path, "wb");

    for (int i = 0; i < PAGE; i++)
        fputc('x', f);
    put_be32(number, 0x40000000 / PAGE + 1);
    fwrite(number, 1, 4, f);
    fputs(name, f);
    for (const char *c = name; *c; c++)
        sum += (size_t)*c;
    put_be32(number, strlen(name));
    fwrite(number, 1, 4, f);
    put_be32(number, sum);
    fwrite(number, 1, 4, f);
    fwrite(magic, 1, sizeof magic, f);
    fclose(f);
}

static void a_journal_deletes_nothing(void **state)
{
    char path[64], journal[80], victim[64], link[64];
    struct result_set h = {0};
    struct err err = ERR_INIT;
    struct stat st;

    (void)state;
    snprintf(path, sizeof path, "%s/journal.db", scratch);
    snprintf(journal, sizeof journal, "%s-journal", path);
    snprintf(victim, sizeof victim, "%s/victim", scratch);
    snprintf(link, sizeof link, "%s/link.db", scratch);
    make(path, 3, KEY);
    FILE *f = fopen(victim, "w");
    fputs("dear", f);
    fclose(f);

    write_journal(journal, victim);
    assert_int_equal(add_one(path, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "-journal"));
    assert_int_equal(stat(victim, &st), 0);
    err = (struct err)ERR_INIT;
    assert_int_equal(symlink("journal.db", link), 0);
    assert_int_equal(add_one(link, &err), ST_INPUT);
    assert_int_equal(stat(victim, &st), 0);

    /* A link: nothing goes through it. */
    unlink(journal);
    unlink(victim);
    assert_int_equal(symlink("victim", journal), 0);
    err = (struct err)ERR_INIT;
    assert_int_equal(add_one(path, &err), ST_INPUT);
    assert_int_equal(stat(victim, &st), -1);
    unlink(journal);

    /* What is left of nothing: too short for a name, or without one. */
    for (size_t n = 3; n < 17; n += 13) {
        static const char zeros[16];

        f = fopen(journal, "wb");
        assert_int_equal(fwrite(zeros, 1, n, f), n);
        fclose(f);
        err = (struct err)ERR_INIT;
        if (result_set_read(&h, path, NULL, &err))
            fail_msg("a journal of %zu bytes: %s", n, err.msg);
        assert_int_equal(h.n_rows, 3);
        result_set_free(&h);
        unlink(journal);
    }

    /* A pipe that nobody writes to. */
    assert_int_equal(mkfifo(journal, 0600), 0);
    err = (struct err)ERR_INIT;
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "-journal"));
    result_set_free(&h);
    unlink(journal);
    err = (struct err)ERR_INIT;
    assert_int_equal(add_one(path, &err), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_in_a_tree_once),
        cmocka_unit_test(a_schema_has_an_end),
        cmocka_unit_test(a_virtual_table_is_refused),
        cmocka_unit_test(no_row_is_left_out_or_deleted),
        cmocka_unit_test(nothing_is_computed_when_rows_are_added),
        cmocka_unit_test(an_output_is_checked_before),
        cmocka_unit_test(a_journal_deletes_nothing),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
