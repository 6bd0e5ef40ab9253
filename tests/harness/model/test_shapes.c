/* SPDX-License-Identifier: MIT
 *
 * test_shapes.c - shape files: all of ours load, broken ones get a sentence
 */
#include "tests/support/test.h"

#include "harness/model/modelref.h"

static char dir[] = "/tmp/slm_shapes_XXXXXX";

static const char good[] = "arch: llama\nn_layers: 2\nn_embd: 256\nn_ff: 512\n"
                           "n_heads: 4\nn_kv_heads: 2\nhead_dim: 64\nn_vocab: 512\n"
                           "n_ctx_train: 1024\nrope_base: 1e4\nnorm_eps: 1e-5\n";

static void write_text(const char *path, const char *text, size_t len)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* Loads the text as a shape file called odd.yaml. */
static enum status load_text(const char *text, size_t len, struct synth_shape *s,
                             struct err *err)
{
    char path[64];

    snprintf(path, sizeof path, "%s/odd.yaml", dir);
    write_text(path, text, len);
    err_clear(err);
    return shape_load(s, path, err);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/odd.yaml", dir);
    unlink(path);
    return rmdir(dir);
}

static void every_config_loads_and_can_be_planned(void **state)
{
    struct err err = ERR_INIT;
    char **names;
    int n;

    (void)state;
    assert_int_equal(shape_list(&names, &n, &err), ST_OK);
    assert_true(n >= 5);
    for (int i = 0; i < n; i++) {
        struct synth_shape s;
        struct synth_plan *plan;

        assert_int_equal(shape_load(&s, names[i], &err), ST_OK);
        assert_string_equal(s.name, names[i]);
        assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_K_M, 1, &err), ST_OK);
        synth_plan_free(plan);
        if (i)
            assert_true(strcmp(names[i - 1], names[i]) < 0);
    }
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

static uint64_t params_of(const char *name)
{
    struct err err = ERR_INIT;
    struct synth_shape s;
    struct synth_plan *plan;

    assert_int_equal(shape_load(&s, name, &err), ST_OK);
    assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q8_0, 1, &err), ST_OK);
    const uint64_t n = synth_plan_params(plan);
    synth_plan_free(plan);
    return n;
}

