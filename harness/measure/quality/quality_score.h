/* SPDX-License-Identifier: MIT
 *
 * quality_score.h - how well one model predicts a token, and how far it is from
 * another one
 *
 * Model of the world: at every scored position a model gives logits l[n_vocab], and
 * with them p = softmax(l) for the token that comes next. Its score there is the
 * negative log-likelihood of the token that does come, and, against a reference q,
 * the Kullback-Leibler divergence KL(q || p) = sum q (ln q - ln p) and whether both
 * find the same token most likely.
 *
 * The reference is kept as 16 bits per token of the vocabulary: how far a logit lies
 * below the largest, in steps of 1/65535 of the row's range (at most
 * QUALITY_RANGE nats, so a step is at most 0.0005). What was rounded is normalised
 * again when it is read, which makes it a distribution of its own, q' with
 * ln q' = ln q + e: then KL(q' || p) - KL(q || p) = sum q e (ln q - ln p - KL) +
 * O(e^2). The e are rounding errors, as often up as down, and their factor is
 * as small as the divergence itself, so that the error stays far below what is measured
 * (1e-8 is left of a model against itself) at half the size of float32.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_MEASURE_QUALITY_QUALITY_SCORE_H
#define SLM_HARNESS_MEASURE_QUALITY_QUALITY_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUALITY_RANGE                                              \
    32.0 /* nats; what is less likely than e^-32 of the top is not \
            distinguished: 1e-14 each */

/* One position, as it is kept on disk. */
struct quality_score {
    double nll;   /* -ln p of the next token */
    double extra; /* nll less the reference's; without one 0 */
    double kl;    /* KL(reference || model) in nats; without a reference 0 */
    int64_t same; /* 1: the same token is most likely; without a reference 1 */
};

/* A position of the reference; followed by uint16_t code[n_vocab]. */
struct quality_row {
    double nll;
    float step;  /* nats per unit of a code */
    int32_t top; /* the most likely token, the first of equals */
};

/* Bytes of a row with its codes, a multiple of 8. */
size_t quality_row_bytes(size_t n_vocab);

/* Score logits[n_vocab] alone. False: a logit is not finite. 0 <= next < n_vocab. */
bool quality_score_alone(struct quality_score *score, const float *logits,
                         size_t n_vocab, int32_t next);

/* Make row (quality_row_bytes()) of the reference's logits. False as above. */
bool quality_row_make(struct quality_row *row, const float *logits, size_t n_vocab,
                      int32_t next);

/* Score logits against the reference's row of the same position. */
bool quality_score_against(struct quality_score *score, const struct quality_row *row,
                           const float *logits, size_t n_vocab, int32_t next);

struct quality_summary {
    size_t n;
    double perplexity, perplexity_se;
    double ratio, ratio_se; /* perplexity over the reference's */
    double kl_mean, kl_se, kl_median, kl_p99;
    double same, same_se; /* share of positions */
};

/* Standard errors take positions as independent: for a mean sd / sqrt(n), sd with
 * n - 1; for a perplexity exp(m) that of m times exp(m); for a share
 * sqrt(s (1 - s) / (n - 1)). n >= 2; scratch[n]. */
void quality_summarise(struct quality_summary *s, const struct quality_score *v,
                       size_t n, double *scratch);

#endif
