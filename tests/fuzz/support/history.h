/* SPDX-License-Identifier: MIT
 *
 * history.h - a history read as every command reads it, and written to
 *
 * Threading: one input at a time.
 */
#ifndef SLM_TESTS_FUZZ_HISTORY_H
#define SLM_TESTS_FUZZ_HISTORY_H

#include <stdlib.h>
#include <string.h>

#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_gates.h"
#include "harness/rows/result_set.h"
#include "harness/rows/settings/setting.h"
#include "tests/fuzz/support/oracle.h"

/* SQLite's cache; a row of a few KB takes a dozen bytes in a database. */
#define HISTORY_BOUND                                   \
    (&(const struct fuzz_bound){.cpu_s = 2,             \
                                .cpu_s_per_byte = 4e-6, \
                                .bytes = 32u << 20,     \
                                .bytes_per_byte = 512})

/* Rows of every form. */
static inline void history_read_any(const char *path)
{
    struct result_set h = {.n_rows = 0};
    struct err err = ERR_INIT;

    if (fuzz_accepted(result_set_read(&h, path, NULL, &err), &err))
        for (size_t i = 0; i < h.n_rows; i++)
            if (h.run_of[i] >= h.n_runs)
                fuzz_fail("row %zu is of no run", i);
    result_set_free(&h);
}

static inline void history_read_gates(const char *path)
{
    struct history_gates gates;
    struct err err = ERR_INIT;

    if (fuzz_accepted(history_gates_read(&gates, path, &err), &err)) {
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);

        if (!f)
            fuzz_fail("no memory for a list");
        history_gates_print(f, &gates, NULL, 0);
        fclose(f);
        free(text);
        json_decref(history_gates_json(&gates, NULL, 0));
    }
    history_gates_free(&gates);
}

/* Two rows of one machine. */
static inline void history_make(struct result_set *h)
{
    struct result_run *run;
    struct err err = ERR_INIT;
    struct row r;

    row_init(&r);
    memcpy(r.utc, "2026-01-01T00:00:00Z", 21);
    memcpy(r.point, "m/decode/t2", 12);
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    memcpy(r.model, "m", 2);
    if (!fuzz_accepted(result_set_add_run(h, "made", &run, &err), &err))
        fuzz_fail("no memory for a run");
    memcpy(run->id, "run", 4);
    memcpy(run->utc, r.utc, sizeof run->utc);
    run->has_machine = true;
    for (int i = 0; i < MACHINE_N_FIELDS; i++)
        memcpy(run->machine.text[i], "x", 2);
    for (int attempt = 1; attempt <= 2; attempt++) {
        r.attempt = attempt;
        if (!fuzz_accepted(result_set_add_row(h, "made", &r, &err), &err))
            fuzz_fail("no memory for a row");
    }
}

/* A gate of one measure. */
static inline void history_write_gate(const char *path)
{
    struct gate_result *r = calloc(1, sizeof *r);
    struct err err = ERR_INIT;

    if (!r)
        fuzz_fail("no memory for a gate");
    memcpy(r->when, "2026-01-01T00:00:00Z", 21);
    memcpy(r->metric[0].name, "decode", 7);
    r->metric[0].a = r->metric[0].b = r->metric[0].effect.ratio = 1;
    r->n_metrics = 1;
    fuzz_accepted(history_gates_add(path, r, NULL, &err), &err);
    free(r);
}

/* Adds rows and a gate. */
static inline void history_write_to(const char *path)
{
    struct result_set h = {.n_rows = 0};
    struct err err = ERR_INIT;
    size_t n_new;

    history_make(&h);
    fuzz_accepted(history_db_record(path, &h, NULL, &n_new, &err), &err);
    result_set_free(&h);
    history_write_gate(path);
}

#endif
