/* SPDX-License-Identifier: MIT
 *
 * point_options.h - a point from the command line of `bench decode`
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_OPTIONS_H
#define SLM_HARNESS_MEASURE_POINT_POINT_OPTIONS_H

#include <stdbool.h>

#include "engine/base/status.h"
#include "harness/machine/topology.h"
#include "harness/rows/point/point.h"

struct point_options {
    struct point point;
    bool json, all; /* how the row is printed; neither: what people need of it */
    bool help;      /* --help was printed: nothing to do */
};

/* Parse argv (argv[0] is the command's name). Errors: ST_USAGE, and those of
 * modelref_parse(). */
enum status point_options_parse(struct point_options *o, int argc, char **argv,
                                const struct topology *topo, struct err *err);

#endif
