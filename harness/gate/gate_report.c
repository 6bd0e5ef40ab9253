/* SPDX-License-Identifier: MIT
 *
 * gate_report.c - the forms of a gate's result, each to where it was asked for
 */
#include "harness/gate/gate_report.h"

#include <stdlib.h>
#include <string.h>

#include "harness/gate/gate_options.h"

/* A page that GitHub collects from all steps of a job is added to, not begun anew. */
static const char *open_mode(const char *path)
{
    const char *summary = getenv("GITHUB_STEP_SUMMARY");

    return summary && !strcmp(path, summary) ? "ae" : "we";
}

static enum status json_write(FILE *f, const struct gate_result *r, struct err *err)
{
    json_t *object = gate_json(r);

    if (!object)
        return err_set(err, ST_NO_MEMORY, "no memory for a gate's result as JSON");
    json_dumpf(object, f, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', f);
    json_decref(object);
    return ST_OK;
}

/* write: NULL for JSON, which can fail. */
static enum status write_form(const struct gate_result *r, const char *path,
                              void (*write)(FILE *, const struct gate_result *),
                              struct err *err)
{
    const bool to_stdout = path && !strcmp(path, "-");
    enum status st = ST_OK;

    if (!path)
        return ST_OK;
    FILE *f = to_stdout ? stdout : fopen(path, open_mode(path));
    if (!f)
        return err_set_errno(err, ST_IO, "%.300s cannot be written", path);
    if (write)
        write(f, r);
    else
        st = json_write(f, r, err);
    const int failed = ferror(f) | (to_stdout ? fflush(f) : fclose(f));
    if (st == ST_OK && failed)
        st = err_set_errno(err, ST_IO, "%.300s cannot be written", path);
    return st;
}

enum status gate_report_write(const struct gate_result *r,
                              const struct gate_report_paths *p, struct err *err)
{
    enum status st = write_form(r, p->json, NULL, err);

    if (st == ST_OK)
        st = write_form(r, p->markdown, gate_markdown_write, err);
    if (st == ST_OK)
        st = write_form(r, p->junit, gate_junit_write, err);
    if (st == ST_OK)
        st = write_form(r, p->annotations, gate_annotations_write, err);
    if (st == ST_OK && p->chart)
        st = gate_forest_draw(r, p->chart, err);
    return st;
}

enum status gate_report_dir(const struct gate_result *r, const char *dir, bool chart,
                            struct err *err)
{
    char json[4096], markdown[4096], junit[4096], annotations[4096];
    const struct gate_report_paths paths = {json, markdown, junit, annotations,
                                            chart ? dir : NULL};

    snprintf(json, sizeof json, "%s/" GATE_JSON_NAME, dir);
    snprintf(markdown, sizeof markdown, "%s/gate.md", dir);
    snprintf(junit, sizeof junit, "%s/junit.xml", dir);
    snprintf(annotations, sizeof annotations, "%s/annotations.txt", dir);
    return gate_report_write(r, &paths, err);
}

enum status gate_report(const struct gate_options *o, struct gate_result *r,
                        struct err *err)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/" GATE_JSON_NAME, o->report);
    return gate_json_read(r, path, err);
}
