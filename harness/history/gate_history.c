/* SPDX-License-Identifier: MIT
 *
 * gate_history.c - `bench gate --history`: where stored results have changed
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/dirs.h"
#include "harness/base/shellword.h"
#include "harness/history/gate_rows.h"
#include "harness/history/history_report.h"
#include "harness/history/series.h"

#define LAST_RUNS 500

/* ---- what comes out
 * -------------------------------------------------------------------- */

static enum status write_json(const struct history_report *r, const char *path,
                              struct err *err)
{
    json_t *object = history_report_json(r);
    const int failed =
        !object ||
        json_dump_file(object, path, JSON_INDENT(1) | JSON_REAL_PRECISION(9));

    json_decref(object);
    return failed ? err_set_errno(err, ST_IO, "cannot write %s", path) : ST_OK;
}

static enum status write_markdown(const struct history_report *r, const char *path,
                                  struct err *err)
{
    FILE *f = fopen(path, "we");

    if (!f)
        return err_set_errno(err, ST_IO, "cannot write %s", path);
    history_report_markdown(f, r);
    const int failed = ferror(f);
    if (fclose(f) || failed)
        return err_set_errno(err, ST_IO, "cannot write %s", path);
    return ST_OK;
}

static enum status write_dir(const struct history_report *r,
                             const struct gate_options *o, struct err *err)
{
    char path[4096], again[600] = "bench gate --history";
    enum status st = dirs_make(o->out, err);

    shell_word_append(again, sizeof again, o->history);
    snprintf(path, sizeof path, "%s/history.json", o->out);
    if (st == ST_OK && !o->json)
        st = write_json(r, path, err);
    snprintf(path, sizeof path, "%s/history.md", o->out);
    if (st == ST_OK && !o->markdown)
        st = write_markdown(r, path, err);
    if (st == ST_OK && !o->no_charts)
        st = history_report_chart(r, o->out, again, err);
    return st;
}

static enum status write_all(const struct history_report *r,
                             const struct gate_options *o, struct err *err)
{
    enum status st = ST_OK;

    if (o->json)
        st = write_json(r, o->json, err);
    if (st == ST_OK && o->markdown)
        st = write_markdown(r, o->markdown, err);
    if (st == ST_OK && o->out)
        st = write_dir(r, o, err);
    return st;
}

/* ---- the modes
 * -------------------------------------------------------------------------- */

static enum status report(const struct history *h, const struct series_set *set,
                          const struct gate_options *o, struct err *err)
{
    struct history_report r;
    enum status st =
        history_report_make(&r, h, set, o->last ? o->last : LAST_RUNS, err);

    if (st)
        return st;
    history_report_print(stdout, &r);
    st = write_all(&r, o, err);
    history_report_free(&r);
    return st;
}

enum status gate_history(const struct gate_options *o, struct err *err)
{
    const struct series_choice choice = {.metrics =
                                             o->metrics ? o->metrics : "tok_per_s",
                                         .only = o->only,
                                         .disturbed = o->disturbed};
    struct history h = {0};
    struct series_set set = {0};
    enum status st = gate_history_read(&h, o, o->history, err);

    if (st == ST_OK)
        st = series_make(&set, &h, &choice, err);
    if (st == ST_OK && !set.n)
        st = err_set(err, ST_INPUT, "%s has no series%s%s with a value of %s",
                     o->history, o->only ? " named like " : "", o->only ? o->only : "",
                     choice.metrics);
    if (st == ST_OK)
        st = report(&h, &set, o, err);
    series_free(&set);
    history_free(&h);
    return st;
}
