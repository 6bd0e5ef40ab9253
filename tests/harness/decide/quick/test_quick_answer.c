/* SPDX-License-Identifier: MIT
 *
 * test_quick_answer.c - figures and sentences of `bench quick` from given launches
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/quick/quick_answer.h"

#define GIB (UINT64_C(1) << 30)

static struct quick_model models[4];

static struct quick_launch launch(double tok_per_s, double roof_gbps)
{
    return (struct quick_launch){
        .tok_per_s = tok_per_s, .roof_gbps = roof_gbps, .mbu = NAN, .is_valid = true};
}

static struct quick_model model(const char *name, double billions, double gb)
{
    struct quick_model m = {.is_shape = true,
                            .fits = true,
                            .n_params = (uint64_t)(billions * 1e9),
                            .needed_bytes = (uint64_t)(gb * 1e9),
                            .ctx = 4096,
                            .work = {.memory_bytes = gb * 1e9, .n_layers = 32}};

    snprintf(m.name, sizeof m.name, "%s", name);
    snprintf(m.text, sizeof m.text, "%s:Q4_K_M", name);
    return m;
}

/* 1.1B and 8.8B measured, in two rounds; 4B and 47B planned. A roof of 60 GB/s. */
static struct quick_answer usual(void)
{
    struct quick_answer a = {.models = models,
                             .n_models = 4,
                             .quant = "Q4_K_M",
                             .n_threads = 2,
                             .n_prompt = 512,
                             .want_tok_per_s = 20,
                             .room = 8 * GIB,
                             .llc_bytes = 32 << 20,
                             .n_rounds = 2};

    models[0] = model("small-1.1b", 1.1, 0.6);
    models[1] = model("some-4b", 4.1, 2.4);
    models[2] = model("large-9b", 8.83, 5.4);
    models[3] = model("huge-47b", 46.7, 27);
    models[3].fits = false;
    models[0].is_measured = models[2].is_measured = true;
    models[0].decode = (struct quick_point){{launch(70, 60), launch(74, 61)}, 2};
    models[0].prefill = (struct quick_point){{launch(500, NAN), launch(520, NAN)}, 2};
    models[2].decode = (struct quick_point){{launch(10, 59), launch(10.2, 61)}, 2};
    models[2].prefill = (struct quick_point){{launch(57, NAN), launch(58, NAN)}, 2};
    return a;
}

static struct quick_sentence printed[QUICK_MAX_SENTENCES];

static int conclude(struct quick_answer *a)
{
    quick_conclude(a);
    return quick_sentences(a, printed);
}

static bool prints(int n, const char *part)
{
    for (int i = 0; i < n; i++)
        if (strstr(printed[i].text, part))
            return true;
    return false;
}

static void what_was_measured(void **state)
{
    struct quick_answer a = usual();
    const int n = conclude(&a);

    (void)state;
    assert_int_equal(n, 4);
    assert_string_equal(printed[0].text,
                        "A 9B model in Q4_K_M fits with 4096 tokens of context and "
                        "decodes about 10 tok/s with 2 threads; a 512-token prompt "
                        "takes 9 s.");
    assert_string_equal(printed[1].text,
                        "A 1.1B model in Q4_K_M fits with 4096 tokens of context and "
                        "decodes about 70 tok/s with 2 threads; a 512-token prompt "
                        "takes 1 s.");
    assert_string_equal(printed[2].text,
                        "To decode 20 tok/s (--min-tps) take a 4B model: about 20 "
                        "are expected (shape of some-4b).");
    assert_string_equal(printed[3].text,
                        "A 47B model does not fit: it needs 25.1 GiB of "
                        "the 8.00 GiB that there are.");
}

/* Between two measured models: the same planner as `bench plan`, with their share. */
static void what_follows(void **state)
{
    struct quick_answer a = usual();
    const double w = log(2.4 / 0.6) / log(5.4 / 0.6);

    (void)state;
    quick_conclude(&a);
    assert_float_equal(a.roof_gbps, 60, 1e-9);
    assert_float_equal(models[0].share, 72 * 0.6 / 60, 1e-9);
    assert_float_equal(models[2].share, 10.1 * 5.4 / 60, 1e-9);
    assert_float_equal(models[1].share,
                       models[0].share + w * (models[2].share - models[0].share), 1e-9);
    assert_float_equal(models[1].tok_per_s, models[1].share * 60 / 2.4, 1e-9);
    /* a prompt: time per parameter, likewise */
    assert_true(models[1].prompt_s > 512 / 510. * 4.1 / 1.1 * 0.9 &&
                models[1].prompt_s < 512 / 57.5 * 4.1 / 8.83 * 1.1);
    assert_true(isnan(models[3].tok_per_s));
    assert_true(isnan(models[3].prompt_s));
}

