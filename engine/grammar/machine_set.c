/* SPDX-License-Identifier: MIT
 *
 * machine_set.c - frames, positions, and the sets of configurations that they are
 *
 * A set follows all nodes that need no byte. Ends of rules come from frames made at
 * earlier places, since no rule is empty. Calls are held back until all others of the
 * same rule at this place are known: rules with a higher rank first, because only they
 * can call those below.
 */
#include "engine/grammar/machine.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CONFIGS   4096 /* of a position; ways beyond are not followed */
#define MAX_POSITIONS ((uint32_t)1 << 19)
#define SEEN_SLOTS    1024 /* to begin with */

bool machine_grow(struct machine *m, void **array, uint32_t n, uint32_t more,
                  uint32_t *cap, size_t size)
{
    if (m->failed)
        return false;
    if (n + more <= *cap)
        return true;
    uint32_t want = *cap ? *cap * 2 : 256;

    while (want < n + more)
        want *= 2;
    void *p = realloc(*array, want * size);

    if (!p) {
        m->failed = true;
        return false;
    }
    *array = p;
    *cap = want;
    return true;
}

static uint32_t mix(uint32_t hash, uint32_t x)
{
    uint64_t z = ((uint64_t)hash << 32 | x) * 0x9e3779b97f4a7c15u;

    return (uint32_t)(z >> 32) ^ (uint32_t)z;
}

/* ---- tables of numbers ----------------------------------------------------------- */

void number_table_free(struct number_table *t)
{
    free(t->slots);
    *t = (struct number_table){0};
}

/* Room for another; hash_of gives the hash of what a number stands for. */
static bool table_room(struct machine *m, struct number_table *t,
                       uint32_t (*hash_of)(const struct machine *m, uint32_t number))
{
    if (m->failed)
        return false;
    if (t->n * 2 < t->n_slots)
        return true;
    const uint32_t n_slots = t->n_slots ? t->n_slots * 2 : 1024;
    uint32_t *slots = calloc(n_slots, sizeof *slots);

    if (!slots) {
        m->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < t->n_slots; i++) {
        if (t->slots[i] != 0) {
            uint32_t at = hash_of(m, t->slots[i]) & (n_slots - 1);

            while (slots[at] != 0)
                at = (at + 1) & (n_slots - 1);
            slots[at] = t->slots[i];
        }
    }
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    return true;
}

/* ---- frames ---------------------------------------------------------------------- */

static uint32_t frame_hash(const struct machine *m, uint32_t number)
{
    return m->frames[number].hash;
}

static bool same_frame(const struct machine *m, const struct frame *x,
                       const struct frame *f, const struct link *links)
{
    return x->hash == f->hash && x->node == f->node && x->min == f->min &&
           x->max == f->max && x->nest == f->nest && x->n_links == f->n_links &&
           !memcmp(m->links + x->link, links, f->n_links * sizeof *links);
}

uint32_t frame_number(struct machine *m, struct frame f, const struct link *links)
{
    uint32_t hash = mix(mix(mix(f.node, f.min), f.max), f.nest);

    for (uint32_t i = 0; i < f.n_links; i++)
        hash = mix(mix(hash, links[i].next), links[i].frame);
    f.hash = hash;
    f.view = f.local = UNKNOWN;
    if (!table_room(m, &m->frame_table, frame_hash))
        return FRAME_BASE;
    uint32_t at = hash & (m->frame_table.n_slots - 1);

    for (; m->frame_table.slots[at] != 0;
         at = (at + 1) & (m->frame_table.n_slots - 1)) {
        if (same_frame(m, &m->frames[m->frame_table.slots[at]], &f, links))
            return m->frame_table.slots[at];
    }
    if (!machine_grow(m, (void **)&m->frames, m->n_frames, 1, &m->cap_frames,
                      sizeof *m->frames) ||
        !machine_grow(m, (void **)&m->links, m->n_links, f.n_links, &m->cap_links,
                      sizeof *m->links))
        return FRAME_BASE;
    f.link = m->n_links;
    memcpy(m->links + m->n_links, links, f.n_links * sizeof *links);
    m->n_links += f.n_links;
    m->frames[m->n_frames] = f;
    m->frame_table.slots[at] = m->n_frames;
    m->frame_table.n++;
    return m->n_frames++;
}

/* ---- positions ------------------------------------------------------------------- */

static uint32_t position_hash(const struct machine *m, uint32_t number)
{
    return m->positions[number].hash;
}

