/* SPDX-License-Identifier: MIT
 *
 * test_modelref.c - models as the command line names them, and their cache
 */
#include "tests/support/test.h"

#include <sys/stat.h>

#include "harness/model/modelref.h"

static char dir[] = "/tmp/slm_modelref_XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

static void a_file_is_itself(void **state)
{
    struct err err = ERR_INIT;
    struct modelref ref;
    uint64_t bytes = 0;
    char path[80];
    bool made = true;
    FILE *f;

    (void)state;
    /* A colon in a file's name does not make it a shape. */
    snprintf(path, sizeof path, "%s/my:model.gguf", dir);
    f = fopen(path, "wb");
    assert_non_null(f);
    fputs("12345", f);
    fclose(f);
    assert_int_equal(modelref_parse(&ref, path, NULL, &err), ST_OK);
    assert_false(ref.synthetic);
    assert_string_equal(ref.path, path);
    assert_string_equal(ref.name, "my:model");
    assert_int_equal(modelref_bytes(&ref, &bytes, &err), ST_OK);
    assert_int_equal(bytes, 5);
    assert_int_equal(modelref_make_file(&ref, &made, &err), ST_OK);
    assert_false(made);
    unlink(path);
}

static void a_synthetic_model_is_made_once(void **state)
{
    struct err err = ERR_INIT;
    struct modelref ref;
    struct stat there;
    uint64_t bytes = 0;
    char cache[80], want[128];
    bool made = false;

    (void)state;
    snprintf(cache, sizeof cache, "%s/some/cache", dir);
    snprintf(want, sizeof want, "%s/nano-Q8_0.gguf", cache);
    assert_int_equal(modelref_parse(&ref, "nano:q8_0", cache, &err), ST_OK);
    assert_true(ref.synthetic);
    assert_string_equal(ref.text, "nano:q8_0");
    assert_string_equal(ref.name, "nano");
    assert_string_equal(ref.path, want);
    assert_int_equal(ref.mix, QUANTMIX_Q8_0);
    assert_int_equal(modelref_bytes(&ref, &bytes, &err), ST_OK);
    assert_int_equal(modelref_make_file(&ref, &made, &err), ST_OK);
    assert_true(made);
    assert_int_equal(stat(want, &there), 0);
    assert_int_equal(there.st_size, bytes);
    assert_int_equal(modelref_make_file(&ref, &made, &err), ST_OK);
    assert_false(made);

    /* What is not the model any more is made again. */
    assert_int_equal(truncate(want, 1000), 0);
    assert_int_equal(modelref_make_file(&ref, &made, &err), ST_OK);
    assert_true(made);
    ref.shape.rope_base *= 2;
    assert_int_equal(modelref_make_file(&ref, &made, &err), ST_OK);
    assert_true(made);
}

static void assert_path(const char *want, const char *cache_dir)
{
    struct err err = ERR_INIT;
    struct modelref ref;

    assert_int_equal(modelref_parse(&ref, "nano:F16", cache_dir, &err), ST_OK);
    assert_string_equal(ref.path, want);
}

static void the_cache_directory_follows_the_environment(void **state)
{
    struct err err = ERR_INIT;
    struct modelref ref;
    char longer[PATH_MAX + 10];

    (void)state;
    setenv("SLMBENCH_CACHE", "/a", 1);
    setenv("XDG_CACHE_HOME", "/b", 1);
    setenv("HOME", "/c", 1);
    assert_path("/given/nano-F16.gguf", "/given");
    assert_path("/a/nano-F16.gguf", NULL);
    unsetenv("SLMBENCH_CACHE");
    assert_path("/b/slmbench/nano-F16.gguf", NULL);
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_path("/c/.cache/slmbench/nano-F16.gguf", NULL);
    unsetenv("XDG_CACHE_HOME");
    assert_path("/c/.cache/slmbench/nano-F16.gguf", "");
    unsetenv("HOME");
    /* which only matters where a file is made */
    assert_path("", NULL);
    assert_int_equal(modelref_parse(&ref, "nano:F16", NULL, &err), ST_OK);
    assert_int_equal(modelref_check_cache(&ref, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "--cache-dir"));
    err_clear(&err);
    assert_int_equal(modelref_make_file(&ref, NULL, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "--cache-dir"));
    err_clear(&err);
    assert_int_equal(modelref_parse(&ref, "nano:F16", "/given", &err), ST_OK);
    assert_int_equal(modelref_check_cache(&ref, &err), ST_OK);
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(modelref_parse(&ref, "nano:F16", longer, &err), ST_USAGE);
}

