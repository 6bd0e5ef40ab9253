/* SPDX-License-Identifier: MIT
 *
 * users_labels.h - where the numbers of users stand in a chart, so that they can be
 * read
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_JUDGE_USERS_USERS_LABELS_H
#define SLM_HARNESS_JUDGE_USERS_USERS_LABELS_H

#include <stddef.h>

#define USERS_MAX_LABELS 1024

/* A mark and its label; lengths in pixels, or another unit that is as long in x as in
 * y. */
struct users_label {
    double x, y;   /* of the mark */
    double lo, hi; /* ends of its interval, in y; y where it has none */
    int series;    /* marks of one that follow each other are joined by a line */
    int n_characters;
    double label_x, label_y; /* out: the middle of the text */
};

/* Places the labels of v[n] next to their marks, so that, if possible, no label
 * covers another, a mark, an interval or a line, in a panel from (0, 0) to (width,
 * height). em: height of the text, whose characters are 0.6 of it wide. */
void users_place_labels(struct users_label *v, size_t n, double width, double height,
                        double em);

/* Where a text of n_characters above the horizontal line at y begins, so that it covers
 * least of v[n], which are placed: the x of its left end. above: -1 where y grows
 * downwards, else 1. */
double users_place_above(const struct users_label *v, size_t n, double width, double y,
                         double above, int n_characters, double em);

#endif
