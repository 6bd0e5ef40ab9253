/* SPDX-License-Identifier: MIT
 *
 * openmetrics.h - figures as text that Prometheus reads
 *
 * Model of the world: a file has families of gauges. A family is a head and, without
 * anything in between, its samples: name{label="value",...} figure. The same text is
 * OpenMetrics 1.0 and the older format of Prometheus, which node_exporter's textfile
 * collector reads: there "# UNIT" and "# EOF" are comments.
 *
 * Threading: none.
 * Source: OpenMetrics 1.0.0; Prometheus, "Exposition formats".
 */
#ifndef SLM_HARNESS_BASE_OPENMETRICS_H
#define SLM_HARNESS_BASE_OPENMETRICS_H

#include <stdio.h>

/* The head of a family, whose name follows "slmbench_"; with a unit where the name ends
 * with _seconds, _bytes, _joules or _ratio, as the format wants it. */
void openmetrics_head(FILE *f, const char *name, const char *help);

struct openmetrics_label {
    const char *name, *value; /* any text; "" is left out */
};

/* A sample of the family whose head was written last. labels[n] are unique to it. */
void openmetrics_sample(FILE *f, const char *name,
                        const struct openmetrics_label *labels, size_t n,
                        double figure);

/* The last line of the file. */
void openmetrics_finish(FILE *f);

#endif
