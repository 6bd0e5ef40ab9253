/* SPDX-License-Identifier: MIT
 *
 * gguf_nearest.h - the known architecture that a file of an unknown one is nearest to
 *
 * Threading: one thread (standard output).
 */
#ifndef SLM_HARNESS_MODEL_GGUF_NEAREST_H
#define SLM_HARNESS_MODEL_GGUF_NEAREST_H

#include <jansson.h>

#include "engine/gguf/gguf.h"

/* Print what differs; nothing where the architecture is known. Error: ST_NO_MEMORY. */
enum status gguf_nearest_text(const struct gguf *g, struct err *err);

/* The same as the member "nearest" of a report. */
enum status gguf_nearest_json(json_t *report, const struct gguf *g, struct err *err);

#endif
