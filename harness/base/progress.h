/* SPDX-License-Identifier: MIT
 *
 * progress.h - one progress line with an estimate of the time left
 *
 * Written to stderr. On a terminal it is redrawn in place at most ten times a second,
 * and cut where the terminal ends.
 * Elsewhere (a log of CI, a file) it is a whole line now and then: the first after 10 s
 * (SLMBENCH_PROGRESS=SECONDS takes another time, none leaves lines out), the next ones
 * after twice as long each, at last every five minutes. Output on stdout stays clean.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_BASE_PROGRESS_H
#define SLM_HARNESS_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    const char *label;
    uint64_t begin_ns, drawn_ns;
    uint64_t part_ns; /* when what the fraction is of began */
    bool is_bound;    /* what is left may turn out to be less; set after begin */
    bool on;          /* stderr is a terminal */
    bool shown;       /* the line is visible */
    uint64_t next_ns, gap_ns; /* elsewhere: when a line is due, the time to the next */
    uint64_t (*now_ns)(void); /* clock_ns(); tests have another */
};

/* Columns of the terminal that f writes to, 80 if it does not report them; 0: f is
 * no terminal. */
int terminal_columns(FILE *f);

/* A message for the user on stderr, after "bench: ". On a terminal it is wrapped where
 * the terminal ends, commands in backticks whole, so that long lists can be read.
 * Elsewhere it is one line, which logs and scripts read. */
void message_print(const char *text);

void progress_begin(struct progress *p, const char *label);

/* fraction 0..1 done; detail (may be NULL) follows the bar: "3.1 of 5.3 GiB". */
void progress_update(struct progress *p, double fraction, const char *detail);

/* The work has another step: where stderr is no terminal, the next update is a line. */
void progress_step(struct progress *p);

/* The next fractions are those of another part of the work, which begins now: the time
 * that is left is that of the part. */
void progress_part(struct progress *p);

/* Removes the line, so that further output starts on an empty one. */
void progress_end(struct progress *p);

#endif
