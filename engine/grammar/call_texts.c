/* SPDX-License-Identifier: MIT
 *
 * call_texts.c - texts before, around and within calls of tools: free ones up to a
 * marker, and those of a form
 *
 * A free text is searched for its marker as it is written, byte by byte (Knuth, Morris
 * and Pratt), so that the marker is found however tokens cut it.
 */
#include "engine/grammar/build.h"

#include <stdlib.h>
#include <string.h>

#define MAX_MARKER 512
#define MAX_BLANKS 8 /* before a call that must come */

/* ---- markers --------------------------------------------------------------------- */

struct marker {
    const char *s;
    size_t n;
    size_t back[MAX_MARKER + 1]; /* where to continue after s[.. i) did not */
};

static bool read_marker(struct automaton *a, struct marker *m, const char *s, size_t n)
{
    size_t k = 0;

    *m = (struct marker){.s = s, .n = n};
    if (n > MAX_MARKER) {
        automaton_fail(a, ST_INPUT, "a marker of a tool's call has more than %d bytes",
                       MAX_MARKER);
        return false;
    }
    for (size_t i = 1; i < n; i++) {
        while (k && s[i] != s[k])
            k = m->back[k];
        k += s[i] == s[k];
        m->back[i + 1] = k;
    }
    return true;
}

/* How much of the marker a text ends with, where it ended with i bytes before. */
static size_t next_of(const struct marker *m, size_t i, char ch)
{
    if (!m->n)
        return 0;
    while (i && (i == m->n || m->s[i] != ch))
        i = m->back[i];
    return i + (m->s[i] == ch);
}

/* Bytes 0 .. 255 and where each leads. */
static uint32_t all_bytes(struct automaton *a, const uint32_t *to)
{
    struct edge edges[256];
    uint32_t n = 0;

    for (int byte = 0; byte < 256; byte++) {
        if (to[byte] == NODE_DEAD)
            continue;
        if (n && edges[n - 1].to == to[byte] && edges[n - 1].hi + 1 == byte)
            edges[n - 1].hi = (uint8_t)byte;
        else
            edges[n++] = (struct edge){(uint8_t)byte, (uint8_t)byte, to[byte]};
    }
    return n ? build_bytes(a, edges, n) : NODE_DEAD;
}

/* A free text up to one of two markers, with a node for each pair of beginnings that it
 * may end with: no more than both have bytes, as the longer one decides the other. */
struct free_text {
    const struct marker *marker[2]; /* an empty one is nowhere */
    uint32_t to[2];                 /* behind each */
    bool ends;                      /* it may end anywhere */
    struct free_state {
        size_t n[2]; /* bytes of each marker */
        uint32_t node;
    } states[2 * MAX_MARKER]; /* [n_states] */
    size_t n_states;
};

/* Where it ends with i bytes of one marker and j of the other. */
static uint32_t free_at(struct automaton *a, struct free_text *t, size_t i, size_t j)
{
    size_t k = 0;

    while (k < t->n_states && (t->states[k].n[0] != i || t->states[k].n[1] != j))
        k++;
    if (k == t->n_states)
        t->states[t->n_states++] = (struct free_state){{i, j}, build_open(a, 2)};
    return t->states[k].node;
}

/* Behind a byte. */
static uint32_t free_after(struct automaton *a, struct free_text *t,
                           const struct free_state *s, char ch)
{
    size_t n[2];

    for (int m = 0; m < 2; m++) {
        n[m] = next_of(t->marker[m], s->n[m], ch);
        if (n[m] && n[m] == t->marker[m]->n)
            return t->to[m];
    }
    return free_at(a, t, n[0], n[1]);
}

/* Where it begins. */
static uint32_t build_free_text(struct automaton *a, struct free_text *t)
{
    const uint32_t start = free_at(a, t, 0, 0);

    for (size_t k = 0; k < t->n_states && !a->st; k++) {
        uint32_t next[256];

        for (int byte = 0; byte < 256; byte++)
            next[byte] = free_after(a, t, &t->states[k], (char)byte);
        build_close(a, t->states[k].node, 0, all_bytes(a, next));
        if (t->ends)
            build_close(a, t->states[k].node, 1, NODE_POP);
    }
    return start;
}

/* ---- UTF-8 up to a marker -------------------------------------------------------- */

