/* SPDX-License-Identifier: MIT
 *
 * machine.c - machines of grammars, kept with the vocabulary, and the steps they take
 */
#include "engine/grammar/machine.h"

#include <stdlib.h>
#include <string.h>

#define MAX_IDLE 8 /* machines that nobody uses and the vocabulary keeps */
/* What a machine may remember, before it forgets all but what is in use. */
#define MAX_MASK_BYTES ((size_t)16 << 20)
#define MAX_STEP_BYTES ((size_t)16 << 20)
/* Schemas come from anybody, and steps wait for masks, so a mask's work is limited:
 * when a walk through the vocabulary's tree takes more nodes, only tokens of one byte
 * are added after that, and further alternatives are left out. A mask then has fewer
 * tokens than would be accepted. Vocabularies of 32,000 to 256,000
 * tokens have 57,000 to 500,000 nodes. */
#define MAX_WORK       ((uint64_t)1 << 20)
#define MAX_IDLE_BYTES ((size_t)8 << 20) /* of one that nobody uses, to be kept */

/* ---- the tables ------------------------------------------------------------------ */

static void drop_masks(struct machine *m)
{
    for (uint32_t i = 0; i < m->n_positions; i++) {
        token_set_free(m->positions[i].mask);
        token_set_free(m->positions[i].local);
    }
    m->mask_bytes = 0;
}

/* The tables of `from` in place of those of m, which are not released. */
static void use_tables(struct machine *m, const struct machine *from)
{
    m->frames = from->frames;
    m->links = from->links;
    m->configs = from->configs;
    m->positions = from->positions;
    m->steps = from->steps;
    m->n_frames = from->n_frames;
    m->n_links = from->n_links;
    m->n_configs = from->n_configs;
    m->n_positions = from->n_positions;
    m->cap_frames = from->cap_frames;
    m->cap_links = from->cap_links;
    m->cap_configs = from->cap_configs;
    m->cap_positions = from->cap_positions;
    m->frame_table = from->frame_table;
    m->position_table = from->position_table;
    m->mask_bytes = from->mask_bytes;
}

static void drop_tables(struct machine *m)
{
    static const struct machine none;

    drop_masks(m);
    free(m->frames);
    free(m->links);
    free(m->configs);
    free(m->positions);
    free(m->steps);
    number_table_free(&m->frame_table);
    number_table_free(&m->position_table);
    use_tables(m, &none);
}

/* The frames and the position that every machine has. */
static bool make_tables(struct machine *m)
{
    m->failed = false;
    if (!machine_grow(m, (void **)&m->frames, 0, 2, &m->cap_frames, sizeof *m->frames))
        return false;
    m->frames[FRAME_BASE] =
        (struct frame){.node = FRAME_CALL, .view = FRAME_BASE, .local = FRAME_BASE};
    m->frames[FRAME_ROOT] =
        (struct frame){.node = FRAME_CALL, .view = FRAME_ROOT, .local = FRAME_BASE};
    m->n_frames = 2;
    position_number(m, NULL, 0, 0);
    return !m->failed;
}

static size_t step_bytes(const struct machine *m)
{
    return sizeof *m + m->cap_frames * sizeof *m->frames +
           m->cap_links * sizeof *m->links + m->cap_configs * sizeof *m->configs +
           m->cap_positions *
               (sizeof *m->positions + (size_t)m->a->n_classes * sizeof *m->steps) +
           (m->frame_table.n_slots + m->position_table.n_slots) * sizeof(uint32_t);
}

size_t machine_bytes(const struct machine *m)
{
    return step_bytes(m) + m->mask_bytes +
           m->own.cap_nodes * (sizeof *m->own.nodes + sizeof *m->own.need) +
           m->own.cap_edges * sizeof *m->own.edges;
}

/* ---- making room ----------------------------------------------------------------- */

/* A frame of the tables `from` in those of m; done[] are those already there. */
static uint32_t copy_frame(struct machine *m, const struct machine *from, uint32_t old,
                           uint32_t *done)
{
    struct frame f = from->frames[old];
    struct link few[8] = {{0, 0}}, *links = few;
    uint32_t number;

    if (done[old] != UNKNOWN)
        return done[old];
    if (f.n_links > 8)
        links = malloc(f.n_links * sizeof *links);
    if (!links) {
        m->failed = true;
        return FRAME_BASE;
    }
    for (uint32_t i = 0; i < f.n_links; i++) {
        const struct link l = from->links[f.link + i];

        links[i] = (struct link){l.next, copy_frame(m, from, l.frame, done)};
    }
    number = frame_number(m, f, links);
    if (links != few)
        free(links);
    done[old] = number;
    return number;
}

