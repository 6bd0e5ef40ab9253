/* SPDX-License-Identifier: MIT
 *
 * test_speculate_rule.c - texts of given acceptance rates on machines of given costs:
 * where drafts do not pay next to nothing is lost, and where they pay most of it is
 * gained
 */
#include "engine/base/random.h"
#include "engine/speculate/speculate_rule.h"
#include "tests/support/test.h"

/* A machine: what a pass costs, by columns, in plain passes. */
struct machine {
    double slope; /* of each further column */
    double steps; /* of each further tile of four columns */
    double noise; /* times are up to so much longer */
    double spike; /* one pass in 50 takes so much longer */
    double drift; /* every other 60 passes take this much longer */
    double layer; /* a guess of a layer that was trained to be right; 0: none */
    double again; /* what a rejected guess of it costs the next pass */
};

/* A text: probability of a match, and its acceptance rate, alternating by stretch. */
struct text {
    double match, acceptance[2];
    int stretch; /* tokens of a stretch */
};

struct outcome {
    double plain, took; /* in plain passes; noise left out of both */
    int n_drafted, n_accepted;
};

static double uniform(uint64_t *random)
{
    return (double)(random_bits(random) >> 11) * 0x1p-53;
}

static double cost(const struct machine *m, int width)
{
    return 1.0 + m->slope * (width - 1) + m->steps * ((width - 1) / 4);
}

/* Decode n tokens; fixed: drafts of that length, adaptive if 0. */
static struct outcome simulate(const struct machine *m, const struct text *t, int n,
                               int fixed, uint64_t seed)
{
    struct outcome out = {.plain = n};
    struct speculate_rule r;
    uint64_t random = seed;
    bool again = false;

    speculate_rule_begin(&r, 0);
    if (m->layer > 0)
        speculate_rule_trust(&r);
    for (int at = 0, pass = 0; at < n; pass++) {
        const double p = t->acceptance[at / t->stretch % 2];
        const bool matches = uniform(&random) < t->match;
        const int source = !matches || m->layer > 0 ? 0 : 2 + (p > 0.5);
        const int most = n - at - 1 < SPECULATE_MAX ? n - at - 1 : SPECULATE_MAX;
        struct speculate_step s = {.source = source, .again = again};
        double ns, slow;

        if (source || m->layer > 0)
            s.n_drafted = fixed ? fixed : speculate_rule_length(&r, source, most);
        assert_true(s.n_drafted <= (fixed ? fixed : most));
        const bool first = uniform(&random) < p;
        for (bool right = first; right && s.n_accepted < s.n_drafted;
             right = uniform(&random) < p)
            s.n_accepted++;
        ns = cost(m, s.n_drafted + 1) + (again ? m->again : 0);
        out.took += ns + m->layer * s.n_drafted;
        slow = 1.0 + m->noise * uniform(&random) + (pass / 60 % 2 ? m->drift : 0);
        ns *= slow;
        s.draft_ns = 1e6 * m->layer * s.n_drafted * slow;
        s.pass_ns = 1e6 * (uniform(&random) < 0.02 ? ns * (1.0 + m->spike) : ns);
        speculate_rule_learn(&r, &s);
        again = m->again > 0 && s.n_accepted < s.n_drafted;
        if (source && !s.n_drafted)
            speculate_rates_compare(&r.rates, source, first);
        else if (!s.n_drafted && m->layer > 0)
            speculate_rates_forget(&r.rates, 0);
        out.n_drafted += s.n_drafted;
        out.n_accepted += s.n_accepted;
        at += s.n_accepted + 1;
    }
    return out;
}

static const struct machine machines[] = {
    {.slope = 0.02},
    {.slope = 0.10, .noise = 0.1},
    {.slope = 0.06, .steps = 0.6, .noise = 0.1, .spike = 2.0},
    {.slope = 0.30, .noise = 0.1, .spike = 2.0},
    {.slope = 0.50, .noise = 0.1, .spike = 5.0},
    {.slope = 1.00, .noise = 0.1},
    {.steps = 0.9, .noise = 0.2, .spike = 2.0},
};