/* Which bytes may follow in a character, and how many still do: Unicode, table 3-7. */
static const struct {
    uint8_t lo, hi, next;
} continues[] = {
    {0, 0, 0},       {0x80, 0xbf, 0}, {0x80, 0xbf, 1}, {0x80, 0xbf, 2},
    {0xa0, 0xbf, 1}, {0x80, 0x9f, 1}, {0x90, 0xbf, 2}, {0x80, 0x8f, 2},
};
enum { N_INSIDE = 8, NO_BYTE = 255 };

/* Where in a character the text is after a byte. */
static uint8_t inside_after(uint8_t inside, uint8_t byte)
{
    if (inside)
        return byte >= continues[inside].lo && byte <= continues[inside].hi
                   ? continues[inside].next
                   : NO_BYTE;
    if (byte < 0x80)
        return byte >= 0x20 || byte == '\n' || byte == '\t' ? 0 : NO_BYTE;
    return byte < 0xc2    ? NO_BYTE
           : byte < 0xe0  ? 1
           : byte == 0xe0 ? 4
           : byte == 0xed ? 5
           : byte < 0xf0  ? 2
           : byte == 0xf0 ? 6
           : byte < 0xf4  ? 3
           : byte == 0xf4 ? 7
                          : NO_BYTE;
}

uint32_t build_raw_until(struct automaton *a, const char *close, uint32_t to)
{
    struct marker m;
    uint32_t *at, start;

    if (!read_marker(a, &m, close, strlen(close)))
        return NODE_DEAD;
    at = malloc(m.n * N_INSIDE * sizeof *at);
    if (!at) {
        automaton_fail(a, ST_NO_MEMORY, "cannot allocate a marker of %zu bytes", m.n);
        return NODE_DEAD;
    }
    for (size_t i = 0; i < m.n * N_INSIDE; i++)
        at[i] = build_open(a, 1);
    for (size_t i = 0; i < m.n * N_INSIDE && !a->st; i++) {
        uint32_t next[256];

        for (int byte = 0; byte < 256; byte++) {
            const size_t k = next_of(&m, i / N_INSIDE, (char)byte);
            const uint8_t in = inside_after(i % N_INSIDE, (uint8_t)byte);
            /* a control token has no UTF-8, but closes what is whole */
            const bool marks =
                k > 0 && (uint8_t)byte == (uint8_t)CALL_CONTROL && i % N_INSIDE == 0;

            next[byte] = k == m.n && (in == 0 || marks) ? to
                         : k == m.n                     ? NODE_DEAD
                         : in != NO_BYTE                ? at[k * N_INSIDE + in]
                         : marks                        ? at[k * N_INSIDE]
                                                        : NODE_DEAD;
        }
        build_close(a, at[i], 0, all_bytes(a, next));
    }
    start = at[0];
    free(at);
    return a->st ? NODE_DEAD : start;
}

/* ---- texts of a form ------------------------------------------------------------- */

static const struct char_range digits[] = {{'0', '9'}};
static const struct char_range letters[] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};

static uint32_t one_of(struct automaton *a, const struct char_range *ranges, uint32_t n,
                       uint32_t to)
{
    struct edge edges[3];

    for (uint32_t i = 0; i < n; i++)
        edges[i] = (struct edge){(uint8_t)ranges[i].lo, (uint8_t)ranges[i].hi, to};
    return build_bytes(a, edges, n);
}

uint32_t build_form_text(struct automaton *a, const char *text, uint32_t to)
{
    for (size_t i = strlen(text); i-- > 0 && to != NODE_DEAD;) {
        if (text[i] == CALL_HOLE_ID) {
            for (int k = 0; k < CALL_ID_CHARS; k++)
                to = one_of(a, letters, 3, to);
        } else if (text[i] == CALL_HOLE_NUMBER) {
            const uint32_t end = to;

            to = one_of(a, digits, 1, end);
            to = one_of(a, digits, 1, build_either(a, to, end));
            to = one_of(a, digits, 1, build_either(a, to, end));
        } else {
            to = build_text(a, text + i, 1, to);
        }
    }
    return a->st ? NODE_DEAD : to;
}

/* ---- what comes before calls ----------------------------------------------------- */