static void wrong_names_get_a_sentence(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"nano", "the shape 'nano' needs a quantisation: nano:Q4_K_M"},
        {"nonsense", "neither a GGUF file, a Hugging Face folder nor SHAPE:QUANT"},
        {"", "neither a GGUF file, a Hugging Face folder nor SHAPE:QUANT"},
        {"nano:", "there is no quantisation ''"},
        {":Q4_0", "there is no shape ''"},
        {"nano:Q4_K", "did you mean Q4_K_M?"},
        {"nano:q5_ks", "did you mean Q5_K_S?"},
        {"nanoo:Q4_0", "did you mean 'nano'?"},
        {"/nowhere/model.gguf", "cannot open /nowhere/model.gguf: No such file"},
        {"/tmp", "/tmp is a directory"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct modelref ref = {.name = "untouched"};
        struct err err = ERR_INIT;

        assert_int_equal(modelref_parse(&ref, cases[i].text, "/tmp", &err), ST_USAGE);
        assert_string_equal(ref.name, "untouched");
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
    char longer[300];
    struct modelref ref;
    struct err err = ERR_INIT;
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(modelref_parse(&ref, longer, "/tmp", &err), ST_USAGE);
}

static void a_path_may_be_quantised_at_load(void **state)
{
    char folder[] = "/tmp/test_modelref.XXXXXX", text[128], config[64];
    struct err err = ERR_INIT;
    struct modelref ref;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(config, sizeof config, "%s/config.json", folder);
    f = fopen(config, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(modelref_parse(&ref, folder, NULL, &err), ST_OK);
    assert_false(ref.at_load || ref.synthetic);
    assert_null(modelref_quant(&ref));
    assert_int_equal(modelref_set_quant(&ref, "q4_k_s", &err), ST_OK);
    assert_string_equal(modelref_quant(&ref), "Q4_K_S");
    assert_string_equal(ref.path, folder);
    snprintf(text, sizeof text, "%s:Q4_K_S", folder);
    assert_string_equal(ref.text, text);
    assert_int_equal(modelref_set_quant(&ref, "Q8_0", &err), ST_USAGE);
    err_clear(&err);

    snprintf(text, sizeof text, "%s/:q8_0", folder);
    assert_int_equal(modelref_parse(&ref, text, NULL, &err), ST_OK);
    assert_true(ref.at_load);
    assert_string_equal(modelref_quant(&ref), "Q8_0");
    assert_string_equal(ref.name, folder + strlen("/tmp/"));
    snprintf(text, sizeof text, "%s:Q99", folder);
    assert_int_equal(modelref_parse(&ref, text, NULL, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "Q99"));
    err_clear(&err);
    assert_int_equal(
        modelref_parse(&ref, TEST_DATA "models/llama.gguf:F16", NULL, &err), ST_OK);
    assert_string_equal(ref.path, TEST_DATA "models/llama.gguf");
    assert_string_equal(ref.name, "llama");
    unlink(config);
    rmdir(folder);
}

static void a_cache_that_cannot_be_made_is_named(void **state)
{
    struct err err = ERR_INIT;
    struct modelref ref;

    (void)state;
    assert_int_equal(modelref_parse(&ref, "nano:F16", "/dev/null/cache", &err), ST_OK);
    assert_int_equal(modelref_make_file(&ref, NULL, &err), ST_IO);
    assert_non_null(strstr(err.msg, "/dev/null"));
    assert_non_null(strstr(err.msg, "--cache-dir"));
}

static void assert_expanded(const char *text, const char *const *want, size_t n)
{
    struct err err = ERR_INIT;
    struct str_list all;

    if (modelref_expand(&text, 1, &all, &err))
        fail_msg("%s: %s", text, err.msg);
    assert_int_equal(all.n, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(all.v[i], want[i]);
    free(all.v);
}

static void assert_refused(const char *text, const char *why)
{
    struct err err = ERR_INIT;
    struct str_list all;

    assert_int_equal(modelref_expand(&text, 1, &all, &err), ST_USAGE);
    if (!strstr(err.msg, why))
        fail_msg("%s: %s", text, err.msg);
}

static void a_model_may_have_a_list_of_quantisations(void **state)
{
    struct err err = ERR_INIT;
    struct modelref ref;
    struct str_list all;
    const char *const texts[] = {"a:Q4_0,Q8_0", "b", "c:F16"};
    char folder[80], file[80];

    (void)state;
    assert_expanded("nano:Q4_K_M,q8_0", (const char *[]){"nano:Q4_K_M", "nano:q8_0"},
                    2);
    assert_expanded(
        "x/model-f16.gguf:Q4_K_M,Q8_0",
        (const char *[]){"x/model-f16.gguf:Q4_K_M", "x/model-f16.gguf:Q8_0"}, 2);
    assert_expanded("a,b:Q4_0", (const char *[]){"a,b:Q4_0"}, 1);
    assert_expanded("a:b,c.gguf", (const char *[]){"a:b,c.gguf"}, 1);
    assert_expanded("a,b", (const char *[]){"a,b"}, 1);
    assert_int_equal(modelref_expand(texts, 3, &all, &err), ST_OK);
    assert_int_equal(all.n, 4);
    assert_string_equal(all.v[3], "c:F16");
    free(all.v);
    assert_int_equal(modelref_expand(NULL, 0, &all, &err), ST_OK);
    assert_int_equal(all.n, 0);
    free(all.v);

    assert_refused("nano:Q4_0,", "nano:Q4_0,: 'Q4_0,' has an empty item");
    assert_refused("nano:,Q4_0", "an empty item");
    assert_refused("nano:Q4_0,,Q8_0", "an empty item");
    assert_refused("nano:Q4_0,Q9_Z,Q8_0", "there is no quantisation 'Q9_Z'");
    assert_refused("nano:Q4_0,Q8_0,q4_0", "names Q4_0 twice");
    assert_int_equal(modelref_parse(&ref, "nano:Q4_0,Q8_0", NULL, &err), ST_USAGE);
    assert_non_null(strstr(err.msg,
                           "several models, and one is taken here; name one of "
                           "its quantisations, as in nano:Q4_0"));

    /* what is there is itself */
    snprintf(folder, sizeof folder, "%s/x:Q4_0,Q8_0", dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_expanded(folder, (const char *[]){folder}, 1);
    rmdir(folder);
    snprintf(file, sizeof file, "%s/one,two:Q4_0,Q8_0", dir);
    fclose(fopen(file, "w"));
    assert_expanded(file, (const char *[]){file}, 1);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_may_have_a_list_of_quantisations),
        cmocka_unit_test(a_file_is_itself),
        cmocka_unit_test(a_synthetic_model_is_made_once),
        cmocka_unit_test(the_cache_directory_follows_the_environment),
        cmocka_unit_test(wrong_names_get_a_sentence),
        cmocka_unit_test(a_path_may_be_quantised_at_load),
        cmocka_unit_test(a_cache_that_cannot_be_made_is_named),
    };

    return cmocka_run_group_tests_name("modelref", tests, make_dir, remove_dir);
}
