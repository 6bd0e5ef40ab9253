/* SPDX-License-Identifier: MIT
 *
 * test_result_set.c - rows from every kind of path: what a run is, what is checked,
 * what is refused
 */
#include "tests/support/result_scratch.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>

#include "harness/base/interrupt.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/result_set_impl.h"

/* What a run is called comes from whoever made the file. */
static void texts_of_a_run_are_harmless(void **state)
{
    json_t *machine =
        json_pack("{s:s, s:s, s:{s:s}}", "utc", "2026\x1b[2J", "host",
                  "::error::h\xe2\x80\xae", "versions", "commit", " ##[add-mask]c");
    struct result_run run = {.has_machine = false};
    struct machine_key key;
    char profile[300000];

    (void)state;
    result_run_describe(&run, machine);
    json_decref(machine);
    assert_string_equal(run.utc, "2026\\x1b[2J");
    assert_string_equal(run.host, ".:error::h\\xe2\\x80\\xae");
    assert_string_equal(run.commit, " .#[add-mask]c");

    memset(profile, '[', sizeof profile);
    profile[sizeof profile - 1] = '\0';
    assert_false(machine_key_parse(&key, profile));
    assert_false(machine_key_parse(&key, NULL));
}

/* Sweeps' rows one after the other, as `cat` makes them of several files. */
static void runs_of_one_csv_are_found(void **state)
{
    const double speed[] = {10, 11, 12};
    const struct machine_key key = example_key();
    struct result_set h = made(speed, 3, &key), back = {0};
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
            strcpy(r.utc, "2026-01-01T23:00:00Z");
            row_csv_write(f, &r);
        }
        row_csv_write(f, &h.rows[i]);
    }
    fclose(f);
    assert_int_equal(result_set_read(&back, path, &key, &err), ST_OK);
    assert_int_equal(back.n_runs, 3);
    assert_int_equal(back.n_rows, 4);
    assert_true(back.runs[2].has_machine);
    result_set_free(&back);
    interrupt_catch(); /* a table of others is given up */
    raise(SIGTERM);
    back = (struct result_set){0};
    assert_int_equal(result_set_read(&back, path, &key, &err), ST_INTERRUPTED);
    interrupt_forget();
    unlink(path);
    result_set_free(&h);
    result_set_free(&back);
}

/* A plain table of many rows, among them failed ones, from the current folder. */
static void runs_of_a_long_csv(void **state)
{
    const char *const status[] = {"ok", "error", "interrupted", "no_fit"};
    const struct machine_key key = example_key();
    const double speed[] = {10};
    struct result_set h = made(speed, 1, &key), back = {0};
    struct err err = ERR_INIT;
    char cwd[4096], path[256];
    FILE *f;

    (void)state;
    strcpy(path, scratch_path("long.csv"));
    f = fopen(path, "w");
    row_csv_header(f);
    for (int run = 0; run < 2; run++)
        for (int i = 0; i < 40; i++) {
            struct row r = h.rows[0];

            snprintf(r.point, sizeof r.point, "p%d", i);
            r.status = row_enum_value(&choices_row_status, status[i % 4]);
            snprintf(r.utc, sizeof r.utc, "2026-01-%02dT00:00:%02dZ", run + 1, i);
            row_csv_write(f, &r);
        }
    fclose(f);
    assert_non_null(getcwd(cwd, sizeof cwd));
    *strrchr(path, '/') = '\0';
    assert_int_equal(chdir(path), 0);
    assert_int_equal(result_set_read(&back, "long.csv", NULL, &err), ST_OK);
    unlink("long.csv");
    assert_int_equal(chdir(cwd), 0);
    assert_int_equal(back.n_runs, 2);
    assert_int_equal(back.n_rows, 80);
    assert_true(back.run_of[39] == 0 && back.run_of[40] == 1);
    assert_false(back.runs[0].has_machine);
    result_set_free(&back);
    result_set_free(&h);
}

