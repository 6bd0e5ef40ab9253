/* SPDX-License-Identifier: MIT
 *
 * gnuplot.h - drawing a chart with gnuplot
 *
 * gnuplot opens the files that it writes by name, and would follow a link of that name.
 * So it draws in a folder that nobody else may enter, made for it beside the results,
 * and what it has drawn is renamed.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_BASE_GNUPLOT_H
#define SLM_HARNESS_BASE_GNUPLOT_H

#include <stdio.h>

#include "engine/base/status.h"

/* Draws dir/<name>.gp with its dir/<name>.csv as dir/<name>.svg and .png. again: the
 * command that redraws the chart. Errors: ST_UNSUPPORTED (no gnuplot; the message says
 * how to install it), ST_IO (gnuplot failed, with its first message; a file could not
 * be read or written). */
enum status gnuplot_draw(const char *dir, const char *name, const char *again,
                         struct err *err);

/* Write s as a gnuplot string in single quotes, where nothing but the quote
 * itself is special; control characters become blanks. */
void gnuplot_quote(FILE *f, const char *s);

#endif
