/* SPDX-License-Identifier: MIT
 *
 * pattern_dfa.c - a regular expression as a deterministic automaton of JSON strings
 *
 * The parts become an automaton of their own over the bytes of a JSON string, whose end
 * is NODE_POP. Sets of its nodes are the states of the deterministic one (the subset
 * construction), with limits on states and on the work of all patterns of a schema.
 * Where a text must match two expressions, both are in that automaton, each with its
 * own end; a set has nodes of both then, or no text goes on from it. Where the number
 * of characters is limited and the expression does not see to that by itself, states
 * are counted once more for each number of characters.
 */
#include "engine/grammar/pattern.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NODES  16384                /* of the automaton of one expression */
#define MAX_STATES 4096                 /* of the deterministic one */
#define MAX_COUNTS 65536                /* states times numbers of characters */
#define MAX_WORK   ((uint64_t)16 << 20) /* edges looked at for one schema */
#define NO_STATE   0                    /* the empty set */

/* ---- the expression's automaton -------------------------------------------------- */

static uint32_t build_part(const struct pattern *p, struct automaton *a, uint32_t i,
                           uint32_t to)
{
    const struct pattern_part *part = &p->parts[i];
    uint32_t node = to, before = NODE_DEAD;

    if (++p->b->pattern_work > MAX_WORK)
        automaton_fail(a, ST_INPUT, "too much work");
    switch (a->st ? PATTERN_EMPTY : part->kind) {
    case PATTERN_EMPTY:
        break;
    case PATTERN_CHARS:
        return build_chars(a, p->ranges + part->x, part->y, to);
    case PATTERN_BOTH:
        return build_part(p, a, part->x, build_part(p, a, part->y, to));
    case PATTERN_EITHER:
        return build_either(a, build_part(p, a, part->x, to),
                            build_part(p, a, part->y, to));
    case PATTERN_TIMES:
        if (part->max == NO_LIMIT) {
            node = build_open(a, 2);
            build_close(a, node, 0, build_part(p, a, part->x, node));
            build_close(a, node, 1, to);
        } else {
            for (uint32_t k = part->min; k < part->max && !a->st && node != before;
                 k++) {
                before = node;
                node = build_part(p, a, part->x, node);
                if (node != before)
                    node = build_either(a, node, to);
            }
        }
        /* What is empty stays so, however often. */
        before = NODE_DEAD;
        for (uint32_t k = 0; k < part->min && !a->st && node != before; k++) {
            before = node;
            node = build_part(p, a, part->x, node);
        }
        break;
    }
    return node;
}

/* ---- sets of nodes --------------------------------------------------------------- */

struct state {
    uint32_t set, n; /* nodes with bytes: sets[set] .. [set + n] */
    bool ends;
    uint8_t inside; /* 0 between two characters, else in one: see after_byte() */
};

struct dfa {
    struct automaton a; /* of the expression */
    struct build *b;
    struct state *states; /* [MAX_STATES]; 0 is the empty set */
    uint32_t *next;       /* [MAX_STATES][n_classes] */
    uint32_t n_states;
    uint32_t *sets, n_sets, cap_sets;
    uint32_t *table; /* [2 * MAX_STATES] by hash; 0: free */
    uint32_t *seen, mark;
    uint32_t *stack, n_stack;
    uint32_t start;
    uint32_t second; /* the end of a second expression, before all its nodes; 0: none */
};

static void too_complex(struct dfa *d)
{
    build_refuse(d->b,
                 "the pattern is too complex: it needs more than %d states, or all "
                 "patterns together too much work",
                 MAX_STATES);
}

static void visit(struct dfa *d, uint32_t node)
{
    if (d->seen[node] == d->mark)
        return;
    d->seen[node] = d->mark;
    d->stack[d->n_stack++] = node;
}

static int compare_nodes(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return (a > b) - (a < b);
}

/* Room for a set of all nodes. */
static bool room(struct dfa *d)
{
    const uint32_t want = d->n_sets + d->a.n_nodes;

    if (want <= d->cap_sets)
        return true;
    uint32_t *sets = realloc(d->sets, (size_t)want * 2 * sizeof *sets);

    if (!sets) {
        automaton_fail(d->b->a, ST_NO_MEMORY, "cannot allocate a pattern's states");
        return false;
    }
    d->sets = sets;
    d->cap_sets = want * 2;
    return true;
}

