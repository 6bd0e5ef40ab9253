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
 * what it would have drafted, and the rate of the model's layer, or of a draft model,
 * slowly returns to its first value, so that it is tried again. What drafts have lost,
 * and what the next ones would lose if all are rejected, stays below some plain steps
 * and a small share of all time. What was lost or gained is counted by usual times, and
 * there are no drafts where plain steps have not been timed for a while.
 *
 * A draft model has to read a text before it guesses. Where much of it is unread, that
 * is paid for by the drafts that the rest of the answer is expected to have, and read
 * in chunks that keep the limit of a step; guesses follow once it is read. Where they
 * cannot pay, or more would be lost than may be, it reads the end of the text alone, so
 * that drafts are tried before a long prompt can be paid for; they have their own rate.
 *
 * Where layers have states, tokens before a rejected one run again in the next step;
 * that is part of what a draft costs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/serve/scheduler/scheduler_impl.h"

/* What drafts may lose: plain steps, and a share of all time. Less than is promised (4,
 * and 0.4 %), as drafts are made where noisy times are in their favour. */
#define LOSS_STEPS 3.5
#define LOSS_SHARE 0.003

/* Reading a text may take this share of the rest of its answer without drafts. */
#define READ_SHARE 0.2

/* A pass counts as this multiple of what was expected at most. */
#define OUTLIER 1.5

enum {
    /* Tokens of an answer, before any is complete. */
    UNKNOWN_TOKENS = 256,
    /* Tokens that a draft model usually has to read for a draft, and that a step with
     * one usually gives: other unread ones are paid for by several drafts. */
    USUAL_UNREAD = 2,
    USUAL_TOKENS = 3,
    /* A draft model reads this many at once, whatever the limit, and before it is known
     * how long that takes. */
    MIN_READ = 8,
    FIRST_READ = 64,
    /* Tokens that it reads of a text's end alone, and the source of such drafts. */
    END_READ = 32,
    SOURCE_END = SPECULATE_SOURCES - 1,
    /* Times that a pass is timed before the first request, and its most tokens. */
    N_TIMED = 3,
    MAX_TIMED = 8,
};

/* Passes that take longer are not timed: they wait for a disk. */
#define MAX_TIMED_S 0.5

/* A part that may have a draft. */
struct drafter {
    int part, most; /* tokens of the draft */
    int taken;
    double all;  /* probability that all that are taken are accepted */
    double next; /* and one more */
};

/* The shortest of some passes over n tokens of an empty sequence. */
static enum status time_pass(struct slm *m, int n, enum slm_logits which, double *s,
                             struct err *err)
{
    static const int32_t tokens[FIRST_READ];
    const struct slm_part part = {.tokens = tokens, .n = n, .which = which};
    enum status st = ST_OK;

    *s = INFINITY;
    for (int i = 0; i < N_TIMED && !st && (i == 0 || *s < MAX_TIMED_S); i++) {
        const uint64_t begin_ns = clock_ns();

        st = slm_batch(m, &part, 1, err);
        *s = fmin(*s, scheduler_seconds(begin_ns, clock_ns()));
        slm_seq_truncate(m, 0, 0);
    }
    return st;
}

/* What steps with drafts take, and guesses: what a token and a whole prompt take does
 * not show what lies between. */
static enum status time_drafts(struct scheduler *s, struct err *err)
{
    struct slm *draft = s->params.draft;
    enum status st = ST_OK;
    double took = 0;

    for (int n = 1; n <= MAX_TIMED && n <= s->max_drafted + 1 && !st; n *= 2) {
        st = time_pass(s->params.m, n, SLM_LOGITS_ALL, &took, err);
        if (took > MAX_TIMED_S)
            return st;
        if (!st)
            step_cost_add_timed(&s->cost, n, took);
    }
    for (int n = 1; draft && n <= FIRST_READ && !st; n *= FIRST_READ) {
        if (n > slm_info(draft)->n_batch)
            break;
        st =
            time_pass(draft, n, n == 1 ? SLM_LOGITS_LAST : SLM_LOGITS_NONE, &took, err);
        if (!st)
            step_cost_add_timed(&s->guess_cost, n, took);
    }
    return st;
}