/* As the publishers count them; rope_freqs is in the file but not in the model. */
static void parameters_are_those_of_the_real_models(void **state)
{
    (void)state;
    assert_int_equal(params_of("yi-1.5-9b"), 8829407232);
    assert_int_equal(params_of("llama-3.1-8b"), 8030261248 + 64);
    assert_int_equal(params_of("mistral-7b"), 7248023552);
    assert_int_equal(params_of("tinyllama-1.1b"), 1100048384);
    assert_int_equal(params_of("qwen2.5-7b"), 7615616512);
    assert_int_equal(params_of("qwen3-8b"), 8190735360);
    assert_int_equal(params_of("gemma-2-9b"), 9241705984);
    assert_int_equal(params_of("phi-2"), 2779683840);
    assert_int_equal(params_of("phi-3-mini"), 3821079552);
    assert_int_equal(params_of("stablelm-3b"), 2795443200);
    assert_int_equal(params_of("glm-4-9b"), 9399951360);
    assert_int_equal(params_of("mixtral-8x7b"), 46702792704);
    assert_int_equal(params_of("qwen3-30b-a3b"), 30532122624);
    assert_int_equal(params_of("qwen1.5-moe-a2.7b"), 14315784192);
    assert_int_equal(params_of("llama-2-7b"), 6738415616);
    assert_int_equal(params_of("llama-3.2-1b"), 1235814400 + 32);
    assert_int_equal(params_of("llama-3.2-3b"), 3212749824 + 64);
    assert_int_equal(params_of("qwen2.5-0.5b"), 494032768);
    assert_int_equal(params_of("qwen2.5-1.5b"), 1543714304);
    assert_int_equal(params_of("qwen2.5-3b"), 3085938688);
    assert_int_equal(params_of("qwen3-0.6b"), 596049920);
    assert_int_equal(params_of("qwen3-1.7b"), 1720574976);
    assert_int_equal(params_of("qwen3-4b"), 4022468096);
    assert_int_equal(params_of("gemma-2-2b"), 2614341888);
    assert_int_equal(params_of("gemma-3-4b"), 3880263168);
    /* without keys and values of layers that read those of others, which files of
     * Gemma 3n have; with a zero per token of the parts for images and sound */
    assert_int_equal(params_of("gemma-3n-e2b"), 4437148768);
    assert_int_equal(params_of("gemma-3n-e4b"), 6837529328);
    assert_int_equal(params_of("gemma-4-e2b"), 4628569635);
    assert_int_equal(params_of("gemma-4-e4b"), 7463013674);
    assert_int_equal(params_of("gemma-4-26b-a4b"), 25233138206);
    assert_int_equal(params_of("smollm2-135m"), 134515008);
    assert_int_equal(params_of("smollm2-360m"), 361821120);
    assert_int_equal(params_of("smollm2-1.7b"), 1711376384);
    assert_int_equal(params_of("smollm3-3b"), 3075098624);
    assert_int_equal(params_of("gpt-oss-20b"), 20914757184);
    assert_int_equal(params_of("olmo-2-1b"), 1484916736);
    assert_int_equal(params_of("olmoe-1b-7b"), 6919161856);
    assert_int_equal(params_of("gemma-2b"), 2506172416);
    assert_int_equal(params_of("exaone-4.0-1.2b"), 1279391488 + 32);
    assert_int_equal(params_of("gpt2"), 124439808);
    assert_int_equal(params_of("pythia-1.4b"), 1414647808);
    assert_int_equal(params_of("starcoder2-3b"), 3030371328);
    assert_int_equal(params_of("phi-3.5-moe"), 41873153344);
    assert_int_equal(params_of("deepseek-v2-lite"), 15706484224);
    assert_int_equal(params_of("minicpm3-4b"), 4073875968);
    /* without the pooler */
    assert_int_equal(params_of("all-minilm-l6-v2"), 22713216 - 384 * 385);
    assert_int_equal(params_of("bge-small-en-v1.5"), 33360000 - 384 * 385);
    assert_int_equal(params_of("nomic-embed-text-v1.5"), 136731648);
    assert_int_equal(params_of("qwen3-embedding-0.6b"), 595776512);
    assert_int_equal(params_of("embeddinggemma-300m"), 302863104 + 2 * 768 * 3072);
    /* without what is added to the odds of experts */
    assert_int_equal(params_of("ling-mini-2.0"), 16255643392 - 19 * 256);
    /* with the layer that predicts further tokens and its matrix of two inputs */
    assert_int_equal(params_of("qwen3.5-4b-mtp") - params_of("qwen3.5-4b"), 120599552);
    /* without the two norms of each layer that no architecture here has */
    assert_int_equal(params_of("bitnet-2b"), 2412820480 - 30 * (2560 + 6912));
}

static void a_good_file_gives_its_values(void **state)
{
    struct err err = ERR_INIT;
    struct synth_shape s;
    char text[512];

    (void)state;
    snprintf(text, sizeof text, "%stied_output: Yes\nrope_freqs: false\n", good);
    assert_int_equal(load_text(text, strlen(text), &s, &err), ST_OK);
    assert_string_equal(s.name, "odd");
    assert_string_equal(s.arch, "llama");
    assert_int_equal(s.n_layers, 2);
    assert_int_equal(s.n_embd, 256);
    assert_int_equal(s.n_ff, 512);
    assert_int_equal(s.n_heads, 4);
    assert_int_equal(s.n_kv_heads, 2);
    assert_int_equal(s.head_dim, 64);
    assert_int_equal(s.n_vocab, 512);
    assert_int_equal(s.n_ctx_train, 1024);
    assert_true(s.rope_base == 1e4F && s.norm_eps == 1e-5F);
    assert_int_equal(s.tied_output, 1);
    assert_int_equal(s.rope_freqs, 0);
}