static int compare_configs(const void *x, const void *y)
{
    const struct config *a = x, *b = y;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

/* Room for the steps of every position that there is room for. */
static bool grow_positions(struct machine *m)
{
    const uint32_t before = m->cap_positions;
    const size_t n_classes = (size_t)m->a->n_classes;

    if (!machine_grow(m, (void **)&m->positions, m->n_positions, 1, &m->cap_positions,
                      sizeof *m->positions))
        return false;
    if (m->cap_positions == before)
        return true;
    uint32_t *steps = realloc(m->steps, m->cap_positions * n_classes * sizeof *steps);

    if (!steps) {
        m->cap_positions = before;
        m->failed = true;
        return false;
    }
    m->steps = steps;
    return true;
}

uint32_t position_number(struct machine *m, struct config *configs, uint32_t n,
                         uint32_t flags)
{
    uint32_t n_different = 0, hash;

    if (n > 1)
        qsort(configs, n, sizeof *configs, compare_configs);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || compare_configs(&configs[i], &configs[i - 1]))
            configs[n_different++] = configs[i];
    }
    n = n_different;
    if (n == 0 && flags == 0 && m->n_positions > 0)
        return POSITION_DEAD;
    hash = mix(n, flags);
    for (uint32_t i = 0; i < n; i++)
        hash = mix(mix(hash, configs[i].node), configs[i].frame);
    if (m->n_positions >= MAX_POSITIONS ||
        !table_room(m, &m->position_table, position_hash))
        return POSITION_DEAD;
    struct number_table *t = &m->position_table;
    uint32_t at = hash & (t->n_slots - 1);

    for (; t->slots[at] != 0; at = (at + 1) & (t->n_slots - 1)) {
        const struct position *p = &m->positions[t->slots[at]];

        if (p->hash == hash && p->n_configs == n && p->flags == flags &&
            (n == 0 || !memcmp(m->configs + p->config, configs, n * sizeof *configs)))
            return t->slots[at];
    }
    if (!grow_positions(m) || !machine_grow(m, (void **)&m->configs, m->n_configs, n,
                                            &m->cap_configs, sizeof *m->configs))
        return POSITION_DEAD;
    if (n > 0)
        memcpy(m->configs + m->n_configs, configs, n * sizeof *configs);
    m->positions[m->n_positions] = (struct position){.config = m->n_configs,
                                                     .n_configs = n,
                                                     .hash = hash,
                                                     .view = UNKNOWN,
                                                     .flags = flags};
    m->n_configs += n;
    memset(m->steps + m->n_positions * (size_t)m->a->n_classes, 0xff,
           (size_t)m->a->n_classes * sizeof *m->steps);
    if (m->n_positions > 0) { /* the empty set needs no place in the table */
        t->slots[at] = m->n_positions;
        t->n++;
    }
    return m->n_positions++;
}

/* ---- sets ------------------------------------------------------------------------ */

static bool seen_room(struct machine *m)
{
    if (m->n_seen * 2 < m->n_seen_slots)
        return true;
    const uint32_t n_slots = m->n_seen_slots ? m->n_seen_slots * 2 : SEEN_SLOTS;
    struct seen *old = m->seen;
    struct seen *slots = calloc(n_slots, sizeof *slots);

    if (!slots) {
        m->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < m->n_seen_slots; i++) {
        if (old[i].epoch != m->epoch)
            continue;
        uint32_t at = mix(old[i].node, old[i].frame) & (n_slots - 1);

        while (slots[at].epoch == m->epoch)
            at = (at + 1) & (n_slots - 1);
        slots[at] = old[i];
    }
    free(old);
    m->seen = slots;
    m->n_seen_slots = n_slots;
    return true;
}

/* Whether (node, frame) comes for the first time in this set. */
static bool first_time(struct machine *m, uint32_t node, uint32_t frame)
{
    if (!seen_room(m))
        return false;
    uint32_t at = mix(node, frame) & (m->n_seen_slots - 1);

    for (; m->seen[at].epoch == m->epoch; at = (at + 1) & (m->n_seen_slots - 1)) {
        if (m->seen[at].node == node && m->seen[at].frame == frame)
            return false;
    }
    m->seen[at] = (struct seen){node, frame, m->epoch};
    m->n_seen++;
    return true;
}

void set_open(struct machine *m)
{
    m->n_work = m->n_set = m->n_pending = m->n_seen = 0;
    m->flags = 0;
    if (++m->epoch == 0) {
        memset(m->seen, 0, m->n_seen_slots * sizeof *m->seen);
        m->epoch = 1;
    }
}

void set_enter(struct machine *m, uint32_t node, uint32_t frame)
{
    const uint32_t need = m->a->need[node];

    if (need + m->frames[frame].nest > MAX_NEST || need == NEVER ||
        !first_time(m, node, frame) ||
        !machine_grow(m, (void **)&m->work, m->n_work, 1, &m->cap_work,
                      sizeof *m->work))
        return;
    m->work[m->n_work++] = (struct config){node, frame};
}

/* A turn of a repetition, of which min to max are left. */
static void enter_turn(struct machine *m, uint32_t repeat, uint32_t min, uint32_t max,
                       uint32_t frame)
{
    const struct node *node = &m->a->nodes[repeat];
    const struct frame turn = {.node = repeat,
                               .min = min > 0 ? min - 1 : 0,
                               .max = max == NO_LIMIT ? NO_LIMIT : max - 1,
                               .n_links = 1,
                               .nest = m->frames[frame].nest};

    if (min == 0)
        set_enter(m, node->n, frame);
    if (max > 0)
        set_enter(m, node->at,
                  frame_number(m, turn, &(struct link){.next = 0, .frame = frame}));
}

