/* SPDX-License-Identifier: MIT
 *
 * prices.h - what machines cost: a file, or single prices
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_JUDGE_COMPARE_PRICES_H
#define SLM_HARNESS_JUDGE_COMPARE_PRICES_H

#include <stddef.h>

#include "engine/base/status.h"

#define PRICES_MAX 1000

struct price {
    char machine[96]; /* pattern of a directory's name */
    double per_hour;  /* 0: not known */
    char currency[8];
    char what[128], source[128], date[16];
};

struct prices {
    struct price *v; /* malloc'ed [n] */
    size_t n;
};

/* Errors: those of yaml_load_file(), ST_INPUT. */
enum status prices_load(struct prices *prices, const char *path, struct err *err);
/* Prices by texts, "zen5*=0.06" or "zen5*=0.06EUR", before those that there are.
 * *prices may be zeroed. Errors: ST_USAGE, ST_NO_MEMORY. */
enum status prices_give(struct prices *prices, const char *const *texts, size_t n,
                        struct err *err);
/* Each of the n texts of prices_give() is the price of one of these machines. Errors:
 * ST_USAGE. */
enum status prices_check_machines(const char *const *texts, size_t n,
                                  const char *const *machines, size_t n_machines,
                                  struct err *err);
void prices_free(struct prices *prices);

/* The first that fits the name of a directory (its last part); NULL: none does. */
const struct price *prices_find(const struct prices *prices, const char *name);

/* Price of a million tokens on a machine that works that share of the time (0 to 1) at
 * that speed. */
double price_of_million(double per_hour, double tok_per_s, double utilisation);

#endif
