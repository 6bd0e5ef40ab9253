/* SPDX-License-Identifier: MIT
 *
 * prefix.h - what sequences began with, kept so that another one that begins alike need
 * not compute it again
 *
 * Model of the world: a tree of pages of the KV cache (kvpages.h). A node is one page
 * with the tokens of its positions, and its parent is the page before it; so the path
 * from the root says all that keys and values of a page depend on. A page whose tokens
 * are fewer than KVCACHE_PAGE is a leaf. Two texts that differ within a page have a
 * node each; a text that continues like one of them only for a part of the page shares
 * the page and the cache copies it when it is written.
 *
 * The tree owns its pages as sequences do: a page that both have in common is not free
 * when the tree forgets it. What was used longest ago is forgotten first. A page is in
 * one node at most, since what is in it depends on the path; so there are nodes for all
 * pages from the beginning, and keeping a text allocates nothing.
 *
 * With rings or states a text can be continued only where there is a checkpoint
 * (checkpoint.h). The tree gives their places to positions, and a page behind the last
 * checkpoint of its branch is forgotten. Where no layer has pages, nodes have tokens
 * alone.
 *
 * If all places are taken, the checkpoint goes that saves least, the new one among
 * them: tokens that would have to be computed again from the checkpoint before it, and
 * an eighth of them where that is unlikely, because the text was continued from a later
 * one and no other text from this one, or because nothing ended here. Each starts from
 * what the last one that went would have saved, and again when it is used, so that what
 * nobody uses goes in the end (GreedyDual: Young 1994; Cao and Irani 1997, USITS).
 *
 * Threading: no locking.
 */
#ifndef SLM_ENGINE_KV_PREFIX_H
#define SLM_ENGINE_KV_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/kv/kvpages.h"

struct prefix_cache;

/* A checkpoint for fewer tokens is not worth its place. */
#define PREFIX_MIN_SAVED 32

/* pages must outlive it. n_places: checkpoints, of texts of n_ctx tokens at most; 0:
 * texts are continued anywhere, and pages is not NULL. Error: ST_NO_MEMORY. */
enum status prefix_open(struct prefix_cache **c, struct kvpages *pages, int n_places,
                        int n_ctx, struct err *err);
void prefix_close(struct prefix_cache *c);

/* The most positions that a known text and tokens[n] have in common, and the pages with
 * them: page[i] has positions i * KVCACHE_PAGE on, of which the last may know more.
 * page has room for n positions. */
size_t prefix_find(struct prefix_cache *c, const int32_t *tokens, size_t n,
                   uint32_t *page);

/* Keep the pages of tokens[n], those that are not known. */
void prefix_add(struct prefix_cache *c, const int32_t *tokens, size_t n,
                const uint32_t *page);

/* Forget pages until n_free of all are free, or none is known. */
void prefix_forget(struct prefix_cache *c, size_t n_free);

/* Pages that are known, and those of them that nobody else has: forgetting all would
 * free them. */
size_t prefix_pages(const struct prefix_cache *c);
size_t prefix_own_pages(const struct prefix_cache *c);

/* ---- with checkpoints ------------------------------------------------------------ */

/* The last position with a checkpoint of what a known text and tokens[n] have in
 * common, or 0; *n_common: how much that is. Nothing counts as used. */
size_t prefix_look(struct prefix_cache *c, const int32_t *tokens, size_t n,
                   size_t *n_common);

/* The same, to be used: its place, and the pages as prefix_find() gives them. */
size_t prefix_take(struct prefix_cache *c, const int32_t *tokens, size_t n,
                   uint32_t *page, int *place);

enum prefix_why {
    PREFIX_END,     /* a text may well continue here */
    PREFIX_BRANCH,  /* texts are known that do, in different ways */
    PREFIX_INTERVAL /* it is a while since the last one */
};

/* A place for a checkpoint behind n tokens of a text, which begins with
 * tokens[n_known]. It saves those behind the last checkpoint that is kept of these;
 * tokens NULL: behind one at n_known that has only got its place. -1: it would save
 * less than the others. It is the caller's until prefix_add_place() or
 * prefix_drop_place(). */
int prefix_new_place(struct prefix_cache *c, const int32_t *tokens, size_t n_known,
                     size_t n, enum prefix_why why);
void prefix_drop_place(struct prefix_cache *c, int place);

/* The checkpoint behind tokens[n] is in the place: keep it, with the pages before it,
 * unless there is one already. */
void prefix_add_place(struct prefix_cache *c, int place, const int32_t *tokens,
                      size_t n, const uint32_t *page);

/* Checkpoints that are kept, and places that nobody has. */
size_t prefix_places(const struct prefix_cache *c);
size_t prefix_free_places(const struct prefix_cache *c);

/* Checkpoints that have ever been kept, and calls of prefix_take() that found one. */
void prefix_count(const struct prefix_cache *c, uint64_t *n_made, uint64_t *n_taken);

#endif
