/* SPDX-License-Identifier: MIT
 *
 * speculate.h - several tokens for one reading of the weights
 *
 * Decoding waits for weights to come from memory, so a pass of a few tokens costs
 * little more than a pass of one. A guess at the tokens to come is evaluated together
 * with the token that is known, and is kept as far as the sampler draws the same; the
 * rest is cut off the KV cache. Guesses come from the text itself (lookup: what stood
 * behind the last tokens when they last occurred), or from a smaller model with the
 * same vocabulary (draft).
 *
 * Exact by construction: every token is drawn by the sampler from the model's logits,
 * in the order and with the random numbers of plain decoding; a guess decides only how
 * many are drawn after one pass. This is rejection sampling with a proposal that is
 * certain: a guess x is accepted with probability p(x), and what comes in its place is
 * distributed as p without x. A draft model guesses with the random numbers that will
 * decide, so that where both models agree on the probabilities, they agree on the
 * token. (Leviathan et al. 2023, arXiv 2211.17192; Saxena 2023, "Prompt lookup
 * decoding"; Daliri et al. 2024, arXiv 2408.07978.) One reservation: a pass of several
 * tokens may add up in another order than passes of one, so that logits differ by
 * rounding.
 *
 * Guesses are as long as pays by what passes of each width have cost so far and how
 * often guesses were right. Where none pays, decoding is plain, but for trials that
 * cost less than a hundredth of the time (speculate_rule.h).
 *
 * Threading: as struct slm. The clock is read, so how many tokens a pass has depends on
 * the machine; the text does not.
 */
#ifndef SLM_ENGINE_SPECULATE_SPECULATE_H
#define SLM_ENGINE_SPECULATE_SPECULATE_H

#include "engine/engine.h"
#include "engine/speculate/speculate_rule.h"

struct speculator;

struct speculate_params {
    struct slm *draft; /* the caller's, with nothing evaluated; or NULL: lookup */
    const struct tokenizer *draft_tok;     /* its vocabulary */
    const struct sampler_params *sampling; /* the sampler's; for a draft */
    int n_most;                            /* tokens of a guess, at most SPECULATE_MAX;
                                              0: as many */
    bool always;                           /* guess whether it pays or not */
};

struct speculate_stats {
    uint64_t n_passes; /* of the model */
    uint64_t n_tokens; /* that came out of them */
    uint64_t n_guessed, n_accepted;
};

/* Decodes with m and s, which stay the caller's; tok may be NULL without a draft: then
 * no token ends a text; m was opened with n_logits (and n_batch) of at least
 * SPECULATE_MAX + 1, or guesses are shorter. Errors: ST_USAGE (draft: another
 * vocabulary, a shorter context; n_most), ST_NO_MEMORY. */
enum status speculate_open(struct speculator **sp, struct slm *m, struct sampler *s,
                           const struct tokenizer *tok,
                           const struct speculate_params *params, struct err *err);
void speculate_close(struct speculator *sp);

/* Tokens that guesses are looked up in, too: those evaluated by m (a prompt), which a
 * draft model then evaluates; at most a context of them. */
enum status speculate_begin(struct speculator *sp, const int32_t *tokens, size_t n,
                            struct err *err);

/* After slm_eval(m, &id, 1, SLM_LOGITS_LAST) and sampler_next(), the two in one and for
 * several tokens: id, drawn and accepted last, is evaluated; out[*n_out], 1 to
 * SPECULATE_MAX + 1 of them and at most n_most, are what is drawn from there. All but
 * the last are in m's cache, and all are accepted by s. A token that ends a text is the
 * last of them. Errors: those of slm_eval(). */
enum status speculate_next(struct speculator *sp, int32_t id, int n_most,
                           int32_t out[SPECULATE_MAX + 1], int *n_out, struct err *err);

void speculate_read_stats(const struct speculator *sp, struct speculate_stats *out);

#endif
