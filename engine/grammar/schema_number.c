/* SPDX-License-Identifier: MIT
 *
 * schema_number.c - numbers of a schema: limits, multipleOf, formats of numbers
 *
 * A number within limits is read digit by digit from its front. Between its lower and
 * its upper limit the digits behind the first that differs from a limit are free of
 * that limit; a number that is to be a multiple has the remainder of its digits so far.
 *
 * A number has a fraction only within 15 significant digits: different decimals of 15
 * digits are different doubles, in the same order. So an answer keeps to its limits
 * whether its reader takes it for a decimal or for a double.
 */
#include "engine/grammar/build.h"
#include "engine/grammar/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_DIGITS    18 /* as any integer has (values.c) */
#define FRACTION_DIGITS 17
#define SIGNIFICANT     15
#define MAX_FACTOR      999 /* of multipleOf, without its zeros */
#define MAX_PLACES      ((size_t)1 << 20)

/* ---- limits ---------------------------------------------------------------------- */

struct limit {
    struct decimal at;
    bool is_set, exclusive;
};

/* A schema's rules for numbers: multiples of factor * 10^power; factor 0: no rule. */
struct limits {
    struct limit lower, upper;
    int factor, power;
    bool integer;
};

static const struct {
    const char *name, *lower, *upper;
} integer_formats[] = {
    {"int8", "-128", "127"},
    {"int16", "-32768", "32767"},
    {"int32", "-2147483648", "2147483647"},
    {"int64", "-9223372036854775808", "9223372036854775807"},
    {"int", "-9223372036854775808", "9223372036854775807"},
    {"uint8", "0", "255"},
    {"uint16", "0", "65535"},
    {"uint32", "0", "4294967295"},
    {"uint64", "0", "18446744073709551615"},
    {"uint", "0", "18446744073709551615"},
};
#define N_INTEGER_FORMATS (sizeof integer_formats / sizeof *integer_formats)

unsigned schema_format_about(const json_t *format)
{
    const char *name = json_text(format);

    for (size_t i = 0; name && i < N_INTEGER_FORMATS; i++) {
        if (!strcmp(name, integer_formats[i].name))
            return TYPE_INTEGER;
    }
    return name && (!strcmp(name, "float") || !strcmp(name, "double")) ? TYPE_NUMBER
                                                                       : TYPE_STRING;
}

/* The nearer one of two limits counts. */
static void set_limit(struct limit *l, const struct decimal *at, bool upper,
                      bool exclusive)
{
    const int order = l->is_set ? decimal_compare(at, &l->at) : 0;

    if (l->is_set && (upper ? order > 0 : order < 0))
        return;
    if (l->is_set && order == 0)
        exclusive |= l->exclusive;
    *l = (struct limit){.at = *at, .is_set = true, .exclusive = exclusive};
}

/* A real is a decimal for some readers and a double for others: beyond 2^53 these are
 * two numbers, and both count. */
static void set_large(struct limit *l, double x, bool upper, bool exclusive)
{
    const double next = nextafter(x, upper ? -INFINITY : INFINITY);
    char text[DECIMAL_WHOLE + 8];
    struct decimal exact;

    if (exclusive && isfinite(next)) {
        x = next;
        exclusive = false;
    }
    snprintf(text, sizeof text, "%.0f", x);
    decimal_parse(&exact, text); /* it holds the digits of every double */
    set_limit(l, &exact, upper, exclusive);
}

static void read_limit(struct build *b, const json_t *schema, const char *key,
                       bool upper, bool exclusive, struct limit *l)
{
    const json_t *value = json_object_get(schema, key);
    struct decimal at;
    char shown[60];

    if (!value)
        return;
    if (!decimal_read(&at, value)) {
        build_refuse(b, "'%s' is %s, and no number within the range of a double", key,
                     json_shown(shown, sizeof shown, value));
        return;
    }
    set_limit(l, &at, upper, exclusive);
    if (json_is_real(value) && fabs(json_real_value(value)) >= 0x1p53)
        set_large(l, json_real_value(value), upper, exclusive);
}

static void read_multiple(struct build *b, const json_t *schema, struct limits *l)
{
    const json_t *value = json_object_get(schema, "multipleOf");
    struct decimal d;
    char shown[60];
    int n_zeros = 0;

    if (!value)
        return;
    if (!decimal_read(&d, value) || d.negative || d.n_whole + d.n_fraction == 0) {
        build_refuse(b, "'multipleOf' is %s, and no number above 0",
                     json_shown(shown, sizeof shown, value));
        return;
    }
    for (int i = 0; i < d.n_whole + d.n_fraction && l->factor <= MAX_FACTOR; i++) {
        const char c = i < d.n_whole ? d.whole[i] : d.fraction[i - d.n_whole];

        n_zeros++;
        for (; c != '0' && n_zeros > 0 && l->factor <= MAX_FACTOR; n_zeros--)
            l->factor *= 10;
        l->factor += c - '0';
    }
    l->power = n_zeros - d.n_fraction;
    if (l->factor > MAX_FACTOR)
        build_refuse(b,
                     "'multipleOf' is %s; numbers of up to 3 digits are supported, and "
                     "zeros before or after them",
                     json_shown(shown, sizeof shown, value));
}

