/* SPDX-License-Identifier: MIT
 *
 * lineedit.h - lines from a person at a terminal, or from a pipe
 *
 * At a terminal a line can be edited, and earlier ones come back with the arrow keys
 * (libedit); they are kept in memory only. Where standard input or standard error is no
 * terminal, lines are read as they are. The prompt goes to standard error.
 *
 * A signal that interrupt.h catches ends the reading of a line; the terminal is then as
 * it was.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_LINEEDIT_H
#define SLM_HARNESS_MEASURE_SESSION_LINEEDIT_H

#include <stdbool.h>

#include "engine/base/status.h"

struct lineedit;

/* Error: ST_NO_MEMORY. */
enum status lineedit_open(struct lineedit **l, struct err *err);
void lineedit_close(struct lineedit *l); /* may be NULL */

/* *line is one line without its end, for reading until the next call; *end (false
 * before): the input has ended. The prompt is shown at a terminal only. Errors:
 * ST_INTERRUPTED, ST_IO, ST_NO_MEMORY. */
enum status lineedit_read(struct lineedit *l, const char *prompt, const char **line,
                          bool *end, struct err *err);

#endif
