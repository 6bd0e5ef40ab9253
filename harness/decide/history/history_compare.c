/* SPDX-License-Identifier: MIT
 *
 * history_compare.c - `bench history compare`: new rows against stored ones
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/decide/gate/gate_settings.h"
#include "harness/decide/history/baseline.h"
#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_gates.h"
#include "harness/decide/history/history_options.h"

/* Margin and probabilities, and exit codes, from --config and the options. */
static enum status read_rule(struct gate_rule *rule, struct baseline_margins *margins,
                             const struct history_options *o, struct err *err)
{
    struct topology *topo = NULL;
    struct gate_settings s = {0};
    enum status st = topology_open(&topo, "", err);

    if (st == ST_OK)
        st =
            gate_settings_make_rule(&s, o->config, o->margin, o->exit_codes, topo, err);
    if (st == ST_OK) {
        *rule = s.rule;
        *margins = (struct baseline_margins){s.margin_memory, s.margin_load};
        memcpy(o->codes, s.exit_code, sizeof s.exit_code);
    }
    gate_settings_free(&s);
    free(topo);
    return st;
}

static enum status find_rows(struct result_set *fresh, const struct history_options *o,
                             struct gate_result *r, struct err *err)
{
    if (!o->rows.n)
        return err_set(err, ST_USAGE,
                       "no new rows to compare with %s; measure with `bench sweep -o "
                       "DIR` and name them with --rows DIR",
                       o->path);
    if (o->out)
        snprintf(r->dir, sizeof r->dir, "%s", o->out);
    return o->out && dirs_make(o->out, err) ? err->code
                                            : history_rows_read(fresh, o, err);
}

/* The database that the rows are added to is not there yet: the first day. */
static bool begins_here(const struct history_options *o)
{
    return o->add_to && !strcmp(o->add_to, o->path) && access(o->path, F_OK) &&
           errno == ENOENT;
}

/* Whether each run of fresh is one of old. */
static bool are_stored(const struct result_set *old, const struct result_set *fresh)
{
    size_t n = 0;

    for (size_t i = 0; i < fresh->n_runs; i++)
        for (size_t k = 0; k < old->n_runs; k++)
            if (!strcmp(fresh->runs[i].id, old->runs[k].id)) {
                n++;
                break;
            }
    return n && n == fresh->n_runs;
}

/* Adds the new rows after they were compared, since they are the next comparison's
 * history and not this one's, and as they are in their files: those that were compared
 * have the labels of others. Also where there was too little to compare with. judged:
 * how that ended. */
static enum status add_rows(const struct result_set *fresh,
                            const struct history_options *o, enum status judged,
                            struct err *err)
{
    struct result_set rows = {0};
    struct err why = ERR_INIT;
    size_t n_new;
    enum status st;

    if (judged != ST_OK && judged != ST_UNSUPPORTED)
        return judged;
    for (size_t i = 0; i < fresh->n_runs; i++)
        if (!fresh->runs[i].has_machine)
            return judged;
    st = history_rows_read(&rows, o, &why);
    if (st == ST_OK)
        st = history_db_record(o->add_to, &rows, o->commit, &n_new, &why);
    result_set_free(&rows);
    if (st)
        *err = why;
    else if (judged)
        snprintf(err->msg + strlen(err->msg), sizeof err->msg - strlen(err->msg),
                 "; the new rows are added to %.100s", format_path(o->add_to).text);
    return err->code;
}

static enum status compare(struct gate_result *r, struct result_set *old,
                           struct result_set *fresh,
                           const struct baseline_margins *margins,
                           const struct history_options *o, struct err *err)
{
    const struct series_choice choice = {.metrics =
                                             o->metrics ? o->metrics : "tok_per_s",
                                         .only = o->only,
                                         .disturbed = o->disturbed};
    enum status st = begins_here(o) ? ST_OK : history_path_read(old, o, o->path, err);

    if (st == ST_OK &&
        (path_list_add(&old->files, o->add_to, err) ||
         path_list_add(&old->files, o->config, err) ||
         gate_outputs_check(&o->outputs, o->out, &old->files, err) ||
         find_rows(fresh, o, r, err) ||
         gate_outputs_check(&o->outputs, o->out, &fresh->files, err) ||
         result_set_join_models((struct result_set *const[]){old, fresh}, 2, err) ||
         baseline_compare(r, old, fresh, &choice, margins, err)))
        st = err->code;
    if (st == ST_OK && are_stored(old, fresh))
        snprintf(r->notes + strlen(r->notes), sizeof r->notes - strlen(r->notes),
                 "%sThe new rows are among the stored ones, and were left out there.",
                 *r->notes ? " " : "");
    return o->add_to ? add_rows(fresh, o, st, err) : st;
}

/* The verdict belongs to the machine of the new rows, which is one. */
static enum status add_verdict(struct gate_result *r, const struct result_set *fresh,
                               const struct history_options *o, struct err *err)
{
    const struct result_run *run = fresh->n_runs ? &fresh->runs[0] : NULL;

    if (run && run->has_machine) {
        r->has_machine = true;
        r->machine = run->machine;
        snprintf(r->host, sizeof r->host, "%s", run->host);
    }
    return history_gates_add(o->add_to, r, NULL, err);
}

enum status history_compare(const struct history_options *o, struct gate_result *r,
                            struct err *err)
{
    struct result_set old = {0}, fresh = {0};
    struct baseline_margins margins;
    const uint64_t begin = clock_ns();
    enum status st = read_rule(&r->rule, &margins, o, err);

    format_now(r->when, sizeof r->when);
    if (st == ST_OK && o->out && strlen(o->out) >= sizeof r->dir)
        st = err_set(err, ST_USAGE, "--output: the name of the directory is too long");
    if (st == ST_OK)
        st = compare(r, &old, &fresh, &margins, o, err);
    snprintf(r->side[0].name, sizeof r->side[0].name, "%s", o->path);
    if (o->rows.n)
        snprintf(r->side[1].name, sizeof r->side[1].name, "%.480s%s", o->rows.v[0],
                 o->rows.n > 1 ? " and others" : "");
    r->seconds = (double)(clock_ns() - begin) * 1e-9;
    if (st == ST_OK && o->add_to)
        st = add_verdict(r, &fresh, o, err);
    result_set_free(&old);
    result_set_free(&fresh);
    return st;
}
