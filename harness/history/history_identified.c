/* SPDX-License-Identifier: MIT
 *
 * history_identified.c - rows that carry the identity of their run in columns
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void put_extra(char *buf, size_t cap, const char *cell)
{
    snprintf(buf, cap, "%s", cell ? cell : "");
    for (char *p = buf; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
}

enum status history_add_identified(struct history *h, const char *path,
                                   const struct row *rows, size_t n, char *const *cells,
                                   const struct machine_key *here, struct err *err)
{
    const size_t first = h->n_runs;
    enum status st = ST_OK;

    for (size_t i = 0; i < n && st == ST_OK; i++) {
        char *const *cell = cells + i * HISTORY_N_COLUMNS;
        struct history_run *run = NULL;
        char id[sizeof run->id];
        size_t at = h->n_runs;

        put_extra(id, sizeof id, cell[EXTRA_RUN]);
        while (at > first && strcmp(h->runs[at - 1].id, id) != 0)
            at--;
        if (at == first) {
            st = history_add_run(h, path, &run, err);
            if (st)
                break;
            at = h->n_runs;
            memcpy(run->id, id, sizeof id);
            put_extra(run->utc, sizeof run->utc, cell[EXTRA_UTC]);
            put_extra(run->commit, sizeof run->commit, cell[EXTRA_COMMIT]);
            put_extra(run->version, sizeof run->version, cell[EXTRA_VERSION]);
            put_extra(run->compiler, sizeof run->compiler, cell[EXTRA_COMPILER]);
            put_extra(run->host, sizeof run->host, cell[EXTRA_HOST]);
            json_t *profile =
                cell[EXTRA_PROFILE] ? json_loads(cell[EXTRA_PROFILE], 0, NULL) : NULL;
            run->has_machine = machine_key_from_json(&run->machine, profile);
            json_decref(profile);
            if (!run->has_machine && here) {
                run->has_machine = true;
                run->machine = *here;
            }
        }
        st = history_add_row(h, path, &rows[i], err);
        if (st == ST_OK)
            h->run_of[h->n_rows - 1] = at - 1;
    }
    return st;
}