/* A model that the cache holds says nothing about memory. */
static void a_model_in_the_cache(void **state)
{
    struct quick_answer a = usual();
    int n;

    (void)state;
    models[2].is_measured = false;
    a.llc_bytes = 1 << 30;
    n = conclude(&a);
    assert_true(isnan(a.roof_gbps));
    assert_true(isnan(models[1].tok_per_s));
    assert_true(isnan(models[2].tok_per_s));
    assert_float_equal(models[0].tok_per_s, 72, 1e-9);
    assert_int_equal(n, 2);
    assert_true(prints(n, "A 1.1B model in Q4_K_M fits"));
    assert_true(prints(n, "does not fit"));
}

static void wishes(void **state)
{
    struct quick_answer a = usual();
    int n;

    (void)state;
    a.want_tok_per_s = 5;
    n = conclude(&a);
    assert_true(prints(
        n, "5 tok/s are reached by all sizes that are known and fit, up to 9B."));
    a.want_tok_per_s = 100;
    n = conclude(&a);
    assert_true(prints(n, "No size that is known reaches 100 tok/s here: a 1.1B model "
                          "decodes about 70."));
    a.want_tok_per_s = 60;
    n = conclude(&a);
    assert_true(prints(
        n, "To decode 60 tok/s (--min-tps) take a 1.1B model: about 70 are measured"));
    /* a mixture of experts is larger than fast models are, and no answer to that */
    a = usual();
    models[1].has_experts = true;
    n = conclude(&a);
    assert_true(prints(n, "take a 1.1B model"));
    assert_true(isnan(models[1].prompt_s));
    assert_true(models[1].tok_per_s > 0);
}

static void names(void **state)
{
    struct quick_answer a = usual();
    int n;

    (void)state;
    models[2].n_params = 8030000000u;
    n = conclude(&a);
    assert_true(prints(n, "An 8B model in Q4_K_M fits"));
    models[2].is_shape = false;
    a.n_threads = 1;
    n = conclude(&a);
    assert_true(prints(n, "large-9b fits with 4096 tokens of context and decodes about "
                          "10 tok/s with 1 thread;"));
    models[0].n_params = 270000000;
    n = conclude(&a);
    assert_true(prints(n, "A 270M model"));
    models[0].n_params = 2e9;
    n = conclude(&a);
    assert_true(prints(n, "A 2B model"));
}

static void disturb(struct quick_point *p, int i, double others_pct, double steal_pct)
{
    p->launch[i].is_valid = false;
    p->launch[i].others_pct = others_pct;
    p->launch[i].steal_pct = steal_pct;
    p->launch[i].disturbed_pct =
        others_pct + steal_pct > 0 ? fmax(others_pct, steal_pct) : 100;
}

