/* SPDX-License-Identifier: MIT
 *
 * test_history_tables.c - tables of a stranger: values of other types, tables that take
 * no rows, and what SQLite reports
 */
#include "tests/harness/decide/history/history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_db_impl.h"
#include "harness/rows/result_db.h"
#include "harness/rows/result_set.h"

/* ---- tables and values that are not ours ----------------------------------------- */

#define SPEED "ALTER TABLE rows ADD COLUMN tok_per_s; UPDATE rows SET tok_per_s = "

static void values_have_the_type_of_their_column(void **state)
{
    static const struct {
        const char *sql, *words; /* "": it is read */
    } cases[] = {
        {"UPDATE rows SET point = 5", "a value of column point is not a text"},
        {"UPDATE rows SET kind = x'6465'", "a value of column kind is not a text"},
        {"UPDATE rows SET attempt = 'one'", "column attempt is not a whole number"},
        {"UPDATE rows SET attempt = 1.5", "column attempt is not a whole number"},
        {SPEED "'fast'", "a value of column tok_per_s is not a number"},
        {SPEED "9e999", "a value of column tok_per_s is not a number"},
        {SPEED "x'00'", "a value of column tok_per_s is not a number"},
        {SPEED "7", ""},
        {SPEED "7.5", ""},
        {SPEED "NULL", ""},
        {"UPDATE rows SET kind = NULL", ""},
        {"ALTER TABLE rows ADD COLUMN somebodys; UPDATE rows SET somebodys = x'00'",
         ""},
        {"DROP TABLE rows; CREATE TABLE rows (a)", "no such column: run"},
        {"DROP TABLE rows; CREATE TABLE rows (run, utc)",
         "table rows has no column run_utc"},
    };
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/types.db", scratch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result_set h = {0};
        struct err err = ERR_INIT;

        make(path, 1, cases[i].sql);
        if (result_set_read(&h, path, NULL, &err) !=
                (*cases[i].words ? ST_INPUT : ST_OK) ||
            !strstr(err.msg, cases[i].words))
            fail_msg("%s: %s", cases[i].sql, err.msg);
        assert_int_equal(h.n_rows, !*cases[i].words);
        result_set_free(&h);
    }
}

/* A profile as ours are. */
#define PROFILE                                                               \
    "{\"CPU\":\"c\",\"hypervisor\":\"none\",\"ISA levels\":\"+avx2\","        \
    "\"CPU layout\":\"allowed 2\",\"caches\":\"L1d\",\"CPU quota\":\"none\"," \
    "\"memory\":\"1 GiB\",\"huge pages\":\"never\"}"

/* A run without a valid profile of its machine has none. */
static void machines_of_runs_are_optional(void **state)
{
    static const struct {
        const char *sql;
        bool has_machine;
    } cases[] = {
        {"INSERT INTO machines VALUES ('m', 'n', '" PROFILE "')", true},
        {"INSERT INTO machines VALUES ('m', 'n', '{}')", false},
        {"INSERT INTO machines VALUES ('m', 'n', 7)", false},
        {"INSERT INTO machines VALUES ('other', 'n', '" PROFILE "')", false},
        {"INSERT INTO machines VALUES ('m', 'n', '" PROFILE "'); UPDATE rows SET "
         "machine = 5",
         false},
        {"DROP TABLE machines; CREATE TABLE machines (machine)", false},
    };
    char path[64], sql[512];

    (void)state;
    snprintf(path, sizeof path, "%s/machines.db", scratch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result_set h = {0};
        struct err err = ERR_INIT;

        snprintf(sql, sizeof sql, "UPDATE rows SET machine = 'm'; %s", cases[i].sql);
        make(path, 1, sql);
        if (result_set_read(&h, path, NULL, &err))
            fail_msg("%s: %s", sql, err.msg);
        assert_int_equal(h.n_runs, 1);
        if (h.runs[0].has_machine != cases[i].has_machine)
            fail_msg("%s: %s", sql, cases[i].has_machine ? "no machine" : "a machine");
        result_set_free(&h);
    }
}