/* The state of the nodes on the stack and of all that they lead to without a byte. */
static uint32_t close_set(struct dfa *d, uint8_t inside)
{
    struct state s = {.set = d->n_sets, .inside = inside};
    bool goes_on[2] = {false, !d->second}, ends[2] = {false, !d->second};
    uint32_t hash = 0, at;

    if (!room(d))
        return NO_STATE;
    while (d->n_stack > 0) {
        const uint32_t id = d->stack[--d->n_stack];
        const struct node *node = &d->a.nodes[id];

        if (id == NODE_POP || (d->second && id == d->second))
            ends[id != NODE_POP] = true;
        if (node->kind == NODE_BYTES && node->n > 0) {
            d->sets[s.set + s.n++] = id;
            goes_on[d->second && id > d->second] = true;
        }
        for (uint32_t k = 0; node->kind == NODE_SPLIT && k < node->n; k++)
            visit(d, d->a.edges[node->at + k].to);
    }
    d->mark++;
    d->b->pattern_work += s.n;
    s.ends = ends[0] && ends[1];
    if (!s.ends && !(goes_on[0] && goes_on[1]))
        return NO_STATE;
    if (s.n > 0)
        qsort(d->sets + s.set, s.n, sizeof *d->sets, compare_nodes);
    for (uint32_t i = 0; i < s.n; i++)
        hash = (hash ^ d->sets[s.set + i]) * 0x9e3779b1u;
    hash ^= hash >> 15;
    for (at = (hash + s.ends) % (2 * MAX_STATES); d->table[at] != 0;
         at = (at + 1) % (2 * MAX_STATES)) {
        const struct state *o = &d->states[d->table[at]];

        if (o->n == s.n && o->ends == s.ends &&
            !memcmp(d->sets + o->set, d->sets + s.set, s.n * sizeof *d->sets))
            return d->table[at];
    }
    if (d->n_states == MAX_STATES) {
        too_complex(d);
        return NO_STATE;
    }
    d->n_sets += s.n;
    d->table[at] = d->n_states;
    d->states[d->n_states] = s;
    return d->n_states++;
}

/* How far a byte leads into a character: bytes of UTF-8 that are missing, 4 more after
 * a backslash, 8 more in the digits of \uXXXX. */
static uint8_t after_byte(uint8_t inside, uint8_t byte)
{
    if (inside == 0)
        return byte == '\\'  ? 4
               : byte < 0x80 ? 0
               : byte < 0xe0 ? 1
               : byte < 0xf0 ? 2
                             : 3;
    if (inside == 4)
        return byte == 'u' ? 12 : 0;
    return inside == 9 ? 0 : (uint8_t)(inside - 1);
}

static void find_states(struct dfa *d)
{
    const struct automaton *a = &d->a;
    const size_t n_classes = (size_t)a->n_classes;

    for (uint32_t i = 1; i < d->n_states && !d->b->a->st; i++) {
        for (size_t c = 0; c < n_classes && !d->b->a->st; c++) {
            const uint8_t byte = a->byte_of[c];

            for (uint32_t k = 0; k < d->states[i].n; k++) {
                const struct node *node = &a->nodes[d->sets[d->states[i].set + k]];

                d->b->pattern_work += node->n;
                for (uint32_t e = node->at; e < node->at + node->n; e++) {
                    if (byte >= a->edges[e].lo && byte <= a->edges[e].hi)
                        visit(d, a->edges[e].to);
                }
            }
            d->next[i * n_classes + c] =
                close_set(d, after_byte(d->states[i].inside, byte));
            if (d->b->pattern_work > MAX_WORK)
                too_complex(d);
        }
    }
}

/* ---- numbers of characters ------------------------------------------------------- */

/* Characters of the shortest text: states by their distance, those between the same two
 * characters at once. now and later are stacks of all states. */
static uint32_t find_shortest(const struct dfa *d, uint32_t *now, uint32_t *later,
                              bool *done)
{
    const size_t n_classes = (size_t)d->a.n_classes;
    uint32_t n_now = 1, n_later = 0, distance = 0;

    now[0] = d->start;
    for (; n_now > 0; distance++) {
        while (n_now > 0) {
            const uint32_t i = now[--n_now];

            if (i == NO_STATE || done[i])
                continue;
            done[i] = true;
            if (d->states[i].ends)
                return distance;
            for (size_t c = 0; c < n_classes; c++) {
                const uint32_t to = d->next[i * n_classes + c];

                if (d->states[to].inside == 0)
                    later[n_later++] = to;
                else
                    now[n_now++] = to;
            }
        }
        uint32_t *swap = now;

        now = later;
        later = swap;
        n_now = n_later;
        n_later = 0;
    }
    return 0;
}

/* Characters of the longest text, NO_LIMIT where there is a circle: states are taken
 * once all that come before them are. */
