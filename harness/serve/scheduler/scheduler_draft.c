/* SPDX-License-Identifier: MIT
 *
 * scheduler_draft.c - whose next tokens are guessed, how many, and what became of them
 *
 * Rule: the guess that is likeliest to be accepted is added to the step, and again,
 * and the number is taken that gives the most tokens a second; none, unless that is
 * SPECULATE_MIN_GAIN times as many as without. The time of a step is predicted by how
 * long steps of as much work took (step_cost.h), so with several that decode there are
 * drafts where a step of more tokens costs little more, and no others. A guess is as
 * likely as guesses of its kind were before, for this completion; a new one begins with
 * what was the case for all. Completions that do not draft learn, too: lookup compares
 * what it would have drafted, and the rate of the model's layer slowly returns to its
 * first value, so that it is tried again.
 *
 * Where layers have states, tokens before a rejected one run again in the next step;
 * that is part of what a draft costs.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/serve/scheduler/scheduler_impl.h"

/* Weight of the newest measured time of a guess. */
#define NEWEST 0.1

/* A part that may have a draft. */
struct drafter {
    int part, most; /* tokens of the draft */
    int taken;
    double all;  /* probability that all that are taken are accepted */
    double next; /* and one more */
};

enum status scheduler_open_drafts(struct scheduler *s, struct err *err)
{
    const size_t n = (size_t)s->n_sequences;
    const int rows = slm_info(s->params.m)->n_logits - s->n_sequences;

    speculate_rates_begin(&s->rates, s->params.drafts == SCHEDULER_MTP);
    if (s->params.drafts == SCHEDULER_PLAIN)
        return ST_OK;
    s->max_drafted = rows < SCHEDULER_MAX_DRAFTED ? rows : SCHEDULER_MAX_DRAFTED;
    s->drafters = calloc(n, sizeof *s->drafters);
    s->guesses = calloc(n, sizeof *s->guesses);
    return s->drafters && s->guesses
               ? ST_OK
               : err_set(err, ST_NO_MEMORY, "no memory for drafts of %zu sequences", n);
}

void scheduler_close_drafts(struct scheduler *s)
{
    free(s->drafters);
    free(s->guesses);
}

/* ---- how many -------------------------------------------------------------------- */

/* The most tokens that part i may draft; a draft by lookup is there then. */
static int find_max(struct scheduler *s, int i)
{
    struct completion *c = s->part_of[i];
    struct err ignored = ERR_INIT;
    int most = completion_left(c) - 1;

    most = most < SPECULATE_MAX ? most : SPECULATE_MAX;
    if (most < 1 || c->n - c->n_done != 1 ||
        completion_reserve(c, c->n + most, &ignored))
        return 0;
    s->parts[i].tokens = c->tokens + c->n_done; /* they may have moved */
    c->source = 0;
    return s->params.drafts == SCHEDULER_MTP
               ? most
               : speculate_lookup(c->tokens, c->n, most, c->draft, &c->source);
}

static void add_next(const struct scheduler *s, struct drafter *d)
{
    const struct completion *c = s->part_of[d->part];

    d->next = d->taken < d->most
                  ? d->all * speculate_rates_at(&c->rates, c->source, d->taken)
                  : 0;
}

static int list_drafters(struct scheduler *s)
{
    int n = 0;

    for (int i = 0; i < s->n_parts; i++) {
        struct drafter *d = &s->drafters[n];

        *d = (struct drafter){.part = i, .most = find_max(s, i), .all = 1};
        add_next(s, d);
        n += d->most > 0;
    }
    return n;
}

static struct drafter *likeliest(const struct scheduler *s, int n)
{
    struct drafter *best = NULL;

    for (int i = 0; i < n; i++)
        if (s->drafters[i].next > 0 && (!best || s->drafters[i].next > best->next))
            best = &s->drafters[i];
    return best;
}

/* Seconds of a step with the drafts of n that are taken. */
static double cost_s(const struct scheduler *s, int n, double plain_work)
{
    const bool again = slm_info(s->params.m)->n_recurrent > 0;
    double work = plain_work;
    int longest = 0;

    for (int i = 0; i < n; i++) {
        const struct drafter *d = &s->drafters[i];
        const int depth = s->part_of[d->part]->n_done;

        work += step_cost_work(s->depth_cost, d->taken, depth);
        if (again && d->taken)
            work += (1 - d->all) * (d->taken + 1) / 2;
        longest = d->taken > longest ? d->taken : longest;
    }
    return step_cost_s(&s->cost, work) + longest * s->guess_s;
}

/* How many tokens to add in the order of likeliest(). Tokens that n parts draft are at
 * most `most`. */
static int best_number(struct scheduler *s, int n, int most, double plain_work)
{
    const double plain_s = step_cost_s(&s->cost, plain_work);
    const double limit_s = s->params.max_itl_s > 0 && s->n_parts > 1
                               ? step_cost_aim_s(&s->cost, s->params.max_itl_s)
                               : 0;
    double tokens = s->n_parts, best;
    int number = 0;

    if (!(plain_s > 0))
        return 0;
    best = SPECULATE_MIN_GAIN * tokens / plain_s;
    for (int i = 1; i <= most; i++) {
        struct drafter *d = likeliest(s, n);
        double took;

        if (!d)
            break;
        tokens += d->all = d->next;
        d->taken++;
        add_next(s, d);
        took = cost_s(s, n, plain_work);
        if (limit_s > 0 && took > limit_s)
            break;
        if (tokens / took > best) {
            best = tokens / took;
            number = i;
        }
    }
    return number;
}

