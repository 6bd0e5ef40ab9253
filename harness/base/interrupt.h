/* SPDX-License-Identifier: MIT
 *
 * interrupt.h - Ctrl-C as a flag
 *
 * After interrupt_catch() SIGINT, SIGTERM and SIGHUP only raise a flag; loops check
 * interrupted() and stop cleanly. A second signal ends the process at once, unless
 * interrupt_forget() was called in between. SIGHUP stays ignored under nohup.
 *
 * Threading: any thread; the signals are those of the whole process.
 */
#ifndef SLM_HARNESS_BASE_INTERRUPT_H
#define SLM_HARNESS_BASE_INTERRUPT_H

#include <stdbool.h>

void interrupt_catch(void);
bool interrupted(void);

/* True if the signal was Ctrl-C, after which an interactive program may continue. */
bool interrupted_by_user(void);

/* Clears the flag: the next signal raises it again. */
void interrupt_forget(void);

#endif
