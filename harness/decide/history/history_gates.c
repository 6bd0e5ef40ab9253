/* SPDX-License-Identifier: MIT
 *
 * history_gates.c - verdicts of gates to SQLite and back
 *
 * Writer and reader go through the same table of columns.
 */
#include "harness/decide/history/history_gates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/base/order.h"
#include "harness/decide/history/history_db_impl.h"

#define SQL_MAX 4096

#define TEXT(name)                                        \
    {                                                     \
#name, true, offsetof(struct history_gate, name), \
            sizeof(((struct history_gate *)0)->name)      \
    }
#define NUMBER(name)                                         \
    {                                                        \
#name, false, offsetof(struct history_gate, name), 0 \
    }
const struct history_gate_column history_gate_columns[] = {
    TEXT(gate),
    TEXT(utc),
    TEXT(mode),
    TEXT(end),
    TEXT(verdict),
    TEXT(machine),
    TEXT(host),
    TEXT(model),
    TEXT(settings),
    TEXT(a_name),
    TEXT(a_version),
    TEXT(a_commit),
    TEXT(a_compiler),
    TEXT(b_name),
    TEXT(b_version),
    TEXT(b_commit),
    TEXT(b_compiler),
    NUMBER(injected),
    NUMBER(seconds),
    TEXT(measure),
    TEXT(unit),
    TEXT(measure_verdict),
    NUMBER(less_is_better),
    NUMBER(margin),
    NUMBER(a),
    NUMBER(b),
    NUMBER(ratio),
    NUMBER(ratio_lo),
    NUMBER(ratio_hi),
    NUMBER(p_fail),
    NUMBER(p_pass),
    NUMBER(n_launches),
    NUMBER(n_rounds),
};
#define N_COLUMNS (sizeof history_gate_columns / sizeof history_gate_columns[0])
const size_t history_n_gate_columns = N_COLUMNS;

/* ---- a result as rows ------------------------------------------------------------ */

static void copy(char *buf, size_t cap, const char *text)
{
    snprintf(buf, cap, "%s", text);
}

static void set_id(struct history_gate *g, uint64_t id)
{
    snprintf(g->gate, sizeof g->gate, "%016llx", (unsigned long long)id);
}

/* The gate's own columns; machine: its key, or "". Returns its identity. */
static uint64_t describe(struct history_gate *g, const struct gate_result *r,
                         const char *machine)
{
    const char *const known_by[] = {
        r->when,         machine,         r->host,           r->model,
        r->side[0].name, r->side[1].name, r->side[0].commit, r->side[1].commit};
    uint64_t id = HASH_BEGIN;

    memset(g, 0, sizeof *g);
    for (size_t i = 0; i < sizeof known_by / sizeof *known_by; i++)
        id = hash_add(id, known_by[i], strlen(known_by[i]) + 1);
    set_id(g, id);
    copy(g->utc, sizeof g->utc, r->when);
    copy(g->mode, sizeof g->mode, r->mode == GATE_MODE_AB ? "ab" : "baseline");
    copy(g->end, sizeof g->end, gate_end_words[r->end]);
    copy(g->verdict, sizeof g->verdict, gate_verdict_word(r->verdict));
    copy(g->machine, sizeof g->machine, machine);
    copy(g->host, sizeof g->host, r->host);
    copy(g->model, sizeof g->model, r->model);
    copy(g->settings, sizeof g->settings, r->settings);
    copy(g->a_name, sizeof g->a_name, r->side[0].name);
    copy(g->a_version, sizeof g->a_version, r->side[0].version);
    copy(g->a_commit, sizeof g->a_commit, r->side[0].commit);
    copy(g->a_compiler, sizeof g->a_compiler, r->side[0].compiler);
    copy(g->b_name, sizeof g->b_name, r->side[1].name);
    copy(g->b_version, sizeof g->b_version, r->side[1].version);
    copy(g->b_commit, sizeof g->b_commit, r->side[1].commit);
    copy(g->b_compiler, sizeof g->b_compiler, r->side[1].compiler);
    g->injected = r->injected;
    g->seconds = r->seconds;
    return id;
}

static void take_metric(struct history_gate *g, const struct gate_metric *m)
{
    copy(g->measure, sizeof g->measure, m->name);
    copy(g->unit, sizeof g->unit, m->unit);
    copy(g->measure_verdict, sizeof g->measure_verdict, gate_verdict_word(m->verdict));
    g->less_is_better = m->less_is_better;
    g->margin = m->margin;
    g->a = m->a;
    g->b = m->b;
    g->ratio = m->effect.ratio;
    g->ratio_lo = m->effect.lo;
    g->ratio_hi = m->effect.hi;
    g->p_fail = m->effect.p_fail;
    g->p_pass = m->effect.p_pass;
    g->n_launches = (double)m->n_launches;
    g->n_rounds = (double)m->n_rounds;
}

