/* SPDX-License-Identifier: MIT
 *
 * test_router.c - the experts that routers of synthetic models take: how often each,
 * and again for the next token
 */
#include "tests/support/synth_image.h"

#include <math.h>

#include "engine/engine.h"
#include "engine/synth/synth.h"

enum { N_LAYERS = 4, MAX_EXPERTS = 64, N_TOKENS = 1500, N_VOCAB = 2048 };

static struct synth_shape shape_of(const char *arch, uint32_t n, uint32_t n_used,
                                   float skew)
{
    struct synth_shape s = {.name = "routed",
                            .n_layers = N_LAYERS,
                            .n_embd = 1024,
                            .n_ff = 32,
                            .n_heads = 4,
                            .n_kv_heads = 2,
                            .head_dim = 128,
                            .n_vocab = N_VOCAB,
                            .n_ctx_train = 4096,
                            .rope_base = 1e6F,
                            .norm_eps = 1e-6F,
                            .n_experts = n,
                            .n_experts_used = n_used,
                            .n_ff_shared = strcmp(arch, "qwen2moe") ? 0 : 32,
                            .qkv_bias = !strcmp(arch, "qwen2moe"),
                            .router_skew = skew};

    snprintf(s.arch, sizeof s.arch, "%s", arch);
    return s;
}

/* The share of choices that the more popular half of the experts should have. */
static double half_of(const struct synth_shape *s)
{
    double sum = 0;

    for (int rank = 1; rank <= (int)s->n_experts / 2; rank++)
        sum += synth_router_share(s, rank);
    return sum / s->n_experts_used;
}

/* ---- shares ---------------------------------------------------------------------- */

/* They add up, fall with the rank by the exponent, and none is over 0.95; the default
 * is what was measured of OLMoE-1B-7B: 8 of 64 experts, 0.752 in the more popular half.
 */
static void shares_are_as_documented(void **state)
{
    static const float skews[] = {0.1F, 0.6F, 1, 2.5F, SYNTH_MAX_SKEW};

    (void)state;
    for (size_t i = 0; i < sizeof skews / sizeof skews[0]; i++) {
        const struct synth_shape s = shape_of("qwen3moe", 128, 8, skews[i]);
        double sum = 0, last = 1;

        for (int rank = 1; rank <= 128; rank++) {
            const double share = synth_router_share(&s, rank);

            assert_true(share > 0 && share <= 0.95 && share <= last);
            if (share < 0.9)
                assert_true(fabs(synth_router_share(&s, 2 * rank) / share -
                                 pow(2, -(double)skews[i])) < 1e-9);
            sum += share;
            last = share;
        }
        assert_true(fabs(sum - 8) < 1e-6);
    }
    const struct synth_shape olmoe = shape_of("qwen3moe", 64, 8, SYNTH_ROUTER_SKEW);

    assert_true(fabs(half_of(&olmoe) - 0.752) < 0.015);
}

/* ---- what is taken --------------------------------------------------------------- */

static struct {
    bool now[N_LAYERS][MAX_EXPERTS], last[N_LAYERS][MAX_EXPERTS];
    int taken[N_LAYERS][MAX_EXPERTS];
    int n_again[N_LAYERS];
} seen;

/* One thread, and one token at a time. */
static void note(void *arg, const char *name, size_t n_slices, size_t slice,
                 const float *x, size_t n)
{
    int layer;

    (void)arg, (void)n_slices, (void)x, (void)n;
    if (sscanf(name, "blk.%d.", &layer) == 1 && strstr(name, "ffn_up_exps"))
        seen.now[layer][slice] = true;
}

/* Random tokens, one after the other. */
static void run(const struct synth_shape *s)
{
    struct synth_image image = synth_image_make(s, QUANTMIX_Q8_0, 1);
    const struct slm_params p = synth_image_params(&image, 1, N_TOKENS, 1);
    struct slm *m = open_model(&p);
    struct err err = ERR_INIT;
    uint64_t rng = 11;

    memset(&seen, 0, sizeof seen);
    slm_set_activation_hook(m, note, NULL);
    for (int i = 0; i < N_TOKENS; i++) {
        const int32_t id = (int32_t)(test_random(&rng) % N_VOCAB);

        assert_int_equal(slm_eval(m, &id, 1, SLM_LOGITS_NONE, &err), ST_OK);
        for (int l = 0; l < N_LAYERS; l++)
            for (int e = 0; e < MAX_EXPERTS; e++) {
                seen.taken[l][e] += seen.now[l][e];
                seen.n_again[l] += seen.now[l][e] && seen.last[l][e];
            }
        memcpy(seen.last, seen.now, sizeof seen.last);
        memset(seen.now, 0, sizeof seen.now);
    }
    slm_close(m);
    synth_image_drop(&image);
}