/* What cannot be stored in a stranger's tables is not stored in part. */
static void tables_that_take_no_rows(void **state)
{
    static const struct {
        const char *sql;
        enum status st;
        const char *words;
    } cases[] = {
        {KEY, ST_OK, ""},
        {"DROP TABLE machines; CREATE TABLE machines (machine PRIMARY KEY, "
         "profile); " KEY,
         ST_INPUT, "2 columns but 3 values"},
        {"DROP TABLE machines; CREATE TABLE machines (machine UNIQUE, name, profile "
         "INTEGER PRIMARY KEY); " KEY,
         ST_IO, "datatype mismatch"},
    };
    char path[64], other[64], *wide = NULL, *at;
    struct result_set h = {0};
    struct err err = ERR_INIT;
    size_t n_new;

    (void)state;
    snprintf(path, sizeof path, "%s/tables.db", scratch);
    snprintf(other, sizeof other, "%s/other.db", scratch);
    make(other, 1,
         "UPDATE rows SET point = 'new', machine = 'm'; INSERT INTO machines "
         "VALUES ('m', 'n', '" PROFILE "')");
    assert_int_equal(result_set_read(&h, other, NULL, &err), ST_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(path, 1, cases[i].sql);
        err_clear(&err);
        n_new = 7;
        assert_int_equal(history_db_record(path, &h, NULL, &n_new, &err), cases[i].st);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("%s: %s", cases[i].sql, err.msg);
        assert_int_equal(n_new, cases[i].st ? 7 : 1);
    }
    /* no column of this version fits in besides */
    wide = at = calloc(1, 2000 * 8 + 300);
    at += sprintf(at, "DROP TABLE rows; CREATE TABLE rows (run, run_utc, commit_id, "
                      "version, compiler, host, machine, point, attempt, utc");
    for (int i = 0; i < 1990; i++)
        at += sprintf(at, ", c%d", i);
    sprintf(at, ")");
    make(path, 0, wide);
    free(wide);
    err_clear(&err);
    assert_int_equal(history_db_record(path, &h, NULL, &n_new, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "too many columns"));
    result_set_free(&h);
}

static void files_that_are_not_made(void **state)
{
    char path[64], journal[80];
    struct err err = ERR_INIT;

    (void)state;
    snprintf(path, sizeof path, "%s/fresh.db", scratch);
    snprintf(journal, sizeof journal, "%s-journal", path);
    assert_int_equal(mkfifo(journal, 0600), 0);
    assert_int_equal(history_db_check_output(path, &err), ST_INPUT);
    assert_int_equal(access(path, F_OK), -1);
    unlink(journal);
    /* a table that is there is no database, whatever it is called */
    snprintf(path, sizeof path, "%s/there.csv", scratch);
    FILE *f = fopen(path, "w");
    fputs("point,attempt\n", f);
    fclose(f);
    err_clear(&err);
    assert_int_equal(history_db_check_output(path, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "is not a complete database of results"));
    err_clear(&err);
    assert_int_equal(history_db_check_output("x.db", &err), ST_OK);
    assert_int_equal(access("x.db", F_OK), -1);
}

/* Stores `given` and reports no failure; what it printed goes to text. */
static size_t stored(const char *path, const struct result_set *given, char text[400])
{
    struct err err = ERR_INIT;
    FILE *file = tmpfile();
    const int own = dup(STDERR_FILENO);
    size_t n_new = 99;

    assert_true(file && own >= 0);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    const enum status st = history_db_record(path, given, NULL, &n_new, &err);
    fflush(stderr);
    dup2(own, STDERR_FILENO);
    close(own);
    rewind(file);
    text[fread(text, 1, 399, file)] = '\0';
    fclose(file);
    if (st)
        fail_msg("%s", err.msg);
    return n_new;
}

/* A row of a stored one's key is that row if it has its speed, and is reported if not;
 * a row without an attempt has a key, too. */
static void other_speeds_of_one_key_are_reported(void **state)
{
    static const char *const reports[] = {
        "1 row is not added: it has the run, point, attempt and time of a stored row",
        "2 rows are not added: each has the run, point, attempt and time of a stored",
    };
    char path[64], source[64], text[400];

    (void)state;
    snprintf(path, sizeof path, "%s/speeds.db", scratch);
    snprintf(source, sizeof source, "%s/source.db", scratch);
    for (int n = 1; n <= 2; n++) {
        struct result_set h = {0};
        struct err err = ERR_INIT;

        unlink(path);
        make(source, n, SPEED "7; UPDATE rows SET attempt = NULL WHERE point = 'p1'");
        assert_int_equal(result_set_read(&h, source, NULL, &err), ST_OK);
        assert_int_equal(h.rows[0].attempt, FIELD_NO_INT);
        assert_int_equal(stored(path, &h, text), n);
        assert_int_equal(stored(path, &h, text), 0);
        assert_string_equal(text, "");
        for (int i = 0; i < n; i++)
            h.rows[i].tok_per_s = 8;
        assert_int_equal(stored(path, &h, text), 0);
        if (!strstr(text, reports[n - 1]))
            fail_msg("%s", text);
        result_set_free(&h);
        assert_int_equal(result_set_read(&h, path, NULL, &err), ST_OK);
        assert_int_equal(h.n_rows, n);
        for (int i = 0; i < n; i++)
            assert_true(h.rows[i].tok_per_s == 7);
        result_set_free(&h);
    }
}