/* ---- writing --------------------------------------------------------------------- */

static const char *text_of(const struct history_gate *g,
                           const struct history_gate_column *c)
{
    return (const char *)g + c->offset;
}

static double number_of(const struct history_gate *g,
                        const struct history_gate_column *c)
{
    return *(const double *)(const void *)((const char *)g + c->offset);
}

static enum status make_table(sqlite3 *db, const char *path, struct err *err)
{
    char sql[SQL_MAX] = "CREATE TABLE IF NOT EXISTS gates (";

    for (size_t i = 0; i < N_COLUMNS; i++)
        text_append(sql, sizeof sql, "%s %s, ", history_gate_columns[i].name,
                    history_gate_columns[i].is_text ? "TEXT NOT NULL" : "REAL");
    text_append(sql, sizeof sql, "PRIMARY KEY (gate, measure)) WITHOUT ROWID");
    return result_db_sql(db, path, sql, err);
}

static sqlite3_stmt *prepare_insert(sqlite3 *db)
{
    char sql[SQL_MAX] = "INSERT OR ABORT INTO gates (";
    sqlite3_stmt *s = NULL;

    for (size_t i = 0; i < N_COLUMNS; i++)
        text_append(sql, sizeof sql, "%s%s", i ? ", " : "",
                    history_gate_columns[i].name);
    for (size_t i = 0; i < N_COLUMNS; i++)
        text_append(sql, sizeof sql, i ? ", ?" : ") VALUES (?");
    text_append(sql, sizeof sql, ") ON CONFLICT (gate, measure) DO NOTHING");
    return sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK ? s : NULL;
}

static void bind(sqlite3_stmt *s, const struct history_gate *g)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const struct history_gate_column *c = &history_gate_columns[i];
        const int at = (int)i + 1;

        if (c->is_text)
            sqlite3_bind_text(s, at, text_of(g, c), -1, SQLITE_TRANSIENT);
        else if (isfinite(number_of(g, c)))
            sqlite3_bind_double(s, at, number_of(g, c));
        else
            sqlite3_bind_null(s, at);
    }
}

/* What history_gates_add() writes. */
struct addition {
    const struct gate_result *r;
    size_t n_new;
};

static enum status write_rows(sqlite3 *db, const char *path, struct history_gate *g,
                              struct addition *a, struct err *err)
{
    sqlite3_stmt *s = prepare_insert(db);
    enum status st = s ? ST_OK : result_db_fail(db, path, err);

