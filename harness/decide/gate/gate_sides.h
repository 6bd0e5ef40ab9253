/* SPDX-License-Identifier: MIT
 *
 * gate_sides.h - what the two sides of a gate are: a table of functions for each kind
 *
 * Both sides are of one kind. gate_run.c plays launches and rounds and knows no kind;
 * how a side is opened, measured and described is a row of functions here, and a new
 * kind is one file with such a row, and its name in gate_sides.c.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_SIDES_H
#define SLM_HARNESS_DECIDE_GATE_GATE_SIDES_H

#include "harness/decide/gate/gate_run.h"

/* One side's turn of a step. */
struct gate_turn {
    double seconds;     /* of a sample: the lower quartile */
    struct noise noise; /* of its time; all 0 where why alone shows it */
    char why[128];      /* what disturbed it; "": what noise shows */
};

struct gate_sides {
    const char *what; /* "a build of bench" */
    /* Whether turns become shorter where the machine has become busier than it was when
     * the plan was made; else its length is fixed. */
    bool can_shorten;
    /* Whether a turn takes long enough for what disturbed it to show in counters with
     * ticks of 10 ms: such a turn is played again at once, with its round. */
    bool has_long_turns;
    /* Whether this side of run->program is of this kind. The row without it is that of
     * all others. Error: ST_USAGE (it looks like one, and is wrong). */
    enum status (*is)(const struct gate_run *run, int side, bool *is, struct err *err);
    /* run->own, and run->s without the settings that this kind does not have. Errors:
     * ST_USAGE (a setting it does not have), ST_NO_MEMORY. */
    enum status (*open)(struct gate_run *run, struct err *err);
    /* Once the plan has its steps: programs, models, memory, sandbox; NULL: nothing to
     * do. */
    enum status (*prepare)(struct gate_run *run, struct err *err);
    /* A first timing, and with it the plan; describes both sides in run->r. Errors:
     * gate_plan_fit()'s, those of a turn. */
    enum status (*pilot)(struct gate_run *run, struct err *err);
    /* A side begins a launch; NULL: each turn starts it. */
    enum status (*start)(struct gate_run *run, int side, struct err *err);
    /* n samples of a step. Errors: the side died or gave no figure, ST_INTERRUPTED. */
    enum status (*turn)(struct gate_run *run, int side, int step, int n,
                        struct gate_turn *turn, struct err *err);
    /* What a launch is charged for, after its last turn; NULL: turns have set it. */
    void (*charge)(struct gate_run *run, int side, struct gate_charge *charge);
    /* Ends a side's launch, if one has begun; NULL: nothing to end. */
    void (*end)(struct gate_run *run, int side);
    void (*close)(
        struct gate_run *run); /* run->own is freed after it; NULL: nothing to do */
};

extern const struct gate_sides gate_servers; /* gate_servers.c */
extern const struct gate_sides gate_builds;  /* gate_builds.c */
extern const struct gate_sides gate_engines; /* gate_engine.c */

/* Sets run->sides to the kind of both. Error: ST_USAGE (one of each kind). */
enum status gate_sides_find(struct gate_run *run, struct err *err);

#endif
