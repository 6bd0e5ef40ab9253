/* SPDX-License-Identifier: MIT
 *
 * child.h - a child process in a memory group that communicates in lines
 *
 * After fork() the child waits at a pipe until it is inside its group; then it executes
 * the program. It dies with its parent (PR_SET_PDEATHSIG) and ignores Ctrl-C, which the
 * parent handles. A keeper is between the two, so that all it starts ends with it
 * (keeper.h), and the OOM killer prefers it to us. Its standard output is a pipe of
 * lines; its standard input is one, too, if requested, and then the end of its standard
 * error is kept in case it dies.
 *
 * Threading: one thread per child, the one that started it.
 */
#ifndef SLM_HARNESS_MACHINE_CHILD_H
#define SLM_HARNESS_MACHINE_CHILD_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "engine/base/status.h"
#include "harness/machine/sandbox/sandbox.h"

struct child {
    pid_t pid;                      /* 0: none */
    pid_t keeper;                   /* its parent, and ours to wait for; 0: none */
    int in, out;                    /* our ends; -1: not open */
    int keeper_end;                 /* hangs up when the keeper ends; -1: not open */
    struct stderr_tail *error_tail; /* its standard error; NULL: not read */
    char *line;                     /* the incomplete last line of its output */
    size_t n_line, line_cap;
    uint64_t n_received; /* bytes of its output so far */
};

#define CHILD_INIT                            \
    {                                         \
        .in = -1, .out = -1, .keeper_end = -1 \
    }

struct child_params {
    const char *program;     /* path */
    char *const *argv;       /* with argv[0], ends with NULL */
    struct sandbox *sandbox; /* may be NULL */
    bool talk;               /* keep standard input and standard error */
    bool pass_errors; /* but write its standard error to ours, harmless for terminals
                         and CI systems */
    bool foreign;     /* a program of others: its standard error is kept, and it leads a
                         process group */
    int also_fd;      /* inherited besides the standard descriptors; 0: none */
    bool no_output;   /* its standard output is nobody's */
    const int *cpus;  /* [n_cpus], which it may run on; NULL: where we may */
    int n_cpus;
};

/* *c is CHILD_INIT, and for child_close() afterwards in any case. Errors: ST_IO, and
 * those of sandbox_add(). A program that cannot be executed prints a
 * message and ends with 127. */
enum status child_start(struct child *c, const struct child_params *p, struct err *err);

/* poll(), also where that fails, as a kernel without memory lets it: after a pause all
 * is then reported as ready, so every descriptor must be non-blocking. A signal: 0. */
int child_poll(struct pollfd *fd, nfds_t n, int timeout_ms);

/* Reads its available output (non-blocking) and calls fn for each whole
 * line, without its end. False at the end of the output, and for a line beyond 1 MiB.
 */
typedef void child_line_fn(void *arg, const char *line, size_t len);
bool child_read_lines(struct child *c, child_line_fn *fn, void *arg);

/* A line to its standard input; text ends with a newline. Error: ST_IO (it has ended).
 */
enum status child_write(struct child *c, const char *text, struct err *err);

/* SIGTERM to it, to a program of others with its process group. */
void child_request_end(const struct child *c);

/* Ends it and all that it has started. */
void child_kill(const struct child *c);

/* Whether one of its threads runs or waits for a CPU, and the CPU time that they and
 * those that ended have had; false where the kernel does not show its threads. */
bool child_wants_cpu(const struct child *c, double *cpu_s);

/* Whether it has ended, and all that it has started; or there is none. */
bool child_has_ended(const struct child *c);

/* What is left of its output once that has ended: a last line without an end, *len
 * bytes. Valid until child_close(). */
const char *child_rest(const struct child *c, size_t *len);

/* Waits for its end and returns the status of waitpid(); kills it after patience_ns and
 * sets *killed (may be NULL). usage may be NULL. */
int child_reap(struct child *c, uint64_t patience_ns, struct rusage *usage,
               bool *killed);

/* The tail of its standard error as one line, "" if it printed nothing. */
const char *child_stderr_tail(const struct child *c, char *buf, size_t cap);

/* Kills what still runs, closes and frees. */
void child_close(struct child *c);

/* ---- the end of what a child writes to its standard error ------------------------ */

/* A thread reads the pipe all the time, so that the child never waits for a reader, and
 * keeps the last STDERR_TAIL_BYTES: a program that prints errors without end fills no
 * memory. */

#define STDERR_TAIL_BYTES 4096

struct stderr_tail;

/* *fd is the child's end, the caller's to close. passes_on: nothing is kept, but
 * written to this process's standard error by whole lines, harmless for a terminal and
 * a CI system. Errors: ST_IO, ST_NO_MEMORY. */
enum status stderr_tail_start(struct stderr_tail **t, int *fd, bool passes_on,
                              struct err *err);

/* Reads what is in the pipe, and nothing from then on. Again, and of NULL: nothing. */
void stderr_tail_stop(struct stderr_tail *t);

/* At most its last cap - 1 bytes, ended by a zero; how many. Of NULL: 0. */
size_t stderr_tail_read(struct stderr_tail *t, char *buf, size_t cap);

/* Stops it first. */
void stderr_tail_free(struct stderr_tail *t);

#endif
