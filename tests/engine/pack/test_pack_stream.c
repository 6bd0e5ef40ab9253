/* SPDX-License-Identifier: MIT
 *
 * test_pack_stream.c - streamed from a packed file, a model is bit for bit the one that
 * is packed into memory: both are computed from the same panels
 */
#include "tests/support/pack_file.h"
#include "tests/support/stream_model.h"

/* Of the matrices that are streamed, those in panels. */
static int streamed_in_panels(struct slm *m)
{
    const struct residency_plan *plan = weights_plan(slm_weights(m));
    const struct gguf *g = slm_gguf(m);
    int n = 0;

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const enum residency where = residency_of(plan, g, t);

        n += (where == RESIDENCY_STREAMED || where == RESIDENCY_CACHED) &&
             weights_panel_rows(slm_weights(m), t) > 0;
    }
    return n;
}

static void check_streamed(struct slm *m, const float *want, const char *what)
{
    float *have = logits_of(m, 1);
    const struct slm_info *info = slm_info(m);

    if (info->n_streamed + (info->cache_bytes > 0) == 0 || streamed_in_panels(m) == 0)
        fail_msg("%s: %d layers and %d matrices in panels are streamed", what,
                 info->n_streamed, streamed_in_panels(m));
    if (memcmp(have, want, logits_bytes(m)) != 0)
        fail_msg("%s: other logits than in memory", what);
    free(have);
}

static float *logits_in_memory(const char *path)
{
    const struct slm_params p = params_of(path, WEIGHTS_PACKED, isa_usable());
    struct slm *m = open_model(&p);
    float *out = logits_of(m, 1);

    assert_int_equal(slm_info(m)->n_streamed, 0);
    slm_close(m);
    return out;
}

/* With the least memory, and with more. */
static void check_rooms(const char *packed, const float *want, const char *what)
{
    struct slm_params p = params_of(packed, WEIGHTS_STREAM, isa_usable());
    uint64_t least, all;

    limits_of(&p, &least, &all);
    for (uint64_t i = 0; i < 4; i++) {
        p.memory_bytes = least + i * (all - least) / 4;
        struct slm *m = open_model(&p);

        check_streamed(m, want, what);
        slm_close(m);
    }
}

/* What was in memory is given back and read again. */
static void check_reclaimed(const char *packed, const float *want, const char *what)
{
    const struct slm_params p = params_of(packed, WEIGHTS_PACKED, isa_usable());
    struct slm *m = open_model(&p);
    struct err err = ERR_INIT;
    uint64_t freed;

    if (slm_reclaim(m, slm_info(m)->weight_bytes / 2, &freed, &err))
        fail_msg("%s: %s", what, err.msg);
    check_streamed(m, want, what);
    slm_close(m);
}

static void check_mix(const struct synth_shape *shape, enum quantmix mix)
{
    char from[] = "/tmp/test_pack_stream.XXXXXX", to[sizeof from + 8];
    const char *what = quantmix_name(mix);
    float *want;

    make_file(from, shape, mix);
    snprintf(to, sizeof to, "%s.packed", from);
    (void)pack_file(from, to, 2);
    want = logits_in_memory(from);
    check_rooms(to, want, what);
    check_reclaimed(to, want, what);
    free(want);
    unlink(from);
    unlink(to);
}

static void layers_of_a_packed_file(void **state)
{
    static const enum quantmix mixes[] = {QUANTMIX_Q4_K_M, QUANTMIX_Q5_K_M,
                                          QUANTMIX_Q6_K, QUANTMIX_Q8_0};

    (void)state;
    needs_panels();
    for (int i = 0; i < 4; i++) {
        struct synth_shape shape = deep_shape;

        shape.tied_output = i == 1;
        check_mix(&shape, mixes[i]);
    }
}

/* Slices of 256 rows begin at blocks, those of 224 amid them. */
static void experts_of_a_packed_file(void **state)
{
    static const enum quantmix mixes[] = {QUANTMIX_Q8_0, QUANTMIX_Q4_K_M,
                                          QUANTMIX_Q6_K};

    (void)state;
    needs_panels();
    for (int i = 0; i < 3; i++) {
        struct synth_shape shape = deep_shape_of(true);

        shape.n_ff = i == 0 ? 224 : 256;
        check_mix(&shape, mixes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_a_packed_file),
        cmocka_unit_test(experts_of_a_packed_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
