/* SPDX-License-Identifier: MIT
 *
 * measuring.h - one measurement at a time on a machine
 *
 * Two programs that measure at once disturb each other, and both results show it at
 * best. Who measures holds a lock on a file that all users share, $SLMBENCH_LOCK, or
 * slmbench.lock in /run/lock or /tmp; it ends with the process, however that does. The
 * next one waits, and prints for which process. SLMBENCH_LOCK=none measures without,
 * which the rows report. What the holder itself starts does not wait for it.
 *
 * Containers that do not share these folders do not see each other.
 *
 * Threading: the main thread.
 */
#ifndef SLM_HARNESS_MACHINE_MEASURING_H
#define SLM_HARNESS_MACHINE_MEASURING_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

/* From now on this process measures; where it does already, nothing. A file that cannot
 * be locked at all is no reason not to measure. Error: ST_INTERRUPTED (while waiting).
 */
enum status measuring_begin(struct err *err);

/* Begins without waiting, for work that is done without a measurement while another
 * process measures. False: another process measures. */
bool measuring_try(void);

/* Adds to the detail of a measured row that this process has measured without the lock,
 * and why; nothing where it has it. */
void measuring_remark(char *text, size_t cap);

/* For who measures again and again with long pauses. */
void measuring_end(void);

#endif
