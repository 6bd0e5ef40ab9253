/* SPDX-License-Identifier: MIT
 *
 * engine_prefix.c - what sequences began with, kept for those that begin alike: pages,
 * and checkpoints where pages are not enough
 */
#include <assert.h>

#include "engine/engine_impl.h"
#include "engine/kv/checkpoint.h"

bool slm_keeps_prefixes(const struct slm *m)
{
    return m->prefixes != NULL;
}

static bool has_checkpoints(const struct slm *m)
{
    return m->prefixes && m->kv.shape.n_checkpoints > 0;
}

/* The pages of a sequence; NULL: it has none. */
static uint32_t *pages_of(const struct slm *m, int seq)
{
    return m->kv.pages ? kvpages_entry(m->kv.pages, seq, 0) : NULL;
}

/* ---- keeping --------------------------------------------------------------------- */

/* A checkpoint of the end, or of the last position whose states are there. */
static void keep_end(struct slm *m, int seq, const int32_t *tokens)
{
    struct sequence *s = &m->seqs[seq];
    const int n = rewind_kept(&s->rewind, &m->kv, s->n_past);
    const int place =
        n > 0 ? prefix_new_place(m->prefixes, tokens, (size_t)n, (size_t)n, PREFIX_END)
              : -1;

    if (place < 0)
        return;
    checkpoint_save(&m->kv, place, seq, (size_t)n,
                    rewind_states(&s->rewind, &m->kv, n));
    prefix_add_place(m->prefixes, place, tokens, (size_t)n, pages_of(m, seq));
}

void slm_prefix_keep(struct slm *m, int seq, const int32_t *tokens)
{
    if (has_checkpoints(m))
        keep_end(m, seq, tokens);
    else if (m->prefixes)
        prefix_add(m->prefixes, tokens, (size_t)m->seqs[seq].n_past, pages_of(m, seq));
}

void slm_prefix_mark(struct slm *m, int seq, int n_past, enum slm_mark why)
{
    struct sequence *s = &m->seqs[seq];
    int i = s->n_marks;

    assert(n_past > s->n_past && s->n_marks < SLM_MAX_MARKS);
    if (!has_checkpoints(m))
        return;
    s->n_marks++;
    for (; i > 0 && s->marks[i - 1].n_past > n_past; i--)
        s->marks[i] = s->marks[i - 1];
    s->marks[i].n_past = n_past;
    s->marks[i].why = why;
}

static enum prefix_why why_of(enum slm_mark why)
{
    return why == SLM_MARK_BRANCH ? PREFIX_BRANCH
           : why == SLM_MARK_END  ? PREFIX_END
                                  : PREFIX_INTERVAL;
}

void engine_place_marks(struct slm *m, struct forward_part *part)
{
    struct sequence *s = &m->seqs[part->seq];
    const int32_t *tokens = s->rewind.tokens;
    int before = s->n_past, n = 0;

    for (int i = 0; i < s->n_marks; i++) {
        struct prefix_mark mark = s->marks[i];

        if (mark.n_past > part->n_past + part->n)
            continue;
        mark.place = prefix_new_place(m->prefixes, tokens, (size_t)before,
                                      (size_t)mark.n_past, why_of(mark.why));
        if (mark.place < 0)
            continue;
        tokens = NULL; /* the next one is behind this one */
        before = mark.n_past;
        part->saves[part->n_saves++] = (struct forward_save){
            mark.n_past - part->n_past, checkpoint_states(&m->kv, mark.place)};
        s->marks[n++] = mark;
    }
    s->n_marks = n;
}

void engine_keep_marks(struct slm *m, int seq, bool ok)
{
    struct sequence *s = &m->seqs[seq];

    for (int i = 0; i < s->n_marks; i++) {
        const struct prefix_mark *mark = &s->marks[i];

        if (!ok) {
            prefix_drop_place(m->prefixes, mark->place);
            continue;
        }
        /* The pass has copied the states. */
        checkpoint_save(&m->kv, mark->place, seq, (size_t)mark->n_past, NULL);
        prefix_add_place(m->prefixes, mark->place, s->rewind.tokens,
                         (size_t)mark->n_past, pages_of(m, seq));
    }
    s->n_marks = 0;
}

/* ---- taking ---------------------------------------------------------------------- */

/* Positions that can be found of tokens[n]: one is left to compute. */
static int findable(const struct slm *m, int n)
{
    return (n < m->info.n_ctx ? n : m->info.n_ctx) - 1;
}

static int take_checkpoint(struct slm *m, int seq, const int32_t *tokens, int n)
{
    struct sequence *s = &m->seqs[seq];
    int place;
    const int known = (int)prefix_take(m->prefixes, tokens, (size_t)findable(m, n),
                                       pages_of(m, seq), &place);

    if (known)
        rewind_load(&s->rewind, &m->kv, place, tokens, known);
    return known;
}

int slm_prefix_take(struct slm *m, int seq, const int32_t *tokens, int n)
{
    struct sequence *s = &m->seqs[seq];
    uint32_t *entry = pages_of(m, seq);

    assert(s->n_past == 0);
    if (!m->prefixes || n < 2)
        return 0;
    /* The table is empty, and as long as any text that fits. */
    s->n_past = has_checkpoints(m) ? take_checkpoint(m, seq, tokens, n)
                                   : (int)prefix_find(m->prefixes, tokens,
                                                      (size_t)findable(m, n), entry);
    for (size_t i = 0; entry && i * KVCACHE_PAGE < (size_t)s->n_past; i++)
        kvpages_hold(m->kv.pages, entry[i]);
    return s->n_past;
}

int slm_prefix_look(const struct slm *m, const int32_t *tokens, int n, int *n_common)
{
    size_t common = 0, known = 0;

    if (has_checkpoints(m) && n >= 2)
        known = prefix_look(m->prefixes, tokens, (size_t)findable(m, n), &common);
    *n_common = (int)common;
    return (int)known;
}

/* ---- room ------------------------------------------------------------------------ */

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

size_t slm_prefix_checkpoints(const struct slm *m)
{
    return has_checkpoints(m) ? prefix_places(m->prefixes) : 0;
}

size_t slm_prefix_checkpoints_free(const struct slm *m)
{
    return has_checkpoints(m) ? prefix_free_places(m->prefixes) : 0;
}

void slm_prefix_count(const struct slm *m, uint64_t *n_made, uint64_t *n_restored)
{
    *n_made = *n_restored = 0;
    if (has_checkpoints(m))
        prefix_count(m->prefixes, n_made, n_restored);
}
