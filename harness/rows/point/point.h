/* SPDX-License-Identifier: MIT
 *
 * point.h - what one point measures: its settings, as columns, identity, command and
 * JSON
 *
 * Model of the world: a point is one model, held and run in one way, measured in one
 * way. `bench decode` makes one from its options, a sweep makes many, and a stored row
 * becomes one again (point_row.h). Who measures it is harness/measure/point's and
 * harness/measure/engines' affair; readers of rows need nothing of either.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_ROWS_POINT_POINT_H
#define SLM_HARNESS_ROWS_POINT_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "harness/machine/topology.h"
#include "harness/rows/row.h"
#include "harness/rows/settings/model_setup.h"

struct point {
    enum point_kind kind;
    struct model_setup setup; /* WEIGHTS_AUTO: the plan decides, and the row has its
                                 choice */
    int ctx; /* depth of a decode point; least depth of a speculate point, which is at
                least as deep as its text's prompt */
    int n_sequences;  /* of a decode point: a sample is a token of each */
    int n_shared;     /* positions that they have in common, at most ctx */
    int n_chunk;      /* tokens of another sequence's prompt in each sample; 0: none */
    bool ctx_prefill; /* reach it by real prefill */
    int n_prompt;     /* tokens of a prefill point or of a speculate point's text */
    int n_answer;     /* tokens of its answer, at most; both filled in by point_run() */
    char text[256];   /* of a speculate point, as test_prompt_find() takes it */
    bool mtp;         /* of one: drafts by the model's own layer (engine/mtp.h) */
    int accept_hundredths; /* of one: the rate at which drafts are accepted, whatever
                              the model computes; 0: as it does */
    int n_tokens;          /* most samples wanted */
    double budget_s;       /* measuring stops after this long, with the samples taken */
    double load_budget_s;  /* another program is ended after this long without progress;
                              the worker after worker_silence_s() at least */
    char engine[256]; /* "": this program; NAME=COMMAND: another one, as engine.h has
                         it, which engine_run() measures */
    bool force;       /* run it although the plan says that it does not fit */
    bool profile;     /* account for the time of each operation */
};

/* Defaults of everything but the model: decode, one thread, spread, depth 0. */
void point_init(struct point *p);

/* Whether its sequences, what they share and a prompt read with them go together, and
 * with the kind of point. Error: ST_USAGE. */
enum status point_check_sequences(const struct point *p, struct err *err);

/* Positions in the cache when measuring begins. */
int point_depth(const struct point *p);

/* Threads of a sample: those of prefill where it has a chunk. */
int point_step_threads(const struct point *p);

/* Make it a speculate point of that text. Errors: test_prompt_find()'s, ST_USAGE (too
 * long a name). */
enum status point_set_text(struct point *p, const char *text, struct err *err);

/* A speculate point's text without its directory and ".txt". */
void point_text_name(const struct point *p, char *buf, size_t cap);

/* A setting's field; *size (may be NULL) is the field's. NULL: a point has none. */
void *point_field(struct point *p, enum setting_id id, size_t *size);

/* Fill in those columns with all of these bits (row.h) that are settings' values. */
void point_fill_columns(const struct point *p, unsigned is, struct row *row);

/* Identity within a sweep: "yi-1.5-9b:Q4_K_M/decode/t2/spread/ctx1024/6G". */
void point_id(const struct point *p, char *buf, size_t cap);

/* The `bench decode ...` line that repeats it. */
void point_command(const struct point *p, char *buf, size_t cap);

/* Settings as they are sent to the worker, and back. Errors: ST_USAGE. */
json_t *point_json(const struct point *p);
enum status point_from_json(struct point *p, const json_t *object, struct err *err);

#endif
