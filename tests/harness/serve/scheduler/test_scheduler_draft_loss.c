/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_draft_loss.c - what drafts lose and gain over thousands of steps, by a
 * clock of the test: steps and guesses take what the machine is given, and
 * guesses are right as often as the text is given
 *
 * The rule is the scheduler's: it plans the drafts of each step, and learns what became
 * of them. Nothing is computed.
 */
#include "tests/harness/serve/scheduler/served_drafts.h"

enum { MAX_USERS = 8, N_ANSWER = 256, N_FIRST = 4, N_STEPS = 2000, N_SEEDS = 10 };

/* A machine: what is added to the second of a step with one token, and its guesses. */
struct machine {
    double slope; /* by each further token */
    double tile;  /* by each further four tokens */
    double guess; /* a pass that guesses, of one token */
    double noise; /* share by which times vary; one in 50 is thrice as long */
};

/* The first N_SHORT are for every run. */
static const struct machine machines[] = {
    {.slope = 0.02, .guess = 0.1},
    {.slope = 0.3, .guess = 0.15},
    {.slope = 0.02, .tile = 0.1, .guess = 0.02},
    {.tile = 0.2, .guess = 0.02, .noise = 0.05},
    {.slope = 0.1, .guess = 0.05},
    {.slope = 1, .guess = 0.1},
    {.tile = 0.9, .guess = 0.1},
    {.slope = 0.02, .tile = 0.3, .guess = 0.1},
    {.slope = 0.05, .guess = 0.1, .noise = 0.05},
    {.tile = 0.9, .guess = 0.1, .noise = 0.05},
};

/* A text: how often guesses are right in the first half of the steps and in the
 * second. */
static const double texts[][2] = {{0, 0}, {1, 1},     {1, 0},
                                  {0, 1}, {0.2, 0.2}, {0.7, 0.7}};

enum {
    N_MACHINES = sizeof machines / sizeof *machines,
    N_TEXTS = sizeof texts / sizeof *texts,
    N_SHORT = 4
};

static double step_s(const struct machine *m, double tokens)
{
    return 1 + m->slope * (tokens - 1) + m->tile * floor((tokens - 1) / 4);
}

static double guess_s(const struct machine *m, double tokens)
{
    return m->guess * (1 + m->slope * (tokens - 1));
}

static double measured(const struct machine *m, double s, uint64_t *random)
{
    const double noise = m->noise * (double)test_random_float(random);

    return m->noise > 0 && test_random(random) % 50 == 0 ? 3 * s : s * (1 + noise);
}

/* ---- the best -------------------------------------------------------------------- */

/* Tokens a second with a draft of n tokens for all users together, where each guess is
 * right with that probability. */
static double speed(const struct machine *m, int users, int n, double right)
{
    double took = step_s(m, users + n), tokens = users, likely = right;

    for (int left = n; left > 0; left -= users, likely *= right) {
        const int guesses = left < users ? left : users;

        took += guess_s(m, guesses);
        tokens += guesses * likely;
    }
    return tokens / took;
}

static double best_speed(const struct machine *m, int users, double right)
{
    const int longest = SPECULATE_MAX * users;
    double best = 0;

    for (int n = 0; n <= longest && n <= SCHEDULER_MAX_DRAFTED; n++)
        best = fmax(best, speed(m, users, n, right));
    return best;
}

/* ---- the simulation -------------------------------------------------------------- */

struct simulation {
    struct served d;
    struct scheduler *s;
    struct completion *c[MAX_USERS];
    const struct machine *m;
    int n_users;
    uint64_t random;
    double took, plain, best; /* seconds of all tokens: with drafts, without, with the
                                 best drafts there are; noise left out */
    double best_speed;
    double worst; /* steps that were lost beyond what is promised, at most */
};

