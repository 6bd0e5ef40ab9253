/* SPDX-License-Identifier: MIT
 *
 * samples.h - samples.csv: the time of each token, pass or run of every launch; and
 * requests.csv: the times of each request of bench load
 *
 * Model of the world: a sweep writes the samples of a launch, a line each, before the
 * row that they belong to. A launch is known by its point and attempt; of
 * duplicates the last one counts. The file may be foreign: invalid lines are skipped.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_ROWS_SAMPLES_H
#define SLM_HARNESS_ROWS_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/rows/row.h"

#define SAMPLES_CSV       "samples.csv"
#define SAMPLES_HEADER    "point,attempt,index,ms\n"
#define SAMPLES_MAX_BYTES (1 << 30)

/* Requests that count: a failed one has no times, an answer of one token no TPOT; what
 * the server does not report about its cache is empty, too. An answer without a visible
 * token has one at inf; in files of earlier versions the column is missing (NAN). */
#define REQUESTS_CSV "requests.csv"
#define REQUESTS_HEADER \
    "point,attempt,index,ttft_s,tpot_ms,e2e_s,cached_tokens,visible_s,turn\n"
enum {
    REQUEST_TTFT_S,
    REQUEST_TPOT_MS,
    REQUEST_E2E_S,
    REQUEST_CACHED_TOKENS,
    REQUEST_VISIBLE_S,
    REQUEST_TURN, /* of its conversation, from 1 */
    REQUEST_CELLS
};

struct launch_samples {
    const char *point; /* within samples.text */
    int64_t attempt;
    const double *ms; /* [n], in the order they were measured; within samples.ms.
                         Requests: [n][REQUEST_CELLS], NAN where a cell is empty */
    size_t n, line;   /* line: where they begin in the file */
};

struct samples {
    struct launch_samples *v; /* [n], by point and attempt */
    size_t n;
    char *text; /* owned, as all of these */
    double *ms;
};

/* Those of dir/samples.csv; none where there is no such file, or no dir (NULL). Errors:
 * ST_IO, ST_INPUT (no regular file, or too large), ST_NO_MEMORY. */
enum status samples_read(struct samples *s, const char *dir, struct err *err);

/* Reads dir/requests.csv. */
enum status requests_read(struct samples *s, const char *dir, struct err *err);

void samples_free(struct samples *s);

/* Those of the row's launch, or NULL. */
const struct launch_samples *samples_of(const struct samples *s, const struct row *r);

#endif
