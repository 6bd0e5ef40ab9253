/* SPDX-License-Identifier: MIT
 *
 * gnuplot.h - run gnuplot on a file
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_BASE_GNUPLOT_H
#define SLM_HARNESS_BASE_GNUPLOT_H

#include <stdio.h>

#include "engine/base/status.h"

/* Run `gnuplot script` with dir as its working directory. again: the command that
 * redraws the chart. Errors: ST_UNSUPPORTED (no gnuplot; the message says how to
 * install it), ST_IO (gnuplot failed; the message is its first one). */
enum status gnuplot_run(const char *dir, const char *script, const char *again,
                        struct err *err);

/* Write s as a gnuplot string in single quotes, where nothing but the quote
 * itself is special; control characters become blanks. */
void gnuplot_quote(FILE *f, const char *s);

#endif
