/* SPDX-License-Identifier: MIT
 *
 * gate_trace.h - how long equal turns took on a real machine, one after the other
 *
 * A turn decodes the same number of tokens from the same depth each time, so that all
 * that differs between two of them is noise: what a simulated gate draws its rounds
 * from. The file is text: lines of comment that begin with '#', of which the first says
 * machine, model and state, then the milliseconds of a turn on each line. The
 * rounds.csv of a gate that has run does as well: its first metric's turns, all of
 * them, with what the sides differ by taken off.
 *
 * Threading: a trace is read-only once read; recording is one thread's.
 */
#ifndef SLM_RESEARCH_GATE_TRACE_H
#define SLM_RESEARCH_GATE_TRACE_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/measure/session/session.h"

#define GATE_TRACE_MIN 100 /* turns that a trace must have */
#define GATE_TRACE_MAX 1000000

struct gate_trace {
    char name[64];    /* of the file without ending; of a gate, its directory's */
    char about[256];  /* its first comment, or ""; of a gate, the metric */
    double *log_time; /* [n], logarithm of seconds; owned */
    size_t n;
};

/* Either kind of file. Errors: ST_IO, ST_NO_MEMORY, ST_INPUT (what the line is, and
 * what is wanted). */
enum status gate_trace_read(struct gate_trace *t, const char *path, struct err *err);
void gate_trace_free(struct gate_trace *t);

/* Standard deviation of what rounds of four consecutive turns (ABBA) would say. */
double gate_trace_noise(const struct gate_trace *t);

struct gate_trace_plan {
    const char *path; /* written anew */
    const char
        *note; /* the machine's state, for the first line; NULL: none is recorded */
    struct session_params session;
    size_t n_turns;
    double turn_s; /* about how long one is to take */
};

/* Records with a progress line; an interrupt leaves the turns that there are and
 * returns ST_INTERRUPTED. Errors: those of session_open() and slm_eval(), ST_IO. */
enum status gate_trace_record(struct gate_trace_plan *plan, struct err *err);

#endif