static void read_limits(struct build *b, const json_t *schema, struct limits *l)
{
    const char *format = json_text(json_object_get(schema, "format"));
    struct decimal at;

    read_limit(b, schema, "minimum", false, false, &l->lower);
    read_limit(b, schema, "exclusiveMinimum", false, true, &l->lower);
    read_limit(b, schema, "maximum", true, false, &l->upper);
    read_limit(b, schema, "exclusiveMaximum", true, true, &l->upper);
    read_multiple(b, schema, l);
    for (size_t i = 0; format && i < N_INTEGER_FORMATS; i++) {
        if (strcmp(format, integer_formats[i].name) != 0)
            continue;
        l->integer = true;
        decimal_parse(&at, integer_formats[i].lower);
        set_limit(&l->lower, &at, false, false);
        decimal_parse(&at, integer_formats[i].upper);
        set_limit(&l->upper, &at, true, false);
    }
}

/* ---- digits ---------------------------------------------------------------------- */

/* Sizes of numbers from lo to hi, of n digits, n_whole before the point. */
struct digits {
    struct automaton *a;
    struct limit lo, hi; /* hi not set: as many digits as there are */
    int lo_end, hi_end;  /* behind their last digits that are not 0 */
    int n_whole, n;
    int factor, zeros_from; /* remainders are of this, to there; 0 follows */
    int max_significant;    /* 1: they need not be counted */
    uint32_t *known;        /* nodes of places, and 1 */
    uint32_t to;
};

/* Before a digit: whether those so far are the limits', how many there are from the
 * first that is not 0, and their remainder. */
struct place {
    int at;
    bool low, high;
    int n_significant, rest;
};

static int digit_of(const struct digits *d, const struct limit *l, int at)
{
    const int whole = at - d->n_whole + l->at.n_whole, fraction = at - d->n_whole;

    if (at < d->n_whole)
        return whole < 0 ? 0 : l->at.whole[whole] - '0';
    return fraction < l->at.n_fraction ? l->at.fraction[fraction] - '0' : 0;
}

static int end_of(const struct digits *d, const struct limit *l)
{
    int end = d->n_whole + l->at.n_fraction;

    while (end > 0 && digit_of(d, l, end - 1) == 0)
        end--;
    return end;
}

static bool may_end(const struct digits *d, const struct place *p)
{
    int rest = p->rest;

    for (int i = p->at; i < d->zeros_from && rest; i++)
        rest = rest * 10 % d->factor;
    return rest == 0 && !(p->low && (p->at < d->lo_end || d->lo.exclusive)) &&
           !(p->high && p->at >= d->hi_end && d->hi.exclusive);
}

static uint32_t from_place(struct digits *d, struct place p);

static struct place behind(const struct digits *d, const struct place *p, int digit)
{
    struct place next = {.at = p->at + 1,
                         .low = p->low && digit == digit_of(d, &d->lo, p->at),
                         .high = p->high && digit == digit_of(d, &d->hi, p->at),
                         .n_significant = p->n_significant,
                         .rest = p->rest};

    if (digit > 0 || p->n_significant > 0)
        next.n_significant += p->n_significant < d->max_significant;
    if (p->at < d->zeros_from)
        next.rest = (p->rest * 10 + digit) % d->factor;
    return next;
}

static uint32_t next_digit(struct digits *d, const struct place *p)
{
    const bool leads = p->n_significant == 0 && p->at < d->n_whole - 1;
    const int least = p->low ? digit_of(d, &d->lo, p->at) : 0;
    int most = p->high ? digit_of(d, &d->hi, p->at) : 9;
    struct edge edges[10];
    uint32_t n = 0, skipped = NODE_DEAD;

    if (p->at >= d->zeros_from)
        most = 0;
    if (leads && least == 0)
        skipped = from_place(d, behind(d, p, 0));
    for (int i = leads && least == 0 ? 1 : least; i <= most; i++) {
        const uint32_t to = from_place(d, behind(d, p, i));
        const uint8_t byte = (uint8_t)('0' + i);

        if (n > 0 && edges[n - 1].to == to && edges[n - 1].hi + 1 == byte)
            edges[n - 1].hi = byte;
        else if (to != NODE_DEAD)
            edges[n++] = (struct edge){byte, byte, to};
    }
    return build_either(d->a, n ? build_bytes(d->a, edges, n) : NODE_DEAD, skipped);
}

/* Whole digits are there. */
static uint32_t fraction(struct digits *d, const struct place *p)
{
    const bool counts = d->max_significant > 1, free = !p->low && !p->high;
    const bool point = p->at == d->n_whole;
    int n = d->n - p->at;
    uint32_t node = NODE_DEAD;

    if (counts && n > SIGNIFICANT - p->n_significant)
        n = SIGNIFICANT - p->n_significant;
    if (n > 0 && free && d->factor == 1)
        node = build_repeat(d->a, build_range(d->a, '0', '9', NODE_POP), 1, (uint32_t)n,
                            d->to);
    else if (n > 0)
        node = next_digit(d, p);
    if (point)
        node = build_text(d->a, ".", 1, node);
    return may_end(d, p) ? build_either(d->a, d->to, node) : node;
}