static void disturbances(void **state)
{
    struct quick_answer a = usual();
    int n;

    (void)state;
    /* one launch of eight: the other of its point counts */
    disturb(&models[2].decode, 0, 48, 0);
    n = conclude(&a);
    assert_true(prints(n, "Somebody else took 48 % of the CPU in 1 of 8 measurements, "
                          "which are left out."));
    assert_float_equal(models[2].tok_per_s, 10.2, 1e-9);
    /* both: there is nothing better */
    disturb(&models[2].decode, 1, 52, 6);
    n = conclude(&a);
    assert_string_equal(
        printed[0].text,
        "Somebody else took 50 % of the CPU and the hypervisor took 3 % "
        "of the CPU: figures are lower bounds, far below what this "
        "machine can do. Measure again when the machine is quiet.");
    assert_float_equal(models[2].tok_per_s, 10.2, 1e-9); /* slowed down least */
    assert_true(prints(n, "A 9B model in Q4_K_M fits with 4096 tokens of context and "
                          "decodes at least 10 tok/s"));
    assert_true(prints(n, "prompt takes 9 s."));
    assert_true(prints(
        n, "To decode 20 tok/s (--min-tps) take a 4B model: at least 22 are expected "
           "(shape of some-4b). A larger one may reach that"));
    a.want_tok_per_s = 100;
    n = conclude(&a);
    assert_true(
        prints(n, "No size that is known reaches 100")); /* the small one is known */
    disturb(&models[0].decode, 0, 60, 0);
    disturb(&models[0].decode, 1, 60, 0);
    n = conclude(&a);
    assert_true(
        prints(n, "Which size reaches 100 tok/s is not known: a 1.1B model decodes "
                  "at least 70."));
    assert_false(prints(n, "No size"));
    /* 3 % is no alarm */
    a = usual();
    for (int i = 0; i < 2; i++)
        disturb(&models[2].decode, i, 3, 0);
    n = conclude(&a);
    assert_string_equal(printed[0].text,
                        "Somebody else took 3 % of the CPU: figures may be "
                        "a few per cent too low.");
    assert_true(prints(n, "decodes about 10 tok/s"));
    assert_false(prints(n, "at least"));
    a = usual();
    disturb(&models[0].prefill, 0, 0, 30);
    disturb(&models[0].prefill, 1, 0, 30);
    n = conclude(&a);
    assert_true(
        prints(n, "The hypervisor took 30 % of the CPU: figures are lower bounds"));
    assert_true(prints(n, "a 512-token prompt takes at most 1 s."));
    a = usual();
    disturb(&models[0].prefill, 0, 0, 0);
    n = conclude(&a);
    assert_true(prints(n, "Something disturbed the measurement in 1 of 8"));
    /* bandwidth that comes and goes */
    a = usual();
    models[2].decode.launch[1].roof_gbps = 45;
    n = conclude(&a);
    assert_true(prints(n, "Memory bandwidth was between 45 and 59 GB/s"));
    /* a quota is no disturbance */
    a = usual();
    for (int i = 0; i < 2; i++)
        models[0].decode.launch[i].throttled = models[2].decode.launch[i].throttled =
            .5;
    n = conclude(&a);
    assert_true(prints(n, "The CPU quota stopped the threads for 25 % of the time"));
    assert_false(prints(n, "too low") || prints(n, "bounds"));
}

static void round_figures(void **state)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {10.1, "10"},  {10.7, "11"},     {17.3, "18"}, {16.6, "16"}, {9.6, "10"},
        {9.3, "9"},    {0.27, "0.25"},   {72, "70"},   {1.04, "1"},  {0.0391, "0.04"},
        {99.9, "100"}, {13100, "13000"}, {234, "220"}, {240, "250"}, {5.4, "5.5"},
        {1.13, "1.1"}, {NAN, "0"},       {0, "0"},     {102, "100"}, {116, "120"},
        {0.97, "1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(quick_round(cases[i].v).text, cases[i].text);
    /* never further off than a tenth */
    for (double v = 0.01; v < 1e5; v *= 1.013)
        assert_true(fabs(strtod(quick_round(v).text, NULL) / v - 1) < 0.1);
}

static void as_json(void **state)
{
    struct quick_answer a = usual();
    json_t *o, *m;

    (void)state;
    quick_conclude(&a);
    o = quick_json(&a);
    assert_non_null(o);
    assert_int_equal(json_array_size(json_object_get(o, "sentences")), 4);
    m = json_array_get(json_object_get(o, "models"), 2);
    assert_float_equal(json_real_value(json_object_get(m, "tok_per_s")), 10.1, 1e-9);
    assert_string_equal(json_string_value(json_object_get(m, "figures")), "measured");
    assert_int_equal(json_array_size(json_object_get(m, "decode")), 2);
    m = json_array_get(json_object_get(o, "models"), 3);
    assert_true(json_is_null(json_object_get(m, "tok_per_s")));
    assert_true(json_is_false(json_object_get(m, "fits")));
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_measured),
        cmocka_unit_test(what_follows),
        cmocka_unit_test(a_model_in_the_cache),
        cmocka_unit_test(wishes),
        cmocka_unit_test(names),
        cmocka_unit_test(disturbances),
        cmocka_unit_test(round_figures),
        cmocka_unit_test(as_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
