/* SPDX-License-Identifier: MIT
 *
 * progress.h - one progress line with an estimate of the time left
 *
 * Written to stderr, redrawn in place at most ten times a second, and only when
 * stderr is a terminal. Output on stdout stays clean.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_BASE_PROGRESS_H
#define SLM_HARNESS_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label;
    uint64_t begin_ns, drawn_ns;
    bool on;    /* stderr is a terminal */
    bool shown; /* the line is visible */
};

void progress_begin(struct progress *p, const char *label);

/* fraction 0..1 done; detail (may be NULL) follows the bar: "3.1 of 5.3 GiB". */
void progress_update(struct progress *p, double fraction, const char *detail);

/* Removes the line, so that further output starts on an empty one. */
void progress_end(struct progress *p);

#endif