/* The position of the tables `from` in those of m. */
static uint32_t copy_position(struct machine *m, const struct machine *from,
                              uint32_t position, uint32_t *done)
{
    const struct position *p = &from->positions[position];

    if (!machine_grow(m, (void **)&m->set, 0, p->n_configs, &m->cap_set,
                      sizeof *m->set))
        return POSITION_DEAD;
    for (uint32_t i = 0; i < p->n_configs; i++) {
        const struct config c = from->configs[p->config + i];

        m->set[i] = (struct config){c.node, copy_frame(m, from, c.frame, done)};
    }
    return position_number(m, m->set, p->n_configs, p->flags);
}

/* New tables with what the states need. Without memory for them all stays as it was. */
static void forget(struct machine *m)
{
    static const struct machine none;
    struct machine old = *m;
    uint32_t *done = malloc(old.n_frames * sizeof *done);

    if (!done)
        return;
    memset(done, 0xff, old.n_frames * sizeof *done);
    done[FRAME_BASE] = FRAME_BASE;
    done[FRAME_ROOT] = FRAME_ROOT;
    use_tables(m, &none);
    if (make_tables(m)) {
        for (struct grammar_state *s = m->states; s; s = s->next)
            s->copied = copy_position(m, &old, s->position, done);
    }
    free(done);
    if (m->failed) {
        drop_tables(m);
        use_tables(m, &old);
        return;
    }
    for (struct grammar_state *s = m->states; s; s = s->next)
        s->position = s->copied;
    drop_tables(&old);
}

void machine_make_room(struct machine *m)
{
    if (m->failed || m->mask_bytes > m->max_mask_bytes ||
        step_bytes(m) > m->max_step_bytes)
        forget(m);
}

/* ---- steps ----------------------------------------------------------------------- */

uint32_t machine_start(struct machine *m)
{
    set_open(m);
    set_enter(m, m->v->adds_space ? m->g->start_blank : m->g->start, FRAME_ROOT);
    return set_close(m);
}

uint32_t machine_step(struct machine *m, uint32_t position, uint8_t byte_class)
{
    const struct automaton *a = m->a;
    const struct position p = m->positions[position];
    const uint8_t byte = a->byte_of[byte_class];
    uint32_t next;

    if (m->failed)
        return POSITION_DEAD;
    set_open(m);
    for (uint32_t i = 0; i < p.n_configs; i++) {
        const struct config c = m->configs[p.config + i];
        const struct node *node = &a->nodes[c.node];

        for (uint32_t k = node->at; k < node->at + node->n; k++) {
            if (byte >= a->edges[k].lo && byte <= a->edges[k].hi)
                set_enter(m, a->edges[k].to, c.frame);
        }
    }
    next = set_close(m);
    if (!m->failed)
        m->steps[position * (size_t)a->n_classes + byte_class] = next;
    return next;
}

static void enter_links(struct machine *m, uint32_t frame)
{
    const struct frame f = m->frames[frame];

    for (uint32_t i = 0; i < f.n_links; i++)
        set_enter(m, m->links[f.link + i].next, m->links[f.link + i].frame);
}

uint32_t machine_return(struct machine *m, uint32_t frame)
{
    set_open(m);
    if (frame == FRAME_ROOT)
        m->flags |= POSITION_ENDS;
    else
        enter_links(m, frame);
    return set_close(m);
}

/* ---- views ----------------------------------------------------------------------- */

/* More turns than a token can take are as good as any number of them. */
static uint32_t view_frame(struct machine *m, uint32_t number)
{
    struct frame f = m->frames[number];
    const uint32_t reach = m->v->max_bytes + 1;
    struct link few[8] = {{0, 0}}, *links = few;

    if (f.view != UNKNOWN)
        return f.view;
    if (f.n_links > 8)
        links = malloc(f.n_links * sizeof *links);
    if (!links) {
        m->failed = true;
        return FRAME_BASE;
    }
    for (uint32_t i = 0; i < f.n_links; i++) {
        links[i].next = m->links[f.link + i].next;
        links[i].frame = view_frame(m, m->links[f.link + i].frame);
    }
    if (f.node != FRAME_CALL) {
        f.min = f.min > reach ? reach : f.min;
        f.max = f.max > reach ? NO_LIMIT : f.max;
    }
    const uint32_t view = frame_number(m, f, links);

    if (links != few)
        free(links);
    m->frames[number].view = view;
    m->frames[view].view = view;
    return view;
}

uint32_t machine_view(struct machine *m, uint32_t position)
{
    const struct position p = m->positions[position];

    if (p.view != UNKNOWN)
        return p.view;
    if (!machine_grow(m, (void **)&m->set, 0, p.n_configs, &m->cap_set, sizeof *m->set))
        return UNKNOWN;
    for (uint32_t i = 0; i < p.n_configs; i++) {
        const struct config c = m->configs[p.config + i];

        m->set[i] = (struct config){c.node, view_frame(m, c.frame)};
    }
    const uint32_t view = position_number(m, m->set, p.n_configs, p.flags);

    if (m->failed)
        return UNKNOWN;
    m->positions[position].view = view;
    m->positions[view].view = view;
    return view;
}

