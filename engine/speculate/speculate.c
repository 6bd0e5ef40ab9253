/* SPDX-License-Identifier: MIT
 *
 * speculate.c - draft tokens, evaluate them in one pass, keep those that the sampler
 * draws too
 */
#include "engine/speculate/speculate.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/mtp.h"

/* Length of the n-grams whose earlier occurrence gives a draft. */
#define NGRAM_MAX (SPECULATE_SOURCES - 1)
#define NGRAM_MIN 2

struct speculator {
    struct slm *m, *draft;
    struct sampler *s, *draft_s;
    const struct tokenizer *tok;
    bool always, mtp;
    double accept;      /* > 0: instead of what is drawn */
    uint64_t rng_state; /* of that */
    int n_max;
    int32_t n_shared; /* ids that the draft model knows, too; those above are padding */

    int32_t *text; /* [text_capacity()] what m's cache holds, and the next token; of a
                      sequence without end the last of it */
    int n_text;
    int n_forgotten; /* positions of the draft model's cache before the text */

    struct speculate_rule rule;
    bool cut; /* drafted tokens of the last pass were rejected */
    struct speculate_stats stats;
};

/* Whether two vocabularies have the same token of a number: a text, or none. */
static bool same_token(const struct tokenizer *a, const struct tokenizer *b, int32_t id)
{
    const bool in_a = id < tokenizer_n_vocab(a) && !tokenizer_is_unused(a, id);
    const bool in_b = id < tokenizer_n_vocab(b) && !tokenizer_is_unused(b, id);
    size_t len_a, len_b;

    if (!in_a || !in_b)
        return in_a == in_b;
    const char *text_a = tokenizer_text(a, id, &len_a);
    const char *text_b = tokenizer_text(b, id, &len_b);

    return len_a == len_b && !memcmp(text_a, text_b, len_a);
}

enum status speculate_check_draft(const struct slm_info *info,
                                  const struct tokenizer *tok,
                                  const struct slm_info *draft,
                                  const struct tokenizer *draft_tok, int32_t *n_shared,
                                  struct err *err)
{
    const int32_t n = tokenizer_n_vocab(tok), n_other = tokenizer_n_vocab(draft_tok);
    const int32_t least = n < n_other ? n : n_other;

    if (draft->n_vocab < n_other)
        return err_set(err, ST_USAGE,
                       "the draft model has another vocabulary: %d tokens, and its "
                       "embedding has rows for %d",
                       (int)n_other, draft->n_vocab);
    /* Models of one family pad their embeddings to different sizes. */
    for (int32_t id = 0; id < n || id < n_other; id++)
        if (!same_token(tok, draft_tok, id))
            return err_set(err, ST_USAGE,
                           "the draft model has another vocabulary (%d tokens, and the "
                           "model has %d): its token %d is not the model's",
                           (int)n_other, (int)n, (int)id);
    if (info->kv_window && !draft->kv_window)
        return err_set(err, ST_USAGE,
                       "the draft model has a context of %d positions, and the model's "
                       "has no end: it needs a window, too",
                       draft->n_ctx);
    if (draft->n_ctx < info->n_ctx)
        return err_set(
            err, ST_USAGE,
            "the draft model has a context of %d positions and needs the model's %d",
            draft->n_ctx, info->n_ctx);
    *n_shared = least < draft->n_vocab ? least : draft->n_vocab;
    return ST_OK;
}

/* The draft model reads tokens: another one in place of those that it does not have. */
static enum status eval_draft(struct speculator *sp, const int32_t *tokens, size_t n,
                              enum slm_logits which, struct err *err)
{
    int32_t part[64];
    size_t n_known = 0;
    enum status st = ST_OK;

    while (n_known < n && tokens[n_known] < sp->n_shared)
        n_known++;
    if (n_known == n)
        return slm_eval(sp->draft, tokens, n, which, err);
    for (size_t at = 0, k; at < n && !st; at += k) {
        k = n - at < 64 ? n - at : 64;
        for (size_t i = 0; i < k; i++)
            part[i] = tokens[at + i] < sp->n_shared ? tokens[at + i] : 0;
        st = slm_eval(sp->draft, part, k, at + k < n ? SLM_LOGITS_NONE : which, err);
    }
    return st;
}

