/* SPDX-License-Identifier: MIT
 *
 * gate_report.c - the forms of a gate's result, each written where it was requested
 */
#include "harness/base/format.h"
#include "harness/decide/gate/gate_report.h"

#include <string.h>

#include "harness/base/newfile.h"
#include "harness/base/textfile.h"
#include "harness/decide/gate/gate_options.h"
#include "harness/decide/gate/gate_run.h"

/* By enum gate_form; JSON is written by textfile_write_json(). */
static const struct form {
    const char *name;
    void (*write)(FILE *f, const struct gate_result *r);
} forms[GATE_N_FORMS] = {
    [GATE_JSON] = {GATE_JSON_NAME, NULL},
    [GATE_MARKDOWN] = {"gate.md", gate_markdown_write},
    [GATE_JUNIT] = {"junit.xml", gate_junit_write},
    [GATE_ANNOTATIONS] = {"annotations.txt", gate_annotations_write},
    [GATE_METRICS] = {"gate.prom", gate_metrics_write},
    [GATE_BADGE] = {"badge.svg", gate_badge_write},
    [GATE_PAGE] = {"gate.html", gate_page_write},
};

struct writing {
    const struct form *form;
    const struct gate_result *r;
};

static void write_form(FILE *f, const void *arg)
{
    const struct writing *w = arg;

    w->form->write(f, w->r);
}

enum status gate_report_write(const struct gate_result *r,
                              const char *const path[GATE_N_FORMS], struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; i < GATE_N_FORMS && st == ST_OK; i++) {
        const struct writing w = {&forms[i], r};

        if (path[i] && i == GATE_JSON)
            st = textfile_write_json(path[i], gate_json(r),
                                     JSON_INDENT(2) | JSON_REAL_PRECISION(17), err);
        else if (path[i])
            st = textfile_write(path[i], write_form, &w, err);
    }
    return st;
}

/* All forms, under the names above, into a directory that is there. Errors as above. */
static enum status write_dir(const struct gate_result *r, struct err *err)
{
    char file[GATE_N_FORMS][sizeof r->dir + 32];
    const char *path[GATE_N_FORMS];

    for (int i = 0; i < GATE_N_FORMS; i++) {
        snprintf(file[i], sizeof file[i], "%s/%s", r->dir, forms[i].name);
        newfile_clear(file[i]);
        path[i] = file[i];
    }
    return gate_report_write(r, path, err);
}

enum status gate_report_all(const struct gate_result *r, const struct gate_outputs *o,
                            struct err *err)
{
    const char *const paths[GATE_N_FORMS] = {[GATE_JSON] = o->json,
                                             [GATE_MARKDOWN] = o->markdown,
                                             [GATE_JUNIT] = o->junit,
                                             [GATE_ANNOTATIONS] =
                                                 o->annotations ? "-" : NULL};
    struct err chart = ERR_INIT;
    enum status st = ST_OK;

    gate_print(stdout, r);
    if (*r->dir)
        st = write_dir(r, err);
    if (st == ST_OK)
        st = gate_report_write(r, paths, err);
    /* A missing chart does not invalidate the verdict. */
    if (st == ST_OK && *r->dir && !o->no_charts && gate_forest_draw(r, r->dir, &chart))
        printf("no chart: %s\n", chart.msg);
    if (st == ST_OK && *r->dir)
        printf("results: %s\n", format_path(r->dir).text);
    return st;
}

enum status gate_outputs_check(const struct gate_outputs *o, const char *dir,
                               const struct path_list *inputs, struct err *err)
{
    const char *names[GATE_N_FORMS + 5] = {[GATE_N_FORMS] = "gate_forest.gp",
                                           "gate_forest.csv",
                                           "gate_forest.svg",
                                           "gate_forest.png",
                                           NULL};
    const char *const named[] = {o->json, o->markdown, o->junit};
    enum status st = ST_OK;

    for (int i = 0; i < GATE_N_FORMS; i++)
        names[i] = forms[i].name;
    for (size_t i = 0; i < sizeof named / sizeof *named && st == ST_OK; i++)
        st = path_list_check_output(inputs, named[i], err);
    return st ? st : path_list_check_folder(inputs, dir, names, err);
}

int gate_exit_code(const struct gate_result *r, const int codes[3])
{
    if (r->end == GATE_END_INTERRUPTED)
        return status_exit_code(ST_INTERRUPTED);
    return codes[r->verdict == GATE_PASS ? 0 : r->verdict == GATE_FAIL ? 1 : 2];
}

static enum status check_stored(const struct gate_options *o, const char *json,
                                struct err *err)
{
    struct path_list inputs = {0};
    char rounds[4096];
    enum status st = path_list_add(&inputs, json, err);

    snprintf(rounds, sizeof rounds, "%s/" GATE_ROUNDS_NAME, o->report);
    if (st == ST_OK)
        st = path_list_add(&inputs, rounds, err);
    if (st == ST_OK)
        st = path_list_add(&inputs, o->add_to, err);
    if (st == ST_OK)
        st = gate_outputs_check(&o->outputs, NULL, &inputs, err);
    path_list_free(&inputs);
    return st;
}

enum status gate_report(const struct gate_options *o, struct gate_result *r,
                        struct err *err)
{
    char path[4096];
    const enum status st =
        strlen(o->report) < sizeof r->dir
            ? ST_OK
            : err_set(err, ST_USAGE, "--report: the name of the directory is too long");

    if (st)
        return st;
    snprintf(path, sizeof path, "%s/" GATE_JSON_NAME, o->report);
    if (check_stored(o, path, err))
        return err->code;
    if (gate_json_read(r, path, err))
        return err->code;
    snprintf(r->dir, sizeof r->dir, "%s", o->report);
    return ST_OK;
}