/* Runs the statement arg and fails; arg NULL: removes the file and fails. */
static enum status fail_after(sqlite3 *db, const char *path, void *arg, struct err *err)
{
    if (arg)
        assert_int_equal(sqlite3_exec(db, arg, NULL, NULL, NULL), SQLITE_OK);
    else
        assert_int_equal(unlink(path), 0);
    return err_set(err, ST_IO, "no rows");
}

/* A file that was made for rows goes with them, but not if it holds rows by now. */
static void a_file_without_rows_is_not_kept(void **state)
{
    char path[64], all[] = "COMMIT", none[] = "SELECT 1";
    struct result_set h = {0};
    struct err err = ERR_INIT;

    (void)state;
    snprintf(path, sizeof path, "%s/failed.db", scratch);
    assert_int_equal(history_db_write(path, fail_after, none, &err), ST_IO);
    assert_int_equal(access(path, F_OK), -1);
    err_clear(&err);
    assert_int_equal(history_db_write(path, fail_after, NULL, &err), ST_IO);
    assert_string_equal(err.msg, "no rows");
    assert_int_equal(access(path, F_OK), -1);
    err_clear(&err);
    assert_int_equal(history_db_write(path, fail_after, all, &err), ST_IO);
    err_clear(&err);
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_OK);
    assert_int_equal(h.n_rows, 0);
    result_set_free(&h);
}

/* Where others make files, too, one of them may have put a database, its link or its
 * journal there. */
static void files_of_others_are_not_written(void **state)
{
    char dir[64], path[80], link[80], journal[96];
    struct err err = ERR_INIT;

    (void)state;
    if (geteuid())
        skip(); /* it takes root to make them */
    snprintf(dir, sizeof dir, "%s/public", scratch);
    snprintf(path, sizeof path, "%s/theirs.db", dir);
    snprintf(link, sizeof link, "%s/link.db", dir);
    snprintf(journal, sizeof journal, "%s-journal", path);
    assert_int_equal(mkdir(dir, 0700) || chmod(dir, 01777), 0);
    make(path, 1, KEY);
    assert_int_equal(history_db_check_output(path, &err), ST_OK);

    assert_int_equal(symlink("theirs.db", link) || lchown(link, 65534, 65534), 0);
    assert_int_equal(history_db_check_output(link, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "link.db"));

    close(creat(journal, 0600));
    assert_int_equal(chown(journal, 65534, 65534), 0);
    err_clear(&err);
    assert_int_equal(history_db_check_output(path, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "theirs.db-journal"));
    unlink(journal);

    assert_int_equal(chown(path, 65534, 65534), 0);
    err_clear(&err);
    assert_int_equal(history_db_check_output(path, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "theirs.db"));
}

/* ---- what SQLite reports --------------------------------------------------------- */

