/* SPDX-License-Identifier: MIT
 *
 * report.h - charts and the closing table of a sweep
 *
 * A point may have been measured several times; its most trusted row is used, see
 * report_rows.h.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_H

#include <stddef.h>
#include <stdio.h>
#include <stdbool.h>

#include "engine/base/status.h"
#include "harness/chart/plot.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/result_set.h"
#include "harness/rows/row.h"
#include "harness/rows/samples.h"
#include "harness/machine/cores.h"
#include "harness/machine/topology.h"

/* Draw every chart that the rows of the part can fill into dir, as its files
 * (chart_files.h). again: the command that redraws them; NULL: `bench plot DIR`.
 * Errors: ST_CHECK (no chart has a figure), ST_INPUT, those of chart_files_draw(). */
enum status report_charts(const char *dir, const char *again,
                          const struct result_part *part, struct err *err);

/* Whether none of the files of these charts in dir is one of the inputs. Errors:
 * chart_files_check()'s. */
enum status report_charts_check(const struct path_list *inputs, const char *dir,
                                struct err *err);

/* What charts are drawn from. */
struct report_source {
    const struct report_rows *points;
    const struct report_machine *machine; /* may be zeroed */
    const struct row *rows;               /* [n_rows], that points were picked from */
    size_t n_rows;
    const struct samples *samples;
};

/* Describe every chart in turn and give it to use(), which frees p; NULL: the chart of
 * that name has no figure. in_page: texts are short. Errors: ST_NO_MEMORY, those of
 * use(). */
typedef enum status report_plot_fn(void *arg, const char *name, struct plot *p,
                                   struct err *err);
enum status report_each_plot(const struct report_source *from, bool in_page,
                             report_plot_fn *use, void *arg, struct err *err);

/* The table a sweep ends with: one line per point, aligned, and on a terminal that is
 * too narrow two; the points of chosen[n_chosen] are marked with a star. */
void report_table(FILE *f, const struct row *rows, size_t n_rows,
                  const struct row *const *chosen, size_t n_chosen);

/* Prints a machine as it matters for running a model on standard output. map: which
 * CPUs share a core, as measured; NULL: they were not compared, with measured because
 * there is one. dir: where the curve of the caches is; "": nowhere. */
void report_machine(const struct topology *t, const struct cores_map *map,
                    bool measured, const char *dir);

/* What a sweep prints when it ends: table, recommendation, rounds in which the machine
 * was slower, charts, and what could not be measured. That some of it cannot be made
 * does not make the rows worth less.
 * The part is of one directory, where charts are drawn (where wanted). one_by_one:
 * models were measured one after the other, so that rounds are of one model each.
 * Errors, after all has been printed: where no point has a figure, ST_NO_MEMORY
 * (nothing fits) or ST_CHECK; ST_PARTIAL where some ended by an error; ST_INTERRUPTED,
 * while charts were drawn. */
enum status report_sweep(FILE *f, const struct result_part *part, bool one_by_one,
                         bool charts, struct err *err);

#endif
