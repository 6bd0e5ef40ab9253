/* SPDX-License-Identifier: MIT
 *
 * calibration.h - an importance matrix of a model and a text, as a file
 *
 * The text's tokens are cut into chunks of ctx, each read from an empty cache with BOS
 * in its first place where the model needs one; an incomplete chunk at the end is not
 * used.
 *
 * Threading: one thread, which opens the model.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_CALIBRATION_H
#define SLM_HARNESS_MEASURE_SESSION_CALIBRATION_H

#include "engine/quantize/imatrix.h"
#include "harness/measure/session/session.h"

#define CALIBRATION_CTX 512 /* tokens of a chunk, usually */

struct calibration {
    struct session_params session; /* n_ctx: tokens of a chunk */
    const char *text, *out;
    struct str_list in;       /* importance matrices that are added */
    int from_chunk, n_chunks; /* n_chunks 0: all */
};

struct importance_text {
    const int32_t *ids;
    size_t n_ids;
    size_t ctx;
    size_t from_chunk, n_chunks; /* chunks from_chunk .. from_chunk + n_chunks - 1 */
};

struct calibration_result {
    struct importance_text text; /* without ids */
    size_t done;                 /* chunks that went in */
    double seconds;
};

/* Evaluate the text and write the matrix; *im (imatrix_free()) is what was written, and
 * untouched where nothing was. Errors: ST_USAGE (the output is an input; too short a
 * text), those of opening and running the model and of imatrix_read(); ST_INTERRUPTED:
 * chunks that were done are written. */
enum status calibrate(struct imatrix **im, struct calibration_result *r,
                      struct calibration *c, struct err *err);

#endif
