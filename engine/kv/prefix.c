/* SPDX-License-Identifier: MIT
 *
 * prefix.c - the tree of pages
 */
#include "engine/kv/prefix.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *parent, *child, *next; /* children are a list */
    uint64_t used;                      /* when, counted in calls */
    uint32_t page;
    uint32_t n; /* tokens; 0: it is not in the tree */
    int32_t tokens[KVCACHE_PAGE];
};

struct prefix_cache {
    struct kvpages *pages;
    struct node root;        /* has no page */
    struct node *nodes;      /* [pages->n_pages]; those from n_taken on are untouched */
    struct node *free;       /* those before that are not in the tree, a list */
    size_t n_taken, n_nodes; /* n_nodes: in the tree */
    uint64_t now;
};

enum status prefix_open(struct prefix_cache **c, struct kvpages *pages, struct err *err)
{
    struct prefix_cache *new = calloc(1, sizeof *new);

    if (new)
        new->nodes = calloc(pages->n_pages, sizeof *new->nodes);
    if (!new || !new->nodes) {
        free(new);
        return err_set(err, ST_NO_MEMORY, "no memory for a cache of prefixes");
    }
    new->pages = pages;
    *c = new;
    return ST_OK;
}

/* A leaf. */
static void remove_node(struct prefix_cache *c, struct node *node)
{
    struct node **at = &node->parent->child;

    assert(!node->child);
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    kvpages_release(c->pages, node->page);
    c->n_nodes--;
    node->n = 0;
    node->next = c->free;
    c->free = node;
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
        remove_node(c, first_leaf(&c->root));
    free(c->nodes);
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
    kvpages_hold(c->pages, page);
    kvpages_release(c->pages, node->page);
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
    else if (c->n_taken < c->pages->n_pages)
        node = &c->nodes[c->n_taken++];
    return node;
}

static struct node *add_child(struct prefix_cache *c, struct node *parent,
                              const int32_t *tokens, size_t n, uint32_t page)
{
    struct node *node = take_node(c);

    if (!node)
        return NULL;
    kvpages_hold(c->pages, page);
    memcpy(node->tokens, tokens, n * sizeof *tokens);
    node->n = (uint32_t)n;
    node->page = page;
    node->parent = parent;
    node->child = NULL;
    node->next = parent->child;
    parent->child = node;
    c->n_nodes++;
    return node;
}

void prefix_add(struct prefix_cache *c, const int32_t *tokens, size_t n,
                const uint32_t *page)
{
    struct node *parent = &c->root;

    c->now++;
    for (size_t done = 0; done < n;) {
        const size_t some = n - done < KVCACHE_PAGE ? n - done : KVCACHE_PAGE;
        size_t same;
        struct node *node = best_child(parent, tokens + done, some, &same);

        if (node && same == node->n && same < some)
            extend(c, node, tokens + done, some, page[done / KVCACHE_PAGE]);
        else if (!node || same < some)
            node = add_child(c, parent, tokens + done, some, page[done / KVCACHE_PAGE]);
        if (!node)
            return;
        node->used = c->now;
        parent = node;
        done += some;
    }
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
    while (c->pages->n_free < n_free && c->root.child)
        remove_node(c, oldest_leaf(c));
}

size_t prefix_pages(const struct prefix_cache *c)
{
    return c->n_nodes;
}

size_t prefix_own_pages(const struct prefix_cache *c)
{
    size_t n = 0;

    for (const struct node *node = c->nodes; node < c->nodes + c->n_taken; node++)
        n += node->n && c->pages->n_owners[node->page] == 1;
    return n;
}
