/* SPDX-License-Identifier: MIT
 *
 * gate_report.h - what a gate found, for people, CI servers and programs
 *
 * Model of the world: one struct gate_result, eight forms of it. JSON holds all of it
 * and can be read back, so that the others can be written again at any time:
 *
 *   gate.json        everything, the rounds included
 *   gate.md          a summary in Markdown, as GitHub shows it for a job
 *   junit.xml        a test case for each metric
 *   annotations.txt  workflow commands of GitHub Actions, to be printed by a step
 *   gate.prom        gauges for Prometheus: node_exporter's textfile collector reads it
 *   gate.html        text and chart in one file that requests nothing
 *   badge.svg        the verdict as a small picture
 *   gate_forest.*    the chart, with its data and script
 *
 * Names and paths come from outside; each form escapes them in its own way.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_REPORT_H
#define SLM_HARNESS_DECIDE_GATE_GATE_REPORT_H

#include <stdio.h>
#include <jansson.h>

#include "harness/base/pathlist.h"
#include "harness/chart/plot.h"
#include "harness/decide/gate/gate_result.h"

/* ---- all at once ----------------------------------------------------------------- */

enum gate_form {
    GATE_JSON,
    GATE_MARKDOWN,
    GATE_JUNIT,
    GATE_ANNOTATIONS,
    GATE_METRICS,
    GATE_BADGE,
    GATE_PAGE,
    GATE_N_FORMS
};

/* Writes each form that has a path; "-": standard output. Error: ST_IO. */
enum status gate_report_write(const struct gate_result *r,
                              const char *const path[GATE_N_FORMS], struct err *err);

#define GATE_JSON_NAME "gate.json"

/* The outputs that a command line requests in addition to the directory. */
struct gate_outputs {
    const char *json, *markdown, *junit; /* files; NULL: not there */
    bool annotations;                    /* on standard output */
    bool no_charts;
};

/* Print r, and write all its forms into r->dir, which is there ("": it has none), and
 * where o names files. A chart that cannot be drawn is no error. Errors as above. */
enum status gate_report_all(const struct gate_result *r, const struct gate_outputs *o,
                            struct err *err);

/* Whether none of what gate_report_all() would write, into dir (may be NULL) or to o's
 * files, is one of the files. Error: ST_USAGE. */
enum status gate_outputs_check(const struct gate_outputs *o, const char *dir,
                               const struct path_list *inputs, struct err *err);

/* codes[3]: for pass, fail, inconclusive. */
int gate_exit_code(const struct gate_result *r, const int codes[3]);

/* ---- JSON (gate_json.c) ---------------------------------------------------------- */

#define GATE_JSON_VERSION 1

/* NULL: no memory. NaN becomes null. */
json_t *gate_json(const struct gate_result *r);

/* Reads it back, to the last bit. Errors: ST_INPUT (names what is wrong; where names
 * what it was read from), ST_NO_MEMORY. */
enum status gate_json_parse(struct gate_result *r, const json_t *object,
                            const char *where, struct err *err);
/* Errors: those, and ST_IO. */
enum status gate_json_read(struct gate_result *r, const char *path, struct err *err);

/* ---- texts ----------------------------------------------------------------------- */

void gate_markdown_write(FILE *f, const struct gate_result *r);
void gate_page_write(FILE *f, const struct gate_result *r);  /* HTML */
void gate_badge_write(FILE *f, const struct gate_result *r); /* SVG */
void gate_junit_write(FILE *f, const struct gate_result *r);

/* One line each, the largest loss first; GitHub shows ten of a kind. */
void gate_annotations_write(FILE *f, const struct gate_result *r);

void gate_metrics_write(FILE *f, const struct gate_result *r);

/* ---- chart (gate_forest.c) ------------------------------------------------------- */

/* Whether a metric has an effect to be drawn; the plot, which is the caller's (NULL: no
 * memory). */
bool gate_forest_has_any(const struct gate_result *r);
struct plot *gate_forest_plot(const struct gate_result *r);

/* gate_forest.csv, .gp, .svg and, with gnuplot, .png into dir; none where no metric has
 * an effect. Errors: those of chart_files_draw(). */
enum status gate_forest_draw(const struct gate_result *r, const char *dir,
                             struct err *err);

/* ---- words that they share ------------------------------------------------------- */

struct gate_text {
    char text[200];
};

/* "-4.8 %" for a ratio of 0.952; an en dash for NAN. */
struct gate_text gate_change_text(double ratio);
/* "-5.9 to -3.7 %"; "" without an interval. */
struct gate_text gate_interval_text(const struct gate_effect *e);
/* "12.34 tok/s" */
struct gate_text gate_value_text(double value, const char *unit);
/* The probability behind the verdict; both, "0.21 / 0.08", where undecided. */
struct gate_text gate_p_text(const struct gate_metric *m);
/* "-4.8 % (-5.9 to -3.7 %), p = 0.0004" */
struct gate_text gate_effect_text(const struct gate_metric *m);

/* GATE_UNCLEAR for what was never decided. */
enum gate_verdict gate_metric_verdict(const struct gate_metric *m);

/* The gate's verdict does not come from its metrics: interrupted, or no metric. */
bool gate_stands_alone(const struct gate_result *r);

#endif
