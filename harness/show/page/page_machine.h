/* SPDX-License-Identifier: MIT
 *
 * page_machine.h - one machine of a page: what is known of it, and its parts of the
 * page
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_SHOW_PAGE_PAGE_MACHINE_H
#define SLM_HARNESS_SHOW_PAGE_PAGE_MACHINE_H

#include <stdio.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/chart/plot.h"
#include "harness/judge/recommend/recommend.h"
#include "harness/show/report/report_tokens.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/result_set.h"
#include "harness/rows/samples.h"

struct page_machine {
    const char *name; /* the part's: a directory, mostly */
    char title[240];  /* its CPU, and its name where another machine has the same CPU */
    int number;       /* in the page, from 0 */
    json_t *facts;    /* machine.json, foreign; NULL: none */
    struct report_machine machine;
    const struct result_run *run; /* the last that its rows are of */
    struct row *rows;             /* [n_rows], the part's */
    size_t n_rows;
    const struct row **by_point; /* the same, by point and attempt */
    struct report_rows picked;
    struct samples samples;
    struct recommend_answers answers;
    struct err no_answer; /* why there is no answer; ST_OK: there is one */
};

/* The machine of a part, which must live as long and whose commands are made again. m
 * is to be freed in any case. Errors: those of samples_read(); ST_NO_MEMORY. */
enum status page_machine_make(struct page_machine *m, const struct result_part *part,
                              const struct recommend_params *wishes, struct err *err);
void page_machine_free(struct page_machine *m);

/* The launches of a point: the first, and how many there are from it on in by_point. */
const struct row **page_launches(const struct page_machine *m, const struct row *point,
                                 size_t *n);

/* ---- parts of the page ----------------------------------------------------------- */

/* Gives all machines of a page their titles. */
void page_name_machines(struct page_machine *v, size_t n);

/* "zen5-2vcpu, 60 launches of 18 points, measured 2026-11-23 by slmbench 0.1.0". */
void page_put_summary(FILE *f, const struct page_machine *m);

/* What is recommended, or why nothing is; facts of the machine. */
void page_put_decision(FILE *f, const struct page_machine *m);
void page_put_facts(FILE *f, const struct page_machine *m);

/* The figures of an answer, for the decision and for the overview. */
void page_put_figures(FILE *f, const struct recommendation *rec);

/* What servers carry, by rows of bench load; nothing without such rows. Error:
 * ST_NO_MEMORY. */
enum status page_put_users(FILE *f, const struct page_machine *m, struct err *err);

/* A chart as a figure of the page, its notes below its title; p is freed. NULL is a
 * plot without memory. Error: ST_NO_MEMORY. */
enum status page_put_plot(FILE *f, struct plot *p, struct err *err);

/* Errors: ST_NO_MEMORY. */
enum status page_put_charts(FILE *f, const struct page_machine *m, struct err *err);

/* Every point, its command, and all columns of its launches. */
void page_put_table(FILE *f, const struct page_machine *m);
/* What the details of all tables have in common: the columns of fields.def. */
void page_put_fields(FILE *f);

/* Machines side by side: what is recommended on each, and the same points on all.
 * Error: ST_NO_MEMORY. */
enum status page_put_overview(FILE *f, const struct page_machine *v, size_t n,
                              struct err *err);

#endif
