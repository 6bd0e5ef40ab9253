/* SPDX-License-Identifier: MIT
 *
 * interrupt.h - Ctrl-C as a flag
 *
 * After interrupt_catch() SIGINT, SIGTERM and SIGHUP only raise a flag; loops ask
 * interrupted() and stop cleanly. A second signal ends the process at once, unless
 * interrupt_forget() was called in between. SIGHUP stays ignored where nohup has said
 * so.
 */
#ifndef SLM_HARNESS_BASE_INTERRUPT_H
#define SLM_HARNESS_BASE_INTERRUPT_H

#include <stdbool.h>

void interrupt_catch(void);
bool interrupted(void);

/* True if it was Ctrl-C, which a program at a terminal may take for less than the wish
 * to end it. */
bool interrupted_by_user(void);

/* As if there had been no signal: the next one raises the flag again. */
void interrupt_forget(void);

#endif