/* A database's tables joined, as any program writes them into a CSV. */
static void a_csv_that_names_its_runs(void **state)
{
    const double speed[] = {10, 11};
    const struct machine_key key = example_key();
    struct result_set h = made(speed, 2, &key), back = {0};
    struct err err = ERR_INIT;
    char path[256], *profile;
    json_t *object = machine_key_json(&key);
    FILE *f;

    (void)state;
    strcpy(path, scratch_path("named.csv"));
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
    assert_int_equal(result_set_read(&back, path, NULL, &err), ST_OK);
    assert_int_equal(back.n_rows, 5);
    assert_int_equal(back.n_runs, 2);
    assert_string_equal(back.runs[1].id, "r1");
    assert_string_equal(back.runs[1].commit, "c1");
    assert_string_equal(back.runs[1].host, "");
    assert_true(back.run_of[2] == 0 && back.run_of[3] == 1); /* r0's rows first */
    assert_true(back.rows[1].tok_per_s == 12 && back.rows[3].tok_per_s == 11);
    assert_false(back.runs[0].has_machine); /* its first profile is none */
    assert_true(back.runs[1].has_machine);
    assert_true(machine_key_same(&key, &back.runs[1].machine, NULL, 0));
    result_set_free(&back);
    assert_int_equal(result_set_read(&back, path, &key, &err), ST_OK);
    assert_true(back.runs[0].has_machine);
    result_set_free(&back);

    f = fopen(path, "a"); /* damaged: memory of the rows before is freed */
    fprintf(f, "c1,u,r1,decode,fast,,x\n");
    fclose(f);
    assert_int_equal(result_set_read(&back, path, NULL, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "tok_per_s: 'fast' is not a number"));
    result_set_free(&back);
    unlink(path);
    free(profile);
    json_decref(object);
    result_set_free(&h);
}

static void names_are_the_last_part(void **state)
{
    static const char *const cases[][2] = {{"epyc", "epyc"},
                                           {"results/epyc", "epyc"},
                                           {"results/epyc//", "epyc"},
                                           {"/results/epyc", "epyc"},
                                           {"/", "/"},
                                           {"///", "/"},
                                           {"..", ".."},
                                           {"a/b\nc\033[1m", "b\\x0ac\\x1b[1m"}};
    char name[64], cut[8];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        result_dir_name(name, sizeof name, cases[i][0]);
        assert_string_equal(name, cases[i][1]);
    }
    result_dir_name(cut, sizeof cut, "results/granite-rapids");
    assert_string_equal(cut, "gran...");
}

/* ---- files of a sweep ------------------------------------------------------------ */

/* The directory `name` of the scratch one, empty. */
static const char *dir_of(const char *name, char *buf)
{
    snprintf(buf, 200, "%s/%s", scratch, name);
    mkdir(buf, 0700);
    return buf;
}

static void write_text(const char *dir, const char *name, const char *text)
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const char table[] =
    "utc,point,attempt,kind,model,quant,file_bytes,n_threads,ctx,status,tok_per_s,"
    "validity,roof_gbps,bytes_per_token,kl_mean\n"
    "2026-01-01T00:00:00Z,a,1,decode,m,Q4_0,7,2,0,ok,10,valid,20,1000,\n"
    "2026-01-01T00:00:01Z,b,1,decode,m,Q4_0,7,2,0,ok,11,valid,10,1000,\n"
    "2026-01-01T00:00:00Z,a,1,decode,m,Q4_0,7,2,0,ok,10,valid,20,1000,\n"
    "2026-01-01T00:00:02Z,a,1,decode,m,Q4_0,7,2,0,ok,12,valid,20,1000,\n"
    "2026-01-01T00:00:03Z,c,1,decode,m,Q4_0,7,-5,0,ok,13,valid,20,1000,\n";
static const char machine[] =
    "{\"utc\": \"2026-01-01T00:00:00Z\", \"host\": \"h\", \"topology\": {\"cpu\": "
    "{\"model\": \"A CPU\"}, \"limits\": {\"cpus_allowed\": 4, \"cpu_quota\": 2.5}, "
    "\"memory\": {}}}";

/* A directory is one sweep, whatever points come again in it; one of its five rows is a
 * copy, one cannot be, and one had half the bandwidth. */
