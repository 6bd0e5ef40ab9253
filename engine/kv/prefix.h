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
 * Not for caches with rings or states: these belong to the end of a sequence.
 *
 * Threading: no locking.
 */
#ifndef SLM_ENGINE_KV_PREFIX_H
#define SLM_ENGINE_KV_PREFIX_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/kv/kvpages.h"

struct prefix_cache;

/* pages must outlive it. Error: ST_NO_MEMORY. */
enum status prefix_open(struct prefix_cache **c, struct kvpages *pages,
                        struct err *err);
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

#endif