enum { N_MACHINES = sizeof machines / sizeof machines[0], N_SEEDS = 50 };

/* The best that drafts of one length give, as if it were known beforehand. */
static double best_fixed(const struct machine *m, const struct text *t, int n)
{
    double best = 1.0;

    for (int length = 1; length <= SPECULATE_MAX; length++) {
        const struct outcome o = simulate(m, t, n, length, 1);

        if (o.plain / o.took > best)
            best = o.plain / o.took;
    }
    return best;
}

/* However many drafted tokens are rejected: never by more than 2 % (of a very short
 * text: a pass and a half), and on average by less. */
static void loses_next_to_nothing(void **state)
{
    static const int lengths[] = {64, 128, 400, 3000};
    static const double rights[] = {0.0, 0.05, 0.2, 0.35};

    (void)state;
    for (int m = 0; m < N_MACHINES; m++)
        for (int l = 0; l < 4; l++)
            for (int p = 0; p < 4; p++) {
                const struct text t = {1.0, {rights[p], rights[p]}, 50};
                double worst = 0.0, sum = 0.0;

                for (int seed = 1; seed <= N_SEEDS; seed++) {
                    const struct outcome o =
                        simulate(&machines[m], &t, lengths[l], 0, (uint64_t)seed * 77);
                    const double ratio = o.took / o.plain;

                    worst = ratio > worst ? ratio : worst;
                    sum += ratio;
                }
                if (worst > (lengths[l] < 100 ? 1.025 : 1.02) ||
                    sum / N_SEEDS > 1.01 + 0.5 / lengths[l])
                    fail_msg("machine %d, %d tokens, %g right: takes %.4f at worst, "
                             "%.4f on average",
                             m, lengths[l], rights[p], worst, sum / N_SEEDS);
            }
}

static void gains_what_there_is(void **state)
{
    static const double rights[] = {0.6, 0.8, 0.95};

    (void)state;
    for (int m = 0; m < N_MACHINES; m++)
        for (int p = 0; p < 3; p++) {
            const struct text t = {0.9, {rights[p], rights[p]}, 50};
            const double best = best_fixed(&machines[m], &t, 3000);
            double sum = 0.0;

            for (int seed = 1; seed <= N_SEEDS; seed++) {
                const struct outcome o =
                    simulate(&machines[m], &t, 400, 0, (uint64_t)seed * 77);

                sum += o.plain / o.took;
            }
            if (sum / N_SEEDS < 1.0 + 0.85 * (best - 1.0) - 0.05)
                fail_msg("machine %d, %g right: %.3f times as fast, and %.3f would do",
                         m, rights[p], sum / N_SEEDS, best);
        }
}

/* A layer that was trained to be right, on a machine whose speed drifts: some wrong
 * guesses in a row, or slow passes, do not end its drafts for long. */
static void trained_drafts_last(void **state)
{
    static const struct machine m = {
        .slope = 0.1, .noise = 0.2, .drift = 0.3, .layer = 0.22, .again = 0.2};
    static const double rights[] = {0.1, 0.3, 0.5, 0.7, 0.9};

    (void)state;
    for (int p = 0; p < 5; p++) {
        const struct text t = {1.0, {rights[p], rights[p]}, 50};
        const double best = best_fixed(&m, &t, 3000);
        double sum = 0.0;

        for (int seed = 1; seed <= N_SEEDS; seed++) {
            const struct outcome o = simulate(&m, &t, 600, 0, (uint64_t)seed * 77);

            sum += o.plain / o.took;
        }
        if (sum / N_SEEDS < 1.0 + (p > 2 ? 0.85 : 0) * (best - 1.0) - 0.025)
            fail_msg("%g right: %.3f times as fast, and %.3f would do", rights[p],
                     sum / N_SEEDS, best);
    }
}

/* A text that is copied and free by turns: the copied parts pay, the others do not cost
 * it. */
