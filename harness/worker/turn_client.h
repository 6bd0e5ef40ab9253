/* SPDX-License-Identifier: MIT
 *
 * turn_client.h - the asking side of turn.h: the worker of one of a gate's programs
 *
 * What goes wrong with a program becomes one sentence that says which one it is, its
 * version, and its last words.
 *
 * Threading: one thread per client, and it is the one that started it.
 */
#ifndef SLM_HARNESS_WORKER_TURN_CLIENT_H
#define SLM_HARNESS_WORKER_TURN_CLIENT_H

#include "harness/worker/turn.h"
#include "harness/worker/worker_client.h"

struct turn_client {
    struct worker_client worker;
    struct turn_ready ready;
    uint64_t peak_bytes; /* after its last samples */
};

struct turn_client_params {
    const char *who, *program;
    double timeout_s;
    struct sandbox *sandbox;                                    /* may be NULL */
    void (*tick)(void *arg, const char *what, double fraction); /* may be NULL */
    void *arg;
};

/* Is there such a program? Error: ST_USAGE. */
enum status turn_check_program(const char *who, const char *program, struct err *err);

/* Starts the program and lets it open the model. *c is for turn_client_close()
 * afterwards in any case. Errors: ST_USAGE (no such program, or one that takes no
 * turns), ST_IO (it died, or says nothing), ST_INTERRUPTED, those of the program
 * itself, and of sandbox_add(). */
enum status turn_client_start(struct turn_client *c, const struct turn_client_params *p,
                              const struct turn_open *open, struct err *err);

/* The time that stands for several: their lower quartile, 0 if there are none; v is
 * sorted. What a machine does to a program only ever takes time, so that the shorter
 * samples are those of the program alone (Chen and Revels 2016, arXiv 1608.04295); what
 * makes fewer than three quarters of them longer is not seen. */
double turn_quick(double *v, size_t n);

/* A turn of n[i] samples of each of n_steps steps; seconds[i] becomes what turn_quick()
 * makes of them. Errors: as above. */
enum status turn_client_take(struct turn_client *c, const int *n, int n_steps,
                             double *seconds, struct noise *noise, struct err *err);

/* Lets it end by itself, or ends it. */
void turn_client_close(struct turn_client *c);

#endif
