/* SPDX-License-Identifier: MIT
 *
 * quick.h - `bench quick`: a machine in about a minute
 *
 * Model of the world: models of the shapes that come with the program are planned, the
 * smallest usual one and the largest of the usual ones that fits are measured. They are
 * synthetic and made in memory, so nothing is downloaded or written. In each round
 * every model is decoded and prefilled once, each in a worker of its own
 * (harness/measure/point), in the other order than the round before; rounds continue
 * while time is left, so that what the machine does in one of them does not decide.
 *
 * Threading: one at a time; the main thread.
 */
#ifndef SLM_HARNESS_DECIDE_QUICK_QUICK_H
#define SLM_HARNESS_DECIDE_QUICK_QUICK_H

#include "harness/base/options.h"
#include "harness/machine/topology.h"
#include "harness/measure/point/point_measure.h"
#include "harness/decide/quick/quick_answer.h"

struct quick_settings {
    struct point base;      /* memory limit and threads; 0 threads: as recommended */
    struct str_list models; /* to measure; none: those that fit */
    double seconds;         /* all in all, about */
    double want_tok_per_s;
    int ctx, n_prompt;
};

/* Find out what this machine is, measure, conclude. *topo is read, with shared cores
 * where they had to be measured. *a is for quick_free(), also on failure. Errors:
 * ST_INTERRUPTED, ST_USAGE (a model), ST_NO_MEMORY (nothing fits), point_run()'s. */
enum status quick_run(struct quick_answer *a, const struct quick_settings *s,
                      struct topology *topo, struct err *err);
void quick_free(struct quick_answer *a);

/* quick_models.c: the models of *a, planned, sorted by size, those to be measured
 * marked; points[n_models] are the decode points that belong to them. Errors: as
 * quick_run(). *points is malloc'ed. */
enum status quick_plan_models(struct quick_answer *a, struct point **points,
                              const struct quick_settings *s,
                              const struct topology *topo, struct err *err);

/* quick_print.c: the machine in a line or two, and after measuring the sentences and a
 * table. */
void quick_print_machine(FILE *f, const struct topology *topo);
void quick_print(FILE *f, const struct quick_answer *a);

#endif
