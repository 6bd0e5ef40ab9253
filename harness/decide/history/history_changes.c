/* SPDX-License-Identifier: MIT
 *
 * history_changes.c - `bench history changes`: where stored results have changed
 */
#include <stdio.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/newfile.h"
#include "harness/base/textfile.h"
#include "harness/decide/history/history_report.h"
#include "harness/decide/history/history_options.h"
#include "harness/decide/history/series.h"

#define LAST_RUNS 500

/* ---- what comes out -------------------------------------------------------------- */

#define JSON_FORM (JSON_INDENT(1) | JSON_REAL_PRECISION(9))

static void write_page(FILE *f, const void *r)
{
    history_report_markdown(f, r);
}

static enum status write_dir(const struct history_report *r,
                             const struct history_options *o, struct err *err)
{
    char path[4096], again[600] = "bench history changes";
    enum status st = dirs_make(o->out, err);

    shell_word_append(again, sizeof again, o->path);
    snprintf(path, sizeof path, "%s/history.json", o->out);
    if (st == ST_OK && !o->outputs.json) {
        newfile_clear(path);
        st = textfile_write_json(path, history_report_json(r), JSON_FORM, err);
    }
    snprintf(path, sizeof path, "%s/history.md", o->out);
    if (st == ST_OK && !o->outputs.markdown) {
        newfile_clear(path);
        st = textfile_write(path, write_page, r, err);
    }
    snprintf(path, sizeof path, "%s/history.html", o->out);
    if (st == ST_OK) {
        newfile_clear(path);
        st = history_report_page(r, path, err);
    }
    if (st == ST_OK && !o->outputs.no_charts)
        st = history_report_chart(r, o->out, again, err);
    return st;
}

static enum status write_all(const struct history_report *r,
                             const struct history_options *o, struct err *err)
{
    enum status st = ST_OK;

    if (o->outputs.json)
        st = textfile_write_json(o->outputs.json, history_report_json(r), JSON_FORM,
                                 err);
    if (st == ST_OK && o->outputs.markdown)
        st = textfile_write(o->outputs.markdown, write_page, r, err);
    if (st == ST_OK && o->out)
        st = write_dir(r, o, err);
    return st;
}

/* ---- the command ----------------------------------------------------------------- */

static enum status check_outputs(const struct result_set *h,
                                 const struct history_options *o, struct err *err)
{
    static const char *const names[] = {"history.json",       "history.md",
                                        "history.html",       HISTORY_CHART ".csv",
                                        HISTORY_CHART ".gp",  HISTORY_CHART ".svg",
                                        HISTORY_CHART ".png", NULL};
    enum status st = path_list_check_output(&h->files, o->outputs.json, err);

    if (st == ST_OK)
        st = path_list_check_output(&h->files, o->outputs.markdown, err);
    return st ? st : path_list_check_folder(&h->files, o->out, names, err);
}

static enum status report(const struct result_set *h, const struct series_set *set,
                          const struct history_options *o, struct err *err)
{
    struct history_report r;
    enum status st = check_outputs(h, o, err);

    if (st)
        return st;
    st = history_report_make(&r, h, set, o->last ? o->last : LAST_RUNS, err);

    if (st)
        return st;
    history_report_print(stdout, &r);
    st = write_all(&r, o, err);
    history_report_free(&r);
    return st;
}

enum status history_changes(const struct history_options *o, struct err *err)
{
    const struct series_choice choice = {.metrics =
                                             o->metrics ? o->metrics : "tok_per_s",
                                         .only = o->only,
                                         .disturbed = o->disturbed};
    struct result_set h = {0};
    struct series_set set = {0};
    enum status st = history_path_read(&h, o, o->path, err);

    if (st == ST_OK)
        st = result_set_join_models((struct result_set *const[]){&h}, 1, err);
    if (st == ST_OK)
        st = series_make(&set, &h, &choice, err);
    if (st == ST_OK && !set.n)
        st = err_set(err, ST_INPUT, "%s has no series%s%s with a value of %s", o->path,
                     o->only ? " named like " : "", o->only ? o->only : "",
                     choice.metrics);
    if (st == ST_OK)
        st = report(&h, &set, o, err);
    series_free(&set);
    result_set_free(&h);
    return st;
}
