/* SPDX-License-Identifier: MIT
 *
 * pattern.c - regular expressions, parsed
 */
#include "engine/grammar/pattern.h"

#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS 64   /* one within the other */
#define MAX_TIMES  4096 /* of a repetition */

static void refuse(struct pattern *p, const char *why)
{
    build_refuse(p->b, "the pattern '%.80s' %s", p->whole, why);
}

static bool failed(const struct pattern *p)
{
    return p->b->a->st != ST_OK;
}

/* ---- parts ----------------------------------------------------------------------- */

static bool room(struct pattern *p, void **array, uint32_t n, uint32_t *cap,
                 size_t size)
{
    if (n < *cap)
        return true;
    const uint32_t want = *cap ? *cap * 2 : 64;
    void *more = realloc(*array, want * size);

    if (!more) {
        automaton_fail(p->b->a, ST_NO_MEMORY, "cannot allocate a pattern");
        return false;
    }
    *array = more;
    *cap = want;
    return true;
}

static uint32_t add_part(struct pattern *p, struct pattern_part part)
{
    if (failed(p) ||
        !room(p, (void **)&p->parts, p->n_parts, &p->cap_parts, sizeof *p->parts))
        return 0;
    p->parts[p->n_parts] = part;
    return p->n_parts++;
}

static void add_range(struct pattern *p, uint32_t lo, uint32_t hi)
{
    if (!failed(p) &&
        room(p, (void **)&p->ranges, p->n_ranges, &p->cap_ranges, sizeof *p->ranges))
        p->ranges[p->n_ranges++] = (struct char_range){lo, hi};
}

static int compare_ranges(const void *x, const void *y)
{
    const struct char_range *a = x, *b = y;

    return (a->lo > b->lo) - (a->lo < b->lo);
}

/* The ranges from `first` on, sorted, joined, and all others instead where negated. */
static void close_ranges(struct pattern *p, uint32_t first, bool negated)
{
    const uint32_t n = p->n_ranges - first;
    struct char_range *r = n > 0 ? p->ranges + first : NULL; /* "[]" may be all */
    uint32_t n_joined = 0, next = 0;

    if (failed(p))
        return;
    if (n > 0)
        qsort(r, n, sizeof *r, compare_ranges);
    for (uint32_t i = 0; i < n; i++) {
        if (n_joined > 0 && r[i].lo <= r[n_joined - 1].hi + 1) {
            if (r[i].hi > r[n_joined - 1].hi)
                r[n_joined - 1].hi = r[i].hi;
        } else {
            r[n_joined++] = r[i];
        }
    }
    p->n_ranges = first + n_joined;
    if (!negated)
        return;
    for (uint32_t i = 0; i < n_joined; i++) {
        const struct char_range gap = {next, p->ranges[first + i].lo - 1};

        next = p->ranges[first + i].hi + 1;
        if (p->ranges[first + i].lo > gap.lo)
            add_range(p, gap.lo, gap.hi);
    }
    if (next <= CHAR_MAX_CODE)
        add_range(p, next, CHAR_MAX_CODE);
    if (failed(p))
        return;
    const uint32_t n_gaps = p->n_ranges - first - n_joined;

    memmove(p->ranges + first, p->ranges + first + n_joined,
            n_gaps * sizeof *p->ranges);
    p->n_ranges = first + n_gaps;
}

static uint32_t chars_part(struct pattern *p, uint32_t first)
{
    return add_part(p, (struct pattern_part){.kind = PATTERN_CHARS,
                                             .x = first,
                                             .y = p->n_ranges - first});
}

/* ---- characters and classes ------------------------------------------------------ */

