/* SPDX-License-Identifier: MIT
 *
 * speculate_rule.h - how many tokens to guess, so that it pays or costs next to nothing
 *
 * Model of the world: a pass over w columns costs so many nanoseconds, and a guess is
 * right, token by token, with a probability that depends on where it is from (the
 * length of the match in the text; a draft model). Both are learned while decoding. Out
 * of them follows what a guess of n tokens promises, as a multiple of plain decoding's
 * speed; the best length is taken where it promises enough.
 *
 * Three things bound what is lost where guesses do not pay:
 *   - what a text would have been guessed to say is compared with what came, also while
 *     decoding plainly, so that most of the evidence costs no pass;
 *   - widths are explored from narrow to wide, each at most twice the one before;
 *   - what guesses have lost so far, and what the next one would where it is wrong,
 * stays below a fifth of a plain pass and 0.8 % of all time.
 *
 * Knows neither a model nor a clock: times are the caller's. Threading: data.
 */
#ifndef SLM_ENGINE_SPECULATE_SPECULATE_RULE_H
#define SLM_ENGINE_SPECULATE_SPECULATE_RULE_H

#include <stdbool.h>

/* Most tokens guessed at once: with the one that is known they are a pass of eight,
 * which kernels have a path of their own for. */
#define SPECULATE_MAX 7

/* Sources of a guess: 1 to SPECULATE_SOURCES - 1 tokens that matched; 0: a draft model.
 */
#define SPECULATE_SOURCES 5

/* Passes of a width that are remembered; odd, for a median. */
#define SPECULATE_RECENT 7

struct speculate_rule {
    double recent_ns[SPECULATE_MAX + 2][SPECULATE_RECENT]; /* by width */
    double pass_ns[SPECULATE_MAX + 2];                     /* their medians */
    double plain_ns; /* a slower mean of width 1 */
    int n_measured[SPECULATE_MAX + 2];
    double right[SPECULATE_SOURCES]; /* how often a guessed token is */
    int n_right[SPECULATE_SOURCES];  /* what that is learned from */
    double guess_ns;          /* of one guessed token, where guessing takes time */
    double again_ns;          /* what a wrong guess costs the pass after it */
    double gained_ns, all_ns; /* against plain decoding; of all passes */
};

/* One step, as it came out. */
struct speculate_step {
    int source;
    int n_guessed, n_accepted;
    double guess_ns, pass_ns; /* of guessing; of the pass */
    bool again;               /* the pass had to run tokens before its own again */
};

void speculate_rule_begin(struct speculate_rule *r);

/* Length of the next guess from that source, at most n_most; 0: decode plainly. */
int speculate_rule_length(const struct speculate_rule *r, int source, int n_most);

void speculate_rule_learn(struct speculate_rule *r, const struct speculate_step *step);

/* Without a guess: the first token of what could have been guessed was right or not. */
void speculate_rule_compare(struct speculate_rule *r, int source, bool right);

/* Without a guess, and nothing to compare (a draft that was not asked): what is known
 * of the source is forgotten by and by, so that it gets another trial. */
void speculate_rule_forget(struct speculate_rule *r, int source);

#endif
