/* SPDX-License-Identifier: MIT
 *
 * report_machine.h - a machine as it matters for running a model
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_MACHINE_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_MACHINE_H

#include <stdbool.h>

#include "harness/machine/cores.h"
#include "harness/machine/topology.h"

/* Prints it to standard output. map: which CPUs share a core, as measured; NULL: they
 * were not compared, with measured because there is one. dir: where the curve of the
 * caches is; "": nowhere. */
void report_machine(const struct topology *t, const struct cores_map *map,
                    bool measured, const char *dir);

#endif
