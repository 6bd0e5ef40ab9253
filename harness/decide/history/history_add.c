/* SPDX-License-Identifier: MIT
 *
 * history_add.c - `bench history add`: rows into a database; and where rows come from
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_options.h"
#include "harness/machine/topology.h"

/* This machine's profile. */
static enum status read_machine_here(struct machine_key *key, struct err *err)
{
    struct topology *topo;
    enum status st = topology_open(&topo, "", err);

    if (st == ST_OK) {
        json_t *object = topology_json(topo);

        if (!machine_key_read(key, object))
            st = err_set(err, ST_NO_MEMORY, "no memory for this machine's profile");
        json_decref(object);
    }
    free(topo);
    return st;
}

enum status history_path_read(struct result_set *h, const struct history_options *o,
                              const char *path, struct err *err)
{
    struct machine_key here;
    enum status st = ST_OK;

    if (o->here)
        st = read_machine_here(&here, err);
    if (st == ST_OK)
        st = result_set_read(h, path, o->here ? &here : NULL, err);
    return st || !h->unread.code ? st
                                 : err_set(err, h->unread.code, "%s", h->unread.msg);
}

enum status history_rows_read(struct result_set *h, const struct history_options *o,
                              struct err *err)
{
    if (!o->rows.n)
        return err_set(err, ST_USAGE,
                       "no rows are named; name a directory that `bench sweep` has "
                       "written, a sweep.csv, "
                       "or a row that `bench decode --json` has printed");
    for (size_t i = 0; i < o->rows.n; i++)
        if (history_path_read(h, o, o->rows.v[i], err))
            return err->code;
    return ST_OK;
}

/* A row without its machine could never be compared with anything. */
static enum status check_machines(const struct result_set *h, struct err *err)
{
    for (size_t i = 0; i < h->n_runs; i++)
        if (!h->runs[i].has_machine)
            return err_set(
                err, ST_INPUT,
                "the machine of the run of %s is not known: no machine.json; "
                "add --here if it was measured on this one",
                h->runs[i].utc);
    return ST_OK;
}

enum status history_add(const struct history_options *o, struct err *err)
{
    struct result_set h = {0};
    size_t n_new = 0;
    enum status st = history_rows_read(&h, o, err);

    if (st == ST_OK)
        st = check_machines(&h, err);
    if (st == ST_OK)
        st = history_db_record(o->path, &h, o->commit, &n_new, err);
    if (st == ST_OK)
        printf("%s: %zu row%s of %zu run%s added, %zu %s there already\n",
               format_path(o->path).text, n_new, n_new == 1 ? "" : "s", h.n_runs,
               h.n_runs == 1 ? "" : "s", h.n_rows - n_new,
               h.n_rows - n_new == 1 ? "was" : "were");
    result_set_free(&h);
    return st;
}
