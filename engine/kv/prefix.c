/* SPDX-License-Identifier: MIT
 *
 * prefix.c - the tree of pages
 */
#include "engine/kv/prefix.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A place for a checkpoint. */
struct place {
    struct node *node;  /* whose tokens it is behind some of; NULL: it is in no node */
    struct place *next; /* of the node, or free */
    uint32_t at;        /* tokens of the node before it */
    double base;        /* what the last one that went would have saved, when this was
                           used */
    enum prefix_why why;
    int n_used;
    bool continued; /* there is a later one of the same text */
};

struct node {
    struct node *parent, *child, *next; /* children are a list */
    struct place *places;               /* a list */
    uint64_t used;                      /* when, counted in calls */
    uint32_t page;
    uint32_t n; /* tokens; 0: it is not in the tree */
    int32_t tokens[KVCACHE_PAGE];
};

struct prefix_cache {
    struct kvpages *pages;
    struct node root;   /* has no page */
    struct node *nodes; /* [cap]; those from n_taken on are untouched */
    size_t cap;
    struct node *free;       /* those before that are not in the tree, a list */
    size_t n_taken, n_nodes; /* n_nodes: in the tree */
    uint64_t now;
    struct place *places;      /* [n_places] */
    struct place *free_places; /* a list */
    int n_places, n_kept;      /* n_kept: in nodes */
    uint64_t n_made, n_used;   /* that were kept; times that one was taken */
    double gone;               /* what the last one that went would have saved */
};

/* What counts of the tokens that a checkpoint saves where its text was continued. */
#define CONTINUED_SHARE 0.125

enum status prefix_open(struct prefix_cache **c, struct kvpages *pages, int n_places,
                        int n_ctx, struct err *err)
{
    struct prefix_cache *new = calloc(1, sizeof *new);
    const size_t n_entries = ((size_t)n_ctx + KVCACHE_PAGE - 1) / KVCACHE_PAGE;

    assert(pages || n_places > 0);
    if (new) {
        /* without pages each branch ends in a checkpoint */
        new->cap = pages ? pages->n_pages : (size_t)n_places *n_entries;
        new->nodes = calloc(new->cap, sizeof *new->nodes);
        new->places = calloc((size_t)n_places + 1, sizeof *new->places);
    }
    if (!new || !new->nodes || !new->places) {
        prefix_close(new);
        return err_set(err, ST_NO_MEMORY, "no memory for a cache of prefixes");
    }
    new->pages = pages;
    new->n_places = n_places;
    for (int i = n_places - 1; i >= 0; i--) {
        new->places[i].next = new->free_places;
        new->free_places = &new->places[i];
    }
    *c = new;
    return ST_OK;
}

static void free_place(struct prefix_cache *c, struct place *place)
{
    place->node = NULL;
    place->next = c->free_places;
    c->free_places = place;
}

/* A leaf. */
static void remove_leaf(struct prefix_cache *c, struct node *node)
{
    struct node **at = &node->parent->child;

    assert(!node->child);
    for (struct place *place; (place = node->places); c->n_kept--) {
        node->places = place->next;
        free_place(c, place);
    }
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    if (c->pages)
        kvpages_release(c->pages, node->page);
    c->n_nodes--;
    node->n = 0;
    node->next = c->free;
    c->free = node;
}

/* A leaf, if it has no checkpoint; and those before it that are left without one. */
static void remove_useless(struct prefix_cache *c, struct node *node)
{
    while (c->n_places && node->parent && !node->child && !node->places) {
        struct node *parent = node->parent;

        remove_leaf(c, node);
        node = parent;
    }
}

/* Visit leaves in the order of a walk: the next node after a subtree, upwards. */
static struct node *first_leaf(struct node *node)
{
    while (node->child)
        node = node->child;
    return node;
}

static struct node *next_leaf(const struct node *leaf)
{
    for (; leaf->parent; leaf = leaf->parent)
        if (leaf->next)
            return first_leaf(leaf->next);
    return NULL;
}

