/* SPDX-License-Identifier: MIT
 *
 * kvpages.h - which page of the KV cache has which positions of which sequence
 *
 * Model of the world: n_pages pages of KVCACHE_PAGE slots, and for each sequence a
 * table with the page of its first slots, of the next ones, and so on. A page has as
 * many owners as tables and others (a cache of prefixes) count it; without owners it is
 * free. Only arithmetic: what is in the pages is the caller's.
 *
 * Threading: no locking. A table may be read while nobody changes it.
 */
#ifndef SLM_ENGINE_KV_KVPAGES_H
#define SLM_ENGINE_KV_KVPAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* Positions of a page: what attention reads at a time. */
#define KVCACHE_PAGE ((size_t)256)

#define KVPAGES_NONE UINT32_MAX

struct kvpages {
    size_t n_pages, n_free;
    int n_sequences;
    size_t n_entries;    /* of a sequence's table */
    uint32_t *table;     /* [n_sequences][n_entries] page, or KVPAGES_NONE */
    uint32_t *n_owners;  /* [n_pages] */
    uint32_t *free;      /* [n_free] as a stack */
    uint32_t *n_writers; /* [n_pages] zeros, but while pages are counted */
};

/* For sequences of up to n_slots slots each. Error: ST_NO_MEMORY. */
enum status kvpages_open(struct kvpages **pages, size_t n_pages, int n_sequences,
                         size_t n_slots, struct err *err);
void kvpages_close(struct kvpages *p);

static inline uint32_t *kvpages_entry(const struct kvpages *p, int seq, size_t i)
{
    return &p->table[(size_t)seq * p->n_entries + i];
}

/* Where a slot of a sequence is among those of all pages. It must have a page. */
static inline size_t kvpages_place(const struct kvpages *p, int seq, size_t slot)
{
    return *kvpages_entry(p, seq, slot / KVCACHE_PAGE) * KVCACHE_PAGE +
           slot % KVCACHE_PAGE;
}

/* A page for entry i of a sequence that it has for itself. *from is the page it had,
 * from which the caller copies what it needs, or KVPAGES_NONE. True: it has one now;
 * false: no page is free. */
bool kvpages_own(struct kvpages *p, int seq, size_t i, uint32_t *from);

/* Whether kvpages_own() would take a free page. */
bool kvpages_wants(const struct kvpages *p, int seq, size_t i);

/* Pages that kvpages_own() would take for several entries, one after the other: count
 * each of them, and then sum up all of them again. The last owner of a page
 * keeps it. */
void kvpages_count(struct kvpages *p, int seq, size_t i);
size_t kvpages_sum(struct kvpages *p, int seq, size_t i);

/* The sequence gives up its pages from entry i on. */
void kvpages_cut(struct kvpages *p, int seq, size_t i);

/* Entry i of the sequence, which has none, is this page from now on, too. */
void kvpages_share(struct kvpages *p, int seq, size_t i, uint32_t page);

/* One owner more, or less, that is no sequence. */
void kvpages_hold(struct kvpages *p, uint32_t page);
void kvpages_release(struct kvpages *p, uint32_t page);

#endif
