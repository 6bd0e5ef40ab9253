/* SPDX-License-Identifier: MIT
 *
 * predict_check.h - predictions compared with measured rows
 *
 * Model of the world: each row is predicted as if its machine had not been measured:
 * from the row's own roof (which `bench quick` or a probe measures) and from the
 * shares of all other machines. A row of a disk, or of a quota, has no share of these
 * roofs: a mapped file that pages is not predicted, and counted.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_PREDICT_PREDICT_CHECK_H
#define SLM_HARNESS_DECIDE_PREDICT_PREDICT_CHECK_H

#include <stdio.h>
#include <jansson.h>

#include "harness/decide/predict/predict.h"

/* What is promised of decoding. */
#define CHECK_MAX_ERROR                                                              \
    0.10                      /* median of absolute errors, relative to the measured \
                               */
#define CHECK_MIN_INSIDE 0.90 /* rows within the band */

enum check_kind { CHECK_DECODE, CHECK_DISTURBED, CHECK_PREFILL, CHECK_N_KINDS };

struct check_row {
    const char *dir; /* the caller's */
    enum check_kind kind;
    char point[160];
    int64_t attempt;
    double tok_per_s; /* measured */
    struct range predicted;
    enum share_basis basis;
};

struct check {
    struct check_row *v; /* malloc'ed [n] */
    size_t n;
    size_t n_paging, n_failed; /* rows that are not predicted */
};

/* Rows of some kinds and of one directory, or of all. */
struct check_group {
    size_t n;
    double median, p90; /* of absolute relative errors */
    double inside;      /* share of rows within their bands */
};

/* *check is for check_free() in any case. shares: those of these machines and others.
 * Errors: result_set_open()'s, ST_INPUT (no machine.json; nothing can be predicted),
 * ST_NO_MEMORY. */
enum status check_rows(struct check *check, const char *const *dirs, size_t n_dirs,
                       const struct shares *shares, struct err *err);
void check_free(struct check *check);

/* dir NULL: all; kinds: bits of 1 << enum check_kind. False: there are no such rows. */
bool check_group(const struct check *check, const char *dir, unsigned kinds,
                 struct check_group *group);

/* Whether what is promised holds of decoding, disturbed rows too. */
bool check_holds(const struct check *check);

void check_print(FILE *f, const struct check *check, const char *const *dirs,
                 size_t n_dirs);
void check_print_csv(FILE *f, const struct check *check);
json_t *check_json(const struct check *check, const char *const *dirs, size_t n_dirs);

#endif
