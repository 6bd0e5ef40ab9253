/* SPDX-License-Identifier: MIT
 *
 * mix_search.c - dynamic programming over bytes, one group after the other
 */
#include "harness/decide/choose/mix_search.h"

#include <stdbool.h>
#include <stdlib.h>

/* The best mix of the groups so far whose bytes above the lightest are in a slot. */
struct state {
    double loss; /* < 0: no mix */
    uint64_t bytes;
};

/* How a state was reached. */
struct step {
    uint16_t from; /* slot of the groups before */
    uint8_t type;
};

struct search {
    const struct mix_table *t;
    uint64_t spare; /* bytes above the lightest mix */
    size_t n_slots;
    struct state *now, *next; /* [n_slots] */
    struct step *steps;       /* [n_groups][n_slots] */
};

static const struct mix_option *options_of(const struct mix_table *t, size_t g)
{
    return t->option + g * t->n_types;
}

static uint64_t min_of(const struct mix_table *t, size_t g)
{
    const struct mix_option *o = options_of(t, g);
    uint64_t min = o[0].bytes;

    for (size_t k = 1; k < t->n_types; k++)
        min = o[k].bytes < min ? o[k].bytes : min;
    return min;
}

uint64_t mix_min_bytes(const struct mix_table *t)
{
    uint64_t sum = 0;

    for (size_t g = 0; g < t->n_groups; g++)
        sum += min_of(t, g);
    return sum;
}

static bool is_better(const struct state *a, const struct state *b)
{
    return b->loss < 0 || a->loss < b->loss ||
           (!(a->loss > b->loss) && a->bytes < b->bytes);
}

static void clear(struct state *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (struct state){.loss = -1};
}

/* Every mix so far, with every type of group g. */
static void add_group(struct search *s, size_t g)
{
    const struct mix_option *o = options_of(s->t, g);
    const uint64_t min = min_of(s->t, g);
    struct step *steps = s->steps + g * s->n_slots;
    struct state *done = s->now;

    clear(s->next, s->n_slots);
    for (size_t i = 0; i < s->n_slots; i++) {
        for (size_t k = 0; s->now[i].loss >= 0 && k < s->t->n_types; k++) {
            const struct state to = {.loss = s->now[i].loss + o[k].loss,
                                     .bytes = s->now[i].bytes + (o[k].bytes - min)};
            size_t slot;

            if (to.bytes > s->spare)
                continue;
            slot = (size_t)(to.bytes * s->n_slots / (s->spare + 1));
            if (is_better(&to, &s->next[slot])) {
                s->next[slot] = to;
                steps[slot] = (struct step){.from = (uint16_t)i, .type = (uint8_t)k};
            }
        }
    }
    s->now = s->next;
    s->next = done;
}

static void read_back(const struct search *s, uint8_t *type, struct mix_option *sum)
{
    size_t slot = 0;

    for (size_t i = 1; i < s->n_slots; i++)
        if (s->now[i].loss >= 0 &&
            (s->now[slot].loss < 0 || is_better(&s->now[i], &s->now[slot])))
            slot = i;
    *sum = (struct mix_option){.loss = s->now[slot].loss};
    for (size_t g = s->t->n_groups; g-- > 0;) {
        const struct step *step = &s->steps[g * s->n_slots + slot];

        type[g] = step->type;
        sum->bytes += options_of(s->t, g)[step->type].bytes;
        slot = step->from;
    }
}

enum status mix_search(uint8_t *type, struct mix_option *sum, const struct mix_table *t,
                       uint64_t budget, struct err *err)
{
    const uint64_t min = mix_min_bytes(t);
    struct search s = {.t = t};
    enum status st = ST_OK;

    if (min > budget)
        return err_set(err, ST_CHECK, "the lightest mix has %llu bytes, more than %llu",
                       (unsigned long long)min, (unsigned long long)budget);
    s.spare = budget - min;
    s.n_slots = s.spare < MIX_SEARCH_SLOTS ? (size_t)s.spare + 1 : MIX_SEARCH_SLOTS;
    s.now = calloc(s.n_slots, sizeof *s.now);
    s.next = calloc(s.n_slots, sizeof *s.next);
    s.steps = calloc(t->n_groups * s.n_slots + 1, sizeof *s.steps);
    if (s.now && s.next && s.steps) {
        clear(s.now, s.n_slots);
        s.now[0] = (struct state){.loss = 0};
        for (size_t g = 0; g < t->n_groups; g++)
            add_group(&s, g);
        read_back(&s, type, sum);
    } else {
        st = err_set(err, ST_NO_MEMORY, "no memory to search a mix of %zu groups",
                     t->n_groups);
    }
    free(s.now);
    free(s.next);
    free(s.steps);
    return st;
}