enum status scheduler_open_drafts(struct scheduler *s, struct err *err)
{
    const size_t n = (size_t)s->n_sequences;
    const struct slm_info *info = slm_info(s->params.m);
    const int rows = info->n_logits - s->n_sequences;

    speculate_rates_begin(&s->rates, s->params.drafts == DRAFTS_MTP ||
                                         s->params.drafts == DRAFTS_MODEL);
    if (s->params.drafts == DRAFTS_OFF)
        return ST_OK;
    if (s->params.drafts == DRAFTS_MTP)
        s->guess_ratio =
            (double)info->nextn_bytes / (double)(info->weight_token_bytes + 1);
    s->max_drafted = rows < SCHEDULER_MAX_DRAFTED ? rows : SCHEDULER_MAX_DRAFTED;
    s->drafters = calloc(n, sizeof *s->drafters);
    s->guesses = calloc(n, sizeof *s->guesses);
    if (!s->drafters || !s->guesses)
        return err_set(err, ST_NO_MEMORY, "no memory for drafts of %zu sequences", n);
    if (s->params.drafts == DRAFTS_MODEL && scheduler_open_draft_model(s, err))
        return err->code;
    return s->params.always_drafts ? ST_OK : time_drafts(s, err);
}

int scheduler_guessed_ids(const struct scheduler *s)
{
    if (s->params.drafts == DRAFTS_MODEL)
        return s->n_shared;
    return s->params.drafts == DRAFTS_MTP ? s->n_vocab : 0;
}

void scheduler_close_drafts(struct scheduler *s)
{
    free(s->drafters);
    free(s->guesses);
    scheduler_close_draft_model(s);
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
    c->source = c->n_skipped ? SOURCE_END : 0;
    return s->params.drafts == DRAFTS_LOOKUP
               ? speculate_lookup(c->tokens, c->n, most, c->draft, &c->source)
               : most;
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

/* Seconds of a pass of what guesses; before any was measured, by what it reads. */
static double guess_s(const struct scheduler *s, double work)
{
    const double known = step_cost_s(&s->guess_cost, work);

    return known > 0 ? known : s->guess_ratio * step_cost_s(&s->cost, work);
}

/* Tokens that c is expected to have still: as many as others had, or again as many as
 * it has. */
static double expected_left(const struct scheduler *s, const struct completion *c)
{
    const double made = c->n - c->n_prompt;
    const double mean = s->stats.n_completed ? (double)s->stats.n_generated /
                                                   (double)s->stats.n_completed
                                             : UNKNOWN_TOKENS;
    const double left = mean - made > made ? mean - made : made;

    return left < completion_left(c) ? left : completion_left(c);
}

/* Unread tokens that one of the drafts to come pays for. */
static double unread_share(const struct scheduler *s, const struct completion *c)
{
    const double drafts = expected_left(s, c) / USUAL_TOKENS;
    const int unread = scheduler_unread(s, c);

    if (unread <= USUAL_UNREAD || drafts <= 1)
        return unread;
    return USUAL_UNREAD + (unread - USUAL_UNREAD) / drafts;
}

/* Seconds of a step with the drafts of n that are taken; whole: and all that is read
 * for them. */
static double cost_s(const struct scheduler *s, int n, double plain_work, bool whole)
{
    const bool again = slm_info(s->params.m)->n_recurrent > 0;
    double work = plain_work, unread = 0;
    int longest = 0, n_guesses = 0;

    for (int i = 0; i < n; i++) {
        const struct drafter *d = &s->drafters[i];
        const struct completion *c = s->part_of[d->part];

        if (!d->taken)
            continue;
        work += step_cost_work(s->depth_cost, d->taken, c->n_done);
        if (again)
            work += (1 - d->all) * (d->taken + 1) / 2;
        longest = d->taken > longest ? d->taken : longest;
        unread += whole ? scheduler_unread(s, c) : unread_share(s, c);
        n_guesses++;
    }
    return step_cost_s(&s->cost, work) +
           (longest ? guess_s(s, unread) + (longest - 1) * guess_s(s, n_guesses) : 0);
}

/* A step's limit, where somebody waits for it; 0: none. */
static double limit_s(const struct scheduler *s)
{
    return s->params.max_itl_s > 0 && s->n_parts > 1
               ? step_cost_aim_s(&s->cost, s->params.max_itl_s)
               : 0;
}

/* What drafts may lose now. */
static double allowed_s(const struct scheduler *s, double plain_s)
{
    return s->gained_s + LOSS_STEPS * plain_s + LOSS_SHARE * s->stats.busy_s;
}

/* How many tokens to add in the order of likeliest(): the best number of those that may
 * lose what they do if all are rejected. Tokens that n parts draft are at most `most`.
 */
static int best_number(struct scheduler *s, int n, int most, double plain_work)
{
    const double plain_s = step_cost_s(&s->cost, plain_work);
    const double max_s = limit_s(s), worst_s = plain_s + allowed_s(s, plain_s);
    double tokens = s->n_parts, best;
    int number = 0;

    if (!step_cost_is_fresh(&s->cost, plain_work))
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
        took = cost_s(s, n, plain_work, false);
        if ((max_s > 0 && took > max_s) || cost_s(s, n, plain_work, true) > worst_s)
            break;
        if (tokens / took > best) {
            best = tokens / took;
            number = i;
        }
    }
    return number;
}