/* A first text as long as the context, and everything decoded after it. */
static int text_capacity(const struct slm *m)
{
    return 2 * (slm_info(m)->n_ctx + 1);
}

/* How much faster memory is than disks, roughly: measured passes soon say it better. */
#define DISK_SLOWNESS 20.0

/* The share of a pass in which it waits for streamed weights. */
static double streamed_share(const struct slm_info *info)
{
    const double disk = DISK_SLOWNESS * (double)info->streamed_bytes;

    return disk / (disk + (double)info->weight_token_bytes);
}

enum status speculate_open(struct speculator **out, struct slm *m, struct sampler *s,
                           const struct tokenizer *tok,
                           const struct speculate_params *p, struct err *err)
{
    const int width = slm_info(m)->n_logits;
    struct speculator *sp;
    enum status st = ST_OK;

    if (p->n_max < 0 || p->n_max > SPECULATE_MAX)
        return err_set(err, ST_USAGE, "drafts of %d tokens: 1 to %d are possible",
                       p->n_max, SPECULATE_MAX);
    sp = calloc(1, sizeof *sp);
    if (sp)
        sp->text = malloc((size_t)text_capacity(m) * sizeof *sp->text);
    if (!sp || !sp->text) {
        free(sp);
        return err_set(err, ST_NO_MEMORY, "no memory to speculate");
    }
    sp->m = m;
    sp->s = s;
    sp->tok = tok;
    sp->draft = p->draft;
    sp->always = p->always;
    sp->mtp = p->mtp && !p->draft;
    sp->accept = p->accept;
    sp->n_max = p->n_max ? p->n_max : SPECULATE_MAX;
    if (sp->n_max > width - 1)
        sp->n_max = width - 1;
    speculate_rule_begin(&sp->rule, streamed_share(slm_info(m)));
    if (sp->draft) {
        st = speculate_check_draft(slm_info(m), tok, slm_info(sp->draft), p->draft_tok,
                                   &sp->n_shared, err);
        if (!st)
            st = sampler_open(&sp->draft_s, p->sampling, sp->n_shared, err);
    } else if (sp->mtp) {
        speculate_rule_trust(&sp->rule);
        st = sampler_open(&sp->draft_s, p->sampling,
                          tok ? tokenizer_n_vocab(tok) : slm_info(m)->n_vocab, err);
    }
    if (st)
        speculate_close(sp);
    else
        *out = sp;
    return st;
}

void speculate_close(struct speculator *sp)
{
    if (!sp)
        return;
    sampler_close(sp->draft_s);
    free(sp->text);
    free(sp);
}

enum status speculate_begin(struct speculator *sp, const int32_t *tokens, size_t n,
                            struct err *err)
{
    const size_t most = (size_t)slm_info(sp->m)->n_ctx;

    if (n > most && !slm_info(sp->m)->kv_window)
        return err_set(err, ST_USAGE, "%zu tokens are more than the context of %zu", n,
                       most);
    if (n > most) {
        tokens += n - most;
        n = most;
    }
    memcpy(sp->text, tokens, n * sizeof *tokens);
    sp->n_text = (int)n;
    sp->n_forgotten = 0;
    if (!sp->draft)
        return ST_OK;
    slm_truncate(sp->draft, 0);
    return eval_draft(sp, tokens, n, SLM_LOGITS_NONE, err);
}

/* ---- drafting -------------------------------------------------------------------- */

/* Where the last n tokens of the text last occurred before, or -1. */
static int find_before(const int32_t *text, int n_text, int n)
{
    const int32_t *end = text + n_text - n;

    for (int at = n_text - n - 1; at >= 0; at--)
        if (text[at + n - 1] == end[n - 1] &&
            !memcmp(text + at, end, (size_t)n * sizeof *end))
            return at;
    return -1;
}

int speculate_lookup(const int32_t *text, int n_text, int n_max, int32_t *draft,
                     int *source)
{
    for (int n = NGRAM_MAX; n >= NGRAM_MIN; n--) {
        const int at = n_text > n ? find_before(text, n_text, n) : -1;

        if (at < 0)
            continue;
        for (int i = 0; i < n_max; i++) {
            const int from = at + n + i;

            draft[i] = from < n_text ? text[from] : draft[from - n_text];
        }
        *source = n;
        return n_max;
    }
    *source = 0;
    return 0;
}

