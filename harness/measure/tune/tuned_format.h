/* SPDX-License-Identifier: MIT
 *
 * tuned_format.h - a profile's settings of one weight format, from YAML
 *
 * Not for other modules. Threading: none.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_TUNED_FORMAT_H
#define SLM_HARNESS_MEASURE_TUNE_TUNED_FORMAT_H

#include <stdbool.h>

#include "engine/forward/tuning.h"
#include "harness/base/yamlfile.h"

struct tuned_format {
    char *name, *level;
    char *level_prefill, *prefetch, *panels; /* or NULL */
    char *ahead; /* of older profiles: a distance, of hint T1 */
};

extern const cyaml_schema_value_t tuned_format_schema;

/* Into t; seen[KERN_N_FMT] are the formats read so far. What is not set is the
 * default. Error: ST_INPUT (path, the format and what is wrong). */
enum status tuned_format_read(const struct tuned_format *raw, const char *path,
                              bool *seen, struct slm_tuning *t, struct err *err);

#endif
