/* SPDX-License-Identifier: MIT
 *
 * gate_quality.h - a gate's second question where B has another model: are its answers
 * still those of A?
 *
 * The divergence is that of `bench quality` (Kullback and Leibler's, of B's predictions
 * from A's, mean over the tokens of a text), by this program's arithmetic whatever the
 * sides are. It fails when its 95 % interval is beyond the bound, and passes when it is
 * within; between them more text decides.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_QUALITY_H
#define SLM_HARNESS_DECIDE_GATE_GATE_QUALITY_H

#include "harness/decide/gate/gate_result.h"
#include "harness/decide/gate/gate_settings.h"

/* Into r->divergence, with its files in r->dir. Errors: quality_run()'s. */
enum status gate_quality(struct gate_result *r, const struct gate_settings *s,
                         struct err *err);

/* Its verdict; r->verdict becomes that where it is the worse one. Nothing where the
 * divergence is not judged. */
void gate_quality_judge(struct gate_result *r);

#endif
