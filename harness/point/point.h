/* SPDX-License-Identifier: MIT
 *
 * point.h - measure one point: in a fresh child, inside a sandbox
 *
 * Model of the world: the parent decides and records, a worker (harness/worker)
 * measures. The parent makes the sandbox, evicts the model file, starts the worker
 * inside the group, asks it for the point, and hears one JSON object per line from
 * it: phases, samples as they come, and at the end the row. Whatever
 * happens to the worker - killed by the OOM killer, out of time, out of memory,
 * interrupted - the parent ends up with a row that says so and with the samples
 * measured until then.
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

/* A profile's choices beyond what the point has itself, and what it would be without:
 * the measuring child compares the two. */
struct point_tuning {
    enum tuned_state state;
    struct slm_tuning choices; /* with TUNED_USED */
    int n_threads, n_threads_prefill, n_batch;
    enum placement placement;
    enum weights_residency residency; /* the profile's */
};

struct point {
    enum point_kind kind;
    struct model_setup setup; /* WEIGHTS_AUTO: decided by the plan, so that the row has
                                 another one */
    int ctx; /* depth of a decode point; of a speculate point the least: as deep as its
                text's prompt it is in any case */
    bool ctx_prefill; /* reach it by real prefill */
    int n_prompt;     /* tokens of a prefill point; of the text of a speculate point */
    int n_answer;     /* likewise, at most; both filled in by point_run() */
    char text[256];   /* of a speculate point, as test_prompt_find() takes it */
    int n_tokens;     /* most samples wanted */
    double budget_s;  /* measuring stops after this long, with what there is */
    double load_budget_s;       /* the child is killed after this long without a sign of
                                   progress: a sample, or a step of loading and filling */
    bool force;                 /* run it although the plan says that it cannot fit */
    bool profile;               /* account for the time of each operation */
    struct point_tuning tuning; /* what came of it; filled in by point_run() */
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

/* Called as the child reports: phase ("load", "probe", "fill", "measure") and how
 * far it is within it. */
typedef void point_progress_fn(void *arg, const char *phase, double fraction);

/* Measure. *row is always filled, also on failure of the point itself (ST_OK with
 * row->status telling); an error status is returned only when nothing could be
 * tried: no permission for cgroups, no model, interrupted before the child
 * started. samples may be NULL; it is for point_samples_free(). */
enum status point_run(const struct point *p, const struct topology *topo,
                      struct row *row, struct point_samples *samples,
                      point_progress_fn *progress, void *arg, struct err *err);

/* Defaults of everything but the model: decode, one thread, spread, depth 0. */
void point_init(struct point *p);

/* Positions in the cache when measuring begins. */
int point_depth(const struct point *p);

/* Make it a speculate point of that text. Errors: test_prompt_find()'s, ST_USAGE (too
 * long a name). */
enum status point_set_text(struct point *p, const char *text, struct err *err);

/* A speculate point's text without its directory and ".txt". */
void point_text_name(const struct point *p, char *buf, size_t cap);

extern const struct choices choices_point_kind; /* enum point_kind */

/* A setting's field; *size (may be NULL) is the field's. NULL: a point has none. */
void *point_field(struct point *p, enum setting_id id, size_t *size);

/* Identity within a sweep: "yi-1.5-9b:Q4_K_M/decode/t2/spread/ctx1024/6G". */
void point_id(const struct point *p, char *buf, size_t cap);

/* The `bench decode ...` line that repeats it. */
void point_command(const struct point *p, char *buf, size_t cap);

/* Settings as they travel to the child, and back. Errors: ST_USAGE. */
json_t *point_json(const struct point *p);
enum status point_from_json(struct point *p, const json_t *object, struct err *err);

/* What the child knows beyond the columns of the row. */
struct point_facts {
    double tokens_per_sample; /* 1, the prompt length, or those of a text */
    double ops_per_sample;    /* two per multiply-add of a matrix */
    double bytes_per_sample;  /* weights and KV cache read */
    double roof_spread; /* how far the probe's passes lay apart, of their median */
    double llc_bytes;   /* last-level cache; 0: unknown */
};

/* Fill the columns that follow from samples and facts: n_samples, tok_per_s and
 * its interval, latencies, roof_tok_per_s, mbu, gops, validity and limiter.
 * noise may be NULL (the child was killed before it told). */
void point_judge(struct row *row, const struct point_samples *samples,
                 const struct point_facts *facts, const struct noise *noise);

#endif
