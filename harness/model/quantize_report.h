/* SPDX-License-Identifier: MIT
 *
 * quantize_report.h - plan and result of quantising as text
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MODEL_QUANTIZE_REPORT_H
#define SLM_HARNESS_MODEL_QUANTIZE_REPORT_H

#include "engine/quantize/requant.h"

/* On standard error, what a user may not expect: weights that were quantised before,
 * formats that want importances, matrices without any, rows that a block does not
 * divide, files that other engines refuse or read otherwise. */
void quantize_remark(const struct gguf *from, const struct gguf *made,
                     const struct requant_params *p);

/* Every tensor: types and bytes. */
void quantize_print_plan(const struct gguf *from, const struct gguf *made);

/* Size, time and a line per format; out NULL: nothing was written. With p->measures
 * their errors. */
void quantize_print_result(const char *out, const struct gguf *from,
                           const struct gguf *made, const struct requant_params *p,
                           double seconds);

#endif