static void open_simulated(struct served *d)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;

    *d = (struct served){.m = NULL};
    p.path = STORIES;
    p.residency = WEIGHTS_MMAP;
    p.n_threads = 1;
    p.n_ctx = N_FIRST + N_ANSWER + SPECULATE_MAX + 1;
    p.n_batch = 64;
    p.n_sequences = MAX_USERS;
    p.n_logits = MAX_USERS + SCHEDULER_MAX_DRAFTED;
    if (slm_open(&d->m, &p, &err) || tokenizer_open(&d->tok, slm_gguf(d->m), &err))
        fail_msg("%s", err.msg);
}

static void open_scheduler_of(struct simulation *x)
{
    const struct scheduler_params p = {.m = x->d.m,
                                       .tok = x->d.tok,
                                       .n_queue = MAX_USERS,
                                       .drafts = DRAFTS_LOOKUP,
                                       .always_drafts = true};
    struct err err = ERR_INIT;

    if (scheduler_open(&x->s, &p, &err))
        fail_msg("%s", err.msg);
    x->s->params.drafts = DRAFTS_MTP;
    x->s->params.always_drafts = false;
    speculate_rates_begin(&x->s->rates, true);
    x->s->depth_cost = 0;
    for (int n = 1; n <= 8; n *= 2) /* as before the first request */
        step_cost_add_timed(&x->s->cost, n, step_s(x->m, n));
    for (int n = 1; n <= 64; n *= 64)
        step_cost_add_timed(&x->s->guess_cost, n, guess_s(x->m, n));
}

static void begin_users(struct simulation *x)
{
    const int32_t prompt[N_FIRST] = {5, 6, 7, 8};
    const struct completion_params p = served_params(prompt, N_FIRST, N_ANSWER);
    struct err err = ERR_INIT;

    for (int i = 0; i < x->n_users; i++) {
        x->c[i] = served_submit(x->s, &p);
        x->c[i]->seq = i;
        assert_int_equal(
            completion_reserve(x->c[i], N_FIRST + N_ANSWER + SPECULATE_MAX + 1, &err),
            ST_OK);
        x->c[i]->n_done = N_FIRST - 1;
        speculate_rates_follow(&x->c[i]->rates, &x->s->rates);
    }
}

static void close_simulated(struct simulation *x)
{
    for (int i = 0; i < x->n_users; i++) {
        x->c[i]->n_done = 0;
        x->c[i]->seq = -1;
        completion_close(x->c[i]);
    }
    scheduler_close(x->s);
    tokenizer_close(x->d.tok);
    slm_close(x->d.m);
}

/* Another answer; a prompt of 40 tokens is read together with a token of each. */
static void begin_answer(struct simulation *x, struct completion *c)
{
    const int n = 40 + x->n_users - 1;
    const double took = step_s(x->m, n);

    c->n = N_FIRST;
    c->n_done = c->n - 1;
    speculate_rates_follow(&c->rates, &x->s->rates);
    step_cost_add(&x->s->cost, n, measured(x->m, took, &x->random));
    x->s->stats.busy_s += took;
    x->took += took;
    x->plain += took;
    x->best += took;
}

static void plan(struct simulation *x)
{
    struct scheduler *s = x->s;

    for (int i = 0; i < x->n_users; i++) {
        struct completion *c = x->c[i];

        if (completion_left(c) <= 0)
            begin_answer(x, c);
        c->n_draft = c->n_read = 0;
        c->source = -1;
        s->parts[i] = (struct slm_part){.seq = i, .n = 1};
        s->part_of[i] = c;
    }
    s->n_parts = x->n_users;
    scheduler_plan_drafts(s, x->n_users);
}

/* Seconds of the passes that guess the planned drafts. */
static double guess(struct simulation *x)
{
    double took = 0;

    x->s->guessed_s = 0;
    for (int k = 0; k < SPECULATE_MAX; k++) {
        int n = 0;

        for (int i = 0; i < x->n_users; i++)
            n += x->c[i]->n_draft > k;
        if (!n)
            break;
        took += guess_s(x->m, n);
        scheduler_count_guess(x->s, n, measured(x->m, guess_s(x->m, n), &x->random));
    }
    return took;
}

