/* SPDX-License-Identifier: MIT
 *
 * decimal.c - exact decimals
 */
#include "engine/grammar/decimal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *decimal_shortest(char *buf, double x)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, 32, "%.*g", digits, x);
        const double y = strtod(buf, NULL);

        if (y >= x && y <= x)
            break;
    }
    return buf;
}

/* ---- reading --------------------------------------------------------------------- */

/* Digits of a text, whose last has the place 10^power; zeros that lead or trail are
 * left out. */
static bool put_digits(struct decimal *d, const char *digits, size_t n, long power)
{
    power += (long)n - 1;
    for (size_t i = 0; i < n; i++, power--) {
        if (digits[i] == '0')
            continue;
        if (power >= DECIMAL_WHOLE || power < -DECIMAL_FRACTION)
            return false;
        if (power >= 0) {
            if (d->n_whole == 0)
                d->n_whole = (int)power + 1;
            d->whole[d->n_whole - 1 - power] = digits[i];
        } else {
            d->n_fraction = (int)-power;
            d->fraction[-power - 1] = digits[i];
        }
    }
    return true;
}

bool decimal_parse(struct decimal *d, const char *text)
{
    const char *whole = text + (*text == '-'), *fraction;
    const size_t n_whole = strspn(whole, "0123456789");
    size_t n_fraction = 0;
    char *end = (char *)whole + n_whole;
    long exponent = 0;

    d->negative = *text == '-';
    d->n_whole = d->n_fraction = 0;
    memset(d->whole, '0', sizeof d->whole);
    memset(d->fraction, '0', sizeof d->fraction);
    fraction = *end == '.' ? end + 1 : end;
    if (*end == '.') {
        n_fraction = strspn(fraction, "0123456789");
        end += n_fraction + 1;
    }
    if (*end == 'e' || *end == 'E') {
        exponent = strtol(end + 1, &end, 10);
        if (labs(exponent) > 1 << 20) /* and nothing of it overflows */
            exponent = exponent < 0 ? -(1 << 20) : 1 << 20;
    }
    if (n_whole == 0 || *end || !put_digits(d, whole, n_whole, exponent) ||
        !put_digits(d, fraction, n_fraction, exponent - (long)n_fraction))
        return false;
    d->negative &= d->n_whole + d->n_fraction > 0;
    return true;
}

bool decimal_read(struct decimal *d, const json_t *value)
{
    char text[32];

    if (json_no_number(value))
        return decimal_parse(d, json_no_number(value));
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return json_is_number(value) &&
           decimal_parse(d, json_is_integer(value)
                                ? text
                                : decimal_shortest(text, json_real_value(value)));
}

/* ---- comparing ------------------------------------------------------------------- */

static int compare_sizes(const struct decimal *x, const struct decimal *y)
{
    int order = (x->n_whole > y->n_whole) - (x->n_whole < y->n_whole);

    if (!order)
        order = memcmp(x->whole, y->whole, (size_t)x->n_whole);
    /* what is beyond the last digit is '0' */
    if (!order)
        order = memcmp(x->fraction, y->fraction, sizeof x->fraction);
    return (order > 0) - (order < 0);
}

int decimal_compare(const struct decimal *x, const struct decimal *y)
{
    if (x->negative != y->negative)
        return x->negative ? -1 : 1;
    return x->negative ? compare_sizes(y, x) : compare_sizes(x, y);
}

/* ---- listed values --------------------------------------------------------------- */

/* Lists of values are compared each with each, so this is cheap: an integer and a real
 * beyond 2^63 count as equal where their doubles are. */
static bool equal_numbers(const json_t *x, const json_t *y)
{
    double a, b;

    if (json_typeof(x) == json_typeof(y))
        return json_equal(x, y);
    if (!json_finite(x, &a) || !json_finite(y, &b) || a < b || a > b)
        return false;
    return fabs(a) >= 0x1p63 ||
           (json_is_integer(x)   ? json_integer_value(x) == (json_int_t)b
            : json_is_integer(y) ? json_integer_value(y) == (json_int_t)a
                                 : true);
}

bool decimal_equal_values(const json_t *x, const json_t *y)
{
    const char *key;
    json_t *part;
    size_t i;

    if ((json_is_number(x) || json_no_number(x)) &&
        (json_is_number(y) || json_no_number(y)))
        return equal_numbers(x, y);
    if (json_typeof(x) != json_typeof(y) || json_array_size(x) != json_array_size(y) ||
        json_object_size(x) != json_object_size(y))
        return false;
    if (!json_is_array(x) && !json_is_object(x))
        return json_equal(x, y);
    json_array_foreach((json_t *)x, i, part)
    {
        if (!decimal_equal_values(part, json_array_get(y, i)))
            return false;
    }
    json_object_foreach((json_t *)x, key, part)
    {
        const json_t *other = json_object_get(y, key);

        if (!other || !decimal_equal_values(part, other))
            return false;
    }
    return true;
}
