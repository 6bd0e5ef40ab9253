/* SPDX-License-Identifier: MIT
 *
 * test_model_names.c - what several models are called, and which are one
 */
#include "tests/support/test.h"

#include "harness/model/model_names.h"

static struct modelref of_path(const char *path)
{
    struct modelref ref = {.mix = QUANTMIX_N};
    const char *slash = strrchr(path, '/');

    snprintf(ref.path, sizeof ref.path, "%s", path);
    snprintf(ref.name, sizeof ref.name, "%s", slash ? slash + 1 : path);
    *strrchr(ref.name, '.') = '\0';
    model_label(ref.label, sizeof ref.label, ref.name);
    return ref;
}

static void a_label_is_without_quantisation(void **state)
{
    static const char *const pairs[][2] = {
        {"model-f16", "model"},
        {"model.Q4_K_M", "model"},
        {"model_q8_0", "model"},
        {"m-IQ2_XXS", "m"},
        {"model", "model"},
        {"q8_0", "q8_0"},
        {"-f16", "-f16"},
        {"tf16", "tf16"},
        {"qwen3-4b-UD-Q9_Z", "qwen3-4b-UD-Q9_Z"},
    };
    char out[MODELREF_NAME_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_string_equal(model_label(out, sizeof out, pairs[i][0]), pairs[i][1]);
}

static void names_are_parted(void **state)
{
    struct modelref v[] = {of_path("/x/a/model.gguf"),   of_path("/x/b/model.gguf"),
                           of_path("/y/a/model.gguf"),   of_path("/x/a/model.gguf"),
                           of_path("/x/a/another.gguf"), of_path("only/one.gguf")};
    struct modelref *refs[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        refs[i] = &v[i];
    model_names_part(refs, 6);
    assert_string_equal(v[0].name, "x/a/model");
    assert_string_equal(v[1].name, "b/model");
    assert_string_equal(v[2].name, "y/a/model");
    assert_string_equal(v[3].name, "x/a/model"); /* the same file */
    assert_string_equal(v[4].name, "another");
    assert_string_equal(v[5].name, "one");
}

/* Where folders end, or are longer than a name, a number parts them. */
static void names_are_always_parted(void **state)
{
    char path[PATH_MAX];
    struct modelref v[4];
    struct modelref *refs[4] = {&v[0], &v[1], &v[2], &v[3]};

    (void)state;
    v[0] = of_path("model.gguf");
    v[1] = of_path("./model.gguf");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/%d/%0300d/long.gguf", i, 0);
        v[2 + i] = of_path(path);
    }
    model_names_part(refs, 4);
    assert_string_not_equal(v[0].name, v[1].name);
    assert_string_not_equal(v[2].name, v[3].name);
    assert_int_equal(strncmp(v[2].name, "long~", 5), 0);
}

static void a_shape_keeps_its_name(void **state)
{
    struct modelref v[] = {of_path("/x/nano.gguf"), of_path("/cache/nano.gguf")};
    struct modelref *refs[] = {&v[0], &v[1]};

    (void)state;
    v[1].synthetic = true;
    model_names_part(refs, 2);
    assert_string_equal(v[0].name, "nano");
    assert_string_equal(v[1].name, "nano");
}

static void content_makes_a_model(void **state)
{
    struct modelref v[] = {of_path("/x/model-f16.gguf"), of_path("/x/other-q8_0.gguf"),
                           of_path("/x/model-UD-Q4.gguf"),
                           of_path("/x/model-q4_0.gguf")};
    struct modelref *refs[] = {&v[0], &v[1], &v[2], &v[3]};
    const uint64_t identity[] = {7, 8, 7, 9};

    (void)state;
    for (int i = 0; i < 4; i++)
        v[i].identity = identity[i];
    model_labels_choose(refs, 4);
    assert_string_equal(v[0].label, "model-f16"); /* "model" is another's, too */
    assert_string_equal(v[2].label, "model-f16");
    assert_string_equal(v[1].label, "other");
    assert_string_equal(v[3].label, "model-q4_0");

    v[3] = of_path("/x/third.gguf");
    v[3].identity = identity[3];
    for (int i = 0; i < 3; i++)
        model_label(v[i].label, sizeof v[i].label, v[i].name);
    model_labels_choose(refs, 4);
    assert_string_equal(v[0].label, "model");
    assert_string_equal(v[2].label, "model");
    assert_string_equal(v[3].label, "third");
}

static uint64_t identity_of(const char *file)
{
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    char path[PATH_MAX];
    uint64_t id;

    snprintf(path, sizeof path, "%s/tests/data/models/%s", SLM_SOURCE_DIR, file);
    if (gguf_open(&g, path, &err))
        fail_msg("%s", err.msg);
    id = model_identity(g);
    gguf_close(g);
    return id;
}

static void shapes_make_a_model(void **state)
{
    (void)state;
    assert_true(identity_of("llama.gguf") == identity_of("llama.gguf"));
    assert_true(identity_of("llama.gguf") != identity_of("llama-mqa.gguf"));
    assert_true(identity_of("qwen2.gguf") != identity_of("qwen3.gguf"));
    assert_true(identity_of("stories260K-f32.gguf") != identity_of("llama.gguf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_label_is_without_quantisation),
        cmocka_unit_test(names_are_parted),
        cmocka_unit_test(names_are_always_parted),
        cmocka_unit_test(a_shape_keeps_its_name),
        cmocka_unit_test(content_makes_a_model),
        cmocka_unit_test(shapes_make_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