/* Draws the tokens of a part: its draft, as far as it is right, and one more. */
static int draw(struct simulation *x, struct completion *c, double right)
{
    int n = 0;

    c->n_before = c->n;
    for (; n < c->n_draft && (double)test_random_float(&x->random) < 2 * right - 1; n++)
        ;
    for (int k = 0; k < c->n_draft; k++)
        c->draft[k] = 1;
    for (int k = 0; k < n; k++)
        c->tokens[c->n++] = 1;
    c->tokens[c->n++] = 0;
    c->n_done = c->n - 1;
    return n + 1;
}

static void step(struct simulation *x, double right)
{
    const double plain_s = step_s(x->m, x->n_users);
    int n = x->n_users, tokens = 0;
    double took, loss;

    plan(x);
    took = guess(x);
    for (int i = 0; i < x->n_users; i++) {
        n += x->c[i]->n_draft;
        tokens += draw(x, x->c[i], right);
    }
    took += step_s(x->m, n);
    scheduler_count_cost(x->s, n, measured(x->m, step_s(x->m, n), &x->random));
    scheduler_learn_drafts(x->s);
    x->s->stats.busy_s += took;
    x->took += took;
    x->plain += plain_s * tokens / x->n_users;
    x->best += tokens / x->best_speed;
    loss = x->took - x->plain - 4 * plain_s - 0.004 * x->took;
    x->worst = fmax(x->worst, loss / plain_s);
}

static void simulate(struct simulation *x, const struct machine *m, const double *right,
                     int n_users, uint64_t seed)
{
    *x = (struct simulation){
        .m = m, .n_users = n_users, .random = seed * 7919, .worst = -INFINITY};
    open_simulated(&x->d);
    open_scheduler_of(x);
    begin_users(x);
    for (int half = 0; half < 2; half++) {
        x->best_speed = best_speed(m, n_users, right[half]);
        for (int i = 0; i < N_STEPS / 2; i++)
            step(x, right[half]);
    }
    close_simulated(x);
}

/* ---- what is promised ------------------------------------------------------------ */

/* Whether drafts are expected to pay before any was tried. */
static bool is_tried(const struct machine *m, int users)
{
    return best_speed(m, users, 0.8) >
           1.01 * SPECULATE_MIN_GAIN * speed(m, users, 0, 1);
}

/* At every moment drafts have lost four steps and 0.4 % of all time at most, a step
 * more where times are noisy; and most of what there is to gain is gained, but for what
 * it takes to notice that guesses have become right. */
static void check(const struct simulation *x, int machine, int text)
{
    const bool changes = texts[text][0] < texts[text][1];
    const double lost = x->worst - (x->m->noise > 0 ? 1 : 0);

    if (lost > 0)
        fail_msg("machine %d, text %d, %d users: %.2f steps are lost beyond what is "
                 "promised, and all take %.4f times as long",
                 machine, text, x->n_users, x->worst, x->took / x->plain);
    if (is_tried(x->m, x->n_users) && x->took > (changes ? 1.2 : 1.1) * x->best)
        fail_msg("machine %d, text %d, %d users: %.3f of the time without drafts, and "
                 "%.3f would do",
                 machine, text, x->n_users, x->took / x->plain, x->best / x->plain);
}

static void check_machine(int machine, uint64_t seed)
{
    for (int users = 1; users <= MAX_USERS; users = users == 1 ? 4 : 2 * users)
        for (int t = 0; t < N_TEXTS; t++) {
            struct simulation x;

            simulate(&x, &machines[machine], texts[t], users, seed);
            check(&x, machine, t);
        }
}

static void losses_are_bounded(void **state)
{
    (void)state;
    for (int m = 0; m < N_SHORT; m++)
        check_machine(m, 1);
}

static void on_more_machines(void **state)
{
    (void)state;
    if (!getenv("SLM_TEST_LONG"))
        skip();
    for (int m = 0; m < N_MACHINES; m++)
        for (uint64_t seed = 1; seed <= (machines[m].noise > 0 ? N_SEEDS : 1); seed++)
            check_machine(m, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_bounded),
        cmocka_unit_test(on_more_machines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