void scheduler_plan_drafts(struct scheduler *s, double plain_work)
{
    const int room = s->max_step_tokens - s->n_parts;
    const int most = s->max_drafted < room ? s->max_drafted : room;
    int n, number = most;

    if (s->params.drafts == SCHEDULER_PLAIN || most < 1)
        return;
    n = list_drafters(s);
    if (!s->params.always_drafts) {
        number = best_number(s, n, most, plain_work);
        for (int i = 0; i < n; i++) {
            s->drafters[i].taken = 0;
            s->drafters[i].all = 1;
            add_next(s, &s->drafters[i]);
        }
    }
    for (struct drafter *d; number > 0 && (d = likeliest(s, n)); number--) {
        d->all = d->next;
        d->taken++;
        add_next(s, d);
        s->part_of[d->part]->n_draft++;
        s->parts[d->part].n++;
        s->parts[d->part].which = SLM_LOGITS_ALL;
    }
}

/* ---- guesses --------------------------------------------------------------------- */

/* The part has as many tokens as its draft is long. */
static void set_part(struct scheduler *s, int i)
{
    struct completion *c = s->part_of[i];

    memcpy(c->tokens + c->n, c->draft, (size_t)c->n_draft * sizeof *c->tokens);
    s->parts[i].n = 1 + c->n_draft;
    s->parts[i].which = c->n_draft ? SLM_LOGITS_ALL : SLM_LOGITS_LAST;
    s->parts[i].tokens = c->tokens + c->n_done;
}

/* One more token of each of the n guesses, of drafters; how many continue. */
static int take_guesses(struct scheduler *s, int n)
{
    int n_left = 0;

    for (int i = 0; i < n; i++) {
        struct mtp_guess *g = &s->guesses[i];
        struct completion *c = s->running[g->seq];
        const int most = s->drafters[i].most;

        if (!g->logits)
            continue;
        g->id = sampler_next(c->draft_sampler, g->logits);
        sampler_accept(c->draft_sampler, g->id);
        c->draft[c->n_draft++] = g->id;
        if (c->n_draft == most || tokenizer_is_end(c->tok, g->id))
            continue;
        s->guesses[n_left] = *g;
        s->drafters[n_left++].most = most;
    }
    return n_left;
}

/* The model's layer guesses for all that draft at once, a token a pass. */
static void guess(struct scheduler *s)
{
    int n = 0;

    for (int i = 0; i < s->n_parts; i++) {
        struct completion *c = s->part_of[i];

        if (!c->n_draft)
            continue;
        s->drafters[n].most = c->n_draft;
        s->guesses[n++] = (struct mtp_guess){.seq = c->seq, .id = c->tokens[c->n - 1]};
        sampler_follow(c->draft_sampler, c->sampler);
        c->n_draft = 0;
    }
    for (bool first = true; n; first = false) {
        const uint64_t begin_ns = clock_ns();

        if (first)
            mtp_first(s->params.m, s->guesses, n);
        else
            mtp_next(s->params.m, s->guesses, n);
        n = take_guesses(s, n);
        const double took = scheduler_seconds(begin_ns, clock_ns());
        s->guess_s += (s->guess_s > 0 ? NEWEST : 1) * (took - s->guess_s);
    }
}

double scheduler_make_drafts(struct scheduler *s)
{
    const uint64_t begin_ns = clock_ns();
    int n = 0;

    for (int i = 0; i < s->n_parts; i++)
        n += s->part_of[i]->n_draft;
    if (!n)
        return 0;
    if (s->params.drafts == SCHEDULER_MTP)
        guess(s);
    for (int i = 0; i < s->n_parts; i++)
        if (s->part_of[i]->source >= 0 && s->parts[i].which == SLM_LOGITS_ALL)
            set_part(s, i);
    return scheduler_seconds(begin_ns, clock_ns());
}

/* ---- what became of them --------------------------------------------------------- */

/* Tokens of the draft that were drawn. */
static int n_accepted(const struct completion *c)
{
    int n = 0;

    while (n < c->n_draft && c->n_before + n < c->n &&
           c->tokens[c->n_before + n] == c->draft[n])
        n++;
    return n;
}

bool completion_follows_draft(const struct completion *c, int *row)
{
    *row = c->n - c->n_before;
    return !c->ending && *row <= c->n_draft && n_accepted(c) == *row;
}

int scheduler_kept(const struct scheduler *s, int i)
{
    const struct completion *c = s->part_of[i];

    return c->n_draft ? 1 + n_accepted(c) : s->parts[i].n;
}

static void learn(struct scheduler *s, struct completion *c)
{
    const int accepted = n_accepted(c), drawn = c->n - c->n_before;
    const int tried = c->n_draft < drawn ? c->n_draft : drawn;

    speculate_rates_learn(&c->rates, c->source, tried, accepted);
    speculate_rates_learn(&s->rates, c->source, tried, accepted);
    s->stats.n_drafted += (uint64_t)c->n_draft;
    for (int k = 0; k < tried && k <= accepted; k++) {
        s->stats.drafted_at[k]++;
        s->stats.accepted_at[k] += k < accepted;
    }
    pthread_mutex_lock(&c->mu);
    c->usage.n_drafted += c->n_draft;
    c->usage.n_accepted += accepted;
    pthread_mutex_unlock(&c->mu);
}

void scheduler_learn_drafts(struct scheduler *s)
{
    for (int i = 0; s->params.drafts != SCHEDULER_PLAIN && i < s->n_parts; i++) {
        struct completion *c = s->part_of[i];

        if (c->n_draft) {
            learn(s, c);
        } else if (c->source > 0 && c->n > c->n_before) {
            const bool hit = c->tokens[c->n_before] == c->draft[0];

            speculate_rates_compare(&c->rates, c->source, hit);
            speculate_rates_compare(&s->rates, c->source, hit);
        } else if (!c->source) {
            speculate_rates_forget(&c->rates, 0);
        }
    }
}
