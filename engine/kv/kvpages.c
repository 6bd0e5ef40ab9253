/* SPDX-License-Identifier: MIT
 *
 * kvpages.c - tables of pages, and counting their owners
 */
#include "engine/kv/kvpages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum status kvpages_open(struct kvpages **pages, size_t n_pages, int n_sequences,
                         size_t n_slots, struct err *err)
{
    struct kvpages *p = calloc(1, sizeof *p);
    const size_t n_entries = (n_slots + KVCACHE_PAGE - 1) / KVCACHE_PAGE;

    assert(n_sequences > 0 && n_pages < KVPAGES_NONE);
    if (p) {
        p->n_pages = p->n_free = n_pages;
        p->n_sequences = n_sequences;
        p->n_entries = n_entries;
        p->table = calloc((size_t)n_sequences * n_entries, sizeof *p->table);
        p->n_owners = calloc(n_pages, sizeof *p->n_owners);
        p->free = calloc(n_pages, sizeof *p->free);
        p->n_writers = calloc(n_pages, sizeof *p->n_writers);
    }
    if (!p || !p->table || !p->n_owners || !p->free || !p->n_writers) {
        kvpages_close(p);
        return err_set(err, ST_NO_MEMORY,
                       "no memory for the tables of %d sequences of %zu pages each",
                       n_sequences, n_entries);
    }
    memset(p->table, 0xff, (size_t)n_sequences * n_entries * sizeof *p->table);
    /* The first pages are taken first. */
    for (size_t i = 0; i < n_pages; i++)
        p->free[i] = (uint32_t)(n_pages - 1 - i);
    *pages = p;
    return ST_OK;
}

void kvpages_close(struct kvpages *p)
{
    if (!p)
        return;
    free(p->table);
    free(p->n_owners);
    free(p->free);
    free(p->n_writers);
    free(p);
}

void kvpages_hold(struct kvpages *p, uint32_t page)
{
    assert(page < p->n_pages && p->n_owners[page] > 0);
    p->n_owners[page]++;
}

void kvpages_release(struct kvpages *p, uint32_t page)
{
    assert(page < p->n_pages && p->n_owners[page] > 0);
    if (--p->n_owners[page] == 0)
        p->free[p->n_free++] = page;
}

bool kvpages_wants(const struct kvpages *p, int seq, size_t i)
{
    const uint32_t page = *kvpages_entry(p, seq, i);

    return page == KVPAGES_NONE || p->n_owners[page] > 1;
}

void kvpages_count(struct kvpages *p, int seq, size_t i)
{
    const uint32_t page = *kvpages_entry(p, seq, i);

    if (page != KVPAGES_NONE)
        p->n_writers[page]++;
}

size_t kvpages_sum(struct kvpages *p, int seq, size_t i)
{
    const uint32_t page = *kvpages_entry(p, seq, i);
    size_t n;

    if (page == KVPAGES_NONE)
        return 1;
    n = p->n_writers[page];
    p->n_writers[page] = 0; /* it is in the sum */
    return n - (n > 0 && n == p->n_owners[page]);
}

bool kvpages_own(struct kvpages *p, int seq, size_t i, uint32_t *from)
{
    uint32_t *entry = kvpages_entry(p, seq, i);

    assert(i < p->n_entries);
    *from = *entry;
    if (!kvpages_wants(p, seq, i))
        return true;
    if (p->n_free == 0)
        return false;
    if (*entry != KVPAGES_NONE)
        p->n_owners[*entry]--;
    *entry = p->free[--p->n_free];
    p->n_owners[*entry] = 1;
    return true;
}

void kvpages_cut(struct kvpages *p, int seq, size_t i)
{
    for (; i < p->n_entries; i++) {
        uint32_t *entry = kvpages_entry(p, seq, i);

        if (*entry != KVPAGES_NONE)
            kvpages_release(p, *entry);
        *entry = KVPAGES_NONE;
    }
}

void kvpages_share(struct kvpages *p, int seq, size_t i, uint32_t page)
{
    uint32_t *entry = kvpages_entry(p, seq, i);

    assert(i < p->n_entries && *entry == KVPAGES_NONE);
    kvpages_hold(p, page);
    *entry = page;
}
