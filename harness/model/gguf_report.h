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
#include <jansson.h>

#include "engine/gguf/gguf.h"

/* Which parts to print, besides the summary. */
struct gguf_report_parts {
    bool metadata, tensors;
};

void gguf_report_text(const struct gguf *g, struct gguf_report_parts parts);

/* One JSON object. Error: ST_NO_MEMORY. */
enum status gguf_report_json(const struct gguf *g, struct gguf_report_parts parts,
                             struct err *err);

/* As `bench quantize --rmse`, for files of any program: print the root mean square
 * error of every tensor of g against that of the same name in ref, and of every format;
 * `tensors` false: only of formats. With a progress line;
 * stops at Ctrl-C (ST_INTERRUPTED). Errors: ST_INPUT (a tensor that ref lacks or has in
 * another shape), those of dequant_tensor(). */
enum status gguf_compare_print(const struct gguf *g, const struct gguf *ref,
                               bool tensors, struct err *err);

/* The known architecture that a file of an unknown one is nearest to: print what
 * differs; nothing where the architecture is known. Error: ST_NO_MEMORY. */
enum status gguf_nearest_text(const struct gguf *g, struct err *err);

/* The same as the member "nearest" of a report. */
enum status gguf_nearest_json(json_t *report, const struct gguf *g, struct err *err);

#endif
