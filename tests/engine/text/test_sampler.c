/* SPDX-License-Identifier: MIT
 *
 * test_sampler.c - greedy ties, the three cuts, the penalty, and the distribution
 * drawn from
 */
#include <math.h>

#include "engine/text/sampler.h"
#include "tests/support/test.h"

static struct sampler *open_with(const struct sampler_params *p, int32_t n_vocab)
{
    struct err err = ERR_INIT;
    struct sampler *s = NULL;

    assert_int_equal(sampler_open(&s, p, n_vocab, &err), ST_OK);
    return s;
}

static struct sampler *open_sampler(float temperature, int top_k, float top_p,
                                    uint64_t seed, int32_t n_vocab)
{
    const struct sampler_params p = {
        .temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = seed};

    return open_with(&p, n_vocab);
}

static void test_greedy(void **state)
{
    const float logits[6] = {-1.0f, 3.0f, 0.0f, 3.0f, 2.0f, -INFINITY};
    const float with_nan[4] = {NAN, -5.0f, NAN, -4.0f};
    const float with_inf[3] = {1.0f, INFINITY, 0.0f};
    struct sampler *s = open_sampler(0.0f, 0, 1.0f, 1, 6);
    struct sampler *four = open_sampler(0.0f, 0, 1.0f, 1, 4);
    struct sampler *warm = open_sampler(1.0f, 0, 1.0f, 1, 3);

    (void)state;
    assert_int_equal(sampler_next(s, logits), 1);
    assert_int_equal(sampler_next(four, with_nan), 3);
    assert_int_equal(sampler_next(warm, with_inf), 1);
    sampler_close(s);
    sampler_close(four);
    sampler_close(warm);
    sampler_close(NULL);
}

/* Draw many and compare frequencies with the exact probabilities p[n]: each
 * count is binomial, so five standard deviations bound it for a fixed seed. */
static void check_distribution(struct sampler *s, const float *logits, const double *p,
                               int n)
{
    enum { N_DRAWS = 20000 };
    int count[16] = {0};

    for (int i = 0; i < N_DRAWS; i++) {
        const int32_t id = sampler_next(s, logits);

        assert_true(id >= 0 && id < n);
        count[id]++;
    }
    for (int i = 0; i < n; i++) {
        const double expect = p[i] * N_DRAWS;
        const double sigma = sqrt(N_DRAWS * p[i] * (1 - p[i]));

        assert_true(fabs(count[i] - expect) <= 5 * sigma);
    }
    sampler_close(s);
}

/* Probabilities 0.4 0.1 0.3 0.2 and one token that is impossible. */
static const double BASE[5] = {0.4, 0.1, 0.3, 0.2, 0.0};

static void base_logits(float *logits)
{
    for (int i = 0; i < 4; i++)
        logits[i] = (float)(log(BASE[i]) + 7.0);
    logits[4] = -INFINITY;
}

static void test_plain_temperature(void **state)
{
    float logits[5];
    double warm[5], sum = 0;

    (void)state;
    base_logits(logits);
    check_distribution(open_sampler(1.0f, 0, 1.0f, 42, 5), logits, BASE, 5);
    for (int i = 0; i < 5; i++)
        sum += warm[i] = pow(BASE[i], 1 / 2.0);
    for (int i = 0; i < 5; i++)
        warm[i] /= sum;
    check_distribution(open_sampler(2.0f, 0, 1.0f, 42, 5), logits, warm, 5);
}

static void test_cuts(void **state)
{
    const double two[5] = {0.4 / 0.7, 0, 0.3 / 0.7, 0, 0};
    const double three[5] = {0.4 / 0.9, 0, 0.3 / 0.9, 0.2 / 0.9, 0};
    const double one[5] = {1, 0, 0, 0, 0};
    float logits[5];

    (void)state;
    base_logits(logits);
    check_distribution(open_sampler(1.0f, 2, 1.0f, 7, 5), logits, two, 5);
    check_distribution(open_sampler(1.0f, 99, 1.0f, 7, 5), logits, BASE, 5);
    check_distribution(open_sampler(1.0f, 0, 0.65f, 7, 5), logits, two, 5);
    check_distribution(open_sampler(1.0f, 0, 0.75f, 7, 5), logits, three, 5);
    check_distribution(open_sampler(1.0f, 0, 0.01f, 7, 5), logits, one, 5);
    /* top-p counts within what top-k left: 0.4/0.7 = 0.571 */
    check_distribution(open_sampler(1.0f, 2, 0.55f, 7, 5), logits, one, 5);
    check_distribution(open_sampler(1.0f, 2, 0.60f, 7, 5), logits, two, 5);
    /* so cold that nothing but the most likely is left */
    check_distribution(open_sampler(1e-6f, 0, 1.0f, 7, 5), logits, one, 5);
}

static void test_min_p(void **state)
{
    const double two[5] = {0.4 / 0.7, 0, 0.3 / 0.7, 0, 0};
    const double three[5] = {0.4 / 0.9, 0, 0.3 / 0.9, 0.2 / 0.9, 0};
    struct sampler_params p = {.temperature = 1.0f, .top_p = 1.0f, .seed = 3};
    float logits[5];

    (void)state;
    base_logits(logits);
    p.min_p = 0.45f; /* of 0.4: 0.18 */
    check_distribution(open_with(&p, 5), logits, three, 5);
    p.min_p = 0.6f;
    check_distribution(open_with(&p, 5), logits, two, 5);
    p.min_p = 0.2f;
    check_distribution(open_with(&p, 5), logits, BASE, 5);
    /* the narrowest of the cuts wins */
    p.top_k = 2;
    check_distribution(open_with(&p, 5), logits, two, 5);
    p.min_p = 0.6f;
    p.top_k = 3;
    p.top_p = 0.95f;
    check_distribution(open_with(&p, 5), logits, two, 5);
}