/* Take `number` tokens in the order of likeliest(), from none. */
static void take(struct scheduler *s, int n, int number)
{
    for (int i = 0; i < n; i++) {
        s->drafters[i].taken = 0;
        s->drafters[i].all = 1;
        add_next(s, &s->drafters[i]);
    }
    for (struct drafter *d; number > 0 && (d = likeliest(s, n)); number--) {
        d->all = d->next;
        d->taken++;
        add_next(s, d);
    }
}

/* All of a text that is unread, or its end. */
static void choose_unread(struct scheduler *s, struct completion *c)
{
    const double plain_s = step_cost_s(&s->cost, s->plain_work);
    double read_s;

    if (!s->params.draft)
        return;
    if (!slm_seq_n_past(s->params.draft, c->seq))
        c->n_skipped = 0;
    read_s = guess_s(s, scheduler_unread(s, c));
    if (scheduler_unread(s, c) > END_READ &&
        (read_s > allowed_s(s, plain_s) ||
         read_s > READ_SHARE * expected_left(s, c) * plain_s))
        scheduler_skip_draft(s, c, END_READ - 1);
}

/* Tokens that a draft model may read in the step. */
static int room_to_read(const struct scheduler *s, double plain_work)
{
    const double max_s = limit_s(s);
    const int most = s->params.draft ? slm_info(s->params.draft)->n_batch : s->n_parts;
    double within;

    if (!s->params.draft || s->params.always_drafts)
        return most;
    if (!(step_cost_s(&s->guess_cost, most) > 0))
        return FIRST_READ < most ? FIRST_READ : most;
    if (!(max_s > 0))
        return most;
    within = step_cost_within(&s->guess_cost, max_s - step_cost_s(&s->cost, plain_work),
                              most);
    return within > MIN_READ ? (int)within : MIN_READ;
}

/* A part gets its draft; or the draft model reads a chunk of its text, of the first
 * that is too long. */
static void give(struct scheduler *s, const struct drafter *d, int *room)
{
    struct completion *c = s->part_of[d->part];
    const int unread = scheduler_unread(s, c);

    if (unread > *room) {
        c->n_read = *room;
        *room = 0;
    } else {
        *room -= unread;
        c->n_draft = d->taken;
        s->parts[d->part].n += d->taken;
        s->parts[d->part].which = SLM_LOGITS_ALL;
    }
}

