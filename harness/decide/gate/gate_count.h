/* SPDX-License-Identifier: MIT
 *
 * gate_count.h - instructions of some kernels and of a token, in both programs
 *
 * In addition to the timing: a count has no noise, so it shows a change that is far too
 * small to be timed, and where times differ it shows whether the code did. But
 * instructions are not time: the verdict does not depend on them.
 *
 * Each program is started as `bench count NAME CALLS` (count_work.h). It is the CPU
 * that counts where it can and gives the same count every time, else callgrind, which
 * knows AVX2 and no level above it.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_COUNT_H
#define SLM_HARNESS_DECIDE_GATE_GATE_COUNT_H

#include "harness/decide/gate/gate_result.h"
#include "harness/model/modelref.h"

#define GATE_MAX_COUNTS 16

/* Fill r->count, r->counted_by, or r->no_counts. model: whose formats are counted;
 * NULL: those of Q4_K_M. Shows progress; takes seconds. That nothing can be counted is
 * no error. Errors: ST_NO_MEMORY, ST_INTERRUPTED (nothing is filled in then). */
enum status gate_count_run(struct gate_result *r, const char *prog_a,
                           const char *prog_b, const struct modelref *model,
                           struct err *err);

/* The names that would be counted, of levels in isa_mask; returns how many. */
size_t gate_count_names(char name[GATE_MAX_COUNTS][128], const struct modelref *model,
                        uint32_t isa_mask);

#endif
