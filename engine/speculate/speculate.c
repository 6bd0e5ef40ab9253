/* SPDX-License-Identifier: MIT
 *
 * speculate.c - guess, check in one pass, keep what the sampler draws as well
 */
#include "engine/speculate/speculate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Tokens that must have occurred before, for what followed them to be a guess. */
#define NGRAM_MOST  (SPECULATE_SOURCES - 1)
#define NGRAM_LEAST 2

struct speculator {
    struct slm *m, *draft;
    struct sampler *s, *draft_s;
    const struct tokenizer *tok;
    bool always;
    int n_most;

    int32_t *text; /* [n_ctx] what m's cache holds, and the token behind it */
    int n_text;

    struct speculate_rule rule;
    bool cut; /* the last pass was taken back in part */
    struct speculate_stats stats;
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static enum status check_draft(const struct speculator *sp,
                               const struct tokenizer *other, struct err *err)
{
    const int32_t n = tokenizer_n_vocab(sp->tok), n_other = tokenizer_n_vocab(other);
    const int n_ctx = slm_info(sp->m)->n_ctx, have = slm_info(sp->draft)->n_ctx;

    if (n != n_other || slm_info(sp->draft)->n_vocab < n)
        return err_set(err, ST_USAGE,
                       "the draft model has another vocabulary: %d tokens, and the "
                       "model %d",
                       (int)n_other, (int)n);
    for (int32_t id = 0; id < n; id++) {
        size_t len, len_other;
        const char *text = tokenizer_text(sp->tok, id, &len);
        const char *text_other = tokenizer_text(other, id, &len_other);

        if (len != len_other || memcmp(text, text_other, len))
            return err_set(err, ST_USAGE,
                           "the draft model has another vocabulary: its token %d is "
                           "not the model's",
                           (int)id);
    }
    if (have < n_ctx)
        return err_set(err, ST_USAGE,
                       "the draft model has a context of %d positions, and the model "
                       "one of %d; it needs as many",
                       have, n_ctx);
    return ST_OK;
}

/* A text to begin with as long as the context, and all that is decoded from there. */
static int text_room(const struct slm *m)
{
    return 2 * (slm_info(m)->n_ctx + 1);
}

enum status speculate_open(struct speculator **out, struct slm *m, struct sampler *s,
                           const struct tokenizer *tok,
                           const struct speculate_params *p, struct err *err)
{
    const int width = slm_info(m)->n_logits;
    struct speculator *sp;
    enum status st = ST_OK;

    if (p->n_most < 0 || p->n_most > SPECULATE_MAX)
        return err_set(err, ST_USAGE, "guesses of %d tokens: 1 to %d are possible",
                       p->n_most, SPECULATE_MAX);
    sp = calloc(1, sizeof *sp);
    if (sp)
        sp->text = malloc((size_t)text_room(m) * sizeof *sp->text);
    if (!sp || !sp->text) {
        free(sp);
        return err_set(err, ST_NO_MEMORY, "no memory to speculate");
    }
    sp->m = m;
    sp->s = s;
    sp->tok = tok;
    sp->draft = p->draft;
    sp->always = p->always;
    sp->n_most = p->n_most ? p->n_most : SPECULATE_MAX;
    if (sp->n_most > width - 1)
        sp->n_most = width - 1;
    speculate_rule_begin(&sp->rule);
    if (sp->draft) {
        st = check_draft(sp, p->draft_tok, err);
        if (!st)
            st = sampler_open(&sp->draft_s, p->sampling, tokenizer_n_vocab(tok), err);
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
    if (n > (size_t)slm_info(sp->m)->n_ctx)
        return err_set(err, ST_USAGE, "%zu tokens are more than the context of %d", n,
                       slm_info(sp->m)->n_ctx);
    memcpy(sp->text, tokens, n * sizeof *tokens);
    sp->n_text = (int)n;
    if (!sp->draft)
        return ST_OK;
    slm_truncate(sp->draft, 0);
    return slm_eval(sp->draft, tokens, n, SLM_LOGITS_NONE, err);
}

/* ---- guessing ------------------------------------------------------------------- */

/* Where the last n tokens of the text last occurred before, or -1. */
static int find_before(const struct speculator *sp, int n)
{
    const int32_t *end = sp->text + sp->n_text - n;

    for (int at = sp->n_text - n - 1; at >= 0; at--)
        if (sp->text[at + n - 1] == end[n - 1] &&
            !memcmp(sp->text + at, end, (size_t)n * sizeof *end))
            return at;
    return -1;
}

/* What followed the longest end of the text that occurred before; *source is its
 * length, which tells how good the guess is. Where the text repeats itself the guess
 * runs on into what it has guessed. */
static int look_up(const struct speculator *sp, int n_most, int32_t *guess, int *source)
{
    for (int n = NGRAM_MOST; n >= NGRAM_LEAST; n--) {
        const int at = sp->n_text > n ? find_before(sp, n) : -1;

        if (at < 0)
            continue;
        for (int i = 0; i < n_most; i++) {
            const int from = at + n + i;

            guess[i] = from < sp->n_text ? sp->text[from] : guess[from - sp->n_text];
        }
        *source = n;
        return n_most;
    }
    *source = 0;
    return 0;
}

/* What the draft model draws, with the random numbers that will decide. */
static enum status draft(struct speculator *sp, int n_most, int32_t *guess, int *n,
                         struct err *err)
{
    const int known = slm_n_past(sp->draft);
    enum status st = slm_eval(sp->draft, sp->text + known, (size_t)(sp->n_text - known),
                              SLM_LOGITS_LAST, err);

    sampler_follow(sp->draft_s, sp->s);
    for (*n = 0; !st && *n < n_most;) {
        const int32_t id = sampler_next(sp->draft_s, slm_logits(sp->draft, 0));

        guess[(*n)++] = id;
        sampler_accept(sp->draft_s, id);
        if (tokenizer_is_end(sp->tok, id))
            break;
        if (*n < n_most)
            st = slm_eval(sp->draft, &id, 1, SLM_LOGITS_LAST, err);
    }
    return st;
}

/* ---- a step --------------------------------------------------------------------- */

static void learn(struct speculator *sp, const struct speculate_step *s, int32_t guess,
                  int32_t came)
{
    sp->stats.n_passes++;
    sp->stats.n_guessed += (uint64_t)s->n_guessed;
    sp->stats.n_accepted += (uint64_t)s->n_accepted;
    sp->stats.n_tokens += (uint64_t)s->n_accepted + 1;
    speculate_rule_learn(&sp->rule, s);
    if (s->n_guessed)
        return;
    if (sp->draft)
        speculate_rule_forget(&sp->rule, 0);
    else if (s->source)
        speculate_rule_compare(&sp->rule, s->source, guess == came);
}

/* Draw after the pass: as long as what is drawn was guessed, the next logits hold. */
static int draw(struct speculator *sp, const int32_t *guess, int n_guessed,
                int32_t *out)
{
    int n = 0;

    for (;;) {
        const int32_t id = sampler_next(sp->s, slm_logits(sp->m, (size_t)n));

        sampler_accept(sp->s, id);
        out[n++] = id;
        if (n > n_guessed || guess[n - 1] != id ||
            (sp->tok && tokenizer_is_end(sp->tok, id)))
            return n;
    }
}

/* At most n_most guessed tokens, behind the text. */
static enum status make_guess(struct speculator *sp, int n_most, int32_t *guess, int *n,
                              int *source, struct err *err)
{
    *n = *source = 0;
    if (n_most <= 0)
        return ST_OK;
    if (sp->draft) {
        n_most = sp->always ? n_most : speculate_rule_length(&sp->rule, 0, n_most);
        return n_most ? draft(sp, n_most, guess, n, err) : ST_OK;
    }
    *n = look_up(sp, n_most, guess, source);
    if (*n && !sp->always)
        *n = speculate_rule_length(&sp->rule, *source, *n);
    return ST_OK;
}

enum status speculate_next(struct speculator *sp, int32_t id, int n_most,
                           int32_t out[SPECULATE_MAX + 1], int *n_out, struct err *err)
{
    const int n_past = slm_n_past(sp->m), room = slm_info(sp->m)->n_ctx - n_past - 1;
    struct speculate_step step = {.again = sp->cut && slm_info(sp->m)->n_recurrent > 0};
    int32_t pass[SPECULATE_MAX + 1];
    int n = sp->n_most;
    double begin_ns = now_ns(), pass_ns;
    enum status st;

    if (room < 0) /* slm_eval()'s own words for it */
        return slm_eval(sp->m, &id, 1, SLM_LOGITS_LAST, err);
    n = n < n_most - 1 ? n : n_most - 1;
    n = n < room ? n : room;
    if (sp->n_text + n + 1 > text_room(sp->m))
        return err_set(err, ST_USAGE,
                       "more was decoded than the context holds: the speculator has to "
                       "begin again");
    pass[0] = pass[1] = sp->text[sp->n_text++] = id;
    st = make_guess(sp, n, pass + 1, &n, &step.source, err);
    pass_ns = now_ns();
    if (!st)
        st = slm_eval(sp->m, pass, (size_t)n + 1, n ? SLM_LOGITS_ALL : SLM_LOGITS_LAST,
                      err);
    if (st) {
        sp->n_text--;
        return st;
    }
    step.guess_ns = pass_ns - begin_ns;
    step.pass_ns = now_ns() - pass_ns;
    *n_out = draw(sp, pass + 1, n, out);
    step.n_guessed = n;
    step.n_accepted = *n_out - 1;
    sp->cut = step.n_accepted < n;
    learn(sp, &step, pass[1], out[0]);
    slm_truncate(sp->m, n_past + *n_out);
    memcpy(sp->text + sp->n_text, out, (size_t)(*n_out - 1) * sizeof *out);
    sp->n_text += *n_out - 1;
    if (sp->draft && slm_n_past(sp->draft) > sp->n_text)
        slm_truncate(sp->draft, sp->n_text);
    return ST_OK;
}

void speculate_read_stats(const struct speculator *sp, struct speculate_stats *out)
{
    *out = sp->stats;
}