static bool is_blank(int byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

struct start {
    struct automaton *a;
    const struct call_start *s;
    struct marker trigger, begin, end, next, none;
    struct free_text free, thoughts;
    uint32_t text; /* where the free one begins */
};

/* A text from its beginning on: blanks, then thoughts (NODE_DEAD: none), a call, or
 * what is neither. */
static uint32_t text_start(struct start *x, uint32_t thoughts)
{
    const size_t n = thoughts == NODE_DEAD ? 1 : x->begin.n;
    const char *begin = x->begin.s;
    uint32_t at[MAX_MARKER] = {NODE_DEAD};
    size_t k = 0; /* bytes of the trigger that begin[.. i) ends with */

    for (size_t i = 0; i < n; i++)
        at[i] = build_open(x->a, 2);
    for (size_t i = 0; i < n && !x->a->st; i++) {
        uint32_t next[256];

        for (int byte = 0; byte < 256; byte++) {
            const size_t j = next_of(&x->trigger, k, (char)byte);

            if (thoughts != NODE_DEAD && (char)byte == begin[i])
                next[byte] = i + 1 < n ? at[i + 1] : thoughts;
            else if (i == 0 && is_blank(byte))
                next[byte] = at[0];
            else if (!x->s->anywhere && i == 0 && (char)byte == *x->s->trigger)
                next[byte] = x->s->calls;
            else
                next[byte] = j && j == x->trigger.n ? x->s->calls
                                                    : free_at(x->a, &x->free, j, 0);
        }
        build_close(x->a, at[i], 0, all_bytes(x->a, next));
        build_close(x->a, at[i], 1, NODE_POP);
        if (thoughts != NODE_DEAD)
            k = next_of(&x->trigger, k, begin[i]);
    }
    return at[0];
}

/* Calls, the value or a marked text, and nothing else, behind a few blanks; ends: or
 * nothing. */
static uint32_t calls_start(struct start *x, bool ends)
{
    static const struct edge blanks[] = {{'\t', '\r', NODE_POP}, {' ', ' ', NODE_POP}};
    const struct call_start *s = x->s;
    uint32_t to = s->value;

    if (s->answer)
        to = build_form_text(x->a, s->answer, s->text ? x->text : s->value);
    if (s->answer && s->preamble && s->text)
        to = build_either(x->a, to, build_form_text(x->a, s->preamble, x->text));
    to = build_either(x->a, s->heads, to);
    if (ends)
        to = build_either(x->a, to, NODE_POP);
    return build_repeat(x->a, build_bytes(x->a, blanks, 2), 0, MAX_BLANKS, to);
}

/* The free text up to a call, or up to where the answer begins again. */
static void build_text_of(struct start *x)
{
    const struct call_start *s = x->s;
    const bool again = s->answer && s->next;
    const uint32_t next = again ? build_open(x->a, 1) : NODE_DEAD;

    x->free = (struct free_text){
        .marker = {&x->trigger, again ? &x->next : &x->none},
        .to = {s->calls,
               again ? build_form_text(x->a, s->next + s->n_next, next) : NODE_DEAD},
        .ends = true};
    x->text = build_free_text(x->a, &x->free);
    if (again)
        build_close(x->a, next, 0, calls_start(x, true));
}

static uint32_t build_start(struct start *x)
{
    const struct call_start *s = x->s;
    struct automaton *a = x->a;
    uint32_t inside, behind, start;

    if (!read_marker(a, &x->trigger, s->trigger, s->anywhere ? s->n_trigger : 0) ||
        !read_marker(a, &x->next, s->next, s->next ? s->n_next : 0))
        return NODE_DEAD;
    if (s->think_end &&
        (!read_marker(a, &x->begin, s->think_begin, strlen(s->think_begin)) ||
         !read_marker(a, &x->end, s->think_end, strlen(s->think_end))))
        return NODE_DEAD;
    if (s->text)
        build_text_of(x);
    behind = s->text && !s->answer ? text_start(x, NODE_DEAD) : calls_start(x, false);
    if (!s->think_end || !x->end.n || !x->begin.n)
        return behind;
    x->thoughts = (struct free_text){
        .marker = {&x->end, &x->none}, .to = {behind}, .ends = s->text};
    inside = build_free_text(a, &x->thoughts);
    if (s->thinks)
        return inside;
    if (s->text && !s->answer)
        return text_start(x, inside);
    start = build_text(a, s->think_begin, x->begin.n, inside);
    return build_either(a, start, behind);
}

uint32_t build_call_start(struct automaton *a, const struct call_start *s)
{
    struct start *x = calloc(1, sizeof *x);
    uint32_t start;

    if (!x) {
        automaton_fail(a, ST_NO_MEMORY, "cannot allocate the markers of calls");
        return NODE_DEAD;
    }
    x->a = a;
    x->s = s;
    start = build_start(x);
    free(x);
    return a->st ? NODE_DEAD : start;
}