static void a_directory_is_one_run(void **state)
{
    struct err err = ERR_INIT;
    struct result_set set = {.n_rows = 0};
    char dir[200];

    (void)state;
    dir_of("one", dir);
    write_text(dir, "sweep.csv", table);
    write_text(dir, "quality.csv",
               "utc,point,kind,model,quant,file_bytes,status,perplexity,kl_mean\n"
               "2026-01-01T00:00:00Z,q,quality,m,Q4_0,7,ok,8.5,0.25\n");
    assert_int_equal(result_set_open(&set, dir, RESULT_LAST, &err), ST_OK);
    assert_int_equal(set.n_runs, 1);
    assert_int_equal(set.n_parts, 1);
    const struct result_part *part = &set.parts[0];
    assert_string_equal(part->name, "one");
    assert_string_equal(part->run->dir, dir);
    assert_false(part->run->has_machine);
    assert_int_equal(part->run->about.max_threads, 0);
    assert_int_equal(part->n, 4);
    assert_string_equal(part->rows[1].validity,
                        "disturbed: memory gave 10.0 GB/s, at other points 20.0");
    assert_true(part->rows[2].tok_per_s == 12 && part->rows[2].kl_mean == 0.25);
    assert_int_equal(row_trust(&part->rows[3]), ROW_FAILED);
    assert_non_null(strstr(part->rows[3].detail, "n_threads is -5"));
    assert_int_equal(set.files.n, 4); /* with quality, samples and requests */
    result_set_free(&set);

    write_text(dir, "machine.json", machine);
    assert_int_equal(result_set_open(&set, dir, RESULT_LAST, &err), ST_OK);
    assert_int_equal(set.files.n, 5);
    assert_true(set.parts[0].run->has_machine);
    assert_string_equal(set.parts[0].run->host, "h");
    assert_string_equal(set.parts[0].run->about.cpu_model, "A CPU");
    assert_int_equal(set.parts[0].run->about.n_cpus, 4);
    assert_int_equal(set.parts[0].run->about.max_threads, 2);
    result_set_free(&set);

    write_text(dir, "sweep.csv", "point,kind,status\n");
    assert_int_equal(result_set_open(&set, dir, RESULT_LAST, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "--resume"));
    result_set_free(&set);
}

/* Machine descriptions that are damaged or never end are no reason to refuse rows; who
 * needs them finds why they are not known. */
