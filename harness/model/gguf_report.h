/* SPDX-License-Identifier: MIT
 *
 * gguf_report.h - a GGUF file described for people and for programs
 *
 * Texts of the file are printed with control characters escaped, so
 * that no file can drive the terminal.
 *
 * Threading: one thread (standard output).
 */
#ifndef SLM_HARNESS_MODEL_GGUF_REPORT_H
#define SLM_HARNESS_MODEL_GGUF_REPORT_H

#include <stdbool.h>

#include "engine/gguf/gguf.h"

/* Which parts to print, besides the summary. */
struct gguf_report_parts {
    bool metadata, tensors;
};

void gguf_report_text(const struct gguf *g, struct gguf_report_parts parts);

/* One JSON object. Error: ST_NO_MEMORY. */
enum status gguf_report_json(const struct gguf *g, struct gguf_report_parts parts,
                             struct err *err);

#endif
