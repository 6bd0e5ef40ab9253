/* SPDX-License-Identifier: MIT
 *
 * dirs.h - directories for results
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_BASE_DIRS_H
#define SLM_HARNESS_BASE_DIRS_H

#include <stddef.h>

#include "engine/base/status.h"

/* Make path and every directory above it that is missing; they
 * belong to who has called sudo (invoker.h). Errors: ST_IO (one cannot be
 * made or is a file, or path cannot be written into). */
enum status dirs_make(const char *path, struct err *err);

/* The folder that results go to where no output is named: $SLMBENCH_RESULTS, or
 * "results". */
const char *dirs_results_root(void);

/* <that folder>/<kind><host>-<utc> into buf: the default directory of results, with a
 * number behind it where there is one of that name. kind: "", or "gate-" */
void dirs_results(char *buf, size_t cap, const char *kind);

#endif
