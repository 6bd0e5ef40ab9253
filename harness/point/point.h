/* SPDX-License-Identifier: MIT
 *
 * point.h - measure one point: in a fresh worker, inside a sandbox
 *
 * Model of the world: the parent decides and records, a worker (harness/worker)
 * measures. The parent makes the sandbox, evicts the model file, starts the worker
 * inside the group, sends it the point, and reads one JSON object per line from it:
 * phases, samples as they are taken, and at the end the row. Whatever ends the worker -
 * the OOM killer, a timeout, no memory, an interrupt - the parent has a row that
 * reports it, and the samples measured until then.
 *
 * `bench decode` and `bench sweep` both measure through point_run().
 *
 * Threading: one point at a time.
 */
#ifndef SLM_HARNESS_POINT_POINT_H
#define SLM_HARNESS_POINT_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/machine/noise.h"
#include "harness/machine/topology.h"
#include "harness/result/row.h"
#include "harness/settings/model_setup.h"
#include "harness/tune/tuned_use.h"

/* A profile's choices that are no settings of a point, and the settings without the
 * profile: the worker compares the two. */
struct point_tuning {
    enum tuned_state state;
    struct slm_tuning choices; /* with TUNED_USED */
    int n_threads, n_threads_prefill, n_batch;
    enum placement placement;
    enum weights_residency residency; /* the profile's */
};

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
    int n_prompt;     /* tokens of a prefill point; of the text of a speculate point */
    int n_answer;     /* likewise, at most; both filled in by point_run() */
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
    struct point_tuning tuning; /* the profile as used; filled in by point_run() */
};

/* Fewer samples than these are `partial` where the time budget ended the point:
 * too few for an interval of the median (decode), or for any spread (prefill). */
#define POINT_MIN_DECODE    6
#define POINT_MIN_PREFILL   2
#define POINT_MIN_SPECULATE 1 /* a run over the whole text has many parts */

struct point_samples {
    double *ms; /* per token, or per prefill pass; malloc'ed */
    size_t n;
    json_t *profile; /* a struct point_profile, where the settings ask for one */
};

void point_samples_free(struct point_samples *samples);

/* Called when the worker reports: phase ("load", "probe", "fill", "measure") and how
 * far it is within it. */
typedef void point_progress_fn(void *arg, const char *phase, double fraction);

/* Measure. *row is always filled, also on failure of the point itself (ST_OK, and
 * row->status says so); an error status is returned only when nothing could be tried:
 * no permission for cgroups, no model, interrupted before the worker
 * started. samples may be NULL; it is for point_samples_free(). */
enum status point_run(const struct point *p, const struct topology *topo,
                      struct row *row, struct point_samples *samples,
                      point_progress_fn *progress, void *arg, struct err *err);

/* Defaults of everything but the model: decode, one thread, spread, depth 0. */
void point_init(struct point *p);

/* Whether its sequences, what they share and a prompt beside them go together, and with
 * the kind of point. Error: ST_USAGE. */
enum status point_check_sequences(const struct point *p, struct err *err);

/* Positions in the cache when measuring begins. */
int point_depth(const struct point *p);

/* Make it a speculate point of that text. Errors: test_prompt_find()'s, ST_USAGE (too
 * long a name). */
enum status point_set_text(struct point *p, const char *text, struct err *err);

/* A speculate point's text without its directory and ".txt". */
void point_text_name(const struct point *p, char *buf, size_t cap);

/* NAME of the program that is measured; "": this one. */
void point_engine_name(const struct point *p, char *buf, size_t cap);

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

/* Facts of the worker that are no columns of the row. */
struct point_facts {
    double tokens_per_sample; /* 1, the prompt length, or those of a text */
    double ops_per_sample;    /* two per multiply-add of a matrix */
    double bytes_per_sample;  /* weights and KV cache read */
    double roof_spread;       /* of the probe's passes, as a share of their median */
    double llc_bytes;         /* last-level cache, as topology_cache() has it; 0: */
    double llc_hi_bytes;      /* unknown; and the end of its range */
    double stand_in_bytes;    /* of the buffer that was read instead of weights that do
                                 not fit; 0: none */

    double disk_spread; /* of the disk probe's passes, likewise */

    /* Of weights that are streamed: the largest request, and most of them at once; 0:
     * nothing is streamed. */
    double stream_request_bytes, stream_depth;

    /* Of a few samples after the measured ones, or of all with a profile: */
    double profile_ms; /* mean sample; 0: none was profiled */
    double wait_ms;    /* of it at barriers, mean of the threads */
    double arith_ms;   /* in which its multiply-adds could be done at the peaks */
};

/* Fill the columns that follow from samples and facts: n_samples, tok_per_s and
 * its interval, latencies, roof_tok_per_s, mbu, gops, validity and limiter.
 * noise may be NULL (the worker was killed before it reported any). */
void point_judge(struct row *row, const struct point_samples *samples,
                 const struct point_facts *facts, const struct noise *noise);

#endif
