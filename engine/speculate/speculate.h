/* SPDX-License-Identifier: MIT
 *
 * speculate.h - speculative decoding: several tokens for one reading of the weights
 *
 * Decoding waits for weights to come from memory, so a pass of a few tokens costs
 * little more than a pass of one. A pass evaluates the last token and a draft of the
 * next ones; drafted tokens are accepted up to the first that the sampler does not
 * draw, and the rest is removed from the KV cache. Drafts come from the text itself
 * (lookup: the tokens that followed the earlier occurrence of the last tokens), from a
 * smaller model with the same vocabulary (draft model), or from the model's own layer
 * that predicts the token after the next (mtp.h).
 *
 * Exact by construction: the sampler draws every token from the model's logits, in the
 * order and with the random numbers of plain decoding; a draft decides only how many
 * are drawn after one pass. This is rejection sampling with a deterministic proposal: a
 * drafted token x is accepted with probability p(x), and the token that replaces a
 * rejected one is distributed as p without x. A draft model draws with the random
 * numbers that the sampler will use, so that where both models agree on the
 * probabilities, they agree on the token; so does the model's own layer that predicts
 * further tokens. (Leviathan et al. 2023, arXiv 2211.17192;
 * Saxena 2023, "Prompt lookup decoding"; Daliri et al. 2024, arXiv 2408.07978.) One
 * reservation: a pass of several tokens may sum in another order than passes of one, so
 * that logits differ by rounding.
 *
 * The length of a draft follows from the measured cost of passes of each width and the
 * measured acceptance rate. Where no length pays, decoding is plain, except for trials
 * that cost less than a hundredth of the time (speculate_rule.h).
 *
 * Threading: as struct slm. The rule reads the clock, so the number of tokens in a pass
 * depends on the machine; the text does not.
 */
#ifndef SLM_ENGINE_SPECULATE_SPECULATE_H
#define SLM_ENGINE_SPECULATE_SPECULATE_H

#include "engine/engine.h"
#include "engine/speculate/speculate_rule.h"

struct speculator;

struct speculate_params {
    struct slm *draft; /* draft model, the caller's, nothing evaluated; NULL: lookup */
    bool mtp;          /* or m's own layer that predicts further tokens (mtp.h), which
                          it was opened with */
    const struct tokenizer *draft_tok;     /* its vocabulary */
    const struct sampler_params *sampling; /* the sampler's; for a draft */
    int n_max;                             /* tokens of a draft; 0: SPECULATE_MAX, the
                                               maximum */
    bool always;                           /* draft whether it pays or not */
    double accept; /* to measure what an acceptance rate gains: a drafted token is
                      accepted with this probability, whatever the model computes, so
                      that the text is none. 0: as the sampler draws */
};

struct speculate_stats {
    uint64_t n_passes; /* of the model */
    uint64_t n_tokens; /* drawn after them */
    uint64_t n_drafted, n_accepted;
    uint64_t drafted_at[SPECULATE_MAX], accepted_at[SPECULATE_MAX]; /* the same by
                                           position in a draft */
    double gain; /* speed as a multiple of plain decoding's, by the measured cost of
                    passes; 1: nothing gained; 0: not known yet */
};

/* Whether a model can draft for another one, by what slm_open() or slm_plan() reports
 * and by their vocabularies; *n_shared ids are known to both, those above are padding.
 * Error: ST_USAGE (another vocabulary, but for ids that are no text; a shorter context,
 * or no window where the model has one). */
enum status speculate_check_draft(const struct slm_info *info,
                                  const struct tokenizer *tok,
                                  const struct slm_info *draft,
                                  const struct tokenizer *draft_tok, int32_t *n_shared,
                                  struct err *err);

/* Decodes with m and s, which stay the caller's. tok may be NULL without a draft model:
 * then no token ends a text. m is opened with n_logits and n_batch of at least
 * SPECULATE_MAX + 1; with less, drafts are shorter. Errors: those of
 * speculate_check_draft(), ST_USAGE (n_max), ST_NO_MEMORY. */
enum status speculate_open(struct speculator **sp, struct slm *m, struct sampler *s,
                           const struct tokenizer *tok,
                           const struct speculate_params *params, struct err *err);
void speculate_close(struct speculator *sp);

/* The tokens that m has evaluated so far (a prompt), at most a context of them: lookup
 * searches them too, and a draft model evaluates them here. Of a sequence without end
 * (slm_params.kv_window) the last n_ctx count, here and later. */
enum status speculate_begin(struct speculator *sp, const int32_t *tokens, size_t n,
                            struct err *err);

/* slm_eval(m, &id, 1, SLM_LOGITS_LAST) and sampler_next() for several tokens: evaluates
 * id, the token that was drawn and accepted last, and draws out[*n_out], 1 to
 * SPECULATE_MAX + 1 tokens and at most n_max. All but the last are in m's cache, and s
 * has accepted all. A token that ends a text is the last of them. Errors: those of
 * slm_eval(). */
enum status speculate_next(struct speculator *sp, int32_t id, int n_max,
                           int32_t out[SPECULATE_MAX + 1], int *n_out, struct err *err);

/* A draft from a text: the n_max tokens after the last earlier occurrence of its
 * longest ending that has one, to draft[n_max]; where they reach the end of the text,
 * it continues with its own tokens. *source is the length of that ending, on which the
 * acceptance rate depends. Returns n_max; 0: no draft. */
int speculate_lookup(const int32_t *text, int n_text, int n_max, int32_t *draft,
                     int *source);

void speculate_read_stats(const struct speculator *sp, struct speculate_stats *out);

#endif
