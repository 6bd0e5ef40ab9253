/* SPDX-License-Identifier: MIT
 *
 * chars.c - sets of Unicode characters as bytes of UTF-8, and as JSON escapes them
 */
#include "engine/grammar/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct edge_list {
    struct edge *v;
    uint32_t n, cap;
};

static void add(struct automaton *a, struct edge_list *list, uint8_t lo, uint8_t hi,
                uint32_t to)
{
    if (a->st)
        return;
    if (list->n == list->cap) {
        const uint32_t cap = list->cap ? list->cap * 2 : 32;
        struct edge *v = realloc(list->v, cap * sizeof *v);

        if (!v) {
            automaton_fail(a, ST_NO_MEMORY, "cannot allocate %u edges", cap);
            return;
        }
        list->v = v;
        list->cap = cap;
    }
    list->v[list->n++] = (struct edge){lo, hi, to};
}

static bool all(const uint8_t *bytes, int n, uint8_t value)
{
    for (int i = 0; i < n; i++) {
        if (bytes[i] != value)
            return false;
    }
    return true;
}

/* Byte strings between lo[n] and hi[n], whose bytes after the first are low .. high. */
static void add_between(struct automaton *a, struct edge_list *list, const uint8_t *lo,
                        const uint8_t *hi, int n, const uint8_t *low,
                        const uint8_t *high, uint32_t to)
{
    struct edge_list rest = {0};
    uint8_t first = lo[0], last = hi[0];

    if (n == 1) {
        add(a, list, first, last, to);
        return;
    }
    if (first == last) {
        add_between(a, &rest, lo + 1, hi + 1, n - 1, low, high, to);
        add(a, list, first, first, build_bytes(a, rest.v, rest.n));
        free(rest.v);
        return;
    }
    if (!all(lo + 1, n - 1, *low)) {
        add_between(a, &rest, lo + 1, high, n - 1, low, high, to);
        add(a, list, first, first, build_bytes(a, rest.v, rest.n));
        rest.n = 0;
        first++;
    }
    if (!all(hi + 1, n - 1, *high)) {
        add_between(a, &rest, low, hi + 1, n - 1, low, high, to);
        add(a, list, last, last, build_bytes(a, rest.v, rest.n));
        rest.n = 0;
        last--;
    }
    if (first <= last) {
        add_between(a, &rest, low, high, n - 1, low, high, to);
        add(a, list, first, last, build_bytes(a, rest.v, rest.n));
    }
    free(rest.v);
}

static int encode(uint32_t c, uint8_t *out)
{
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (int i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(lead[n] | c);
    return n;
}

/* What stands for itself, by the length of its UTF-8. */
static const struct char_range plain[] = {
    {0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x7f},    {0x80, 0x7ff},
    {0x800, 0xd7ff}, {0xe000, 0xffff},    {0x10000, 0x10ffff},
};

static void add_plain(struct automaton *a, struct edge_list *list, struct char_range r,
                      uint32_t to)
{
    static const uint8_t low[] = {0x80, 0x80, 0x80}, high[] = {0xbf, 0xbf, 0xbf};

    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const uint32_t from = r.lo > plain[i].lo ? r.lo : plain[i].lo;
        const uint32_t last = r.hi < plain[i].hi ? r.hi : plain[i].hi;
        uint8_t lo[4], hi[4];

        if (from > last)
            continue;
        const int n = encode(from, lo);

        encode(last, hi);
        add_between(a, list, lo, hi, n, low, high, to);
    }
}

/* What follows the backslash of c, which needs one. */
static uint32_t escape(struct automaton *a, uint32_t c, uint32_t to)
{
    static const char named[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";
    const char *at = strchr(named, (int)c);
    char hex[8];

    if (at)
        return build_text(a, &names[at - named], 1, to);
    snprintf(hex, sizeof hex, "u%04x", c);
    return build_text(a, hex, 5, to);
}

static bool holds(const struct char_range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++) {
        if (c >= ranges[i].lo && c <= ranges[i].hi)
            return true;
    }
    return false;
}

/* Characters as they are, without the one that may end a text. */
static uint32_t raw_chars(struct automaton *a, const struct char_range *ranges,
                          size_t n, uint32_t to)
{
    static const char more[] = "\t\n\"\\";
    const uint8_t closing = (uint8_t)*a->raw;
    struct edge_list list = {0};
    uint32_t n_edges;

    for (size_t i = 0; i < n && !a->st; i++)
        add_plain(a, &list, ranges[i], to);
    for (const char *c = more; *c && !a->st; c++)
        if (holds(ranges, n, (uint32_t)*c))
            add(a, &list, (uint8_t)*c, (uint8_t)*c, to);
    n_edges = list.n;
    for (uint32_t i = 0; i < n_edges && !a->st; i++) {
        const struct edge e = list.v[i];

        if (closing < e.lo || closing > e.hi)
            continue;
        if (closing < e.hi)
            add(a, &list, (uint8_t)(closing + 1), e.hi, e.to);
        list.v[i].hi = (uint8_t)(closing - 1);
        if (e.lo == closing) /* nothing is left of it */
            list.v[i] = list.v[--list.n];
        break;
    }
    const uint32_t node = list.n ? build_bytes(a, list.v, list.n) : NODE_DEAD;

    free(list.v);
    return node;
}

uint32_t build_chars(struct automaton *a, const struct char_range *ranges, size_t n,
                     uint32_t to)
{
    struct edge_list list = {0};
    uint32_t escapes[33], n_escapes = 0;

    if (a->raw)
        return raw_chars(a, ranges, n, to);
    for (size_t i = 0; i < n && !a->st; i++)
        add_plain(a, &list, ranges[i], to);
    for (uint32_t c = 1; c <= '\\' && !a->st; c++) {
        if ((c < 0x20 || c == '"' || c == '\\') && holds(ranges, n, c))
            escapes[n_escapes++] = escape(a, c, to);
    }
    if (n_escapes)
        add(a, &list, '\\', '\\', build_split(a, escapes, n_escapes));
    const uint32_t node = list.n ? build_bytes(a, list.v, list.n) : NODE_DEAD;

    free(list.v);
    return node;
}
