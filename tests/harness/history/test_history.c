/* SPDX-License-Identifier: MIT
 *
 * test_history.c - rows of many runs: profiles of machines, databases whole and
 * damaged, many writers, and series
 */
#include "tests/support/test.h"

#include <ftw.h>
#include <math.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "harness/history/history.h"
#include "harness/history/history_db.h"
#include "harness/history/series.h"

#define EXAMPLE SLM_SOURCE_DIR "/results/examples/granite-rapids-2vcpu"

/* What a failed test has left goes as well. */
static char scratch[] = "test_history_XXXXXX";

static int make_scratch(void **state)
{
    (void)state;
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static int remove_scratch(void **state)
{
    (void)state;
    return nftw(scratch, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

static char *scratch_path(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", scratch, name);
    unlink(path);
    return path;
}

static struct machine_key example_key(void)
{
    json_t *root = json_load_file(EXAMPLE "/machine.json", 0, NULL);
    struct machine_key key;

    assert_non_null(root);
    assert_true(machine_key_read(&key, json_object_get(root, "topology")));
    json_decref(root);
    return key;
}

/* n runs of one point, a day apart, at the given speeds. */
static struct history made(const double *speed, size_t n, const struct machine_key *key)
{
    struct err err = ERR_INIT;
    struct history h = {0};

    for (size_t i = 0; i < n; i++) {
        struct history_run *run;
        struct row r;

        assert_int_equal(history_add_run(&h, "made", &run, &err), ST_OK);
        snprintf(run->id, sizeof run->id, "%zu", i);
        snprintf(run->commit, sizeof run->commit, "c%zu", i);
        snprintf(run->utc, sizeof run->utc, "2026-01-%02uT00:00:00Z",
                 1 + (unsigned)i % 31);
        run->has_machine = true;
        run->machine = *key;
        row_init(&r);
        memcpy(r.utc, run->utc, sizeof r.utc);
        strcpy(r.point, "m/decode/t2");
        r.kind = POINT_DECODE;
        strcpy(r.model, "m");
        r.status = ROW_STATUS_OK;
        strcpy(r.validity, "valid");
        r.attempt = 1;
        r.n_threads = 2;
        r.ctx = 0;
        r.tok_per_s = speed[i];
        r.mem_peak_bytes = (int64_t)1 << 30;
        r.mem_resident_bytes = (int64_t)1 << 29;
        assert_int_equal(history_add_row(&h, "made", &r, &err), ST_OK);
    }
    return h;
}

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

/* What a run is called comes from whoever made the file. */
static void texts_of_a_run_are_harmless(void **state)
{
    json_t *machine =
        json_pack("{s:s, s:s, s:{s:s}}", "utc", "2026\x1b[2J", "host",
                  "::error::h\xe2\x80\xae", "versions", "commit", " ##[add-mask]c");
    struct history_run run = {.has_machine = false};
    struct machine_key key;
    char profile[300000];

    (void)state;
    history_run_describe(&run, machine);
    json_decref(machine);
    assert_string_equal(run.utc, "2026\\x1b[2J");
    assert_string_equal(run.host, ".:error::h\\xe2\\x80\\xae");
    assert_string_equal(run.commit, " .#[add-mask]c");

    memset(profile, '[', sizeof profile);
    profile[sizeof profile - 1] = '\0';
    assert_false(machine_key_parse(&key, profile));
    assert_false(machine_key_parse(&key, NULL));
}

static void a_database_gives_back_what_it_got(void **state)
{
    struct err err = ERR_INIT;
    struct history a = {0}, b = {0};
    char path[256];
    size_t n_new = 0;

    (void)state;
    strcpy(path, scratch_path("same.db"));
    assert_int_equal(history_read(&a, EXAMPLE, NULL, &err), ST_OK);
    assert_int_equal(a.n_runs, 1);
    assert_true(a.n_rows > 20 && a.runs[0].has_machine);
    a.rows[0].pages = row_enum_value(&choices_pages, "64k"); /* of a newer program */
    assert_int_equal(history_db_record(path, &a, NULL, &n_new, &err), ST_OK);
    assert_int_equal(n_new, a.n_rows);
    assert_int_equal(history_db_record(path, &a, NULL, &n_new, &err), ST_OK);
    assert_int_equal(n_new, 0);
    assert_int_equal(history_read(&b, path, NULL, &err), ST_OK);
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
    history_free(&a);
    history_free(&b);
}

/* Whatever is done to the file: rows, or one sentence. */
static void a_damaged_database_is_refused(void **state)
{
    const struct machine_key key = example_key();
    const double speed[] = {5, 6, 7, 8};
    struct history h = made(speed, 4, &key);
    struct err err = ERR_INIT;
    uint64_t seed = 5;
    char path[256];
    size_t bytes, n_new, n_refused = 0;

    (void)state;
    strcpy(path, scratch_path("hurt.db"));
    assert_int_equal(history_db_record(path, &h, NULL, &n_new, &err), ST_OK);
    history_free(&h);
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
        if (history_read(&h, path, NULL, &err)) {
            n_refused++;
            assert_true(strlen(err.msg) > 20);
        }
        history_free(&h);
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
        struct history h = {0}, one = made(&speed, 1, &key);
        char path[256];
        sqlite3 *db;
        size_t n_new = 77;

        strcpy(path, scratch_path("other.db"));
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        assert_int_equal(history_read(&h, path, NULL, &err), ST_INPUT);
        if (!strstr(err.msg, said[i]))
            fail_msg("%zu: %s", i, err.msg);
        history_free(&h);
        if (i < 2) {
            err = (struct err)ERR_INIT;
            assert_int_equal(history_db_record(path, &one, NULL, &n_new, &err),
                             ST_INPUT);
            assert_int_equal(n_new, 77);
        }
        history_free(&one);
    }
}

/* A pipe that never speaks is refused at once, beside a table. */
static void only_regular_files_are_json(void **state)
{
    static const char table[] = "point,kind,status\na,decode,ok\n";
    char path[96], csv[96];
    struct history h = {.n_rows = 0};
    struct err err = ERR_INIT;

    (void)state;
    snprintf(path, sizeof path, "%s/machine.json", scratch);
    snprintf(csv, sizeof csv, "%s/sweep.csv", scratch);
    assert_int_equal(mkfifo(path, 0600), 0);
    FILE *f = fopen(csv, "w");

    assert_non_null(f);
    fputs(table, f);
    fclose(f);
    assert_int_equal(history_read(&h, scratch, NULL, &err), ST_INPUT);
    if (!strstr(err.msg, "pipe"))
        fail_msg("'%s' does not name the pipe", err.msg);
    history_free(&h);
    unlink(path);
}

/* A file of an older version, with fewer columns: it grows when it is written. */
static void columns_are_added(void **state)
{
    const struct machine_key key = example_key();
    const double speed[] = {5, 6};
    struct history h = made(speed, 1, &key), more = made(speed, 2, &key), all = {0};
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
    assert_int_equal(history_read(&all, path, NULL, &err), ST_OK);
    assert_int_equal(all.n_rows, 2);
    assert_true(isnan(all.rows[0].mbu) && fabs(all.rows[1].mbu - 0.5) < 1e-9);
    assert_string_equal(all.runs[0].commit, "c0");
    assert_string_equal(all.runs[1].commit, "later");
    unlink(path);
    history_free(&h);
    history_free(&more);
    history_free(&all);
}

static void writers_wait_for_each_other(void **state)
{
    const struct machine_key key = example_key();
    struct err err = ERR_INIT;
    struct history all = {0};
    char path[256];

    (void)state;
    strcpy(path, scratch_path("many.db"));
    for (int w = 0; w < 6; w++)
        if (fork() == 0) {
            const double speed[] = {1, 2, 3, 4, 5};
            struct history h = made(speed, 5, &key);
            size_t n_new;
            int failed = 0;

            /* three pairs write the same, each five times */
            for (size_t i = 0; i < 5; i++)
                snprintf(h.runs[i].id, sizeof h.runs[i].id, "%d-%zu", w / 2, i);
            for (int i = 0; i < 5; i++)
                failed |= history_db_record(path, &h, NULL, &n_new, &err) != ST_OK;
            history_free(&h);
            _exit(failed);
        }
    for (int w = 0, status; w < 6; w++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(history_read(&all, path, NULL, &err), ST_OK);
    assert_int_equal(all.n_rows, 15);
    assert_int_equal(all.n_runs, 15);
    history_free(&all);
}

static void a_series_is_in_order_and_honest(void **state)
{
    const struct machine_key key = example_key();
    const double speed[] = {10, 11, 12, 13, 14, 15};
    const struct series_choice choice = {.metrics = "tok_per_s,mem_resident_bytes"};
    struct history h = made(speed, 6, &key);
    struct err err = ERR_INIT;
    struct history_run *run;
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
        assert_int_equal(history_add_row(&h, "made", &r, &err), ST_OK);
    }
    assert_int_equal(history_add_run(&h, "made", &run, &err), ST_OK); /* elsewhere */
    run->machine = key;
    run->has_machine = true;
    strcpy(run->machine.text[MACHINE_CPU], "another");
    struct row r = h.rows[5];
    assert_int_equal(history_add_row(&h, "made", &r, &err), ST_OK);

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
    history_free(&h);
}

/* Runs of one commit, an hour apart: one value, the median, for each three hours. */
static void a_session_has_one_value(void **state)
{
    const double speed[] = {10, 12, 11, 20, 21, 30};
    const struct machine_key key = example_key();
    const struct series_choice joined = {.metrics = "tok_per_s"};
    const struct series_choice each = {.metrics = "tok_per_s", .each_row = true};
    struct history h = made(speed, 6, &key);
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
    history_free(&h);
    assert_true(isnan(series_seconds("yesterday")));
    assert_true(series_seconds("1970-01-02T00:00:01Z") == 86401);
}

/* Sweeps' rows one after the other, as `cat` makes them of several files. */
static void runs_of_one_csv_are_found(void **state)
{
    const double speed[] = {10, 11, 12};
    const struct machine_key key = example_key();
    struct history h = made(speed, 3, &key), back = {0};
    struct err err = ERR_INIT;
    char path[256];
    FILE *f;

    (void)state;
    strcpy(path, scratch_path("all.csv"));
    f = fopen(path, "w");
    row_csv_header(f);
    for (size_t i = 0; i < 3; i++) {
        if (i == 1) { /* failed, and was measured again by a resumed sweep */
            struct row r = h.rows[i];

            r.status = ROW_STATUS_INTERRUPTED;
            row_csv_write(f, &r);
        }
        row_csv_write(f, &h.rows[i]);
    }
    fclose(f);
    assert_int_equal(history_read(&back, path, &key, &err), ST_OK);
    assert_int_equal(back.n_runs, 3);
    assert_int_equal(back.n_rows, 4);
    assert_true(back.runs[2].has_machine);
    unlink(path);
    history_free(&h);
    history_free(&back);
}

/* A database's tables joined, as any program writes them into a CSV. */
static void a_csv_that_names_its_runs(void **state)
{
    const double speed[] = {10, 11};
    const struct machine_key key = example_key();
    struct history h = made(speed, 2, &key), back = {0};
    struct err err = ERR_INIT;
    char path[256], *profile;
    json_t *object = machine_key_json(&key);
    FILE *f;

    (void)state;
    strcpy(path, scratch_path("told.csv"));
    profile = json_dumps(object, JSON_COMPACT);
    f = fopen(path, "w");
    fprintf(f, "commit_id,utc,run,kind,tok_per_s,profile,unknown\n");
    for (int i = 0; i < 5; i++) { /* the runs interleaved */
        fprintf(f, "c%d,%s,r%d,decode,%d,\"", i % 2, h.rows[i % 2].utc, i % 2, 10 + i);
        for (const char *c = i ? profile : "{\"CPU\":1}"; *c; c++)
            fprintf(f, *c == '"' ? "\"\"" : "%c", *c);
        fprintf(f, "\",x\n");
    }
    fclose(f);
    assert_int_equal(history_read(&back, path, NULL, &err), ST_OK);
    assert_int_equal(back.n_rows, 5);
    assert_int_equal(back.n_runs, 2);
    assert_string_equal(back.runs[1].id, "r1");
    assert_string_equal(back.runs[1].commit, "c1");
    assert_string_equal(back.runs[1].host, "");
    assert_true(back.run_of[0] == 0 && back.run_of[1] == 1 && back.run_of[4] == 0);
    assert_false(back.runs[0].has_machine); /* its first profile is none */
    assert_true(back.runs[1].has_machine);
    assert_true(machine_key_same(&key, &back.runs[1].machine, NULL, 0));
    history_free(&back);
    assert_int_equal(history_read(&back, path, &key, &err), ST_OK);
    assert_true(back.runs[0].has_machine);
    history_free(&back);

    f = fopen(path, "a"); /* damaged: memory of the rows before is freed */
    fprintf(f, "c1,u,r1,decode,fast,,x\n");
    fclose(f);
    assert_int_equal(history_read(&back, path, NULL, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "tok_per_s: 'fast' is not a number"));
    history_free(&back);
    unlink(path);
    free(profile);
    json_decref(object);
    history_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_are_told_apart),
        cmocka_unit_test(blanks_are_no_other_machine),
        cmocka_unit_test(a_foreign_topology_is_no_machine),
        cmocka_unit_test(texts_of_a_run_are_harmless),
        cmocka_unit_test(a_database_gives_back_what_it_got),
        cmocka_unit_test(a_damaged_database_is_refused),
        cmocka_unit_test(only_regular_files_are_json),
        cmocka_unit_test(another_schema_is_refused),
        cmocka_unit_test(columns_are_added),
        cmocka_unit_test(writers_wait_for_each_other),
        cmocka_unit_test(a_series_is_in_order_and_honest),
        cmocka_unit_test(a_session_has_one_value),
        cmocka_unit_test(runs_of_one_csv_are_found),
        cmocka_unit_test(a_csv_that_names_its_runs),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