static uint32_t find_longest(const struct dfa *d, uint32_t *work, uint32_t *before,
                             uint32_t *length)
{
    const size_t n_classes = (size_t)d->a.n_classes;
    uint32_t n_work = 0, n_taken = 0, longest = 0;

    for (size_t i = n_classes; i < d->n_states * n_classes; i++)
        before[d->next[i]]++;
    for (uint32_t i = 1; i < d->n_states; i++) {
        if (before[i] == 0)
            work[n_work++] = i;
    }
    while (n_work > 0) {
        const uint32_t i = work[--n_work];

        n_taken++;
        if (length[i] > longest)
            longest = length[i];
        for (size_t c = 0; c < n_classes; c++) {
            const uint32_t to = d->next[i * n_classes + c];
            const uint32_t n = length[i] + (d->states[to].inside == 0);

            if (to == NO_STATE)
                continue;
            if (n > length[to])
                length[to] = n;
            if (--before[to] == 0)
                work[n_work++] = to;
        }
    }
    return n_taken == d->n_states - 1 ? longest : NO_LIMIT;
}

static void find_lengths(const struct dfa *d, uint32_t *shortest, uint32_t *longest)
{
    const size_t n_edges = d->n_states * (size_t)d->a.n_classes + 1;
    uint32_t *x = calloc(n_edges, sizeof *x), *y = calloc(n_edges, sizeof *y);
    uint32_t *length = calloc(d->n_states, sizeof *length);
    bool *done = calloc(d->n_states, sizeof *done);

    if (x && y && length && done) {
        *shortest = find_shortest(d, x, y, done);
        memset(x, 0, n_edges * sizeof *x);
        memset(y, 0, n_edges * sizeof *y);
        *longest = find_longest(d, x, y, length);
    } else {
        automaton_fail(d->b->a, ST_NO_MEMORY, "cannot allocate a pattern's lengths");
    }
    free(x);
    free(y);
    free(length);
    free(done);
}

/* ---- into the schema's automaton ------------------------------------------------- */

/* Bytes of a state, where `open` are the nodes of the states that come next. */
static uint32_t put_state(struct dfa *d, struct automaton *to, uint32_t i,
                          const uint32_t *open, uint32_t n_counts, uint32_t count,
                          uint32_t min, uint32_t max)
{
    const size_t n_classes = (size_t)d->a.n_classes;
    struct edge edges[256];
    uint32_t n = 0;

    for (int byte = 0; byte < 256; byte++) {
        const uint32_t next = d->next[i * n_classes + d->a.class_of[byte]];
        uint32_t c = count, target;

        if (next == NO_STATE)
            continue;
        if ((min > 0 || max != NO_LIMIT) && d->states[next].inside == 0) {
            c = count + 1;
            if (c > max)
                continue;
            if (max == NO_LIMIT && c > min)
                c = min;
        }
        target = open[next * n_counts + c];
        if (n > 0 && edges[n - 1].to == target && edges[n - 1].hi + 1 == byte)
            edges[n - 1].hi = (uint8_t)byte;
        else
            edges[n++] = (struct edge){(uint8_t)byte, (uint8_t)byte, target};
    }
    return n ? build_bytes(to, edges, n) : NODE_DEAD;
}

/* The rest of a string from the first state on, with its closing quote. */
static uint32_t put_states(struct dfa *d, uint32_t min, uint32_t max)
{
    struct automaton *a = d->b->a;
    const bool counts = min > 0 || max != NO_LIMIT;
    const uint64_t n_counts = !counts ? 1 : (max != NO_LIMIT ? max : min) + (uint64_t)1;
    const char *close = a->raw ? a->raw : "\"";
    const uint32_t quote = build_text(a, close, strlen(close), NODE_POP);
    uint32_t *open, start = NODE_DEAD;

    if (n_counts * d->n_states > MAX_COUNTS) {
        build_refuse(d->b,
                     "the pattern is too complex together with minLength or maxLength: "
                     "%u states for each number of characters",
                     d->n_states);
        return NODE_DEAD;
    }
    open = calloc((size_t)n_counts * d->n_states, sizeof *open);
    if (!open) {
        automaton_fail(a, ST_NO_MEMORY, "cannot allocate a pattern's states");
        return NODE_DEAD;
    }
    for (uint64_t i = n_counts; i < n_counts * d->n_states && !a->st; i++)
        open[i] = build_open(a, 2);
    for (uint32_t i = 1; i < d->n_states; i++) {
        for (uint32_t c = 0; c < n_counts && !a->st; c++) {
            const uint32_t node = open[i * n_counts + c];

            build_close(a, node, 0,
                        put_state(d, a, i, open, (uint32_t)n_counts, c, min, max));
            if (d->states[i].ends && (!counts || c >= min))
                build_close(a, node, 1, quote);
        }
    }
    if (d->start != NO_STATE)
        start = open[d->start * n_counts];
    free(open);
    return start;
}