void prefix_close(struct prefix_cache *c)
{
    if (!c)
        return;
    while (c->root.child)
        remove_leaf(c, first_leaf(&c->root));
    free(c->nodes);
    free(c->places);
    free(c);
}

static size_t common(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b)
{
    size_t n = 0;

    while (n < n_a && n < n_b && a[n] == b[n])
        n++;
    return n;
}

/* The child that has the most tokens in common, and how many: 0, NULL. */
static struct node *best_child(const struct node *parent, const int32_t *tokens,
                               size_t n, size_t *n_common)
{
    struct node *best = NULL;

    *n_common = 0;
    for (struct node *child = parent->child; child; child = child->next) {
        const size_t same = common(child->tokens, child->n, tokens, n);

        if (same > *n_common) {
            *n_common = same;
            best = child;
        }
    }
    return best;
}

size_t prefix_find(struct prefix_cache *c, const int32_t *tokens, size_t n,
                   uint32_t *page)
{
    struct node *node = &c->root;
    size_t done = 0, same;

    c->now++;
    do {
        node = best_child(node, tokens + done, n - done, &same);
        if (!node)
            break;
        node->used = c->now;
        page[done / KVCACHE_PAGE] = node->page;
        done += same;
    } while (same == KVCACHE_PAGE);
    return done;
}

/* The same page with more tokens than are known of it: a leaf. */
static void extend(struct prefix_cache *c, struct node *node, const int32_t *tokens,
                   size_t n, uint32_t page)
{
    assert(!node->child);
    if (c->pages) {
        kvpages_hold(c->pages, page);
        kvpages_release(c->pages, node->page);
    }
    node->page = page;
    memcpy(node->tokens, tokens, n * sizeof *tokens);
    node->n = (uint32_t)n;
}

/* NULL: there is none, since pages were said to have tokens that they have not. */
static struct node *take_node(struct prefix_cache *c)
{
    struct node *node = c->free;

    if (node)
        c->free = node->next;
    else if (c->n_taken < c->cap)
        node = &c->nodes[c->n_taken++];
    return node;
}

static struct node *add_child(struct prefix_cache *c, struct node *parent,
                              const int32_t *tokens, size_t n, uint32_t page)
{
    struct node *node = take_node(c);

    if (!node)
        return NULL;
    if (c->pages)
        kvpages_hold(c->pages, page);
    memcpy(node->tokens, tokens, n * sizeof *tokens);
    node->n = (uint32_t)n;
    node->page = page;
    node->parent = parent;
    node->child = NULL;
    node->places = NULL;
    node->next = parent->child;
    parent->child = node;
    c->n_nodes++;
    return node;
}

static uint32_t page_of(const struct prefix_cache *c, const uint32_t *page, size_t done)
{
    return c->pages ? page[done / KVCACHE_PAGE] : KVPAGES_NONE;
}

/* The node with the last of tokens[n]; NULL: there are not enough. */
static struct node *add_text(struct prefix_cache *c, const int32_t *tokens, size_t n,
                             const uint32_t *page)
{
    struct node *parent = &c->root;

    c->now++;
    for (size_t done = 0; done < n;) {
        const size_t some = n - done < KVCACHE_PAGE ? n - done : KVCACHE_PAGE;
        size_t same;
        struct node *node = best_child(parent, tokens + done, some, &same);

        if (node && same == node->n && same < some)
            extend(c, node, tokens + done, some, page_of(c, page, done));
        else if (!node || same < some)
            node = add_child(c, parent, tokens + done, some, page_of(c, page, done));
        if (!node) {
            remove_useless(c, parent);
            return NULL;
        }
        node->used = c->now;
        parent = node;
        done += some;
    }
    return parent;
}

void prefix_add(struct prefix_cache *c, const int32_t *tokens, size_t n,
                const uint32_t *page)
{
    add_text(c, tokens, n, page);
}