/* \d, \w, \s and their negations. */
static void add_class(struct pattern *p, char name)
{
    static const struct char_range digits[] = {{'0', '9'}};
    static const struct char_range words[] = {
        {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const struct char_range spaces[] = {
        {9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
        {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
        {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    const char kind = (char)(name | 0x20);
    const struct char_range *r = kind == 'd' ? digits : kind == 'w' ? words : spaces;
    const size_t n = kind == 'd' ? 1 : kind == 'w' ? 4 : 10;
    const uint32_t first = p->n_ranges;

    for (size_t i = 0; i < n; i++)
        add_range(p, r[i].lo, r[i].hi);
    close_ranges(p, first, name < 'a');
}

static uint32_t hex_code(struct pattern *p, int n)
{
    uint32_t c = 0;

    for (int i = 0; i < n; i++, p->text++) {
        const char h = p->text < p->end ? *p->text : '\0';

        if (h >= '0' && h <= '9') {
            c = c << 4 | (uint32_t)(h - '0');
        } else if ((h | 0x20) >= 'a' && (h | 0x20) <= 'f') {
            c = c << 4 | (uint32_t)((h | 0x20) - 'a' + 10);
        } else {
            refuse(p, "has an escape without its hexadecimal digits");
            return 0;
        }
    }
    return c;
}

static uint32_t braced_code(struct pattern *p)
{
    uint32_t c = 0;

    p->text++;
    do {
        c = c << 4 | hex_code(p, 1);
        if (c > CHAR_MAX_CODE)
            refuse(p, "has an escape beyond U+10FFFF");
    } while (!failed(p) && (p->text == p->end || *p->text != '}'));
    p->text += !failed(p);
    return c;
}

/* The character of an escape, after its backslash and name. */
static uint32_t escaped(struct pattern *p, char name)
{
    static const char names[] = "tnvfr", codes[] = "\t\n\v\f\r";
    const char *at = strchr(names, name);

    if (name == '0' && !(p->text < p->end && *p->text >= '0' && *p->text <= '9'))
        return 0;
    if (at && name)
        return (uint8_t)codes[at - names];
    if (name == 'x')
        return hex_code(p, 2);
    if (name == 'u')
        return p->text < p->end && *p->text == '{' ? braced_code(p) : hex_code(p, 4);
    if ((name >= '0' && name <= '9') ||
        ((name | 0x20) >= 'a' && (name | 0x20) <= 'z') || (unsigned char)name >= 0x80)
        refuse(p, "has an escape that is not supported: letters that are are dDwWsS, "
                  "tnvfr, xHH, uHHHH");
    return (uint8_t)name;
}

static bool is_class(char c)
{
    return c && strchr("dDwWsS", c);
}

/* A character of the pattern's own UTF-8, which is valid. */
static uint32_t next_char(struct pattern *p)
{
    const unsigned char first = (unsigned char)*p->text++;
    int more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    uint32_t c = more == 0 ? first : first & (0x3fu >> more);

    for (; more > 0; more--)
        c = c << 6 | ((unsigned char)*p->text++ & 0x3f);
    return c;
}

/* A member of a class in brackets: a character, or a class (then true). */
static bool class_member(struct pattern *p, uint32_t *c)
{
    if (*p->text != '\\') {
        *c = next_char(p);
        return false;
    }
    p->text++;
    const char name = p->text < p->end ? *p->text++ : '\0';

    if (is_class(name)) {
        add_class(p, name);
        return true;
    }
    *c = name == 'b' ? '\b' : name == '-' ? '-' : escaped(p, name);
    return false;
}

/* After the opening bracket. */
static uint32_t bracket_class(struct pattern *p)
{
    const uint32_t first = p->n_ranges;
    const bool negated = p->text < p->end && *p->text == '^';

    p->text += negated;
    while (p->text < p->end && *p->text != ']' && !failed(p)) {
        uint32_t lo = 0, hi = 0;

        if (class_member(p, &lo))
            continue;
        hi = lo;
        if (p->end - p->text >= 2 && p->text[0] == '-' && p->text[1] != ']') {
            p->text++;
            if (class_member(p, &hi) || hi < lo)
                refuse(p, "has a range of characters that goes backwards");
        }
        add_range(p, lo, hi);
    }
    if (p->text == p->end)
        refuse(p, "has a class without its closing bracket");
    else
        p->text++;
    close_ranges(p, first, negated);
    return chars_part(p, first);
}

/* ---- expressions ----------------------------------------------------------------- */

static uint32_t alternatives(struct pattern *p, bool outermost);

static uint32_t one_char(struct pattern *p, uint32_t c)
{
    const uint32_t first = p->n_ranges;

    add_range(p, c, c);
    return chars_part(p, first);
}

static uint32_t any_char(struct pattern *p)
{
    const uint32_t first = p->n_ranges;

    add_range(p, '\n', '\n');
    add_range(p, '\r', '\r');
    add_range(p, 0x2028, 0x2029);
    close_ranges(p, first, true);
    return chars_part(p, first);
}

static uint32_t group(struct pattern *p)
{
    uint32_t part;

    if (p->end - p->text >= 2 && p->text[0] == '?' && p->text[1] == ':') {
        p->text += 2;
    } else if (p->text < p->end && *p->text == '?') {
        refuse(p,
               "has a group that looks around or has a name, which is not supported");
        return 0;
    }
    if (++p->depth > MAX_GROUPS) {
        refuse(p, "has too many groups within each other");
        return 0;
    }
    part = alternatives(p, false);
    p->depth--;
    if (p->text == p->end || *p->text != ')')
        refuse(p, "has a group without its end");
    else
        p->text++;
    return part;
}

static uint32_t atom(struct pattern *p)
{
    const char c = *p->text;
    uint32_t first;

    switch (c) {
    case '(':
        p->text++;
        return group(p);
    case '[':
        p->text++;
        return bracket_class(p);
    case '.':
        p->text++;
        return any_char(p);
    case '^':
    case '$':
        refuse(p,
               "has ^ or $ in its middle, which is supported at the ends of the whole "
               "and of its alternatives only");
        return 0;
    case '*':
    case '+':
    case '?':
    case '{':
    case '}':
    case ']':
        refuse(p, "has a repetition of nothing, or a bracket without its fellow");
        return 0;
    case '\\':
        p->text++;
        if (p->text == p->end) {
            refuse(p, "ends in a backslash");
            return 0;
        }
        first = p->n_ranges;
        if (is_class(*p->text)) {
            add_class(p, *p->text++);
            return chars_part(p, first);
        }
        const char name = *p->text++;

        return one_char(p, escaped(p, name));
    default:
        return one_char(p, next_char(p));
    }
}

static uint32_t number(struct pattern *p)
{
    uint32_t n = 0;

    if (p->text == p->end || *p->text < '0' || *p->text > '9')
        refuse(p, "has braces that are no repetition");
    for (; p->text < p->end && *p->text >= '0' && *p->text <= '9'; p->text++) {
        n = n * 10 + (uint32_t)(*p->text - '0');
        if (n > MAX_TIMES) {
            refuse(p, "has a repetition of more than 4096 times");
            return 0;
        }
    }
    return n;
}

/* An atom and how often it comes. */
static uint32_t repeated(struct pattern *p)
{
    struct pattern_part part = {.kind = PATTERN_TIMES, .x = atom(p), .max = NO_LIMIT};

    if (p->text == p->end || failed(p) || !strchr("*+?{", *p->text))
        return part.x;
    const char how = *p->text++;

    if (how == '+')
        part.min = 1;
    if (how == '?')
        part.max = 1;
    if (how == '{') {
        part.min = part.max = number(p);
        if (p->text < p->end && *p->text == ',') {
            p->text++;
            part.max = p->text < p->end && *p->text == '}' ? NO_LIMIT : number(p);
        }
        if (p->text == p->end || *p->text != '}' || part.max < part.min)
            refuse(p, "has braces that are no repetition");
        else
            p->text++;
    }
    if (p->text < p->end && *p->text == '?') /* lazy: the same texts */
        p->text++;
    return add_part(p, part);
}

static uint32_t both(struct pattern *p, uint32_t x, uint32_t y)
{
    return add_part(p, (struct pattern_part){.kind = PATTERN_BOTH, .x = x, .y = y});
}

/* Any text, before and after what a pattern without ^ and $ looks for. */
static uint32_t any_text(struct pattern *p)
{
    const uint32_t first = p->n_ranges;

    add_range(p, 0, CHAR_MAX_CODE);
    return add_part(p, (struct pattern_part){.kind = PATTERN_TIMES,
                                             .x = chars_part(p, first),
                                             .max = NO_LIMIT});
}

/* Parts are kept in a row and joined from the right, so that a long row is a long list
 * and no deep tree. */
static uint32_t sequence(struct pattern *p, bool outermost)
{
    uint32_t row[PATTERN_BYTES + 2], n = 0;
    bool ends = !outermost;

    if (outermost && p->text < p->end && *p->text == '^')
        p->text++;
    else if (outermost)
        row[n++] = any_text(p);
    while (p->text < p->end && *p->text != '|' && *p->text != ')' && !failed(p)) {
        if (outermost && *p->text == '$' &&
            (p->text + 1 == p->end || p->text[1] == '|')) {
            p->text++;
            ends = true;
            break;
        }
        row[n++] = repeated(p);
    }
    if (!ends)
        row[n++] = any_text(p);
    if (failed(p))
        return 0;
    uint32_t part =
        n > 0 ? row[n - 1] : add_part(p, (struct pattern_part){.kind = PATTERN_EMPTY});

    for (uint32_t i = n; i-- > 1;)
        part = both(p, row[i - 1], part);
    return part;
}

static uint32_t alternatives(struct pattern *p, bool outermost)
{
    uint32_t part = sequence(p, outermost);

    while (p->text < p->end && *p->text == '|' && !failed(p)) {
        p->text++;
        const uint32_t other = sequence(p, outermost);

        part = add_part(
            p, (struct pattern_part){.kind = PATTERN_EITHER, .x = part, .y = other});
    }
    return part;
}

uint32_t pattern_parse(struct pattern *p, struct build *b, const char *text, size_t len)
{
    *p = (struct pattern){.whole = text, .text = text, .end = text + len, .b = b};
    if (len > PATTERN_BYTES) {
        build_refuse(b, "the pattern has %zu bytes; at most %d are supported", len,
                     PATTERN_BYTES);
        return 0;
    }
    const uint32_t part = alternatives(p, true);

    if (p->text < p->end && !failed(p))
        refuse(p, "has a closing bracket without its fellow");
    return part;
}

void pattern_free(struct pattern *p)
{
    free(p->parts);
    free(p->ranges);
}
