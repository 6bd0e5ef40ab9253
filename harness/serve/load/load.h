/* SPDX-License-Identifier: MIT
 *
 * load.h - how many users a server carries
 *
 * Model of the world: requests at one load are a (load) level, and become a row. The
 * ladder takes 1, 2, 4 ... users until throughput stops growing and the limits are
 * missed. The capacity is the largest number of users for which 90 % of requests meet
 * each limit of the SLO: levels between one that meets it and one that misses it,
 * halving the distance; where the number of requests decides neither, the level is
 * repeated with three times as many, and may stay undecided. The open loop then sends
 * requests at random times, at shares of the rate of that many users. docs/serving.md
 * has the protocol.
 *
 * Threading: the main thread.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_LOAD_H
#define SLM_HARNESS_SERVE_LOAD_LOAD_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/base/options.h"
#include "harness/serve/load/figures.h"
#include "harness/serve/load/load_roof.h"
#include "harness/serve/load/prompts.h"
#include "harness/serve/load/sessions.h"
#include "harness/judge/users/users.h"
#include "harness/machine/noise.h"
#include "harness/rows/row.h"
#include "harness/measure/sweep/sweep.h"

#define LOAD_MAX_LEVELS 64 /* of a ladder and the search for a capacity */

/* Defaults. */
#define LOAD_LEVEL_S   300.0
#define LOAD_SILENCE_S 120.0
#define LOAD_SEED      1

/* Requests a second of an open loop. */
#define LOAD_MIN_RATE 1e-4
#define LOAD_MAX_RATE 1e4

struct load_settings;

/* Starts the server, and sets url and roof of *s. */
typedef enum status load_start_fn(void *arg, struct load_settings *s, struct err *err);

struct load_settings {
    const char *url;      /* of the server, or of its /v1 */
    load_start_fn *start; /* called once, before the first request, if there is one;
                             NULL: the server is there */
    void *start_arg;
    const char *name;    /* of a server that was launched; NULL: it was there */
    int round;           /* of its launches, from 1; 0: 1 */
    const char *key_env; /* environment variable with the API key; NULL: none */
    const char *model;   /* NULL: the first of /v1/models */
    const char *file;    /* of prompts; NULL: words */
    struct load_dist prompt, output;
    struct session_settings sessions;
    const char *fields; /* a JSON object whose members all requests have; NULL: none */
    int n_prefix;
    bool completions, embeddings; /* instead of chats */
    bool ignore_eos;
    struct slo slo;
    struct int_list users; /* these levels alone; empty: ladder and capacity */
    int max_users;
    int n_requests;         /* of a level, at least; more for many users */
    double level_s;         /* no request that counts is sent later in a level */
    bool open_loop;         /* after the capacity */
    double rate;            /* > 0: an open loop at this rate alone */
    double speed;           /* > 0: at this many times the rate of the file's times */
    double capacity;        /* > 0: open loops at shares of this rate alone */
    double silence_s;       /* of a request, after which it has failed */
    double max_late_ms;     /* of the client, 99th percentile */
    uint64_t seed, salt;    /* prompts.h */
    struct load_roof *roof; /* of the server's memory; NULL: it is elsewhere */
};

struct load_level {
    struct row row;
    int n_users;                      /* 0: open loop */
    size_t n, n_ttft_met, n_tpot_met; /* all tries together */
    double ttft_p90_s, tpot_p90_ms;   /* all tries; NAN: too few requests */
    enum row_slo_verdict verdict;
};

struct load_answer {
    struct load_level *level; /* [n_levels]; malloc'ed */
    size_t n_levels, cap;
    int carries;    /* the most users that meet the SLO; 0: not one for sure */
    int misses;     /* the fewest that miss it; 0: none did */
    bool undecided; /* there are numbers of users between them that were undecided */
    bool by_ladder; /* the capacity was requested */
    double rate;    /* requests a second of that many users */
    int best;       /* the level with the most tokens a second; -1: none */
};

struct load_samples {
    struct point_samples e2e; /* of the requests that succeeded, in ms */
    double *requests; /* [n_requests][REQUEST_CELLS] of all that count; malloc'ed */
    size_t n_requests;
};

/* Called with each row as it is there, which it may complete, and the times of its
 * requests. */
typedef enum status load_row_fn(void *arg, struct row *row,
                                const struct load_samples *samples, struct err *err);

/* *a is for load_answer_free() in any case. done[n_done]: rows of a run that ended
 * early, whose levels are not repeated. Errors: those of s->start, ST_USAGE (also: the
 * server has another model than its rows), ST_IO (no server answers there, or no
 * request succeeded), ST_UNSUPPORTED (no libcurl), ST_INTERRUPTED, ST_NO_MEMORY. */
enum status load_run(struct load_answer *a, const struct load_settings *s,
                     const struct row *done, size_t n_done, load_row_fn *fn, void *arg,
                     struct err *err);

void load_answer_free(struct load_answer *a);

/* A new level, all zero, which stands until the next one is added; NULL: no memory. */
struct load_level *load_answer_add(struct load_answer *a);

/* carries, misses, undecided, rate and best from the levels (load_answer.c). */
void load_answer_find(struct load_answer *a);

/* The levels of each number of users together: a number may have one in each of several
 * rounds, and then all its requests decide. */
void load_answer_series(const struct load_answer *a, struct users_series *out);

/* The levels of b, of another round, behind those of a. Error: ST_NO_MEMORY. */
enum status load_answer_join(struct load_answer *a, const struct load_answer *b,
                             struct err *err);

/* The middle of the longest stretch between carries and misses without a level; 0: all
 * have one. */
int load_answer_next(const struct load_answer *a);

/* What comes in a level of an open loop: "requests" or "sessions". */
const char *load_arrivals(const struct row *row);

/* Fills the row of a level (load_row.c). */
void load_row_fill(struct row *row, const struct load_settings *s,
                   const struct load_figures *f, const struct load_result *r,
                   const struct noise *noise);

/* The answer in a sentence or two, then a table of the levels (load_print.c). With
 * several servers, each by itself; users_answer() compares them. */
void load_answer_text(const struct load_answer *a, const struct load_settings *s,
                      char *buf, size_t cap);
void load_print(FILE *f, const struct load_answer *a, const struct load_settings *s);

#endif
