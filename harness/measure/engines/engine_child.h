/* SPDX-License-Identifier: MIT
 *
 * engine_child.h - another program from its start to its end, and what it printed
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_ENGINE_CHILD_H
#define SLM_HARNESS_MEASURE_ENGINES_ENGINE_CHILD_H

#include <stddef.h>
#include <sys/resource.h>

#include "engine/base/status.h"
#include "harness/machine/child.h"

#define ENGINE_HELP_S 20  /* a program that needs longer to print its help hangs */
#define ENGINE_WORDS  160 /* of the end of its standard error, in a row's detail */

enum engine_end {
    ENGINE_ENDED,       /* by itself, or by a signal: wstatus */
    ENGINE_INTERRUPTED, /* this process was */
    ENGINE_HUNG,        /* it was killed after limit_s */
    ENGINE_TALKS,       /* it printed more than ENGINE_MAX_OUTPUT */
};

struct engine_child {
    struct child_params params;
    double limit_s;
    void (*tick)(void *arg, double elapsed_s); /* five times a second; may be NULL */
    void *arg;

    enum engine_end end;
    int wstatus; /* as waitpid() has it */
    struct rusage usage;
    double wall_s;
    char *output; /* malloc'ed, ends with a zero */
    size_t n_output;
    char last_words[200]; /* of its standard error, harmless */
};

/* Runs it, until its end. *c is for engine_child_free() in any case. Errors:
 * child_start()'s, ST_NO_MEMORY. */
enum status engine_child_run(struct engine_child *c, struct err *err);
void engine_child_free(struct engine_child *c);

#endif