static void a_machine_that_cannot_be_read(void **state)
{
    struct result_set set = {.n_rows = 0};
    struct err err = ERR_INIT;
    char dir[200], path[300];

    (void)state;
    dir_of("pipe", dir);
    write_text(dir, "sweep.csv", table);
    snprintf(path, sizeof path, "%s/machine.json", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(result_set_open(&set, dir, RESULT_BY_RUN, &err), ST_OK);
    assert_int_equal(set.unread.code, ST_INPUT);
    assert_non_null(strstr(set.unread.msg, "pipe"));
    assert_false(set.parts[0].run->has_machine);
    result_set_free(&set);
    unlink(path);
    write_text(dir, "machine.json", "{\"topology\": ");
    assert_int_equal(result_set_open(&set, dir, RESULT_BY_RUN, &err), ST_OK);
    assert_int_equal(set.unread.code, ST_INPUT);
    result_set_free(&set);

    /* of several the first is reported */
    dir_of("unread", dir);
    for (const char *name = "ab"; *name; name++) {
        char below[200], text[20];

        snprintf(below, sizeof below, "unread/%c", *name);
        dir_of(below, dir);
        snprintf(text, sizeof text, "{\"%c\": ", *name);
        write_text(dir, "sweep.csv", table);
        write_text(dir, "machine.json", text);
    }
    dir_of("unread", dir);
    assert_int_equal(result_set_open(&set, dir, RESULT_BY_RUN, &err), ST_OK);
    assert_int_equal(set.n_runs, 2);
    assert_non_null(strstr(set.unread.msg, "unread/a/machine.json"));
    result_set_free(&set);
}

/* What is below a folder, in order of names; nothing through links, nothing of sweeps
 * that have not begun. */
static void a_folder_of_sweeps(void **state)
{
    struct result_set set = {.n_rows = 0};
    struct err err = ERR_INIT;
    char top[200], dir[200], link[300];

    (void)state;
    dir_of("top", top);
    assert_int_equal(result_set_open(&set, top, RESULT_BY_RUN, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "no sweep.csv with rows"));
    result_set_free(&set);
    write_text(dir_of("top/b", dir), "sweep.csv", table);
    write_text(dir_of("top/a", dir), "sweep.csv", table);
    dir_of("top/empty", dir);
    write_text(dir, "sweep.csv", "");
    dir_of("top/c", dir);
    snprintf(link, sizeof link, "%s/sweep.csv", dir);
    assert_int_equal(symlink("../a/sweep.csv", link), 0);
    assert_int_equal(result_set_open(&set, top, RESULT_BY_RUN, &err), ST_OK);
    assert_int_equal(set.n_parts, 2);
    assert_string_equal(set.parts[0].name, "a");
    assert_string_equal(set.parts[1].name, "b");
    result_set_free(&set);
    assert_int_equal(result_set_open(&set, dir, RESULT_BY_RUN, &err), ST_OK);
    assert_int_equal(set.parts[0].n, 4); /* it was named: its link is followed */
    result_set_free(&set);
}

/* Rows or one sentence, wherever a file ends. */
static void cut_files_are_read_or_refused(void **state)
{
    const char *const names[] = {"sweep.csv", "machine.json", "row.json"};
    const char *const texts[] = {
        table, machine, "{\"kind\": \"decode\", \"status\": \"ok\", \"point\": \"p\"}"};
    char dir[200], path[300], text[2000];
    size_t n_read = 0, n_refused = 0;

    (void)state;
    dir_of("cut", dir);
    write_text(dir, "sweep.csv", table);
    for (size_t k = 0; k < 3; k++)
        for (size_t len = 0; len <= strlen(texts[k]); len++) {
            struct result_set set;
            struct err err = ERR_INIT;

            snprintf(text, sizeof text, "%.*s", (int)len, texts[k]);
            write_text(dir, names[k], text);
            snprintf(path, sizeof path, "%s/%s", dir, names[k]);
            if (result_set_open(&set, k == 2 ? path : dir, RESULT_LAST, &err)) {
                assert_true(strlen(err.msg) > 20);
                n_refused++;
            } else {
                assert_true(set.n_parts == 1 && set.parts[0].n > 0);
                n_read++;
            }
            result_set_free(&set);
        }
    assert_true(n_refused > 50 && n_read > 200);
}

/* ---- databases, and machines ----------------------------------------------------- */

/* Three runs: two of one machine, the later without point b; one of another. */
static void make_db(const char *path)
{
    const struct machine_key key = example_key();
    json_t *object = machine_key_json(&key);
    char *profile = json_dumps(object, JSON_COMPACT);
    sqlite3 *db;
    char *sql = sqlite3_mprintf(
        "PRAGMA application_id = 1397509474; CREATE TABLE machines (machine TEXT "
        "PRIMARY KEY, name, profile) WITHOUT ROWID; INSERT INTO machines VALUES ('k', "
        "'', %Q); CREATE TABLE rows (run, run_utc, commit_id, version, compiler, host, "
        "machine, point, attempt, utc, kind, status, tok_per_s); INSERT INTO rows "
        "VALUES "
        "('1','2026-01-01','c1','v','gcc','h','k','a',1,'2026-01-01T01','decode','ok',"
        "1.0),"
        "('1','2026-01-01','c1','v','gcc','h','k','b',1,'2026-01-01T02','decode','ok',"
        "2.0),"
        "('2','2026-01-02','c2','v','gcc','h','k','a',1,'2026-01-02T01','decode','ok',"
        "3.0),"
        "('2','2026-01-02','c2','v','gcc','h','k','a',2,'2026-01-02T02','decode','ok',"
        "4.0),"
        "('3','2026-01-03','c3','v','gcc','g',NULL,'a',1,'2026-01-03T01','decode','ok',"
        "5.0)",
        profile);

    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    sqlite3_free(sql);
    free(profile);
    json_decref(object);
}

static void machines_have_their_latest_rows(void **state)
{
    struct result_set set;
    struct err err = ERR_INIT;
    char path[256];

    (void)state;
    strcpy(path, scratch_path("machines.db"));
    make_db(path);
    assert_int_equal(result_set_open(&set, path, RESULT_BY_RUN, &err), ST_OK);
    assert_int_equal(set.n_parts, 3);
    assert_string_equal(set.parts[1].name, "h 2026-01-02");
    assert_int_equal(set.parts[1].n, 2);
    assert_string_equal(set.parts[1].run->commit, "c2");
    result_set_free(&set);

    assert_int_equal(result_set_open(&set, path, RESULT_BY_MACHINE, &err), ST_OK);
    assert_int_equal(set.n_parts, 2);
    assert_string_equal(set.parts[0].name, "h");
    assert_string_equal(set.parts[0].run->commit, "c2");
    assert_string_equal(set.parts[0].run->about.cpu_model,
                        "Intel(R) Xeon(R) Processor");
    assert_int_equal(set.parts[0].run->about.max_threads, 2);
    assert_int_equal(set.parts[0].n, 3); /* a of the second run, b of the first */
    assert_true(set.parts[0].rows[0].tok_per_s == 3 &&
                set.parts[0].rows[2].tok_per_s == 2);
    assert_string_equal(set.parts[1].name, "g");
    result_set_free(&set);

    assert_int_equal(result_set_open(&set, path, RESULT_LAST, &err), ST_OK);
    assert_int_equal(set.n_parts, 1);
    assert_string_equal(set.parts[0].name, "g");
    assert_true(set.parts[0].rows[0].tok_per_s == 5);
    result_set_free(&set);
    unlink(path);
}

/* A runner of a CI service has another name each time: the last is taken, all are too
 * many. */
static void many_machines(void **state)
{
    struct result_set set;
    struct err err = ERR_INIT;
    char path[256];
    FILE *f;

    (void)state;
    strcpy(path, scratch_path("many.csv"));
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("run,run_utc,host,utc,point,kind,status,tok_per_s\n", f);
    for (int i = 0; i < 300; i++)
        fprintf(f, "%d,2026-01-01T%02d:%02d,runner-%d,u%d,a,decode,ok,%d\n", i, i / 60,
                i % 60, i, i, 1 + i);
    fclose(f);
    assert_int_equal(result_set_open(&set, path, RESULT_LAST, &err), ST_OK);
    assert_int_equal(set.n_parts, 1);
    assert_string_equal(set.parts[0].name, "runner-299");
    assert_true(set.parts[0].n == 1 && set.parts[0].rows[0].tok_per_s == 300);
    result_set_free(&set);
    assert_int_equal(result_set_open(&set, path, RESULT_BY_MACHINE, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "300 machines"));
    result_set_free(&set);
    unlink(path);
}

static void there_is_an_end_of_rows_and_runs(void **state)
{
    struct result_set set = {.n_rows = RESULT_SET_MAX_ROWS,
                             .n_runs = RESULT_SET_MAX_RUNS};
    struct result_run *run;
    struct err err = ERR_INIT;
    struct row r;

    (void)state;
    row_init(&r);
    assert_int_equal(result_set_add_row(&set, "p", &r, &err), ST_INPUT);
    assert_string_equal(err.msg, "p: more than 200000 rows are too many");
    err = (struct err)ERR_INIT;
    assert_int_equal(result_set_add_run(&set, "p", &run, &err), ST_INPUT);
    assert_string_equal(err.msg, "p: more than 20000 runs are too many");
}

/* Among several sweeps of one second that which was written last, else that which began
 * last. */
static void the_newest_sweep_is_one(void **state)
{
    char folder[256], path[300], found[300];
    struct err err = ERR_INIT;

    (void)state;
    strcpy(folder, scratch_path("newest"));
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(setenv("SLMBENCH_RESULTS", folder, 1), 0);
    for (int same = 0; same < 2; same++) {
        for (int i = 0; i < 9; i++) {
            const struct timespec t = {1700000000, same ? 5 : 100 - i};
            FILE *f;

            snprintf(path, sizeof path, "%s/h-20260101T00000%dZ", folder, (7 * i) % 9);
            if (!same)
                assert_int_equal(mkdir(path, 0700), 0);
            strcat(path, "/sweep.csv");
            f = fopen(path, "w");
            assert_non_null(f);
            fputs("utc\n", f);
            fclose(f);
            assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){t, t}, 0),
                             0);
        }
        assert_int_equal(result_newest(found, sizeof found, &err), ST_OK);
        assert_non_null(strstr(found, same ? "T000008Z" : "T000000Z"));
    }
    unsetenv("SLMBENCH_RESULTS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_the_last_part),
        cmocka_unit_test(texts_of_a_run_are_harmless),
        cmocka_unit_test(runs_of_one_csv_are_found),
        cmocka_unit_test(runs_of_a_long_csv),
        cmocka_unit_test(a_csv_that_names_its_runs),
        cmocka_unit_test(a_directory_is_one_run),
        cmocka_unit_test(a_machine_that_cannot_be_read),
        cmocka_unit_test(a_folder_of_sweeps),
        cmocka_unit_test(cut_files_are_read_or_refused),
        cmocka_unit_test(machines_have_their_latest_rows),
        cmocka_unit_test(many_machines),
        cmocka_unit_test(there_is_an_end_of_rows_and_runs),
        cmocka_unit_test(the_newest_sweep_is_one),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
