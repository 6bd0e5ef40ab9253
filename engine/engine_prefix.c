/* SPDX-License-Identifier: MIT
 *
 * engine_prefix.c - pages of ended sequences, kept for those that begin alike
 */
#include <assert.h>

#include "engine/engine_impl.h"

bool slm_keeps_prefixes(const struct slm *m)
{
    return m->prefixes != NULL;
}

void slm_prefix_keep(struct slm *m, int seq, const int32_t *tokens)
{
    if (m->prefixes)
        prefix_add(m->prefixes, tokens, (size_t)m->seqs[seq].n_past,
                   kvpages_entry(m->kv.pages, seq, 0));
}

int slm_prefix_take(struct slm *m, int seq, const int32_t *tokens, int n)
{
    struct sequence *s = &m->seqs[seq];
    uint32_t *entry;
    size_t known, n_pages;

    assert(s->n_past == 0);
    if (!m->prefixes || n < 2)
        return 0;
    /* The table is empty, and as long as any text that fits. */
    entry = kvpages_entry(m->kv.pages, seq, 0);
    if (n > m->info.n_ctx)
        n = m->info.n_ctx;
    known = prefix_find(m->prefixes, tokens, (size_t)n - 1, entry);
    n_pages = (known + KVCACHE_PAGE - 1) / KVCACHE_PAGE;
    for (size_t i = 0; i < n_pages; i++)
        kvpages_hold(m->kv.pages, entry[i]);
    s->n_past = (int)known;
    return s->n_past;
}

void slm_prefix_forget(struct slm *m, size_t n_free)
{
    if (m->prefixes)
        prefix_forget(m->prefixes, n_free);
}

void slm_prefix_pages(const struct slm *m, size_t *n, size_t *n_own)
{
    *n = m->prefixes ? prefix_pages(m->prefixes) : 0;
    if (n_own)
        *n_own = m->prefixes ? prefix_own_pages(m->prefixes) : 0;
}
