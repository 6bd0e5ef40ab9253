/* SPDX-License-Identifier: MIT
 *
 * history_gates_print.c - `bench history gates`: which verdicts are stored
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/textfile.h"
#include "harness/decide/gate/gate_report.h"
#include "harness/decide/history/history_gates.h"
#include "harness/decide/history/history_options.h"

/* ---- which ----------------------------------------------------------------------- */

static size_t end_of(const struct history_gates *gates, size_t begin)
{
    size_t end = begin;

    while (end < gates->n && !strcmp(gates->v[begin].gate, gates->v[end].gate))
        end++;
    return end;
}

static bool is_wanted(const struct history_gates *gates, size_t begin, size_t end,
                      const char *only)
{
    const struct history_gate *g = &gates->v[begin];

    if (!only || strstr(g->model, only) || strstr(g->machine_name, only) ||
        strstr(g->host, only))
        return true;
    for (size_t i = begin; i < end; i++)
        if (strstr(gates->v[i].measure, only))
            return true;
    return false;
}

/* Calls take for each gate that is wanted; returns how many there were. */
static size_t each(const struct history_gates *gates, const char *only, uint64_t last,
                   void (*take)(void *arg, const struct history_gate *g, size_t n),
                   void *arg)
{
    size_t n_all = 0, n = 0;

    for (size_t i = 0, end; i < gates->n; i = end) {
        end = end_of(gates, i);
        n_all += is_wanted(gates, i, end, only);
    }
    for (size_t i = 0, end, k = 0; i < gates->n; i = end) {
        end = end_of(gates, i);
        if (!is_wanted(gates, i, end, only) || (last && k++ + last < n_all))
            continue;
        take(arg, &gates->v[i], end - i);
        n++;
    }
    return n;
}

/* ---- for people ------------------------------------------------------------------ */

/* "old/bench (0123456789)" */
static const char *side_text(char *buf, size_t cap, const char *name,
                             const char *commit)
{
    if (commit[0])
        snprintf(buf, cap, "%s (%s)", name, commit);
    else
        snprintf(buf, cap, "%s", name);
    return buf;
}

static void print_measure(FILE *f, const struct history_gate *g)
{
    const struct gate_effect effect = {
        .ratio = g->ratio, .lo = g->ratio_lo, .hi = g->ratio_hi};
    struct gate_text a = gate_value_text(g->a, "");

    fprintf(f, "  %-32s %12s to %-14s %9s  %-18s %s\n", g->measure,
            text_squeeze(a.text), gate_value_text(g->b, g->unit).text,
            gate_change_text(g->ratio).text, gate_interval_text(&effect).text,
            g->measure_verdict);
}

static void print_gate(void *arg, const struct history_gate *g, size_t n)
{
    FILE *f = arg;
    char a[600], b[600];

    fprintf(f, "%s  %s: %s on %s\n", g->utc, g->verdict,
            g->model[0] ? g->model : "stored rows",
            g->machine_name[0] ? g->machine_name : "a machine that is not known");
    fprintf(f, "  A %s, B %s", side_text(a, sizeof a, g->a_name, g->a_commit),
            side_text(b, sizeof b, g->b_name, g->b_commit));
    if (g->injected > 0)
        fprintf(f, ", B slowed down by %.3g %% on purpose", 100 * g->injected);
    fputc('\n', f);
    for (size_t i = 0; i < n; i++)
        print_measure(f, &g[i]);
}

size_t history_gates_print(FILE *f, const struct history_gates *gates, const char *only,
                           uint64_t last)
{
    return each(gates, only, last, print_gate, f);
}

/* ---- for programs ---------------------------------------------------------------- */

static json_t *effect_json(const struct history_gate *g)
{
    json_t *object = json_object();

    for (size_t i = 0; i < history_n_gate_columns; i++) {
        const struct history_gate_column *c = &history_gate_columns[i];
        const void *at = (const char *)g + c->offset;
        const double v = c->is_text ? NAN : *(const double *)at;

        json_object_set_new(object, c->name,
                            c->is_text    ? json_string(at)
                            : isfinite(v) ? json_real(v)
                                          : json_null());
    }
    json_object_set_new(object, "machine_name", json_string(g->machine_name));
    return object;
}

static void append_gate(void *arg, const struct history_gate *g, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_array_append_new(arg, effect_json(&g[i]));
}

json_t *history_gates_json(const struct history_gates *gates, const char *only,
                           uint64_t last)
{
    json_t *list = json_array();

    if (list)
        each(gates, only, last, append_gate, list);
    return list;
}

/* ---- the command ----------------------------------------------------------------- */

static enum status write_json(const struct history_gates *gates,
                              const struct history_options *o, struct err *err)
{
    struct path_list inputs = {0};
    enum status st = path_list_add(&inputs, o->path, err);

    if (st == ST_OK)
        st = path_list_check_output(&inputs, o->outputs.json, err);
    if (st == ST_OK)
        st = textfile_write_json(o->outputs.json,
                                 history_gates_json(gates, o->only, o->last),
                                 JSON_INDENT(1) | JSON_REAL_PRECISION(9), err);
    path_list_free(&inputs);
    return st;
}

enum status history_list_gates(const struct history_options *o, struct err *err)
{
    struct history_gates gates;
    enum status st = history_gates_read(&gates, o->path, err);

    if (st == ST_OK && !history_gates_print(stdout, &gates, o->only, o->last))
        st = err_set(err, ST_INPUT,
                     "%.300s has no gate%s%.100s; `bench gate --add-to` stores them",
                     o->path, o->only ? " named like " : "", o->only ? o->only : "");
    if (st == ST_OK && o->outputs.json)
        st = write_json(&gates, o, err);
    history_gates_free(&gates);
    return st;
}