/* What the draft model draws, with the random numbers that the sampler will use. */
static enum status draft_from_model(struct speculator *sp, int n_max, int32_t *draft,
                                    int *n, struct err *err)
{
    const int known = slm_n_past(sp->draft) - sp->n_forgotten;
    enum status st = eval_draft(sp, sp->text + known, (size_t)(sp->n_text - known),
                                SLM_LOGITS_LAST, err);

    sampler_follow(sp->draft_s, sp->s);
    for (*n = 0; !st && *n < n_max;) {
        const int32_t id = sampler_next(sp->draft_s, slm_logits(sp->draft, 0));

        draft[(*n)++] = id;
        sampler_accept(sp->draft_s, id);
        if (tokenizer_is_end(sp->tok, id))
            break;
        if (*n < n_max)
            st = slm_eval(sp->draft, &id, 1, SLM_LOGITS_LAST, err);
    }
    return st;
}

/* What the model's own layer that predicts further tokens draws; text ends with the
 * token that has not been evaluated. */
static void draft_from_mtp(struct speculator *sp, int n_max, int32_t *draft, int *n)
{
    struct mtp_guess g = {.id = sp->text[sp->n_text - 1]};

    sampler_follow(sp->draft_s, sp->s);
    mtp_first(sp->m, &g, 1);
    for (*n = 0; g.logits;) {
        g.id = draft[(*n)++] = sampler_next(sp->draft_s, g.logits);
        sampler_accept(sp->draft_s, g.id);
        if (*n == n_max || (sp->tok && tokenizer_is_end(sp->tok, g.id)))
            break;
        mtp_next(sp->m, &g, 1);
    }
}

/* ---- a step ---------------------------------------------------------------------- */

static void learn(struct speculator *sp, const struct speculate_step *s,
                  int32_t drafted, int32_t drawn)
{
    sp->stats.n_passes++;
    sp->stats.n_drafted += (uint64_t)s->n_drafted;
    sp->stats.n_accepted += (uint64_t)s->n_accepted;
    sp->stats.n_tokens += (uint64_t)s->n_accepted + 1;
    for (int i = 0; i < s->n_drafted; i++) {
        /* positions behind a rejected token were not tried */
        sp->stats.drafted_at[i] += i <= s->n_accepted;
        sp->stats.accepted_at[i] += i < s->n_accepted;
    }
    speculate_rule_learn(&sp->rule, s);
    if (s->n_drafted)
        return;
    if (sp->draft || sp->mtp)
        speculate_rates_forget(&sp->rule.rates, 0);
    else if (s->source)
        speculate_rates_compare(&sp->rule.rates, s->source, drafted == drawn);
}

/* The drafted token with a set probability, or else another one. */
static int32_t pretend(struct speculator *sp, int32_t drafted, int32_t drawn)
{
    if ((double)(random_bits(&sp->rng_state) >> 11) * 0x1p-53 < sp->accept)
        return drafted;
    if (drawn != drafted)
        return drawn;
    return drafted ? drafted - 1 : 1;
}

/* Draw after the pass: the next logits are valid as long as the drawn tokens are the
 * drafted ones. */
static int draw(struct speculator *sp, const int32_t *draft, int n_drafted,
                int32_t *out)
{
    int n = 0;

    for (;;) {
        int32_t id = sampler_next(sp->s, slm_logits(sp->m, (size_t)n));

        if (sp->accept > 0 && n < n_drafted)
            id = pretend(sp, draft[n], id);
        sampler_accept(sp->s, id);
        out[n++] = id;
        if (n > n_drafted || draft[n - 1] != id ||
            (sp->tok && tokenizer_is_end(sp->tok, id)))
            return n;
    }
}