void scheduler_plan_drafts(struct scheduler *s, double plain_work)
{
    const int left = s->max_step_tokens - s->n_parts;
    const int most = s->max_drafted < left ? s->max_drafted : left;
    int n, room, number = most;

    s->plain_work = plain_work;
    s->n_plain = s->n_parts;
    if (s->params.drafts == DRAFTS_OFF || most < 1)
        return;
    for (int i = 0; i < s->n_parts && !s->params.always_drafts; i++)
        choose_unread(s, s->part_of[i]);
    n = list_drafters(s);
    if (!s->params.always_drafts)
        number = best_number(s, n, most, plain_work);
    take(s, n, number);
    room = room_to_read(s, plain_work);
    for (int i = 0; i < n; i++)
        if (s->drafters[i].taken)
            give(s, &s->drafters[i], &room);
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

void scheduler_count_guess(struct scheduler *s, double work, double took)
{
    const double most = OUTLIER * guess_s(s, work);

    step_cost_add(&s->guess_cost, work, took);
    took = step_cost_usual_s(&s->guess_cost, work);
    s->guessed_s += most > 0 && took > most ? most : took;
}

/* The model's layer or a draft model guesses for all that draft at once, a token a
 * pass. */
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
        int work = n;

        if (s->params.draft)
            work = scheduler_guess_next(s, n, first);
        else if (first)
            mtp_first(s->params.m, s->guesses, n);
        else
            mtp_next(s->params.m, s->guesses, n);
        n = take_guesses(s, n);
        scheduler_count_guess(s, work, scheduler_seconds(begin_ns, clock_ns()));
    }
}

double scheduler_make_drafts(struct scheduler *s)
{
    const uint64_t begin_ns = clock_ns();
    int n = 0;

    s->guessed_s = 0;
    for (int i = 0; i < s->n_parts; i++) {
        const struct completion *c = s->part_of[i];
        const uint64_t read_ns = clock_ns();

        n += c->n_draft + c->n_read;
        if (!c->n_read)
            continue;
        scheduler_read_draft(s, c, c->n_read);
        scheduler_count_guess(s, c->n_read, scheduler_seconds(read_ns, clock_ns()));
    }
    if (!n)
        return 0;
    if (s->params.drafts != DRAFTS_LOOKUP)
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

/* What the step's drafts gained: tokens that plain steps would have taken time for,
 * less what the step took because of them, by usual times and by how the step differed
 * from them. */
static void count_gain(struct scheduler *s)
{
    const bool again = slm_info(s->params.m)->n_recurrent > 0;
    const double plain_s = step_cost_usual_s(&s->cost, s->plain_work);
    double work = s->plain_work, more = 0;

    for (int i = 0; i < s->n_parts; i++) {
        const struct completion *c = s->part_of[i];

        if (!c->n_draft)
            continue;
        work += step_cost_work(s->depth_cost, c->n_draft, c->n_before);
        work += again && n_accepted(c) < c->n_draft ? 1 + n_accepted(c) : 0;
        more += n_accepted(c);
    }
    s->gained_s -= s->guessed_s;
    if (work > s->plain_work)
        s->gained_s += (1 + more / s->n_plain) * plain_s -
                       step_cost_usual_s(&s->cost, work) * fmin(s->lasted, OUTLIER);
}

void scheduler_learn_drafts(struct scheduler *s)
{
    if (s->params.drafts != DRAFTS_OFF)
        count_gain(s);
    for (int i = 0; s->params.drafts != DRAFTS_OFF && i < s->n_parts; i++) {
        struct completion *c = s->part_of[i];
        struct speculate_rates *const rates[] = {&c->rates, &s->rates};

        if (c->n_draft)
            learn(s, c);
        for (int k = 0; !c->n_draft && k < 2; k++)
            if (c->source >= 0 && s->params.drafts != DRAFTS_LOOKUP)
                speculate_rates_forget(rates[k], c->source);
            else if (c->source > 0 && c->n > c->n_before)
                speculate_rates_compare(rates[k], c->source,
                                        c->tokens[c->n_before] == c->draft[0]);
    }
}
