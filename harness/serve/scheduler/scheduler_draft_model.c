/* SPDX-License-Identifier: MIT
 *
 * scheduler_draft_model.c - a draft model's sequences, which follow the completions'
 *
 * Sequence i of the draft model holds a beginning of the text of the completion that
 * has the model's sequence i. It lags behind: a text is read once guesses of it are
 * wanted. It may leave out n_skipped tokens behind the first one, which models attend
 * to wherever they are (https://arxiv.org/abs/2309.17453): guesses are worse then, and
 * nothing else. Its pages are for what is guessed now; where they run out, kept
 * prefixes are forgotten first, then what has been read of other texts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/serve/scheduler/scheduler_impl.h"

enum status scheduler_open_draft_model(struct scheduler *s, struct err *err)
{
    const struct scheduler_params *p = &s->params;
    const struct slm_info *info = slm_info(p->m);
    const struct slm_info *draft = p->draft ? slm_info(p->draft) : NULL;

    if (!draft || draft->n_sequences < s->n_sequences ||
        draft->n_logits < s->n_sequences)
        return err_set(err, ST_USAGE,
                       "a draft model needs as many sequences and logits as the model "
                       "has sequences, %d",
                       s->n_sequences);
    if (speculate_check_draft(info, p->tok, draft, p->draft_tok, &s->n_shared, err))
        return err->code;
    s->guess_ratio =
        (double)draft->weight_token_bytes / (double)(info->weight_token_bytes + 1);
    s->draft_ids = calloc((size_t)draft->n_batch, sizeof *s->draft_ids);
    s->draft_parts = calloc((size_t)s->n_sequences, sizeof *s->draft_parts);
    return s->draft_ids && s->draft_parts
               ? ST_OK
               : err_set(err, ST_NO_MEMORY, "no memory for passes of a draft model");
}

void scheduler_close_draft_model(struct scheduler *s)
{
    free(s->draft_ids);
    free(s->draft_parts);
}

int scheduler_unread(const struct scheduler *s, const struct completion *c)
{
    return s->params.draft
               ? c->n - c->n_skipped - slm_seq_n_past(s->params.draft, c->seq)
               : 1;
}

/* ---- passes ---------------------------------------------------------------------- */

static bool is_part(const struct scheduler *s, int n, int seq)
{
    for (int i = 0; i < n; i++)
        if (s->draft_parts[i].seq == seq)
            return true;
    return false;
}

/* Whether the n parts have pages. */
static bool has_pages(struct scheduler *s, int n)
{
    struct slm *d = s->params.draft;
    size_t n_pages, n_free, wanted = slm_batch_pages(d, s->draft_parts, n);

    slm_pages(d, &n_pages, &n_free);
    if (wanted > n_free) {
        slm_prefix_forget(d, wanted);
        slm_pages(d, &n_pages, &n_free);
        wanted = slm_batch_pages(d, s->draft_parts, n);
    }
    for (int seq = 0; wanted > n_free && seq < s->n_sequences; seq++) {
        if (is_part(s, n, seq))
            continue;
        slm_seq_truncate(d, seq, 0);
        slm_pages(d, &n_pages, &n_free);
        wanted = slm_batch_pages(d, s->draft_parts, n);
    }
    return wanted <= n_free;
}

/* What fails once, fails: there are no further drafts, and answers continue. */
static void give_up(struct scheduler *s, const struct err *err)
{
    struct slm *d = s->params.draft;
    size_t n_pages, n_free;

    fprintf(stderr, "bench: no more drafts, since the draft model fails: %s\n",
            err->msg);
    s->max_drafted = 0;
    for (int seq = 0; seq < s->n_sequences; seq++)
        slm_seq_truncate(d, seq, 0);
    slm_pages(d, &n_pages, &n_free);
    slm_prefix_forget(d, n_pages);
}

static bool run(struct scheduler *s, int n)
{
    struct err err = ERR_INIT;

    if (!has_pages(s, n))
        return false;
    if (!slm_batch(s->params.draft, s->draft_parts, n, &err))
        return true;
    give_up(s, &err);
    return false;
}

/* The next n tokens of c's text to ids, or a guess; another one in place of those that
 * it does not have. */
static void set_part(struct scheduler *s, int i, const struct completion *c,
                     const int32_t *guess, int n, int32_t *ids)
{
    const int past = slm_seq_n_past(s->params.draft, c->seq);

    for (int k = 0; k < n; k++) {
        const int at = past + k ? past + k + c->n_skipped : 0;
        const int32_t id = guess ? *guess : c->tokens[at];

        ids[k] = id < s->n_shared ? id : 0;
    }
    s->draft_parts[i] = (struct slm_part){
        .seq = c->seq, .tokens = ids, .n = n, .which = SLM_LOGITS_LAST};
}

int scheduler_guess_next(struct scheduler *s, int n, bool first)
{
    int total = 0;
    bool ok;

    for (int i = 0; i < n; i++) {
        const struct mtp_guess *g = &s->guesses[i];
        const struct completion *c = s->running[g->seq];
        const int n_new = first ? scheduler_unread(s, c) : 1;

        set_part(s, i, c, first ? NULL : &g->id, n_new, s->draft_ids + total);
        total += n_new;
    }
    ok = run(s, n);
    for (int i = 0; i < n; i++)
        s->guesses[i].logits =
            ok ? slm_batch_logits(s->params.draft, i, 0) : (const float *)NULL;
    return total;
}

void scheduler_read_draft(struct scheduler *s, const struct completion *c, int n)
{
    set_part(s, 0, c, NULL, n, s->draft_ids);
    s->draft_parts[0].which = SLM_LOGITS_NONE;
    run(s, 1);
}

void scheduler_skip_draft(struct scheduler *s, struct completion *c, int n)
{
    scheduler_cut_draft(s, c, 0);
    c->n_skipped = c->n - 1 - n;
}

/* ---- sequences ------------------------------------------------------------------- */

void scheduler_cut_draft(struct scheduler *s, const struct completion *c, int n_past)
{
    struct slm *d = s->params.draft;
    const int at = n_past > c->n_skipped ? n_past - c->n_skipped : 0;

    if (d && slm_seq_n_past(d, c->seq) > at)
        slm_seq_truncate(d, c->seq, at >= slm_seq_min_past(d, c->seq) ? at : 0);
}

void scheduler_begin_draft(struct scheduler *s, struct completion *c)
{
    c->n_skipped = 0;
    if (s->params.draft && s->params.keep_prefixes && !c->computes_all)
        slm_prefix_take(s->params.draft, c->seq, c->tokens, c->n);
}

void scheduler_share_draft(struct scheduler *s, const struct completion *from,
                           const struct completion *c, int n)
{
    struct slm *d = s->params.draft;

    /* from checkpoints alone where layers have windows or states */
    if (!d || slm_info(d)->n_checkpoints > 0 || from->n_skipped ||
        slm_seq_n_past(d, c->seq) >= n ||
        slm_seq_n_past(d, c->seq) >= slm_seq_n_past(d, from->seq))
        return;
    slm_seq_fork(d, from->seq, c->seq);
    scheduler_cut_draft(s, c, n);
}

void scheduler_end_draft(struct scheduler *s, const struct completion *c)
{
    if (s->params.draft && s->params.keep_prefixes && !c->n_skipped)
        slm_prefix_keep(s->params.draft, c->seq, c->tokens);
    scheduler_cut_draft(s, c, 0);
}
