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

/* What writes one form, for textfile_write(). */
struct form {
    void (*write)(FILE *f, const struct gate_result *r);
    const struct gate_result *r;
};

static void write_form(FILE *f, const void *arg)
{
    const struct form *form = arg;

    form->write(f, form->r);
}

enum status gate_report_write(const struct gate_result *r,
                              const struct gate_report_paths *p, struct err *err)
{
    const struct {
        const char *path;
        struct form form;
    } texts[] = {{p->markdown, {gate_markdown_write, r}},
                 {p->junit, {gate_junit_write, r}},
                 {p->annotations, {gate_annotations_write, r}},
                 {p->metrics, {gate_metrics_write, r}},
                 {p->badge, {gate_badge_write, r}},
                 {p->page, {gate_page_write, r}}};
    enum status st = ST_OK;

    if (p->json)
        st = textfile_write_json(p->json, gate_json(r),
                                 JSON_INDENT(2) | JSON_REAL_PRECISION(17), err);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && st == ST_OK; i++)
        if (texts[i].path)
            st = textfile_write(texts[i].path, write_form, &texts[i].form, err);
    if (st == ST_OK && p->chart)
        st = gate_forest_draw(r, p->chart, err);
    return st;
}

/* All forms, under the names above, into a directory that is there. Errors as above. */
static enum status write_dir(const struct gate_result *r, const char *dir, bool chart,
                             struct err *err)
{
    char json[4096], markdown[4096], junit[4096], annotations[4096], metrics[4096],
        badge[4096], page[4096];
    const struct gate_report_paths paths = {.json = json,
                                            .markdown = markdown,
                                            .junit = junit,
                                            .annotations = annotations,
                                            .metrics = metrics,
                                            .badge = badge,
                                            .page = page,
                                            .chart = chart ? dir : NULL};

    snprintf(json, sizeof json, "%s/" GATE_JSON_NAME, dir);
    snprintf(markdown, sizeof markdown, "%s/gate.md", dir);
    snprintf(junit, sizeof junit, "%s/junit.xml", dir);
    snprintf(annotations, sizeof annotations, "%s/annotations.txt", dir);
    snprintf(metrics, sizeof metrics, "%s/gate.prom", dir);
    snprintf(badge, sizeof badge, "%s/badge.svg", dir);
    newfile_clear(badge);
    snprintf(page, sizeof page, "%s/gate.html", dir);
    newfile_clear(page);
    newfile_clear(json);
    newfile_clear(markdown);
    newfile_clear(junit);
    newfile_clear(annotations);
    newfile_clear(metrics);
    return gate_report_write(r, &paths, err);
}

enum status gate_report_all(const struct gate_result *r, const struct gate_outputs *o,
                            struct err *err)
{
    const struct gate_report_paths paths = {.json = o->json,
                                            .markdown = o->markdown,
                                            .junit = o->junit,
                                            .annotations = o->annotations ? "-" : NULL};
    struct err chart = ERR_INIT;
    enum status st = ST_OK;

    gate_print(stdout, r);
    if (*r->dir)
        st = write_dir(r, r->dir, false, err);
    if (st == ST_OK)
        st = gate_report_write(r, &paths, err);
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
    static const char *const names[] = {
        GATE_JSON_NAME,    "gate.md",        "junit.xml",       "annotations.txt",
        "gate.prom",       "gate_forest.gp", "gate_forest.csv", "gate_forest.svg",
        "gate_forest.png", "badge.svg",      "gate.html",       NULL};
    const char *const named[] = {o->json, o->markdown, o->junit};
    enum status st = ST_OK;

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
