/* SPDX-License-Identifier: MIT
 *
 * machine.h - a grammar's automaton at work, and what is known of it for a vocabulary
 *
 * A position in a text is a set of configurations: a node that waits for a byte, and
 * the frame it is in. A frame is a call that has not returned or a turn of a
 * repetition, and knows those before it; equal frames are one, and the calls of one
 * rule at one place of the text are one frame with several links, so that ambiguous
 * texts do not multiply them. Sets of configurations are numbered ("positions") and
 * their steps remembered.
 *
 * Which tokens may come next depends on the frames only where a token ends what the
 * innermost call began. So masks are made in two parts: for a configuration within its
 * call, whoever called (FRAME_BASE stands for that), with the nodes of the vocabulary's
 * tree at which the call returns; and from there on, with the true caller. The first is
 * the large part, and shared by all strings of a schema. Turns that a repetition has
 * left count only as far as a token can reach ("view").
 *
 * Threading: whatever is called here holds the machine's lock.
 */
#ifndef SLM_ENGINE_GRAMMAR_MACHINE_H
#define SLM_ENGINE_GRAMMAR_MACHINE_H

#include <pthread.h>

#include "engine/grammar/automaton.h"
#include "engine/grammar/vocab.h"

/* A tool whose arguments are built when a text first comes to them. */
struct lazy_tool {
    char *name, *schema; /* [len] */
    size_t len;
    uint16_t need; /* brackets */
};

struct grammar {
    struct automaton a;
    uint32_t start, start_blank; /* the second: a blank may come first */
    char *text; /* the schema, zero-terminated, or what else distinguishes the
                   grammar from others; NULL: any object */
    size_t len;
    struct lazy_tool *tools; /* [n_tools] */
    size_t n_tools, tool_bytes;
    bool calls_first;      /* no text may come before calls */
    struct call_form form; /* of the tools' parameters; the other texts are NULL */
    int n_refs;            /* atomic */
};

/* What building all tools of a request has taken: steps of patterns, of merging
 * schemas, and nodes. */
struct lazy_work {
    uint64_t patterns, merging, nodes;
};

/* The arguments of a tool's schema in an automaton, with `to` behind them; rules are
 * the numbers of rules that are shared, of build.h; work is added to, and limited. The
 * start; errors are in a. */
enum { SHARED_STRING, SHARED_ANY, SHARED_NUMBER, SHARED_INTEGER, SHARED_RAW, N_SHARED };
uint32_t lazy_build(struct automaton *a, const struct lazy_tool *tool,
                    const struct call_form *form, uint32_t *shared,
                    struct lazy_work *work, uint32_t to);

#define FRAME_BASE 0u /* whoever called */
#define FRAME_ROOT 1u /* the text */
#define FRAME_CALL UINT32_MAX
#define UNKNOWN    UINT32_MAX

struct link {
    uint32_t next; /* where a call continues when it returns */
    uint32_t frame;
};

struct frame {
    uint32_t node;     /* NODE_REPEAT, or FRAME_CALL */
    uint32_t min, max; /* REPEAT: turns after this one */
    uint32_t link, n_links;
    uint32_t hash;
    uint32_t view;  /* the frame that is the same for one token; UNKNOWN: not yet */
    uint32_t local; /* with FRAME_BASE in place of the innermost call */
    uint16_t nest;  /* calls inside of brackets */
};

struct config {
    uint32_t node, frame;
};

/* Tokens of a mask: bits where they are many, else a list. */
struct token_set {
    uint32_t *words; /* [n_words] or NULL */
    uint32_t *ids;   /* [n_ids] */
    uint32_t n_ids;
    uint32_t *returns; /* [n_returns] nodes of the tree at which the call returns */
    uint32_t n_returns;
    bool all;      /* every token of the tree */
    uint64_t work; /* that it took: nodes of the tree, and configurations */
};

#define POSITION_ENDS    1u /* the text may end here */
#define POSITION_RETURNS 2u /* FRAME_BASE was left */
#define POSITION_DEAD    0u /* number of the empty set */

struct position {
    uint32_t config, n_configs;
    uint32_t hash;
    uint32_t view;
    uint32_t flags;
    struct token_set *mask;  /* what may come next; NULL: not known */
    struct token_set *local; /* of one configuration in a local frame */
};

/* A table of numbers by the hash of what they stand for; 0: free. */
struct number_table {
    uint32_t *slots;
    uint32_t n_slots, n;
};

struct pending {
    uint32_t rule, min, max;
    uint16_t nest;
    struct link link;
};

struct seen {
    uint32_t node, frame, epoch;
};

