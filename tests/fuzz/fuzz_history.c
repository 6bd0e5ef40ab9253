/* SPDX-License-Identifier: MIT
 *
 * fuzz_history.c - histories: tables of several runs, single rows, changed databases
 *
 * A first byte below 32 makes one of this program's databases, changed by SQL that the
 * rest of the input chooses, which is also written to; all else is a CSV or the JSON of
 * a row, whose rows are stored in a database and read from there as the same. Files
 * that are databases are fuzz_database.c's.
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/support/bytes.h"
#include "tests/fuzz/support/history.h"
#include "tests/fuzz/support/mutate.h"

#define MAX_BYTES (1 << 20)

/* ---- databases made -------------------------------------------------------------- */

/* %1$s: a column, %2$s: a value, %3$s: another column */
static const char *const statements[] = {
    "UPDATE rows SET %1$s = %2$s",
    "UPDATE rows SET %1$s = %2$s WHERE attempt = 2",
    "INSERT INTO rows (%1$s, run, point, utc) VALUES (%2$s, 'r', 'p', '1')",
    "ALTER TABLE rows ADD COLUMN %1$s_x DEFAULT %2$s",
    "ALTER TABLE rows RENAME COLUMN %1$s TO %3$s_y",
    "ALTER TABLE rows DROP COLUMN %1$s",
    "ALTER TABLE rows RENAME TO rows_2",
    "ALTER TABLE rows ADD COLUMN g AS (%1$s || %2$s)",
    "CREATE VIEW rows AS SELECT * FROM rows_2",
    "CREATE TABLE rows AS SELECT * FROM rows_2",
    "CREATE TABLE rows (%1$s, %3$s)",
    "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END",
    "CREATE INDEX i ON rows (%1$s, abs(%3$s))",
    "DROP TABLE machines",
    "UPDATE machines SET profile = %2$s",
    "UPDATE machines SET machine = %2$s",
    "CREATE TABLE machines (machine, profile)",
    "PRAGMA application_id = 1",
    "PRAGMA user_version = 7",
    "DELETE FROM rows",
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET sql = replace(sql, '%1$s', '%3$s')",
    "UPDATE sqlite_schema SET rootpage = 2",
    "INSERT INTO rows SELECT * FROM rows",
    "UPDATE gates SET ratio = %2$s",
    "UPDATE gates SET measure = %2$s, utc = %2$s",
    "INSERT INTO gates SELECT %2$s, utc, mode, end, verdict, machine, host, model, "
    "settings, a_name, a_version, a_commit, a_compiler, b_name, b_version, b_commit, "
    "b_compiler, injected, seconds, measure, unit, measure_verdict, less_is_better, "
    "margin, a, b, ratio, ratio_lo, ratio_hi, p_fail, p_pass, n_launches, n_rounds "
    "FROM "
    "gates",
    "ALTER TABLE gates ADD COLUMN h AS (utc || %2$s)",
    "ALTER TABLE gates RENAME TO gates_2",
    "CREATE VIEW gates AS SELECT * FROM gates_2",
    "DROP TABLE gates",
};
#define N_STATEMENTS (sizeof statements / sizeof statements[0])
static const char *const columns[] = {"run",     "run_utc", "commit_id", "machine",
                                      "kind",    "status",  "tok_s",     "threads",
                                      "attempt", "utc",     "point",     "model"};
static const char *const values[] = {"NULL",
                                     "''",
                                     "1",
                                     "-1",
                                     "1e999",
                                     "0.5",
                                     "9223372036854775807",
                                     "x'00ff'",
                                     "'a' || char(27) || '[2J'",
                                     "char(0)",
                                     "zeroblob(70000)",
                                     "printf('%%.60000c', 'a')",
                                     "'{}'",
                                     "'{\"cpu\":1}'",
                                     "randomblob(8)",
                                     "'ok'"};

static void change_database(const char *path, struct bytes *b)
{
    sqlite3 *db = NULL;
    char sql[1024];

    if (sqlite3_open(path, &db) == SQLITE_OK) {
        sqlite3_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL,
                     NULL, NULL);
        for (uint32_t n = bytes_below(b, 10); n; n--) {
            snprintf(sql, sizeof sql, bytes_of(b, statements, N_STATEMENTS),
                     bytes_of(b, columns, 12), bytes_of(b, values, 16),
                     bytes_of(b, columns, 12));
            sqlite3_exec(db, sql, NULL, NULL, NULL);
        }
    }
    sqlite3_close(db);
}