static void leave_frame(struct machine *m, uint32_t frame)
{
    const struct frame f = m->frames[frame];

    if (frame == FRAME_BASE) {
        m->flags |= POSITION_RETURNS;
    } else if (frame == FRAME_ROOT) {
        m->flags |= POSITION_ENDS;
    } else if (f.node == FRAME_CALL) {
        for (uint32_t i = 0; i < f.n_links; i++)
            set_enter(m, m->links[f.link + i].next, m->links[f.link + i].frame);
    } else {
        enter_turn(m, f.node, f.min, f.max, m->links[f.link].frame);
    }
}

static void hold_back(struct machine *m, const struct node *call, uint32_t frame)
{
    if (!machine_grow(m, (void **)&m->pending, m->n_pending, 1, &m->cap_pending,
                      sizeof *m->pending))
        return;
    m->pending[m->n_pending++] =
        (struct pending){.rule = call->at,
                         .min = call->min,
                         .max = call->max,
                         .nest = (uint16_t)(m->frames[frame].nest + call->nest),
                         .link = {.next = call->n, .frame = frame}};
}

static void follow(struct machine *m)
{
    const struct automaton *a = m->a;

    while (m->n_work > 0 && !m->failed) {
        const struct config c = m->work[--m->n_work];

        if (a->nodes[c.node].kind == NODE_LAZY && !machine_expand(m, c.node))
            continue;
        const struct node *node = &a->nodes[c.node];

        switch ((enum node_kind)node->kind) {
        case NODE_BYTES:
            if (node->n > 0 && m->n_set < MAX_CONFIGS &&
                machine_grow(m, (void **)&m->set, m->n_set, 1, &m->cap_set,
                             sizeof *m->set))
                m->set[m->n_set++] = c;
            break;
        case NODE_SPLIT:
            for (uint32_t k = node->at; k < node->at + node->n; k++)
                set_enter(m, a->edges[k].to, c.frame);
            break;
        case NODE_CALL:
            hold_back(m, node, c.frame);
            break;
        case NODE_REPEAT:
            enter_turn(m, c.node, node->min, node->max, c.frame);
            break;
        case NODE_END_OF_RULE:
            leave_frame(m, c.frame);
            break;
        case NODE_LAZY:
            break;
        }
    }
}

static int compare_links(const void *x, const void *y)
{
    const struct link *a = x, *b = y;

    if (a->next != b->next)
        return a->next < b->next ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

/* Call the rule of the highest rank for all that wait for it. */
static void call_next(struct machine *m)
{
    const struct automaton *a = m->a;
    uint32_t best = 0, n_links = 0, n_left = 0;

    for (uint32_t i = 1; i < m->n_pending; i++) {
        if (a->rules[m->pending[i].rule].rank > a->rules[m->pending[best].rule].rank)
            best = i;
    }
    const struct pending call = m->pending[best];
    struct frame f = {.node = FRAME_CALL, .nest = call.nest};
    struct link few[8] = {{0, 0}}, *links = few;

    if (m->n_pending > 8)
        links = malloc(m->n_pending * sizeof *links);
    if (!links) {
        m->failed = true;
        return;
    }
    for (uint32_t i = 0; i < m->n_pending; i++) {
        const struct pending *p = &m->pending[i];

        if (p->rule == call.rule && p->min == call.min && p->max == call.max) {
            links[n_links++] = p->link;
            f.nest = p->nest > f.nest ? p->nest : f.nest;
        } else {
            m->pending[n_left++] = *p;
        }
    }
    m->n_pending = n_left;
    qsort(links, n_links, sizeof *links, compare_links);
    for (uint32_t i = 0; i < n_links; i++) {
        if (f.n_links == 0 || compare_links(&links[i], &links[f.n_links - 1]))
            links[f.n_links++] = links[i];
    }
    /* A call that is the last thing its rule does returns to that rule's caller. */
    const uint32_t start = a->rules[call.rule].start;
    const bool last = f.n_links == 1 && links[0].next == NODE_POP &&
                      f.nest == m->frames[links[0].frame].nest;
    const uint32_t frame = last ? links[0].frame : frame_number(m, f, links);

    if (links != few)
        free(links);
    if (call.max > 0 && a->nodes[start].kind == NODE_REPEAT)
        enter_turn(m, start, call.min, call.max, frame);
    else
        set_enter(m, start, frame);
}

uint32_t set_close(struct machine *m)
{
    follow(m);
    while (m->n_pending > 0 && !m->failed) {
        call_next(m);
        follow(m);
    }
    return m->failed ? POSITION_DEAD : position_number(m, m->set, m->n_set, m->flags);
}