/* Logits 4, 3.9, -1, -1.1: accepted tokens lose against their neighbours, once
 * however often they came, and win again when they leave the window. */
static void test_penalty(void **state)
{
    const float logits[4] = {4.0f, 3.9f, -1.0f, -1.1f};
    const float negative[4] = {-9.0f, -9.0f, -1.0f, -1.1f};
    const struct sampler_params p = {
        .top_p = 1.0f, .repeat_penalty = 1.2f, .repeat_window = 3};
    struct sampler *s = open_with(&p, 4), *other;

    (void)state;
    assert_int_equal(sampler_next(s, logits), 0);
    sampler_accept(s, 0);
    assert_int_equal(sampler_next(s, logits), 1);
    sampler_accept(s, 0);
    sampler_accept(s, 2); /* 0 0 2: all of them once */
    assert_int_equal(sampler_next(s, logits), 1);
    assert_int_equal(sampler_next(s, negative), 3);
    other = open_with(&p, 4);
    sampler_follow(other, s);
    assert_int_equal(sampler_next(other, negative), 3);
    sampler_accept(s, 3);
    sampler_accept(s, 3); /* 2 3 3 */
    assert_int_equal(sampler_next(s, logits), 0);
    assert_int_equal(sampler_next(s, negative), 2);
    sampler_accept(s, 1); /* 3 3 1 */
    assert_int_equal(sampler_next(s, negative), 2);
    sampler_close(s);
    sampler_close(other);
}

/* A follower draws what the other one would. */
static void test_follow(void **state)
{
    struct sampler *a = open_sampler(1.0f, 0, 1.0f, 5, 5);
    struct sampler *b = open_sampler(1.0f, 0, 1.0f, 99, 5);
    float logits[5];

    (void)state;
    base_logits(logits);
    for (int i = 0; i < 50; i++) {
        sampler_follow(b, a);
        assert_int_equal(sampler_next(b, logits), sampler_next(a, logits));
    }
    sampler_close(a);
    sampler_close(b);
}

/* Equal seeds, equal draws; another seed, others. Also: top_k picks the k
 * largest of a large random vocabulary. */
static void test_seed_and_large_vocabulary(void **state)
{
    enum { N = 5000, K = 40, DRAWS = 200 };
    static float logits[N];
    uint64_t rng = 5;
    struct sampler *a = open_sampler(1.5f, K, 1.0f, 11, N);
    struct sampler *b = open_sampler(1.5f, K, 1.0f, 11, N);
    struct sampler *c = open_sampler(1.5f, K, 1.0f, 12, N);
    int n_different = 0;

    (void)state;
    for (int i = 0; i < N; i++)
        logits[i] = test_random_float(&rng);
    for (int i = 0; i < DRAWS; i++) {
        const int32_t id = sampler_next(a, logits);
        int n_above = 0;

        for (int k = 0; k < N; k++)
            n_above += logits[k] > logits[id];
        assert_true(n_above < K);
        assert_int_equal(sampler_next(b, logits), id);
        n_different += sampler_next(c, logits) != id;
    }
    assert_true(n_different > DRAWS / 2);
    sampler_close(a);
    sampler_close(b);
    sampler_close(c);
}

/* A text is recited token by token as it is accepted, whatever the logits say; the
 * random numbers go on meanwhile as if it had been drawn. */
static void test_recite(void **state)
{
    const struct sampler_params p = {.temperature = 1.0f, .top_p = 1.0f, .seed = 5};
    const float logits[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    const int32_t text[3] = {3, 0, 3};
    struct sampler *s = open_with(&p, 4), *plain = open_with(&p, 4);

    (void)state;
    sampler_recite(s, text, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sampler_next(s, logits), text[i]);
        sampler_accept(s, text[i]);
        sampler_next(plain, logits);
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(sampler_next(s, logits), sampler_next(plain, logits));
    sampler_recite(s, text, 3);
    sampler_recite(s, NULL, 0);
    assert_int_equal(sampler_next(s, logits), sampler_next(plain, logits));
    sampler_close(s);
    sampler_close(plain);
}

static void test_refuses(void **state)
{
    const struct sampler_params bad[] = {
        {.temperature = -0.1f, .top_p = 1.0f},
        {.temperature = NAN, .top_p = 1.0f},
        {.temperature = INFINITY, .top_p = 1.0f},
        {.temperature = 1.0f, .top_k = -1, .top_p = 1.0f},
        {.temperature = 1.0f, .top_p = 0.0f},
        {.temperature = 1.0f, .top_p = 1.5f},
        {.temperature = 1.0f, .top_p = NAN},
        {.temperature = 1.0f, .top_p = 1.0f, .min_p = -0.1f},
        {.temperature = 1.0f, .top_p = 1.0f, .min_p = 1.1f},
        {.temperature = 1.0f,
         .top_p = 1.0f,
         .repeat_penalty = -1.0f,
         .repeat_window = 64},
        {.temperature = 1.0f,
         .top_p = 1.0f,
         .repeat_penalty = 1.1f,
         .repeat_window = -1},
        {.temperature = 1.0f,
         .top_p = 1.0f,
         .repeat_penalty = 1.1f,
         .repeat_window = 1 << 30},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = ERR_INIT;
        struct sampler *s = NULL;

        assert_int_equal(sampler_open(&s, &bad[i], 10, &err), ST_USAGE);
        assert_null(s);
        assert_true(err.msg[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_plain_temperature),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_min_p),
        cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_recite),
        cmocka_unit_test(test_seed_and_large_vocabulary),
        cmocka_unit_test(test_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