/* A database of two rows as this program writes it, made once. */
static const char *sound_database(void)
{
    static char path[512];

    if (!path[0]) {
        snprintf(path, sizeof path, "%s", fuzz_path("sound.db"));
        history_write_to(path);
    }
    return path;
}

static size_t read_whole(const char *path, uint8_t *image)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(image, 1, MAX_BYTES, f) : 0;

    if (f)
        fclose(f);
    return n;
}

/* A sound database, changed by SQL, then in a few of its bytes. */
static const char *make_database(struct bytes *b)
{
    static uint8_t image[MAX_BYTES];
    const char *path = fuzz_file("h.db", image, read_whole(sound_database(), image));

    change_database(path, b);
    const size_t n = read_whole(path, image);

    for (uint32_t i = bytes_below(b, 4); i && n; i--)
        image[bytes_below(b, n < 65536 ? (uint32_t)n : 65536)] = bytes_u8(b);
    fuzz_input_grows(n);
    return fuzz_file("h.db", image, n);
}

/* ---- tables ---------------------------------------------------------------------- */

static const char *run_id(const struct result_set *h, size_t i)
{
    return h->runs[h->run_of[i]].id;
}

/* Run by run in the order of their ids, as a database has them. */
static char *text_of(struct result_set *h)
{
    const char *id = "", *next;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);

    if (!f)
        fuzz_fail("no memory for rows");
    do {
        next = NULL;
        for (size_t i = 0; i < h->n_rows; i++) {
            if (strcmp(run_id(h, i), id) > 0 &&
                (!next || strcmp(run_id(h, i), next) < 0))
                next = run_id(h, i);
            if (strcmp(run_id(h, i), id) != 0)
                continue;
            if (h->rows[i].attempt == FIELD_NO_INT)
                h->rows[i].attempt = 0; /* as the database has it, in its key */
            fprintf(f, "%s,", id);
            row_csv_write(f, &h->rows[i]);
        }
    } while ((id = next) != NULL);
    fclose(f);
    return text;
}

static void store_table(const char *path)
{
    const char *db = fuzz_path("stored.db");
    struct result_set h = {.n_rows = 0}, again = {.n_rows = 0};
    struct err err = ERR_INIT;
    size_t n_new = 0, n_more = 0;

    unlink(db);
    if (!fuzz_accepted(result_set_read(&h, path, NULL, &err), &err) || h.n_rows > 64 ||
        !fuzz_accepted(history_db_record(db, &h, NULL, &n_new, &err), &err)) {
        result_set_free(&h);
        return;
    }
    if (!fuzz_accepted(result_set_read(&again, db, NULL, &err), &err) ||
        !fuzz_accepted(history_db_record(db, &again, NULL, &n_more, &err), &err))
        fuzz_fail("our own writing is refused");
    if (again.n_rows != n_new || n_more)
        fuzz_fail("%zu rows are stored, %zu read, %zu of them new", n_new, again.n_rows,
                  n_more);
    if (n_new == h.n_rows) {
        char *before = text_of(&h), *after = text_of(&again);

        if (strcmp(before, after) != 0)
            fuzz_fail("rows are stored as\n%sand read as\n%s", before, after);
        free(before);
        free(after);
    }
    result_set_free(&again);
    result_set_free(&h);
}

static void read_history(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    const char *path;

    if (!size)
        return;
    if (data[0] < 32) {
        bytes_u8(&b);
        path = make_database(&b);
    } else {
        path = fuzz_file("h.csv", data, size);
        history_read_any(path);
        store_table(path);
        return;
    }
    history_read_any(path);
    history_read_gates(path);
    history_write_to(path);
    unlink(fuzz_path("h.db-journal"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sound_database();
    return fuzz_run(read_history, data, size, HISTORY_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"run",    "run_utc", "machine", "point", "kind",
                                        "decode", "ok",      "attempt", "1",     NULL};

    return size && data[0] >= 32 ? mutate_text(data, size, max_size, seed, words)
                                 : LLVMFuzzerMutate(data, size, max_size);
}
