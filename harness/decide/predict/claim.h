/* SPDX-License-Identifier: MIT
 *
 * claim.h - whether a stated speed is possible: "36.7 tok/s, llama-2-7b, 4.1 GB, ryzen
 * 5900x"
 *
 * Model of the world: a decoded token of one sequence reads the model once, so a speed
 * needs a bandwidth. More than the memory gives is impossible; more than nine of ten
 * measured launches reach of it is implausible. Speculative decoding, batches of
 * sequences and caches that hold the model are not covered: then the claim is about
 * something else.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_PREDICT_CLAIM_H
#define SLM_HARNESS_DECIDE_PREDICT_CLAIM_H

#include <jansson.h>

#include "harness/decide/predict/predict.h"

/* Parts of a claim, between commas (one between two digits is a decimal comma); 0 and
 * "": not given. */
struct claim {
    double tok_per_s;
    double bytes; /* of the model's file; after claim_size() what a token reads of it,
                     where that is known to be less */
    double gbps;  /* of the machine */
    int n_threads, ctx;
    char model[64]; /* a shape */
    char quant[24];
    char cpu[64];
};

/* Errors: ST_USAGE (a part that is nothing of these or occurs twice, a number that can
 * be read in two ways, no speed, no size and no shape with a quantisation). */
enum status claim_parse(struct claim *claim, const char *text, struct err *err);

enum claim_verdict {
    CLAIM_IMPOSSIBLE,  /* more than the memory gives */
    CLAIM_IMPLAUSIBLE, /* more than measured launches reach of it */
    CLAIM_PLAUSIBLE,
    CLAIM_SLOW,     /* possible, and less than is expected */
    CLAIM_IN_CACHE, /* memory is no limit */
};

struct claim_answer {
    enum claim_verdict verdict;
    double need_gbps;    /* speed times what a token reads */
    double max_gbps;     /* that the machine's memory can give */
    struct range decode; /* expected, tok/s */
    char sentence[800];
};

/* min_share: share of the file's bytes that a token reads at least. */
void claim_judge(struct claim_answer *answer, const struct claim *claim,
                 double min_share, const struct candidate *c,
                 const struct share_band *share);

/* Bytes and least share from the claim's shape, where it has one. Errors: those of
 * planning it; ST_USAGE (the shape cannot have that size). */
enum status claim_size(struct claim *claim, double *min_share, struct err *err);

/* The same from the plan of the shape. Error: ST_USAGE. */
enum status claim_apply_need(struct claim *claim, double *min_share,
                             const struct point_need *need, struct err *err);

json_t *claim_json(const struct claim *claim, const struct claim_answer *answer,
                   const struct candidate *c);

#endif