/* Draft at most n_max tokens that continue the text. */
static enum status make_draft(struct speculator *sp, int n_max, int32_t *draft, int *n,
                              int *source, struct err *err)
{
    *n = *source = 0;
    if (n_max <= 0)
        return ST_OK;
    if (sp->draft) {
        n_max = sp->always ? n_max : speculate_rule_length(&sp->rule, 0, n_max);
        return n_max ? draft_from_model(sp, n_max, draft, n, err) : ST_OK;
    }
    if (sp->mtp) {
        n_max = sp->always ? n_max : speculate_rule_length(&sp->rule, 0, n_max);
        if (n_max)
            draft_from_mtp(sp, n_max, draft, n);
        return ST_OK;
    }
    *n = speculate_lookup(sp->text, sp->n_text, n_max, draft, source);
    if (*n && !sp->always)
        *n = speculate_rule_length(&sp->rule, *source, *n);
    return ST_OK;
}

/* Of a sequence without end, keep a context of its text, which the draft model has read
 * as far as it goes. */
static enum status forget_text(struct speculator *sp, struct err *err)
{
    const int n = sp->n_text - slm_info(sp->m)->n_ctx;

    if (sp->draft) {
        const int known = slm_n_past(sp->draft) - sp->n_forgotten;
        const enum status st =
            known < n ? eval_draft(sp, sp->text + known, (size_t)(n - known),
                                   SLM_LOGITS_NONE, err)
                      : ST_OK;

        if (st)
            return st;
    }
    memmove(sp->text, sp->text + n, (size_t)(sp->n_text - n) * sizeof *sp->text);
    sp->n_text -= n;
    sp->n_forgotten += n;
    return ST_OK;
}

/* Cut the draft model's cache back to the text; where it cannot return, it reads the
 * text again. */
static void cut_draft(struct speculator *sp)
{
    const int end = sp->n_forgotten + sp->n_text;

    if (slm_n_past(sp->draft) <= end)
        return;
    if (end >= slm_min_past(sp->draft)) {
        slm_truncate(sp->draft, end);
    } else {
        slm_truncate(sp->draft, 0);
        sp->n_forgotten = 0;
    }
}

enum status speculate_next(struct speculator *sp, int32_t id, int n_max,
                           int32_t out[SPECULATE_MAX + 1], int *n_out, struct err *err)
{
    const int n_past = slm_n_past(sp->m), room = slm_n_free(sp->m) - 1;
    struct speculate_step step = {.again = sp->cut && slm_info(sp->m)->n_recurrent > 0};
    int32_t pass[SPECULATE_MAX + 1];
    int n = sp->n_max;
    uint64_t begin_ns = clock_ns(), pass_ns;
    enum status st;

    if (room < 0) /* slm_eval() reports the full context */
        return slm_eval(sp->m, &id, 1, SLM_LOGITS_LAST, err);
    n = n < n_max - 1 ? n : n_max - 1;
    n = n < room ? n : room;
    if (sp->n_text + n + 1 > text_capacity(sp->m)) {
        if (!slm_info(sp->m)->kv_window)
            return err_set(err, ST_USAGE,
                           "more tokens were decoded than the context holds; call "
                           "speculate_begin() again");
        if (forget_text(sp, err))
            return err->code;
    }
    pass[0] = pass[1] = sp->text[sp->n_text++] = id;
    st = make_draft(sp, n, pass + 1, &n, &step.source, err);
    pass_ns = clock_ns();
    if (!st)
        st = slm_eval(sp->m, pass, (size_t)n + 1, n ? SLM_LOGITS_ALL : SLM_LOGITS_LAST,
                      err);
    if (st) {
        sp->n_text--;
        return st;
    }
    step.draft_ns = (double)(pass_ns - begin_ns);
    step.pass_ns = (double)(clock_ns() - pass_ns);
    *n_out = draw(sp, pass + 1, n, out);
    step.n_drafted = n;
    step.n_accepted = *n_out - 1;
    sp->cut = step.n_accepted < n;
    learn(sp, &step, pass[1], out[0]);
    slm_truncate(sp->m, n_past + *n_out);
    memcpy(sp->text + sp->n_text, out, (size_t)(*n_out - 1) * sizeof *out);
    sp->n_text += *n_out - 1;
    if (sp->draft)
        cut_draft(sp);
    return ST_OK;
}

void speculate_read_stats(const struct speculator *sp, struct speculate_stats *out)
{
    const double plain_ns = sp->rule.all_ns + sp->rule.gained_ns;

    *out = sp->stats;
    out->gain = sp->rule.all_ns > 0 ? plain_ns / sp->rule.all_ns : 0;
}
