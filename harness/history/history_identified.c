/* SPDX-License-Identifier: MIT
 *
 * history_identified.c - rows that carry the identity of their run in columns
 */
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

        text_harmless(id, sizeof id, cell[EXTRA_RUN]);
        while (at > first && strcmp(h->runs[at - 1].id, id) != 0)
            at--;
        if (at == first) {
            st = history_add_run(h, path, &run, err);
            if (st)
                break;
            at = h->n_runs;
            memcpy(run->id, id, sizeof id);
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
        }
        st = history_add_row(h, path, &rows[i], err);
        if (st == ST_OK)
            h->run_of[h->n_rows - 1] = at - 1;
    }
    return st;
}
