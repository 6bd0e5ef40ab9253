/* SPDX-License-Identifier: MIT
 *
 * history_identified.c - rows that carry the identity of their run in columns
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/history/history.h"

enum {
    EXTRA_RUN,
    EXTRA_UTC,
    EXTRA_COMMIT,
    EXTRA_VERSION,
    EXTRA_COMPILER,
    EXTRA_HOST,
    EXTRA_PROFILE
};

const char *const history_columns[HISTORY_N_COLUMNS] = {
    [EXTRA_RUN] = "run",           [EXTRA_UTC] = "run_utc",
    [EXTRA_COMMIT] = "commit_id",  [EXTRA_VERSION] = "version",
    [EXTRA_COMPILER] = "compiler", [EXTRA_HOST] = "host",
    [EXTRA_PROFILE] = "profile"};

/* A run by its id, for tsearch(). */
struct known_run {
    char id[sizeof((struct history_run *)0)->id];
    size_t at;
};

static int by_id(const void *x, const void *y)
{
    return strcmp(((const struct known_run *)x)->id, ((const struct known_run *)y)->id);
}

static void forget(void **known)
{
    while (*known) {
        struct known_run *first = *(struct known_run **)*known;

        tdelete(first, known, by_id);
        free(first);
    }
}

/* Index in h of the row's run, which is added where it is new. cell: the run's columns
 * of the row. known: those so far. */
static enum status run_of(struct history *h, const char *path, void **known,
                          char *const *cell, const struct machine_key *here, size_t *at,
                          struct err *err)
{
    struct known_run *key = calloc(1, sizeof *key), **found;
    struct history_run *run;
    enum status st;

    if (!key)
        return err_set(err, ST_NO_MEMORY, "no memory for the runs of %.300s", path);
    text_harmless(key->id, sizeof key->id, cell[EXTRA_RUN]);
    found = tsearch(key, known, by_id);
    if (!found || *found != key) {
        free(key);
        if (!found)
            return err_set(err, ST_NO_MEMORY, "no memory for the runs of %.300s", path);
        *at = (*found)->at;
        return ST_OK;
    }
    *at = key->at = h->n_runs;
    st = history_add_run(h, path, &run, err);
    if (st)
        return st;
    memcpy(run->id, key->id, sizeof run->id);
    text_harmless(run->utc, sizeof run->utc, cell[EXTRA_UTC]);
    text_harmless(run->commit, sizeof run->commit, cell[EXTRA_COMMIT]);
    text_harmless(run->version, sizeof run->version, cell[EXTRA_VERSION]);
    text_harmless(run->compiler, sizeof run->compiler, cell[EXTRA_COMPILER]);
    text_harmless(run->host, sizeof run->host, cell[EXTRA_HOST]);
    run->has_machine = machine_key_parse(&run->machine, cell[EXTRA_PROFILE]);
    if (!run->has_machine && here) {
        run->has_machine = true;
        run->machine = *here;
    }
    return ST_OK;
}

enum status history_add_identified(struct history *h, const char *path,
                                   const struct row *rows, size_t n, char *const *cells,
                                   const struct machine_key *here, struct err *err)
{
    void *known = NULL;
    enum status st = ST_OK;

    for (size_t i = 0; i < n && st == ST_OK; i++) {
        size_t at = 0;

        st = run_of(h, path, &known, cells + i * HISTORY_N_COLUMNS, here, &at, err);
        if (st == ST_OK)
            st = history_add_row(h, path, &rows[i], err);
        if (st == ST_OK)
            h->run_of[h->n_rows - 1] = at;
    }
    forget(&known);
    return st;
}
