/* SPDX-License-Identifier: MIT
 *
 * schema_number.c - numbers of a schema, within limits
 */
#include "engine/grammar/build.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST                                                                \
    INT64_C(999999999999999999) /* 18 digits, as any integer has (values.c) \
                                 */

/* ---- decimals of whole numbers ------------------------------------------ */

/* lo .. hi, without leading zeros. */
static uint32_t natural(struct automaton *a, uint64_t lo, uint64_t hi, uint32_t to)
{
    uint64_t first = 0, last = 9; /* of n digits */
    uint32_t node = NODE_DEAD;

    for (int n = 1; n <= 19 && !a->st; n++) {
        const uint64_t from = lo > first ? lo : first, until = hi < last ? hi : last;
        char low[24], high[24];

        if (from <= until) {
            snprintf(low, sizeof low, "%" PRIu64, from);
            snprintf(high, sizeof high, "%" PRIu64, until);
            node = build_either(a, node, build_digits(a, low, high, n, to));
        }
        first = last + 1;
        last = last * 10 + 9;
    }
    return node;
}

uint32_t build_whole(struct automaton *a, int64_t lo, int64_t hi, uint32_t to)
{
    uint32_t node = NODE_DEAD;

    if (lo > hi || to == NODE_DEAD)
        return NODE_DEAD;
    if (hi >= 0)
        node = natural(a, lo > 0 ? (uint64_t)lo : 0, (uint64_t)hi, to);
    if (lo < 0) {
        const uint64_t smallest = hi < 0 ? 0 - (uint64_t)hi : 1;

        node = build_either(
            a, build_text(a, "-", 1, natural(a, smallest, 0 - (uint64_t)lo, to)), node);
    }
    return node;
}

/* ---- limits ------------------------------------------------------------- */

/* A limit of whole numbers: value, or the nearest whole number inside of it. A limit
 * beyond 64 bits is as good as none on its far side. */
static void read_limit(struct build *b, const json_t *schema, const char *key,
                       bool upper, bool exclusive, int64_t *limit)
{
    const json_t *value = json_object_get(schema, key);
    int64_t n;

    if (!value)
        return;
    if (json_is_integer(value)) {
        n = json_integer_value(value);
        if (exclusive && n != (upper ? INT64_MIN : INT64_MAX))
            n += upper ? -1 : 1;
    } else if (json_is_real(value)) {
        const double x = json_real_value(value), whole = upper ? floor(x) : ceil(x);

        if (!(fabs(whole) < 9e18))
            n = whole < 0 ? INT64_MIN + 1 : INT64_MAX;
        else
            n = (int64_t)whole + (exclusive && whole == x ? upper ? -1 : 1 : 0);
    } else {
        char shown[60];

        build_refuse(b, "'%s' is %s, and no number of 64 bits", key,
                     json_shown(shown, sizeof shown, value));
        return;
    }
    if (upper ? n < *limit : n > *limit)
        *limit = n;
}

/* A fraction that is not zero, of up to 17 digits. */
static uint32_t fraction(struct automaton *a, uint32_t to)
{
    const uint32_t more = build_repeat(a, build_range(a, '0', '9', NODE_POP), 0, 8, to);

    return build_text(a, ".", 1,
                      build_repeat(a, build_range(a, '0', '0', NODE_POP), 0, 8,
                                   build_range(a, '1', '9', more)));
}

/* Decimals between whole limits: whole numbers from..until, and what lies between two
 * neighbours of lo..hi. */
static uint32_t decimals(struct automaton *a, int64_t from, int64_t until, int64_t lo,
                         int64_t hi, uint32_t to)
{
    const uint32_t zeros = build_text(
        a, ".", 1, build_repeat(a, build_range(a, '0', '0', NODE_POP), 1, 17, to));
    uint32_t ways[3] = {build_whole(a, from, until, build_either(a, to, zeros)),
                        NODE_DEAD, NODE_DEAD};

    if (hi > 0 && lo < hi)
        ways[1] = build_whole(a, lo > 0 ? lo : 0, hi - 1, fraction(a, to));
    if (lo < 0 && lo < hi)
        ways[2] = build_text(
            a, "-", 1, build_whole(a, hi < 0 ? -hi : 0, -(lo + 1), fraction(a, to)));
    return build_split(a, ways, 3);
}

/* Sides without a limit go as far as integers do, or to what the other side needs. */
static void fill_limits(int64_t *lo, int64_t *hi)
{
    if (*hi > MOST && *lo <= MOST)
        *hi = MOST;
    if (*lo < -MOST && *hi >= -MOST)
        *lo = -MOST;
}

uint32_t build_number_type(struct build *b, const json_t *schema, bool integer,
                           uint32_t to)
{
    static const char *const keys[] = {"minimum", "exclusiveMinimum", "maximum",
                                       "exclusiveMaximum"};
    int64_t from = INT64_MIN + 1, until = INT64_MAX; /* whole numbers */
    int64_t lo = INT64_MIN + 1, hi = INT64_MAX;      /* what lies between */
    bool limited = false;

    for (int i = 0; i < 4; i++) {
        const json_t *value = json_object_get(schema, keys[i]);
        const double x = json_number_value(value);

        limited = limited || value;
        if (value && !integer && (x != floor(x) || fabs(x) > (double)MOST)) {
            build_refuse(b,
                         "'%s' of a number that need not be an integer must itself be "
                         "one, of up to 18 digits",
                         keys[i]);
            return NODE_DEAD;
        }
        read_limit(b, schema, keys[i], i >= 2, i % 2 == 1, i < 2 ? &from : &until);
        read_limit(b, schema, keys[i], i >= 2, false, i < 2 ? &lo : &hi);
    }
    if (!limited)
        return integer ? build_integer(b, to) : build_number(b, to);
    fill_limits(&from, &until);
    fill_limits(&lo, &hi);
    return integer ? build_whole(b->a, from, until, to)
                   : decimals(b->a, from, until, lo, hi, to);
}
