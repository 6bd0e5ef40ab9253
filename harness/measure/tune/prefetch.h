/* SPDX-License-Identifier: MIT
 *
 * prefetch.h - settings of software prefetch as text: "T0 4096" (a hint and a distance
 * in bytes) or "off"; the interleaved panels stand apart
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_PREFETCH_H
#define SLM_HARNESS_MEASURE_TUNE_PREFETCH_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/engine.h"

const char *prefetch_text(struct kern_prefetch prefetch, char *buf, size_t cap);

/* False, *prefetch untouched, where text is neither; the case of letters does not
 * matter. */
bool prefetch_parse(const char *text, struct kern_prefetch *prefetch);

/* That of each format for which it matters, and the interleaved panels: "q4_K T0 4096
 * x4; q6_K off x1", without a comma as it goes into a CSV that people cut at commas; ""
 * where there is none. */
const char *prefetch_of_model(const struct slm *m, char *buf, size_t cap);

#endif