static void follows_the_text(void **state)
{
    const struct text turns = {0.9, {0.95, 0.05}, 100};
    const struct text free_first = {0.9, {0.0, 0.95}, 300};

    (void)state;
    for (int m = 0; m < 3; m++) {
        const struct text copied = {0.9, {0.95, 0.95}, 100};
        const double best = best_fixed(&machines[m], &copied, 3000);
        double sum = 0.0, late = 0.0;

        for (int seed = 1; seed <= N_SEEDS; seed++) {
            const struct outcome o =
                simulate(&machines[m], &turns, 1000, 0, (uint64_t)seed * 77);
            const struct outcome f =
                simulate(&machines[m], &free_first, 600, 0, (uint64_t)seed * 77);

            sum += o.took / o.plain;
            late += f.took / f.plain;
        }
        /* half of each at full speed, the other half plain, and a tenth to learn */
        const double want = 0.5 + 0.5 / best + 0.1 * (0.5 - 0.5 / best);

        if (sum / N_SEEDS > want || late / N_SEEDS > want)
            fail_msg("machine %d: by turns it takes %.3f, free first %.3f of plain "
                     "decoding's time, and %.3f would do",
                     m, sum / N_SEEDS, late / N_SEEDS, want);
    }
}

/* Where rejected tokens make tokens run again, that is a cost of the draft. */
static void counts_what_is_run_again(void **state)
{
    struct speculate_rule r;

    (void)state;
    for (int dear = 0; dear < 2; dear++) {
        speculate_rule_begin(&r, 0);
        for (int i = 0; i < 20; i++) {
            const struct speculate_step plain = {.source = 2, .pass_ns = 100.0};
            const struct speculate_step wrong = {
                .source = 2, .n_drafted = 1, .pass_ns = 105.0};
            const struct speculate_step after = {
                .source = 2, .pass_ns = dear ? 220.0 : 101.0, .again = true};

            speculate_rule_learn(&r, &plain);
            speculate_rule_learn(&r, &wrong);
            speculate_rule_learn(&r, &after);
        }
        assert_true(r.pass_ns[1] < 102.0); /* it says nothing about plain passes */
        r.gained_ns = 0.0;
        for (int i = 0; i < 40; i++)
            speculate_rates_compare(&r.rates, 2, i % 5 != 0);
        r.rates.rate[2] = 0.5;
        assert_true((speculate_rule_length(&r, 2, 1) == 0) == (dear == 1));
    }
}

/* A pass that waits for the disk costs the same for one token or eight: a wide draft
 * is tried right after the plain passes, and the result is near that of drafts that are
 * always as long. */
static void wide_drafts_at_once_where_weights_are_streamed(void **state)
{
    const struct machine m = {.slope = 0.01, .noise = 0.05, .spike = 0.5};
    const struct text t = {.match = 0.9, .acceptance = {0.8, 0.8}, .stretch = 1000};

    (void)state;
    for (int streamed = 0; streamed < 2; streamed++) {
        struct speculate_rule r;
        int most = 0;

        speculate_rule_begin(&r, streamed ? 0.8 : 0);
        for (int i = 0; i < 3; i++) {
            const struct speculate_step plain = {.source = 4, .pass_ns = 1e9};

            speculate_rule_learn(&r, &plain);
            speculate_rates_compare(&r.rates, 4, true);
        }
        most = speculate_rule_length(&r, 4, SPECULATE_MAX);
        assert_true(streamed ? most > 3 : most <= 1);
    }
    const double always = simulate(&m, &t, 300, SPECULATE_MAX, 1).took;

    assert_true(simulate(&m, &t, 300, 0, 1).took < 1.15 * always);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loses_next_to_nothing),
        cmocka_unit_test(wide_drafts_at_once_where_weights_are_streamed),
        cmocka_unit_test(gains_what_there_is),
        cmocka_unit_test(trained_drafts_last),
        cmocka_unit_test(follows_the_text),
        cmocka_unit_test(counts_what_is_run_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