static void errors_of_sqlite_are_sentences(void **state)
{
    static const struct {
        int flags;
        const char *sql;
        enum status st;
        const char *words;
    } cases[] = {
        {SQLITE_OPEN_READONLY, "CREATE TABLE x (a)", ST_PERMISSION,
         "cannot be written: attempt to write a readonly database"},
        {SQLITE_OPEN_READWRITE, "PRAGMA max_page_count = 1; CREATE TABLE x (a)", ST_IO,
         "the disk is full, so nothing was added"},
        {SQLITE_OPEN_READWRITE, "SELECT hex(zeroblob(70000))", ST_INPUT, "too big"},
        {SQLITE_OPEN_READWRITE,
         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
         "count(*) FROM n",
         ST_INPUT, "reading it takes more work than any of its size"},
    };
    char path[64];
    struct err err = ERR_INIT;
    sqlite3 *db, *second;

    (void)state;
    snprintf(path, sizeof path, "%s/errors.db", scratch);
    make(path, 1, KEY);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err_clear(&err);
        assert_int_equal(result_db_open(&db, path, cases[i].flags, &err), ST_OK);
        if (result_db_sql(db, path, cases[i].sql, &err) != cases[i].st ||
            !strstr(err.msg, cases[i].words))
            fail_msg("%s: %s", cases[i].sql, err.msg);
        sqlite3_close(db);
    }
    err_clear(&err);
    assert_int_equal(result_db_fail(NULL, path, &err), ST_NO_MEMORY);
    assert_non_null(strstr(err.msg, "no memory, or more than the 256 MiB"));
    err_clear(&err);
    assert_int_equal(result_db_open(&db, scratch, SQLITE_OPEN_READWRITE, &err), ST_IO);
    assert_non_null(strstr(err.msg, "unable to open database file"));
    err_clear(&err);
    assert_int_equal(result_db_open(&db, "no/such.db", SQLITE_OPEN_READONLY, &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "cannot read no/such.db"));

    assert_int_equal(sqlite3_open(path, &second), SQLITE_OK);
    sqlite3_exec(second, "BEGIN EXCLUSIVE", NULL, NULL, NULL);
    err_clear(&err);
    assert_int_equal(result_db_open(&db, path, SQLITE_OPEN_READWRITE, &err), ST_OK);
    const pid_t pid = test_fork();

    if (!pid) { /* who waits for a lock can be ended */
        usleep(120000);
        _exit(kill(getppid(), SIGTERM));
    }
    assert_int_equal(result_db_sql(db, path, "BEGIN IMMEDIATE", &err), ST_INTERRUPTED);
    waitpid(pid, NULL, 0);
    interrupt_forget();
    err_clear(&err);
    sqlite3_busy_handler(db, NULL, NULL);
    assert_int_equal(result_db_sql(db, path, "BEGIN IMMEDIATE", &err), ST_IO);
    assert_non_null(strstr(err.msg, "another program has kept it locked"));
    sqlite3_close(db);
    sqlite3_close(second);
}

static int no_locks(int fd, int command, ...)
{
    (void)fd;
    (void)command;
    errno = ENOLCK;
    return -1;
}

/* Some NFS mounts: nothing waits for a lock that nobody can have. */
static void file_systems_without_locks_are_named(void **state)
{
    char path[64];
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    struct result_set h = {0};
    struct err err = ERR_INIT;
    const time_t begin = time(NULL);

    (void)state;
    snprintf(path, sizeof path, "%s/nfs.db", scratch);
    make(path, 1, KEY);
    assert_int_equal(
        vfs->xSetSystemCall(vfs, "fcntl", (sqlite3_syscall_ptr)(void *)no_locks),
        SQLITE_OK);
    const enum status st = result_set_read(&h, path, NULL, &err);

    assert_int_equal(vfs->xSetSystemCall(vfs, "fcntl", NULL), SQLITE_OK);
    assert_int_equal(st, ST_IO);
    assert_non_null(strstr(err.msg, "its file system has no locks"));
    assert_true(time(NULL) - begin < 30); /* another program is waited for for 60 s */
    err_clear(&err);
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_OK);
    result_set_free(&h);
}

static void numbers_that_are_not_there(void **state)
{
    char path[64];
    struct err err = ERR_INIT;
    sqlite3 *db;

    (void)state;
    snprintf(path, sizeof path, "%s/numbers.db", scratch);
    make(path, 3, KEY);
    assert_int_equal(result_db_open(&db, path, SQLITE_OPEN_READONLY, &err), ST_OK);
    assert_int_equal(result_db_number(db, "SELECT count(*) FROM rows"), 3);
    assert_int_equal(result_db_number(db, "SELECT 5 FROM rows WHERE point = 'x'"), -1);
    assert_int_equal(result_db_number(db, "SELECT count(*) FROM no_such_table"), -1);
    sqlite3_close(db);
}

static void checking_can_be_interrupted(void **state)
{
    char path[64];
    struct result_set h = {0};
    struct err err = ERR_INIT;

    (void)state;
    snprintf(path, sizeof path, "%s/long.db", scratch);
    make(path, 5000, "");
    kill(getpid(), SIGTERM);
    assert_int_equal(result_set_read(&h, path, NULL, &err), ST_INTERRUPTED);
    interrupt_forget();
    assert_int_equal(h.n_rows, 0);
    result_set_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_the_type_of_their_column),
        cmocka_unit_test(machines_of_runs_are_optional),
        cmocka_unit_test(tables_that_take_no_rows),
        cmocka_unit_test(files_that_are_not_made),
        cmocka_unit_test(other_speeds_of_one_key_are_reported),
        cmocka_unit_test(a_file_without_rows_is_not_kept),
        cmocka_unit_test(files_of_others_are_not_written),
        cmocka_unit_test(errors_of_sqlite_are_sentences),
        cmocka_unit_test(file_systems_without_locks_are_named),
        cmocka_unit_test(numbers_that_are_not_there),
        cmocka_unit_test(checking_can_be_interrupted),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
