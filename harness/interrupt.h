/* SPDX-License-Identifier: MIT
 *
 * interrupt.h - Ctrl-C as a flag
 *
 * After interrupt_catch() SIGINT, SIGTERM and SIGHUP only raise a flag; loops ask
 * interrupted() and stop cleanly. A second signal ends the process at once.
 */
#ifndef SLM_HARNESS_INTERRUPT_H
#define SLM_HARNESS_INTERRUPT_H

#include <stdbool.h>

void interrupt_catch(void);
bool interrupted(void);

#endif