static int descending(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

struct figures {
    double most, half;  /* the most popular expert's share of tokens; the share of the
                           more popular half in choices */
    double again, luck; /* choices that repeat one of the last token; that would by
                           popularity alone */
};

static struct figures figures_of(const struct synth_shape *s, int layer)
{
    const double n = (double)N_TOKENS * s->n_experts_used;
    struct figures f = {.again = seen.n_again[layer] / n};
    int sorted[MAX_EXPERTS];

    memcpy(sorted, seen.taken[layer], sizeof sorted);
    qsort(sorted, MAX_EXPERTS, sizeof sorted[0], descending);
    f.most = (double)sorted[0] / N_TOKENS;
    for (int e = 0; e < MAX_EXPERTS; e++) {
        f.half += e < (int)s->n_experts / 2 ? sorted[e] / n : 0;
        f.luck += (double)sorted[e] * sorted[e] / N_TOKENS / n;
    }
    return f;
}

/* Popular as wanted, in every layer, other experts in each; and for a token's choices
 * more of the last token's than popularity alone explains. */
static void trained_routers_are_resembled(void **state)
{
    static const struct {
        const char *arch;
        uint32_t n, n_used;
        float skew;
    } cases[] = {{"qwen3moe", 64, 8, SYNTH_ROUTER_SKEW},
                 {"qwen3moe", 64, 8, 1.2F},
                 {"qwen2moe", 60, 4, SYNTH_ROUTER_SKEW},
                 {"llama", 8, 2, SYNTH_ROUTER_SKEW}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct synth_shape s =
            shape_of(cases[i].arch, cases[i].n, cases[i].n_used, cases[i].skew);
        const double half = half_of(&s), most = synth_router_share(&s, 1);
        int favourite[N_LAYERS], n_same = 0;

        run(&s);
        for (int l = 0; l < N_LAYERS; l++) {
            const struct figures f = figures_of(&s, l);

            if (!(fabs(f.half - half) < 0.08 && fabs(f.most - most) < 0.2 &&
                  f.again > f.luck + 0.1 && f.again < 0.75))
                fail_msg("%s, %u experts, skew %g, layer %d: most %.3f (wanted %.3f), "
                         "half %.3f (wanted %.3f), again %.3f (by popularity %.3f)",
                         s.arch, s.n_experts, (double)s.router_skew, l, f.most, most,
                         f.half, half, f.again, f.luck);
            favourite[l] = 0;
            for (int e = 1; e < MAX_EXPERTS; e++)
                if (seen.taken[l][e] > seen.taken[l][favourite[l]])
                    favourite[l] = e;
            n_same += l > 0 && favourite[l] == favourite[0];
        }
        assert_true(n_same < N_LAYERS - 1);
    }
}

/* Without a skew all are taken alike, whatever the last token took. */
static void without_a_skew_there_are_no_favourites(void **state)
{
    const struct synth_shape s = shape_of("qwen3moe", 64, 8, 0);

    (void)state;
    run(&s);
    for (int l = 0; l < N_LAYERS; l++) {
        const struct figures f = figures_of(&s, l);

        assert_true(f.most < 0.25 && f.half < 0.62 && f.again < 0.17);
    }
}

/* ---- the file -------------------------------------------------------------------- */

static void files_say_it(void **state)
{
    const struct synth_shape skewed = shape_of("qwen3moe", 64, 8, SYNTH_ROUTER_SKEW);
    const struct synth_shape even = shape_of("qwen3moe", 64, 8, 0);
    double skew = -1;
    struct synth_image image[3] = {synth_image_make(&skewed, QUANTMIX_Q8_0, 1),
                                   synth_image_make(&skewed, QUANTMIX_Q8_0, 1),
                                   synth_image_make(&even, QUANTMIX_Q8_0, 1)};

    (void)state;
    assert_int_equal(image[0].bytes, image[1].bytes);
    assert_memory_equal(image[0].data, image[1].data, image[0].bytes);
    assert_true(gguf_get_f64(image[0].g, "slmbench.router_skew", &skew));
    assert_true(skew == (double)SYNTH_ROUTER_SKEW);
    assert_false(gguf_get_f64(image[2].g, "slmbench.router_skew", &skew));
    for (int i = 0; i < 3; i++)
        synth_image_drop(&image[i]);
}

static void what_cannot_have_a_skew_is_refused(void **state)
{
    struct synth_shape bad[7];
    struct synth_plan *plan = NULL;

    (void)state;
    for (int i = 0; i < 7; i++)
        bad[i] = shape_of("qwen3moe", 64, 8, 0.6F);
    bad[0].n_experts = bad[0].n_experts_used = 0;
    snprintf(bad[0].arch, sizeof bad[0].arch, "llama");
    bad[1].n_embd = 1024 + 32;
    bad[2].n_embd = 768;
    bad[3].tied_output = 1;
    bad[4].head_dim = 32;
    bad[5].router_skew = -0.1F;
    bad[6].router_skew = 4.1F;
    for (int i = 0; i < 7; i++) {
        struct err err = ERR_INIT;

        assert_true(i >= 5 || !synth_can_skew(&bad[i]));
        assert_int_equal(synth_plan_make(&plan, &bad[i], QUANTMIX_Q8_0, 1, &err),
                         ST_USAGE);
        assert_non_null(strstr(err.msg, "skew"));
        assert_null(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_as_documented),
        cmocka_unit_test(trained_routers_are_resembled),
        cmocka_unit_test(without_a_skew_there_are_no_favourites),
        cmocka_unit_test(files_say_it),
        cmocka_unit_test(what_cannot_have_a_skew_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
