/* SPDX-License-Identifier: MIT
 *
 * quality.h - quality loss of a quantisation: perplexity, and divergence from a
 * reference
 *
 * Model of the world: a *job* is a model with a type of KV cache, a window of it and
 * sums in prefill; one of the models, with F16 keys and values of all positions and
 * exact sums, is the reference. Its
 * predictions are computed once and kept in a file (quality_score.h describes its
 * precision) from which every job reads the chunk that it has just computed, so memory
 * holds one model and a few rows, however long the text and large the reference: two
 * models side by side would need both in memory, and the reference again for every job.
 * The file stays in the cache directory for the next comparison with the same
 * reference.
 *
 * Scores are kept in <out>/quality/, one file per job and one record per chunk: a
 * killed run continues with its unfinished chunk. Finished jobs are rows of
 * <out>/quality.csv, in the columns of a sweep.
 *
 * Threading: one run at a time.
 */
#ifndef SLM_HARNESS_MEASURE_QUALITY_QUALITY_H
#define SLM_HARNESS_MEASURE_QUALITY_QUALITY_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/base/options.h"
#include "harness/measure/quality/quality_job.h"
#include "harness/measure/quality/quality_text.h"
#include "harness/rows/row.h"
#include "harness/measure/session/session.h"

struct quality_settings {
    const char *const *models; /* [n_models], n_models >= 1 */
    size_t n_models;
    const struct requant_params *requant; /* of the models, not of the reference: as in
                                             struct modelref; or NULL */
    const char *reference; /* NULL: the F32, F16 or BF16 model, else the largest */
    const char *text;      /* NULL: the one that comes with the program */
    int ctx;               /* tokens of a chunk; 0: QUALITY_DEFAULT_CTX, or the least
                              that the models were made for */
    int n_chunks;          /* most chunks; 0: all */
    struct int_list values[QUALITY_N_SETTINGS]; /* empty: the usual one */
    struct session_params session; /* threads, placement, batch, weights; the rest is
                                      set here */
    const char *out;               /* directory of results */
    const char *cache_dir;         /* NULL: the usual one */
};

struct quality_report {
    struct row *rows; /* malloc'ed; the reference first, then as given */
    size_t n;
    char text[512]; /* where it was */
    int ctx;
    size_t n_chunks, n_scored;
    char reference_path[4096]; /* of its kept predictions; "": none were needed */
    uint64_t reference_bytes;
};

/* Score every job that is not scored yet, under a progress line, and put all into
 * quality.csv. Errors: those of reading models and text; ST_USAGE (models that cannot
 * be compared, another run in the same place); ST_NO_MEMORY (the reference's
 * predictions do not fit the disk; with what they need); ST_INPUT (a model that
 * gives no numbers); ST_INTERRUPTED (all whole chunks are kept). */
enum status quality_run(struct quality_report *report,
                        const struct quality_settings *settings, struct err *err);
void quality_report_free(struct quality_report *report);

#endif