static bool init(struct dfa *d, struct build *b)
{
    struct automaton *a = &d->a;
    const size_t n = a->n_nodes;

    d->b = b;
    d->n_states = 1;
    d->mark = 1;
    d->states = calloc(MAX_STATES, sizeof *d->states);
    d->next = calloc((size_t)MAX_STATES * (size_t)a->n_classes, sizeof *d->next);
    d->table = calloc((size_t)2 * MAX_STATES, sizeof *d->table);
    d->seen = calloc(n, sizeof *d->seen);
    d->stack = calloc(n, sizeof *d->stack);
    if (d->states && d->next && d->table && d->seen && d->stack)
        return true;
    automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate a pattern's states");
    return false;
}

struct parsed {
    struct pattern p;
    uint32_t first;
};

/* The rule of one or two patterns: the rest of the string after its opening quote. */
static uint32_t pattern_rule(struct build *b, const struct parsed *x,
                             const struct parsed *y, uint32_t min, uint32_t max)
{
    struct err err = ERR_INIT;
    struct dfa d = {.b = b};
    uint32_t shortest = 0, longest = NO_LIMIT, rule = NO_RULE, other = NODE_DEAD;

    automaton_init(&d.a, &err);
    d.a.raw = b->a->raw;
    d.a.max_nodes = MAX_NODES;
    uint32_t start = build_part(&x->p, &d.a, x->first, NODE_POP);

    if (y) {
        d.second = build_bytes(&d.a, NULL, 0);
        other = build_part(&y->p, &d.a, y->first, d.second);
    }
    if (d.a.st == ST_INPUT)
        too_complex(&d);
    else if (d.a.st || automaton_finish(&d.a, start))
        automaton_fail(b->a, d.a.st, "%s", err.msg);
    else if (init(&d, b)) {
        visit(&d, start);
        visit(&d, other);
        d.start = close_set(&d, 0);
        find_states(&d);
    }
    if (!b->a->st && (min > 0 || max != NO_LIMIT))
        find_lengths(&d, &shortest, &longest);
    if (!b->a->st) {
        rule = build_rule(b->a);
        start =
            put_states(&d, min <= shortest ? 0 : min, max >= longest ? NO_LIMIT : max);
        if (!b->a->st)
            b->a->rules[rule].start = start;
    }
    automaton_free(&d.a);
    free(d.states);
    free(d.next);
    free(d.sets);
    free(d.table);
    free(d.seen);
    free(d.stack);
    return rule;
}

static uint32_t parse_and_build(struct build *b, const char *text, size_t len,
                                const char *also, uint32_t min, uint32_t max)
{
    struct parsed x, y = {.first = 0};
    uint32_t rule = NO_RULE;

    x.first = pattern_parse(&x.p, b, text, len);
    if (also)
        y.first = pattern_parse(&y.p, b, also, strlen(also));
    if (!b->a->st)
        rule = pattern_rule(b, &x, also ? &y : NULL, min, max);
    pattern_free(&x.p);
    pattern_free(&y.p);
    return rule;
}

static uint32_t call_pattern(struct automaton *a, uint32_t rule, uint32_t to)
{
    const uint32_t call = build_call(a, rule, 0, to);

    return a->raw ? call : build_text(a, "\"", 1, call);
}

uint32_t build_pattern(struct build *b, const char *text, size_t len, const char *also,
                       uint32_t min, uint32_t max, uint32_t to)
{
    for (size_t i = 0; i < b->n_patterns; i++) {
        const struct known_pattern *k = &b->patterns[i];

        if (k->len == len && k->also == also && k->min == min && k->max == max &&
            k->raw == b->a->raw && !memcmp(k->text, text, len))
            return call_pattern(b->a, k->rule, to);
    }
    const uint32_t rule = parse_and_build(b, text, len, also, min, max);

    if (b->a->st)
        return NODE_DEAD;
    struct known_pattern *more =
        realloc(b->patterns, (b->n_patterns + 1) * sizeof *more);

    if (!more) {
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate a pattern");
        return NODE_DEAD;
    }
    b->patterns = more;
    b->patterns[b->n_patterns++] = (struct known_pattern){.text = text,
                                                          .len = len,
                                                          .also = also,
                                                          .min = min,
                                                          .max = max,
                                                          .rule = rule,
                                                          .raw = b->a->raw};
    return call_pattern(b->a, rule, to);
}