/* A parent is used whenever its child is, so the one used longest ago is a leaf, or as
 * old as one. */
static struct node *oldest_leaf(struct prefix_cache *c)
{
    struct node *oldest = NULL;

    for (struct node *leaf = c->root.child ? first_leaf(&c->root) : NULL; leaf;
         leaf = next_leaf(leaf))
        if (!oldest || leaf->used < oldest->used)
            oldest = leaf;
    return oldest;
}

void prefix_forget(struct prefix_cache *c, size_t n_free)
{
    while (c->pages && c->pages->n_free < n_free && c->root.child) {
        struct node *leaf = oldest_leaf(c), *parent = leaf->parent;

        remove_leaf(c, leaf);
        remove_useless(c, parent);
    }
}

size_t prefix_pages(const struct prefix_cache *c)
{
    return c->pages ? c->n_nodes : 0;
}

size_t prefix_own_pages(const struct prefix_cache *c)
{
    size_t n = 0;

    for (const struct node *node = c->nodes; c->pages && node < c->nodes + c->n_taken;
         node++)
        n += node->n && c->pages->n_owners[node->page] == 1;
    return n;
}

/* ---- checkpoints ----------------------------------------------------------------- */

/* The last place behind at most n tokens of a node. */
static struct place *last_place(const struct node *node, size_t n)
{
    struct place *last = NULL;

    for (struct place *p = node->places; p; p = p->next)
        if (p->at <= n && (!last || p->at > last->at))
            last = p;
    return last;
}

/* The last place that any of these children has of what it has in common with the
 * text. */
static struct place *best_place(const struct node *parent, const int32_t *tokens,
                                size_t n)
{
    struct place *best = NULL;

    for (const struct node *child = parent->child; child; child = child->next) {
        struct place *last =
            last_place(child, common(child->tokens, child->n, tokens, n));

        if (last && (!best || last->at > best->at))
            best = last;
    }
    return best;
}

/* The last place on the way of a text, *at tokens from its beginning. */
static struct place *find_place(const struct prefix_cache *c, const int32_t *tokens,
                                size_t n, size_t *at, size_t *n_common)
{
    const struct node *node = &c->root;
    struct place *found = NULL;
    size_t done = 0, same;

    *at = 0;
    do {
        struct place *best = best_place(node, tokens + done, n - done);

        if (best) {
            found = best;
            *at = done + best->at;
        }
        node = best_child(node, tokens + done, n - done, &same);
        done += same;
    } while (node && same == KVCACHE_PAGE);
    *n_common = done;
    return found;
}

size_t prefix_look(struct prefix_cache *c, const int32_t *tokens, size_t n,
                   size_t *n_common)
{
    size_t at;

    find_place(c, tokens, n, &at, n_common);
    return at;
}

size_t prefix_take(struct prefix_cache *c, const int32_t *tokens, size_t n,
                   uint32_t *page, int *place)
{
    size_t at, n_common;
    struct place *found = find_place(c, tokens, n, &at, &n_common);

    if (!found)
        return 0;
    c->now++;
    c->n_used++;
    found->n_used++;
    found->base = c->gone;
    *place = (int)(found - c->places);
    for (struct node *node = found->node; node->parent; node = node->parent)
        node->used = c->now;
    if (c->pages) {
        size_t i = (at - 1) / KVCACHE_PAGE;

        for (const struct node *node = found->node; node->parent; node = node->parent)
            page[i--] = node->page;
    }
    return at;
}

/* The place before one, of the same text, and how many tokens are between them. */
static struct place *place_before(const struct place *p, size_t *distance)
{
    const struct node *node = p->node;
    struct place *before = best_place(node->parent, node->tokens, p->at - 1);

    *distance = p->at;
    for (; !before && node->parent->parent; *distance += node->n) {
        node = node->parent;
        before = best_place(node->parent, node->tokens, node->n);
    }
    if (before)
        *distance -= before->at;
    return before;
}