    for (size_t i = 0; i < a->r->n_metrics && st == ST_OK; i++) {
        take_metric(g, &a->r->metric[i]);
        bind(s, g);
        if (sqlite3_step(s) != SQLITE_DONE)
            st = result_db_fail(db, path, err);
        a->n_new += st == ST_OK ? (size_t)sqlite3_changes(db) : 0;
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return st;
}

/* Whether the gate of g->gate that is stored has other figures. */
static bool has_others(sqlite3 *db, const struct history_gate *g,
                       const struct gate_result *r)
{
    sqlite3_stmt *s = NULL;
    bool found = false;

    sqlite3_prepare_v2(db,
                       "SELECT 1 FROM gates WHERE gate = ? AND measure = ? AND (a IS "
                       "NOT ? OR b IS NOT ?)",
                       -1, &s, NULL);
    for (size_t i = 0; s && i < r->n_metrics && !found; i++) {
        sqlite3_bind_text(s, 1, g->gate, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(s, 2, r->metric[i].name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_double(s, 3, r->metric[i].a); /* NaN is NULL */
        sqlite3_bind_double(s, 4, r->metric[i].b);
        found = sqlite3_step(s) == SQLITE_ROW;
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return found;
}

static enum status write_gate(sqlite3 *db, const char *path, void *arg, struct err *err)
{
    struct addition *a = arg;
    struct history_gate g;
    char machine[24] = "";
    enum status st = make_table(db, path, err);

    if (st == ST_OK && a->r->has_machine)
        st = history_db_machine(db, path, &a->r->machine, machine, err);
    uint64_t id = describe(&g, a->r, machine);
    if (st == ST_OK && has_others(db, &g, a->r)) {
        /* another one of that second */
        for (size_t i = 0; i < a->r->n_metrics; i++) {
            id = hash_add(id, &a->r->metric[i].a, sizeof a->r->metric[i].a);
            id = hash_add(id, &a->r->metric[i].b, sizeof a->r->metric[i].b);
        }
        set_id(&g, id);
    }
    return st ? st : write_rows(db, path, &g, a, err);
}

enum status history_gates_add(const char *path, const struct gate_result *r,
                              size_t *n_new, struct err *err)
{
    struct addition a = {.r = r};
    const enum status st = history_db_write(path, write_gate, &a, err);

    if (st == ST_OK && n_new)
        *n_new = a.n_new;
    return st;
}

/* ---- reading --------------------------------------------------------------------- */

static enum status read_cell(sqlite3_stmt *s, int at, const char *path,
                             struct history_gate *g,
                             const struct history_gate_column *c, struct err *err)
{
    const int type = sqlite3_column_type(s, at);
    double *number = (double *)(void *)((char *)g + c->offset);

    if (c->is_text) {
        result_db_text(s, at, (char *)g + c->offset, c->cap);
        return ST_OK;
    }
    *number = type == SQLITE_NULL ? NAN : sqlite3_column_double(s, at);
    if (type == SQLITE_NULL ||
        ((type == SQLITE_FLOAT || type == SQLITE_INTEGER) && isfinite(*number)))
        return ST_OK;
    return err_set(err, ST_INPUT,
                   "%s, table gates: a value of column %s is not a number", path,
                   c->name);
}

static sqlite3_stmt *prepare_select(sqlite3 *db)
{
    char sql[SQL_MAX] = "SELECT ";
    sqlite3_stmt *s = NULL;

    for (size_t i = 0; i < N_COLUMNS; i++)
        text_append(sql, sizeof sql, "g.%s, ", history_gate_columns[i].name);
    text_append(sql, sizeof sql,
                "(SELECT name FROM machines AS m WHERE m.machine = g.machine) FROM "
                "gates AS g ORDER BY g.utc DESC, g.gate, g.measure LIMIT ?");
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_int(s, 1, HISTORY_MAX_GATES);
    return s;
}

static enum status add_row(struct history_gates *gates, size_t *cap, sqlite3_stmt *s,
                           const char *path, struct err *err)
{
    struct history_gate *g = array_grow(gates->v, gates->n, cap, sizeof *g);
    enum status st = ST_OK;

    if (!g)
        return err_set(err, ST_NO_MEMORY, "no memory for the gates of %.300s", path);
    gates->v = g;
    g += gates->n;
    memset(g, 0, sizeof *g);
    for (size_t i = 0; i < N_COLUMNS && st == ST_OK; i++)
        st = read_cell(s, (int)i, path, g, &history_gate_columns[i], err);
    result_db_text(s, (int)N_COLUMNS, g->machine_name, sizeof g->machine_name);
    gates->n += st == ST_OK;
    return st;
}

/* The latest came first. */
static int by_time(const void *x, const void *y)
{
    const struct history_gate *a = x, *b = y;

    ORDER_BY(strcmp(a->utc, b->utc));
    ORDER_BY(strcmp(a->gate, b->gate));
    return strcmp(a->measure, b->measure);
}

static enum status read_rows(struct history_gates *gates, sqlite3 *db, const char *path,
                             struct err *err)
{
    sqlite3_stmt *s = prepare_select(db);
    enum status st = s ? ST_OK : result_db_fail(db, path, err);
    size_t cap = 0;

    while (st == ST_OK) {
        const int rc = sqlite3_step(s);

        if (rc == SQLITE_DONE)
            break;
        st = rc == SQLITE_ROW ? add_row(gates, &cap, s, path, err)
                              : result_db_fail(db, path, err);
    }
    sqlite3_finalize(s);
    if (st == ST_OK && gates->n)
        qsort(gates->v, gates->n, sizeof *gates->v, by_time);
    return st;
}

enum status history_gates_read(struct history_gates *gates, const char *path,
                               struct err *err)
{
    sqlite3 *db;
    enum status st = result_db_open(&db, path, SQLITE_OPEN_READONLY, err);

    *gates = (struct history_gates){.v = NULL};
    if (st)
        return st;
    st = result_db_check(db, path, err);
    if (st == ST_OK &&
        result_db_number(db,
                         "SELECT count(*) FROM sqlite_schema WHERE name = 'gates'") > 0)
        st = read_rows(gates, db, path, err);
    sqlite3_close(db);
    return st;
}

void history_gates_free(struct history_gates *gates)
{
    free(gates->v);
    *gates = (struct history_gates){.v = NULL};
}
