/* SPDX-License-Identifier: MIT
 *
 * speculate_rule.h - how many tokens to draft, so that drafts pay or cost next to
 * nothing
 *
 * Model of the world: a pass over w columns costs so many nanoseconds, and each token
 * of a draft is accepted with a probability that depends on the draft's source (the
 * length of the match in the text; a draft model). Both are measured while decoding.
 * They give the expected speed of a draft of n tokens as a multiple of plain
 * decoding's; the best length is taken where it gains enough.
 *
 * Three things bound the loss where drafts do not pay:
 *   - plain decoding compares the tokens that lookup would have drafted with the tokens
 *     drawn, so that most of the evidence costs no pass;
 *   - widths are explored from narrow to wide, each at most twice the one before;
 *   - the loss so far, plus the loss of the next draft if it is rejected, stays below a
 *     fifth of a plain pass (of a source that was trained to be right, of some passes)
 *     and 0.8 % of all time.
 *
 * Knows neither a model nor a clock: times are the caller's. Threading: data.
 */
#ifndef SLM_ENGINE_SPECULATE_SPECULATE_RULE_H
#define SLM_ENGINE_SPECULATE_SPECULATE_RULE_H

#include <stdbool.h>

/* Most tokens of a draft: with the last token they are a pass of eight, for which
 * kernels have a path of their own. */
#define SPECULATE_MAX 7

/* A draft is chosen where it is expected to make decoding this much faster. */
#define SPECULATE_MIN_GAIN 1.05

/* Cost of a further column of a pass, in plain passes, before any is measured. */
#define SPECULATE_COLUMN 0.1

/* What a token of a draft model takes, in plain passes, before one is chosen. */
#define SPECULATE_DRAFT_SHARE 0.1

/* Sources of a draft: 1 to SPECULATE_SOURCES - 1 tokens that matched; 0: a draft model.
 */
#define SPECULATE_SOURCES 5

/* Passes of a width that are remembered; odd, for a median. */
#define SPECULATE_RECENT 7

/* Acceptance by source. Threading: data. */
struct speculate_rates {
    double rate[SPECULATE_SOURCES];
    int n[SPECULATE_SOURCES]; /* tokens that it comes from */
    double first_rate;        /* before any is observed, which weighs as much */
    int first_count;          /* as this many */
};

struct speculate_rule {
    double recent_ns[SPECULATE_MAX + 2][SPECULATE_RECENT]; /* by width */
    double pass_ns[SPECULATE_MAX + 2];                     /* their medians */
    double plain_ns; /* a slower mean of width 1 */
    double streamed; /* expected share of the time that columns do not add to */
    int n_measured[SPECULATE_MAX + 2];
    struct speculate_rates rates;
    double draft_ns;          /* of one token of the draft model */
    double again_ns;          /* what a rejected token costs the next pass */
    double loss_passes;       /* plain passes that drafts may lose at first */
    double gained_ns, all_ns; /* against plain decoding; of all passes */
};

/* The outcome of one step. */
struct speculate_step {
    int source;
    int n_drafted, n_accepted;
    double draft_ns, pass_ns; /* of drafting; of the pass */
    bool again;               /* the pass first ran earlier tokens again */
};

/* trusted: the source was trained to be right, and its rate is expected to be high. */
void speculate_rates_begin(struct speculate_rates *r, bool trusted);

/* Another text by the same drafts: begins with what is known of `of`, which weighs
 * as much as a first rate. */
void speculate_rates_follow(struct speculate_rates *r,
                            const struct speculate_rates *of);

/* The probability that token i of a draft is accepted where those before it were. */
double speculate_rates_at(const struct speculate_rates *r, int source, int i);

/* n_accepted of a draft of n_drafted tokens were accepted, and the next was tried. */
void speculate_rates_learn(struct speculate_rates *r, int source, int n_drafted,
                           int n_accepted);

/* Without a draft: whether the first token that lookup would have drafted was drawn. */
void speculate_rates_compare(struct speculate_rates *r, int source, bool accepted);

/* Without a draft and anything to compare (a draft model that did not run): the rate
 * slowly returns to its first value, so that the source gets another trial. */
void speculate_rates_forget(struct speculate_rates *r, int source);

/* streamed: the share of a pass's time, 0 to 1, in which it is expected to wait for
 * weights that are read again for each pass. More columns do not make that longer: they
 * are expected to cost less until it is known, and wide drafts are tried at once. */
void speculate_rule_begin(struct speculate_rule *r, double streamed);

/* The drafts' source was trained to be right: its rate is expected to be high, and it
 * may lose several passes before it is given up, as one rejected draft says little. */
void speculate_rule_trust(struct speculate_rule *r);

/* Length of the next draft from that source, at most n_max; 0: decode plainly. */
int speculate_rule_length(const struct speculate_rule *r, int source, int n_max);

/* What drafts cost, in plain passes, for speculate_gain(). */
struct speculate_costs {
    double pass[SPECULATE_MAX + 2]; /* a pass of [width] tokens; [1] is 1 */
    double guess;                   /* a token of a draft */
    double wrong;                   /* what a rejected draft costs the next pass */
};

/* Before any draft: the speed as a multiple of plain decoding's, with drafts of the
 * best length, if a guess is right with probability `rate` where those before it were.
 * 1: none gains SPECULATE_MIN_GAIN. */
double speculate_gain(const struct speculate_costs *c, double rate);

void speculate_rule_learn(struct speculate_rule *r, const struct speculate_step *step);

#endif