static void flags_are_words_in_any_case(void **state)
{
    static const struct {
        const char *word;
        int value;
    } cases[] = {{"yes", 1}, {"TRUE", 1}, {"no", 0}, {"False", 0}, {"''", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct synth_shape s;
        char text[512];

        snprintf(text, sizeof text, "%sattention_layers: 0 2\ntied_output: %s\n", good,
                 cases[i].word);
        assert_int_equal(load_text(text, strlen(text), &s, &err), ST_OK);
        assert_int_equal(s.tied_output, cases[i].value);
        assert_string_equal(s.attention_layers, "0 2");
    }
}

/* A shape is called as its file, so the file's name must be one that fits. */
static void names_of_files_are_names_of_shapes(void **state)
{
    struct synth_shape s;
    struct err err = ERR_INIT;
    char path[200], name[100] = "";

    (void)state;
    memset(name, 'n', sizeof name - 1);
    snprintf(path, sizeof path, "%s/%s.yaml", dir, name);
    assert_int_equal(shape_load(&s, path, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "a shape's file name has 1.."));
    err_clear(&err);
    snprintf(path, sizeof path, "%s/.yaml", dir);
    assert_int_equal(shape_load(&s, path, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "a shape's file name has 1.."));
    err_clear(&err);
    assert_int_equal(shape_load(&s, name, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "there is no shape 'nnn"));
}

/* The good file with `from` replaced. */
static void with(char *out, size_t cap, const char *from, const char *to)
{
    const char *at = strstr(good, from);

    assert_non_null(at);
    snprintf(out, cap, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
}

static void broken_files_get_a_sentence_with_file_and_key(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"n_ff: 512\n", "", "the key 'n_ff' is missing"},
        {"n_ff: 512\n", "n_ff: 512\nn_fff: 1\n",
         "no key 'n_fff'; did you mean 'n_ff'?"},
        {"n_ff: 512\n", "n_ff: 512\nsomething: 1\n", "there is no key 'something'"},
        {"n_ff: 512", "n_ff: 12abc", "n_ff: '12abc' is not a whole number"},
        {"n_ff: 512", "n_ff: -1", "n_ff: -1 is outside"},
        {"n_ff: 512", "n_ff: 99999999999999999999",
         "n_ff: 99999999999999999999 is outside"},
        {"n_ff: 512", "n_ff: 1.5", "n_ff: '1.5' is not a whole number"},
        {"n_ff: 512", "n_ff:", "n_ff: '' is not a whole number"},
        {"n_ff: 512", "n_ff: [1, 2]", "line 4: here a single value is expected"},
        {"n_ff: 512", "n_ff: 512\nn_ff: 512", "the key 'n_ff' is there twice"},
        {"rope_base: 1e4", "rope_base: fast", "rope_base: 'fast' is not a number"},
        {"rope_base: 1e4", "rope_base: inf", "rope_base: 'inf' is not a number"},
        {"arch: llama", "arch: \"llama", "quotation mark"},
        {"arch: llama", "arch: ''", "arch is empty"},
        {"n_ff: 512\n", "n_ff: 512\nattention_layers: 1 2x\n",
         "attention_layers: '1 2x' is no list of numbers"},
        {"n_ff: 512\n", "n_ff: 512\nwindow: wide\n", "window: 'wide' is not a whole"},
        {"n_ff: 512\n", "n_ff: 512\nrouter_skew: -1\n", "router_skew: -1 is outside"},
        {"n_ff: 512\n", "n_ff: 512\ntied_output: perhaps\n", "'perhaps' is neither"},
        {"arch: llama", "arch: llamallamallamallamallamallamallama", "STRING length"},
        {good, "", "is empty"},
        {good, "- 1\n- 2\n", "Expecting MAPPING"},
        {good, "just words", "Expecting MAPPING"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_shape s = {.n_layers = 7};
        struct err err = ERR_INIT;
        char text[1024];

        with(text, sizeof text, cases[i].from, cases[i].to);
        const enum status st = load_text(text, strlen(text), &s, &err);
        assert_int_equal(st, ST_INPUT);
        assert_int_equal(s.n_layers, 7);
        assert_non_null(strstr(err.msg, "odd.yaml"));
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
}

/* Cut anywhere, or with any byte changed, a file loads or is refused; it never
 * leaks or crashes (the sanitizer build watches). */
static void damaged_files_never_crash(void **state)
{
    struct synth_shape s;
    struct err err = ERR_INIT;
    uint64_t random = 1;
    char text[sizeof good];

    (void)state;
    for (size_t len = 0; len < sizeof good; len++)
        load_text(good, len, &s, &err);
    for (int i = 0; i < 2000; i++) {
        memcpy(text, good, sizeof good);
        for (int k = 0; k < 1 + i % 4; k++)
            text[test_random(&random) % (sizeof good - 1)] = (char)test_random(&random);
        if (load_text(text, sizeof good - 1, &s, &err))
            assert_true(err.msg[0]);
    }
}

static void hostile_yaml_is_refused(void **state)
{
    static const char bomb[] = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\n"
                               "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]\n";
    struct synth_shape s;
    struct err err = ERR_INIT;
    char *large = malloc(300 << 10);

    (void)state;
    assert_non_null(large);
    assert_int_equal(load_text(bomb, sizeof bomb - 1, &s, &err), ST_INPUT);
    memset(large, '#', 300 << 10);
    assert_int_equal(load_text(large, 300 << 10, &s, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "has 307200 bytes; at most 262144"));
    memset(large, '[', 100 << 10);
    assert_int_equal(load_text(large, 100 << 10, &s, &err), ST_INPUT);
    free(large);
}

static void names_as_people_type_them(void **state)
{
    static const struct {
        const char *name, *near;
    } cases[] = {
        {"llama-3-8b", "llama-3.1-8b"},
        {"llama3:8b", "llama-3.1-8b"},
        {"llama3", "llama-3.1-8b, llama-3.2-1b, llama-3.2-3b"},
        {"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
        {"meta-llama/Llama-3.2-3B-Instruct", "llama-3.2-3b"},
        {"mistral-7b-instruct-v0.3", "mistral-7b"},
        {"/tmp/some/model.gguf", ""},
        {"", ""},
    };
    char near[200];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(shape_near(cases[i].name, near, sizeof near) > 0,
                         *cases[i].near != '\0');
        assert_string_equal(near, cases[i].near);
    }
}

static void unknown_shapes_are_named(void **state)
{
    struct synth_shape s;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(shape_load(&s, "yi-1.5-9", &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "did you mean 'yi-1.5-9b'?"));
    err_clear(&err);
    assert_int_equal(shape_load(&s, "tinyllama", &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "did you mean 'tinyllama-1.1b'?"));
    err_clear(&err);
    assert_int_equal(shape_load(&s, "gpt-5", &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "near it: gpt-oss-20b, gpt2"));
    err_clear(&err);
    assert_int_equal(shape_load(&s, "xyzzy", &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "`bench synth --list` lists them"));
    err_clear(&err);
    assert_int_equal(shape_load(&s, "", &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(shape_load(&s, "../models/nano", &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(shape_load(&s, "/nowhere/x.yaml", &err), ST_IO);
    assert_non_null(strstr(err.msg, "/nowhere/x.yaml"));
}

static void environment_replaces_the_directory(void **state)
{
    struct synth_shape s;
    struct err err = ERR_INIT;
    char **names, path[64];
    int n;

    (void)state;
    assert_int_equal(load_text(good, sizeof good - 1, &s, &err), ST_OK);
    setenv("SLMBENCH_SHAPES", dir, 1);
    assert_int_equal(shape_list(&names, &n, &err), ST_OK);
    assert_int_equal(n, 1);
    assert_string_equal(names[0], "odd");
    free(names[0]);
    free(names);
    assert_int_equal(shape_load(&s, "odd", &err), ST_OK);
    assert_int_equal(shape_load(&s, "nano", &err), ST_USAGE);
    err_clear(&err);
    snprintf(path, sizeof path, "%s/odd.yaml", dir);
    unlink(path);
    assert_int_equal(shape_load(&s, "odd", &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "SLMBENCH_SHAPES names has no .yaml files"));
    unsetenv("SLMBENCH_SHAPES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_config_loads_and_can_be_planned),
        cmocka_unit_test(parameters_are_those_of_the_real_models),
        cmocka_unit_test(a_good_file_gives_its_values),
        cmocka_unit_test(flags_are_words_in_any_case),
        cmocka_unit_test(names_of_files_are_names_of_shapes),
        cmocka_unit_test(broken_files_get_a_sentence_with_file_and_key),
        cmocka_unit_test(damaged_files_never_crash),
        cmocka_unit_test(hostile_yaml_is_refused),
        cmocka_unit_test(names_as_people_type_them),
        cmocka_unit_test(unknown_shapes_are_named),
        cmocka_unit_test(environment_replaces_the_directory),
    };

    return cmocka_run_group_tests_name("shapes", tests, make_dir, remove_dir);
}
