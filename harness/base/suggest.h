/* SPDX-License-Identifier: MIT
 *
 * suggest.h - "did you mean": the nearest of a list of names
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_BASE_SUGGEST_H
#define SLM_HARNESS_BASE_SUGGEST_H

/* The name with the smallest edit distance to word, in which two swapped neighbours
 * count once, if it is at most a third of
 * the word's length (at least 1, at most 3); else NULL. */
const char *suggest(const char *word, const char *const *names, int n_names);

#endif