/* What it is worth to keep a checkpoint for n tokens. */
static double worth(size_t n, bool continued, enum prefix_why why, int n_used)
{
    const bool unlikely =
        (continued || why == PREFIX_INTERVAL) && why != PREFIX_BRANCH && n_used < 2;

    return (double)n * (unlikely ? CONTINUED_SHARE : 1);
}

/* What one is worth if the text of `before` is continued. */
static double worth_of(const struct place *p, const struct place *before)
{
    size_t distance;

    place_before(p, &distance);
    return p->base + worth(distance, p->continued || p == before, p->why, p->n_used);
}

static void forget_place(struct prefix_cache *c, struct place *p)
{
    struct node *node = p->node;
    struct place **at = &node->places;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    c->n_kept--;
    free_place(c, p);
    remove_useless(c, node);
}

static struct place *cheapest_place(const struct prefix_cache *c,
                                    const struct place *before, double *worth_min)
{
    struct place *cheapest = NULL;

    for (int i = 0; i < c->n_places; i++) {
        struct place *p = &c->places[i];
        const double w = p->node ? worth_of(p, before) : 0;

        if (p->node && (!cheapest || w < *worth_min)) {
            cheapest = p;
            *worth_min = w;
        }
    }
    return cheapest;
}

/* Have a free place for a checkpoint of some worth behind another one, if any is worth
 * less. If not, what it would have saved counts against those that nobody uses. */
static bool make_room(struct prefix_cache *c, const struct place *before,
                      double worth_new)
{
    double worth_min = 0;
    struct place *cheapest;

    if (c->free_places)
        return true;
    cheapest = cheapest_place(c, before, &worth_min);
    if (!cheapest || worth_min > c->gone + worth_new) {
        c->gone += worth_new;
        return false;
    }
    c->gone = worth_min > c->gone ? worth_min : c->gone;
    forget_place(c, cheapest);
    return true;
}

int prefix_new_place(struct prefix_cache *c, const int32_t *tokens, size_t n_known,
                     size_t n, enum prefix_why why)
{
    const struct place *before = NULL;
    size_t at = n_known, n_common;
    struct place *p;

    if (tokens)
        before = find_place(c, tokens, n_known, &at, &n_common);
    if (n < at + PREFIX_MIN_SAVED ||
        !make_room(c, before, worth(n - at, false, why, 0)))
        return -1;
    p = c->free_places;
    c->free_places = p->next;
    *p = (struct place){.why = why};
    return (int)(p - c->places);
}

void prefix_drop_place(struct prefix_cache *c, int place)
{
    free_place(c, &c->places[place]);
}

void prefix_add_place(struct prefix_cache *c, int place, const int32_t *tokens,
                      size_t n, const uint32_t *page)
{
    struct place *p = &c->places[place], *before;
    struct node *node = add_text(c, tokens, n, page);
    size_t distance;

    p->at = (uint32_t)((n - 1) % KVCACHE_PAGE) + 1;
    before = node ? last_place(node, p->at) : NULL;
    if (!node || (before && before->at == p->at)) {
        free_place(c, p);
        return;
    }
    p->node = node;
    p->base = c->gone;
    p->next = node->places;
    node->places = p;
    c->n_kept++;
    c->n_made++;
    before = place_before(p, &distance);
    if (before)
        before->continued = true;
}

size_t prefix_places(const struct prefix_cache *c)
{
    return (size_t)c->n_kept;
}

size_t prefix_free_places(const struct prefix_cache *c)
{
    size_t n = 0;

    for (const struct place *place = c->free_places; place; place = place->next)
        n++;
    return n;
}

void prefix_count(const struct prefix_cache *c, uint64_t *n_made, uint64_t *n_taken)
{
    *n_made = c->n_made;
    *n_taken = c->n_used;
}
