/* SPDX-License-Identifier: MIT
 *
 * results_dir.h - a directory of results, as a sweep writes it: its name, its files
 *
 * Threading: any thread.
 */
#ifndef SLM_HARNESS_RESULT_RESULTS_DIR_H
#define SLM_HARNESS_RESULT_RESULTS_DIR_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/base/pathlist.h"

/* The last part of the directory's path, which may end in slashes, cut to cap bytes and
 * made harmless. cap >= 8. */
void results_dir_name(char *name, size_t cap, const char *path);

/* Add the files that readers of the directory open, there or not: sweep.csv, what
 * belongs to its rows, machine.json. Error: ST_NO_MEMORY. */
enum status results_dir_files(struct path_list *files, const char *path,
                              struct err *err);

#endif