static size_t n_places(const struct digits *d)
{
    return (size_t)(d->n + 1) * 4 * (size_t)(d->max_significant + 1) *
           (size_t)d->factor;
}

static uint32_t from_place(struct digits *d, struct place p)
{
    size_t i;

    if (p.low && p.at >= d->lo_end && !d->lo.exclusive)
        p.low = false;
    i = (size_t)(p.at * 4 + p.low * 2 + p.high);
    i = i * (size_t)(d->max_significant + 1) + (size_t)p.n_significant;
    i = i * (size_t)d->factor + (size_t)p.rest;
    if (!d->known[i] && !d->a->st)
        d->known[i] = 1 + (p.at < d->n_whole ? next_digit(d, &p) : fraction(d, &p));
    return d->a->st ? NODE_DEAD : d->known[i] - 1;
}

/* ---- sizes ----------------------------------------------------------------------- */

/* Whether all numbers above a limit may have more digits than it. */
static bool is_all_nines(const struct limit *l)
{
    for (int i = 0; i < l->at.n_whole; i++) {
        if (l->at.whole[i] != '9')
            return false;
    }
    return l->exclusive || l->at.n_fraction > 0;
}

/* How many digits there are before and after the point. */
static void count_digits(const struct limits *l, struct digits *d)
{
    const int lower = d->lo.at.n_fraction, upper = d->hi.at.n_fraction;
    int n = 1 + (lower > upper ? lower : upper);

    if (n < FRACTION_DIGITS)
        n = FRACTION_DIGITS;
    if (l->integer || (l->factor && l->power >= 0))
        n = 0;
    else if (l->factor && n > -l->power)
        n = -l->power;
    d->n_whole = WHOLE_DIGITS;
    if (n > 0 && l->factor)
        d->n_whole = n < SIGNIFICANT ? SIGNIFICANT - n : 1;
    if (d->lo.at.n_whole >= d->n_whole)
        d->n_whole = d->lo.at.n_whole + is_all_nines(&d->lo);
    if (d->hi.is_set && d->hi.at.n_whole <= d->n_whole)
        d->n_whole = d->hi.at.n_whole > 0 ? d->hi.at.n_whole : 1;
    else
        d->hi.is_set = false;
    d->n = d->n_whole + n;
    d->max_significant = n > 0 && d->n > SIGNIFICANT ? SIGNIFICANT : 1;
}

/* Numbers of one sign within limits, without it. */
static uint32_t sizes(struct build *b, const struct limits *l, bool negative,
                      uint32_t to)
{
    const struct limit *near = negative ? &l->upper : &l->lower;
    const struct limit *far = negative ? &l->lower : &l->upper;
    struct digits d = {.a = b->a, .hi = *far, .to = to, .factor = 1};
    uint32_t node = NODE_DEAD;

    if (far->is_set && far->at.negative != negative)
        return NODE_DEAD;
    d.lo.exclusive = negative;
    decimal_parse(&d.lo.at, "0");
    if (near->is_set && near->at.negative == negative)
        d.lo = *near;
    d.lo.at.negative = d.hi.at.negative = false;
    if (far->is_set && decimal_compare(&d.lo.at, &d.hi.at) > 0)
        return NODE_DEAD;
    count_digits(l, &d);
    if (d.n_whole >= DECIMAL_WHOLE) {
        build_refuse(b, "'%s' leaves only numbers of more than 308 digits",
                     negative ? "maximum" : "minimum");
        return NODE_DEAD;
    }
    d.zeros_from = d.n;
    if (l->factor) {
        d.factor = l->factor;
        d.zeros_from = d.n_whole > l->power ? d.n_whole - l->power : 0;
    }
    d.lo_end = end_of(&d, &d.lo);
    d.hi_end = end_of(&d, &d.hi);
    if (n_places(&d) > MAX_PLACES) {
        build_refuse(b,
                     "'multipleOf' is not supported together with limits of that many "
                     "digits");
        return NODE_DEAD;
    }
    d.known = calloc(n_places(&d), sizeof *d.known);
    if (d.known)
        node = from_place(&d, (struct place){.low = true, .high = d.hi.is_set});
    else
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate a number's digits");
    free(d.known);
    return node;
}

uint32_t build_number_type(struct build *b, const json_t *schema, bool integer,
                           uint32_t to)
{
    struct limits l = {.integer = integer};

    read_limits(b, schema, &l);
    if (b->a->st || to == NODE_DEAD)
        return NODE_DEAD;
    if (!l.lower.is_set && !l.upper.is_set && !l.factor)
        return l.integer ? build_integer(b, to) : build_number(b, to);
    const uint32_t positive = sizes(b, &l, false, to), minus = sizes(b, &l, true, to);

    return build_either(b->a, positive, build_text(b->a, "-", 1, minus));
}
