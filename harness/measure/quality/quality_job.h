/* SPDX-License-Identifier: MIT
 *
 * quality_job.h - one model through all chunks
 *
 * Threading: one thread calls; the model's pool works.
 */
#ifndef SLM_HARNESS_MEASURE_QUALITY_QUALITY_JOB_H
#define SLM_HARNESS_MEASURE_QUALITY_QUALITY_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/progress.h"
#include "harness/measure/quality/quality_score.h"
#include "harness/measure/quality/quality_text.h"
#include "harness/measure/session/session.h"
#include "harness/rows/settings/setting.h"

/* The settings that models are scored with each value of: they decide what is computed.
 * The reference has their defaults. */
enum { QUALITY_KV_TYPE, QUALITY_KV_WINDOW, QUALITY_PREFILL_SUMS, QUALITY_N_SETTINGS };
extern const enum setting_id quality_settings[QUALITY_N_SETTINGS];

struct quality_job {
    const struct quality_model *model;
    const struct quality_text *text;
    int value[QUALITY_N_SETTINGS];
    char name[120]; /* of model and settings, for progress lines: "yi-q4, KV q8_0" */
    struct session_params session; /* complete but for context and logits */
    struct quality_store *scores;  /* record: a chunk's struct quality_score[] */
    struct quality_store *rows;    /* record: a row of the reference; NULL: none */
    struct progress *progress;
    double *work_done; /* of work_total, in parameters times chunks */
    double work_total;
    int n_threads; /* out: that ran; 0: nothing was left to do */
};

/* Append the missing rows of all chunks to job->rows: the reference's predictions. */
enum status quality_job_make_rows(struct quality_job *job, struct err *err);

/* The reference's own scores, from its rows. */
enum status quality_job_copy_scores(struct quality_job *job, struct err *err);

/* Append the missing chunks to job->scores, against job->rows where there are any.
 * Errors of both: as session_open() and slm_eval(), ST_INPUT (logits that are no
 * numbers), ST_IO, ST_INTERRUPTED. */
enum status quality_job_score(struct quality_job *job, struct err *err);

/* Whole chunks of rows there are. */
size_t quality_job_chunks_of_rows(const struct quality_job *job);

/* ---- a file of equal records that survives the end of its writer ----------------- */

/* A header that identifies the records (a key and their
 * size), then records, each followed by a checksum. A record is there when all of it
 * is: opening the file cuts off the incomplete record of a killed writer. A
 * file with another key or size belongs to other data and is replaced. */

struct quality_store;

/* Open or make the file at path; its directory must exist. Errors: ST_USAGE (another
 * run has it open), ST_IO, ST_NO_MEMORY. */
enum status quality_store_open(struct quality_store **s, const char *path, uint64_t key,
                               size_t record_bytes, struct err *err);
void quality_store_close(struct quality_store *s);

const char *quality_store_path(const struct quality_store *s);

/* Whole records there are. */
size_t quality_store_n(const struct quality_store *s);

/* Bytes of a file of n records. */
uint64_t quality_store_bytes(size_t record_bytes, size_t n);

/* One more record [record_bytes]. Error: ST_IO (a full disk, for example); the file
 * then ends with the record before. */
enum status quality_store_append(struct quality_store *s, const void *record,
                                 struct err *err);

/* Record i < quality_store_n(). Errors: ST_IO, ST_INPUT (its checksum is wrong). */
enum status quality_store_read(struct quality_store *s, size_t i, void *record,
                               struct err *err);

/* Keep the first n. Error: ST_IO. */
enum status quality_store_cut(struct quality_store *s, size_t n, struct err *err);

#endif
