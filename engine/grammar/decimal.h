/* SPDX-License-Identifier: MIT
 *
 * decimal.h - numbers of a schema as exact decimals: limits and listed values
 *
 * An integer of 64 bits is itself. One beyond has the digits that the text has, a real
 * those that tell its double from others ("0.1"), with its exponent worked in.
 *
 * Threading: no shared state.
 */
#ifndef SLM_ENGINE_GRAMMAR_DECIMAL_H
#define SLM_ENGINE_GRAMMAR_DECIMAL_H

#include "engine/base/json_read.h"

#define DECIMAL_WHOLE    309 /* digits of the largest double, */
#define DECIMAL_FRACTION 340 /* and of the smallest */

struct decimal {
    bool negative;             /* never of 0 */
    int n_whole, n_fraction;   /* 0: none; no leading or trailing zeros */
    char whole[DECIMAL_WHOLE]; /* '0' to '9' */
    char fraction[DECIMAL_FRACTION];
};

/* false: the value is no number, or more than fits. */
bool decimal_read(struct decimal *d, const json_t *value);

/* text: a number as JSON writes it. */
bool decimal_parse(struct decimal *d, const char *text);

/* -1, 0, 1 */
int decimal_compare(const struct decimal *x, const struct decimal *y);

/* The digits that tell a double from others, as JSON has them. buf: 32 bytes. */
const char *decimal_shortest(char *buf, double x);

/* Whether two values are equal as JSON Schema has it: 1 is 1.0, also within lists and
 * objects. */
bool decimal_equal_values(const json_t *x, const json_t *y);

#endif