struct machine {
    struct machine *next; /* in the vocabulary's list */
    struct grammar *g;
    const struct automaton *a; /* the grammar's, or own */
    struct automaton own;      /* of a grammar with tools: it grows */
    uint32_t shared[N_SHARED];
    bool is_full; /* atomic; own has grown: new states get another machine */
    const struct grammar_vocab *v;
    int n_users; /* states; under the vocabulary's lock */
    pthread_mutex_t lock;
    struct grammar_state *states; /* that use it */

    struct frame *frames;
    struct link *links;
    struct config *configs;
    struct position *positions;
    uint32_t *steps; /* [cap_positions][n_classes], UNKNOWN: not yet taken */
    uint32_t n_frames, n_links, n_configs, n_positions;
    uint32_t cap_frames, cap_links, cap_configs, cap_positions;
    struct number_table frame_table, position_table;
    size_t mask_bytes;
    size_t max_mask_bytes,
        max_step_bytes; /* before all that is not in use is forgotten */
    uint64_t max_work;  /* of a mask, in nodes of the tree */

    /* used while a position is made */
    struct config *work, *set;
    uint32_t n_work, cap_work, n_set, cap_set;
    struct pending *pending;
    uint32_t n_pending, cap_pending;
    struct seen *seen; /* [n_seen_slots] */
    uint32_t n_seen_slots, n_seen, epoch;
    uint32_t flags;
    uint32_t *words;  /* [n_words] bits of the mask in work */
    uint32_t *marked; /* [n_words] which bits are set; n_marked > n_words: more are */
    uint32_t n_marked;
    uint32_t *returns; /* [n_nodes] */
    bool failed;       /* out of memory: every step is dead */
};

/* For grammar g and v: an existing one or another; counts a user. Error: ST_NO_MEMORY.
 */
enum status machine_take(struct machine **m, struct grammar *g, struct grammar_vocab *v,
                         struct err *err);
void machine_leave(struct machine *m, struct grammar_vocab *v);
void machine_free_all(struct grammar_vocab *v);
size_t machine_bytes(const struct machine *m);

/* Begin with a copy of the grammar's automaton, own. Errors are in own.st. */
void lazy_open(struct machine *m);

/* NODE_LAZY becomes NODE_SPLIT. False: it cannot; m->failed, or the text ends there. */
bool machine_expand(struct machine *m, uint32_t node);

/* Before an operation: forget what is remembered where it is too much. Positions of the
 * states that use the machine are kept, under other numbers. */
void machine_make_room(struct machine *m);

/* The position at a text's beginning. */
uint32_t machine_start(struct machine *m);

/* The position after a byte of a class. */
uint32_t machine_step(struct machine *m, uint32_t position, uint8_t byte_class);

static inline uint32_t machine_after(struct machine *m, uint32_t position, uint8_t byte)
{
    const uint8_t c = m->a->class_of[byte];
    const uint32_t next = m->steps[(size_t)position * (size_t)m->a->n_classes + c];

    return next != UNKNOWN ? next : machine_step(m, position, c);
}

/* The position after a call's return. */
uint32_t machine_return(struct machine *m, uint32_t frame);

/* The position whose masks are the same; UNKNOWN: out of memory. */
uint32_t machine_view(struct machine *m, uint32_t position);

/* One configuration by itself, in its innermost call; *call is that. UNKNOWN where
 * calls are nested so deeply that their limit matters. */
uint32_t machine_local(struct machine *m, struct config c, uint32_t *call);
uint32_t machine_single(struct machine *m, struct config c);

/* ---- machine_set.c --------------------------------------------------------------- */

/* A set of configurations is made by opening it, entering nodes, and closing it. */
void set_open(struct machine *m);
void set_enter(struct machine *m, uint32_t node, uint32_t frame);
uint32_t set_close(struct machine *m); /* number of the position */

uint32_t frame_number(struct machine *m, struct frame f, const struct link *links);
uint32_t position_number(struct machine *m, struct config *configs, uint32_t n,
                         uint32_t flags);
void number_table_free(struct number_table *t);

/* Room for more elements of an array of the machine; false: m->failed. */
bool machine_grow(struct machine *m, void **array, uint32_t n, uint32_t more,
                  uint32_t *cap, size_t size);

/* ---- mask.c ---------------------------------------------------------------------- */

/* Tokens that may come next at a position, end tokens not among them; NULL: out of
 * memory. */
const struct token_set *machine_mask(struct machine *m, uint32_t position);
void token_set_free(struct token_set *t);

/* ---- state.c --------------------------------------------------------------------- */

struct grammar_state {
    struct machine *m;
    struct grammar_vocab *v;
    struct grammar_state *prev, *next; /* of the same machine */
    uint32_t position;
    uint32_t copied; /* the same in new tables, while they are made */
    bool ended;      /* by an end token */
};

#endif