static uint32_t local_frame(struct machine *m, uint32_t number)
{
    struct frame f = m->frames[number];

    if (f.local != UNKNOWN)
        return f.local;
    if (f.node == FRAME_CALL) {
        f.local = FRAME_BASE;
    } else {
        const struct link link = {0, local_frame(m, m->links[f.link].frame)};

        f.nest = 0;
        f.local = frame_number(m, f, &link);
    }
    m->frames[number].local = f.local;
    return f.local;
}

uint32_t machine_single(struct machine *m, struct config c)
{
    const uint32_t position = position_number(m, &c, 1, 0);

    return m->failed ? UNKNOWN : position;
}

uint32_t machine_local(struct machine *m, struct config c, uint32_t *call)
{
    uint32_t frame = c.frame;

    while (m->frames[frame].node != FRAME_CALL)
        frame = m->links[m->frames[frame].link].frame;
    *call = frame;
    if (m->frames[frame].nest + m->v->max_brackets + m->a->max_nest + m->a->max_need >
        MAX_NEST)
        return UNKNOWN;
    return machine_single(m, (struct config){c.node, local_frame(m, c.frame)});
}

/* ---- the vocabulary's machines --------------------------------------------------- */

static void machine_free(struct machine *m)
{
    drop_tables(m);
    free(m->work);
    free(m->set);
    free(m->pending);
    free(m->seen);
    free(m->words);
    free(m->marked);
    free(m->returns);
    pthread_mutex_destroy(&m->lock);
    if (m->a == &m->own)
        automaton_free(&m->own);
    grammar_unref(m->g);
    free(m);
}

static bool same_grammar(const struct grammar *g, const struct grammar *h)
{
    return g == h || (g->len == h->len && !g->text == !h->text &&
                      (!g->text || !memcmp(g->text, h->text, g->len)));
}

static struct machine *new_machine(struct grammar *g, const struct grammar_vocab *v,
                                   struct err *err)
{
    struct machine *m = calloc(1, sizeof *m);

    if (!m) {
        err_set(err, ST_NO_MEMORY, "cannot allocate a grammar's machine");
        return NULL;
    }
    m->g = grammar_ref(g);
    m->a = &g->a;
    if (g->n_tools) {
        m->a = &m->own;
        lazy_open(m);
    }
    m->v = v;
    m->max_mask_bytes = MAX_MASK_BYTES;
    m->max_step_bytes = MAX_STEP_BYTES;
    m->max_work = MAX_WORK;
    pthread_mutex_init(&m->lock, NULL);
    m->words = calloc(GRAMMAR_MASK_WORDS(v->n_vocab), sizeof *m->words);
    m->marked = calloc(GRAMMAR_MASK_WORDS(v->n_vocab), sizeof *m->marked);
    m->returns = malloc((v->n_nodes + 1) * sizeof *m->returns);
    if (m->own.st || !m->words || !m->marked || !m->returns || !make_tables(m)) {
        machine_free(m);
        err_set(err, ST_NO_MEMORY, "cannot allocate the masks of %d tokens",
                v->n_vocab);
        return NULL;
    }
    return m;
}

/* Its states may be extending it. */
static bool is_full(const struct machine *m)
{
    return __atomic_load_n(&m->is_full, __ATOMIC_RELAXED);
}

/* Forget idle machines that are large, or were last used longest ago. */
static void forget_idle(struct grammar_vocab *v)
{
    int n_idle = 0;

    for (struct machine **at = &v->machines; *at;) {
        struct machine *m = *at;

        if (m->n_users == 0 &&
            (is_full(m) || machine_bytes(m) > MAX_IDLE_BYTES || ++n_idle > MAX_IDLE)) {
            *at = m->next;
            machine_free(m);
        } else {
            at = &m->next;
        }
    }
}

enum status machine_take(struct machine **out, struct grammar *g,
                         struct grammar_vocab *v, struct err *err)
{
    struct machine **at = &v->machines, *m;

    pthread_mutex_lock(&v->lock);
    while (*at && (is_full(*at) || !same_grammar((*at)->g, g)))
        at = &(*at)->next;
    m = *at;
    if (m)
        *at = m->next;
    else
        m = new_machine(g, v, err);
    if (m) {
        m->next = v->machines;
        v->machines = m;
        m->n_users++;
        *out = m;
    }
    forget_idle(v);
    pthread_mutex_unlock(&v->lock);
    return m ? ST_OK : ST_NO_MEMORY;
}

void machine_leave(struct machine *m, struct grammar_vocab *v)
{
    pthread_mutex_lock(&v->lock);
    m->n_users--;
    forget_idle(v);
    pthread_mutex_unlock(&v->lock);
}

void machine_free_all(struct grammar_vocab *v)
{
    while (v->machines) {
        struct machine *m = v->machines;

        v->machines = m->next;
        machine_free(m);
    }
}
