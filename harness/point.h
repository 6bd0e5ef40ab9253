/* SPDX-License-Identifier: MIT
 *
 * point.h - measure one point: in a fresh child, inside a sandbox
 *
 * Model of the world: the parent decides and records, the child measures. The
 * parent makes the sandbox, evicts the model file, starts
 *     bench point        (this executable, a hidden command)
 * stopped, puts it into the group, lets it go, and reads one JSON object per
 * line from it: phases, samples as they come, and at the end the row. Whatever
 * happens to the child - killed by the OOM killer, out of time, out of memory,
 * interrupted - the parent ends up with a row that says so and with the samples
 * measured until then.
 *
 * `bench decode` and `bench sweep` both measure through point_run().
 *
 * Threading: one point at a time.
 */
#ifndef SLM_HARNESS_POINT_H
#define SLM_HARNESS_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/status.h"
#include "harness/modelref.h"
#include "harness/row.h"
#include "harness/topology.h"

enum point_kind { POINT_DECODE, POINT_PREFILL };

struct point {
    enum point_kind kind;
    struct modelref model;
    bool in_memory;          /* synthetic image in anonymous 2 MiB pages, no file */
    int n_threads;
    enum placement placement;
    int cpus[TOPO_MAX_CPUS]; /* n_threads of them, where explicit_cpus */
    bool explicit_cpus;
    int ctx;           /* depth of a decode point */
    bool ctx_prefill;  /* reach it by real prefill */
    int n_prompt;      /* tokens of a prefill point */
    int n_tokens;      /* most samples wanted */
    int n_batch;
    double budget_s;   /* measuring stops after this long, with what there is */
    double load_budget_s; /* the child is killed after this long without a sample */
    uint64_t mem_limit; /* bytes; 0: no sandbox */
    uint64_t seed;
    uint32_t isa_disabled;
};

struct point_samples {
    double *ms; /* per token, or per prefill pass; malloc'ed */
    size_t n;
};

/* Called as the child reports: phase ("load", "probe", "fill", "measure") and how
 * far it is within it. */
typedef void point_progress_fn(void *arg, const char *phase, double fraction);

/* Measure. *row is always filled, also on failure of the point itself (ST_OK with
 * row->status telling); an error status is returned only when nothing could be
 * tried: no permission for cgroups, no model, interrupted before the child
 * started. samples may be NULL; free samples->ms. */
enum status point_run(const struct point *p, const struct topology *topo,
                      struct row *row, struct point_samples *samples,
                      point_progress_fn *progress, void *arg, struct err *err);

/* Identity within a sweep: "yi-1.5-9b:Q4_K_M/decode/t2/spread/ctx1024/6G". */
void point_id(const struct point *p, char *buf, size_t cap);

/* The `bench decode ...` line that repeats it. */
void point_command(const struct point *p, char *buf, size_t cap);

#endif
