/* SPDX-License-Identifier: MIT
 *
 * test_gate_settings.c - a gate's settings: its file, options on top, and what it may
 * not write over
 */
#include "tests/support/tree_root.h"

#include "harness/decide/gate/gate_options.h"
#include "harness/decide/gate/gate_settings.h"

static struct topology topo = {.n_cpus = 2, .n_allowed = 2, .threads_default = 2};

/* A file of the test's own. */
static const char *file_of(const char *text)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/gate.yaml", root);
    tree_put(root, "/gate.yaml", text);
    return path;
}

static void options_come_on_top_of_a_file(void **state)
{
    struct gate_options o = {.model = "nano:Q8_0",
                             .b_model = "nano:Q4_0",
                             .max_kl = "0.05",
                             .threads = "1",
                             .prefill = "none",
                             .ctx = "0,64",
                             .weights = "packed",
                             .mem = "2G",
                             .budget = "90s",
                             .margin = "3%",
                             .inject = "5%",
                             .exit_codes = "0,2,0",
                             .seed = 7};
    struct gate_settings s = {0};
    struct err err = ERR_INIT;
    char text[256];

    (void)state;
    o.config = file_of("model: nano:Q4_0\nthreads: [2]\nrounds: 3\nmemory: false\n"
                       "load: True\nkernels: [q4_0, q8_0]\nmargin_load: 10 %\n"
                       "timeout: 30s\nexit_codes: [0, 1, 5]\n");
    if (gate_settings_make(&s, &o, &topo, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(s.model_text, "nano:Q8_0");
    assert_true(s.has_b_model && s.b_model.mix != s.setup.model.mix);
    assert_float_equal(s.max_kl, 0.05, 1e-12);
    assert_true(s.threads.n == 1 && s.threads.v[0] == 1);
    assert_int_equal(s.prefill.n, 0);
    assert_true(s.ctx.n == 2 && s.ctx.v[1] == 64);
    assert_int_equal(s.setup.residency, WEIGHTS_PACKED);
    assert_true(s.budget_s == 90 && s.timeout_s == 30 && s.n_rounds == 3);
    assert_float_equal(s.rule.margin, 0.03, 1e-12);
    assert_float_equal(s.slower, 0.05, 1e-12);
    assert_float_equal(s.margin_load, 0.1, 1e-12);
    assert_true(!s.memory && s.load);
    assert_int_equal(s.kernels.n, 2);
    assert_int_equal(s.exit_code[1], 2);
    assert_int_equal(s.setup.seed, 7);
    assert_string_equal(s.of_command, "--model");
    assert_non_null(
        strstr(gate_settings_text(&s, text, sizeof text), ", both within 2.00 GiB"));
    gate_settings_free(&s);
}

/* Without options the file's settings count, and the time is the seed. */
static void a_file_is_enough(void **state)
{
    static const struct {
        const struct gate_options o;
        const char *of_command;
    } cases[] = {{{.threads = "2", .weights = "mmap"}, "--threads"},
                 {{.weights = "mmap"}, "--weights"},
                 {{.ctx = "0"}, NULL}};
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gate_options o = cases[i].o;
        struct gate_settings s = {0};
        struct err err = ERR_INIT;

        o.config = file_of("model: nano:Q4_0\nkernels: [none]\nthreads: [auto]\n");
        if (gate_settings_make(&s, &o, &topo, &err))
            fail_msg("%s", err.msg);
        assert_true(s.threads.n == 1 && s.threads.v[0] == 2);
        assert_int_equal(s.kernels.n, 0);
        assert_true(s.setup.seed != 0 && !s.has_b_model && s.max_kl == 0);
        assert_true(!s.of_command == !cases[i].of_command);
        if (s.of_command)
            assert_string_equal(s.of_command, cases[i].of_command);
        assert_null(strstr(gate_settings_text(&s, text, sizeof text), "within"));
        gate_settings_free(&s);
    }
}

static void what_cannot_be_a_gate_is_refused(void **state)
{
    static const struct {
        const char *file;
        const struct gate_options o;
        enum status st;
        const char *words;
    } cases[] = {
        {"rounds: 2\n", {.seed = 1}, ST_USAGE, "name the model: -m FILE.gguf"},
        {"rounds: 99\n", {.seed = 1}, ST_USAGE, "gate.yaml: rounds: 99 is outside"},
        {"rounds: many\n", {.seed = 1}, ST_USAGE, "'many' is not a whole number"},
        {"budgets: 9\n",
         {.seed = 1},
         ST_INPUT,
         "no key 'budgets'; did you mean 'budget'"},
        {"memory: 1\n", {.seed = 1}, ST_USAGE, "memory: '1' is neither true nor false"},
        {"inject_slowdown: 5%\n", {.seed = 1}, ST_INPUT, "no key 'inject_slowdown'"},
        {"model: nano:Q4_0\n", {.margin = "90%"}, ST_USAGE, "--margin: 90% is outside"},
        {"model: nano:Q4_0\n",
         {.threads = "none"},
         ST_USAGE,
         "--threads: at least one"},
        {"model: nano:Q4_0\n", {.exit_codes = "0,1"}, ST_USAGE, "is not three numbers"},
        {"model: nano:Q4_0\n",
         {.exit_codes = "0,1,-1"},
         ST_USAGE,
         "-1 is outside 0..125"},
        {"model: nano:Q4_0\n",
         {.exit_codes = "4294967296,1,4"},
         ST_USAGE,
         "4294967296 is outside 0..125"},
        {"model: nano:Q4_0\n", {.exit_codes = ",,"}, ST_USAGE, "is not three numbers"},
        {"model: nano:Q4_0\n", {.exit_codes = "0,1,4,"}, ST_USAGE, "is not three"},
        {"model: nano:Q4_0\n", {.model = "xyzzy:Q4_0"}, ST_USAGE, "xyzzy"},
        {"model: nano:Q4_0\n", {.b_model = "xyzzy:Q4_0"}, ST_USAGE, "xyzzy"},
        {"model: nano:Q4_0\n", {.max_kl = "0.1"}, ST_USAGE, "name B's with --b-model"},
        {"model: nano:Q4_0\n",
         {.max_kl = "-1", .b_model = "nano:Q8_0"},
         ST_USAGE,
         "--max-kl: -1 is outside"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gate_options o = cases[i].o;
        struct gate_settings s = {0};
        struct err err = ERR_INIT;

        o.config = file_of(cases[i].file);
        assert_int_equal(gate_settings_make(&s, &o, &topo, &err), cases[i].st);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("'%s' lacks '%s'", err.msg, cases[i].words);
        gate_settings_free(&s);
    }
    const struct gate_options none = {.config = "/no/such/gate.yaml"};
    struct gate_settings s = {0};
    struct err err = ERR_INIT;

    assert_int_equal(gate_settings_make(&s, &none, &topo, &err), ST_IO);
    assert_non_null(
        strstr(err.msg, "cannot open the configuration /no/such/gate.yaml"));
    gate_settings_free(&s);
}

static void values_have_limits(void **state)
{
    static char text[1024];
    struct gate_settings s = {0};
    struct err err = ERR_INIT;

    (void)state;
    memset(text, 'm', sizeof s.model_text);
    assert_int_equal(gate_settings_set(&s, "model", text, &topo, "here", &err),
                     ST_USAGE);
    assert_non_null(strstr(err.msg, "is too long a name"));
    text[sizeof s.model_text - 1] = '\0';
    err_clear(&err);
    assert_int_equal(gate_settings_set(&s, "model", text, &topo, "here", &err), ST_OK);
    assert_string_equal(s.model_text, text);
    assert_int_equal(gate_settings_set(&s, "kernels", text, &topo, "here", &err),
                     ST_USAGE);
    assert_non_null(strstr(err.msg, "'mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm' is no weight"));
    *text = '\0';
    for (int i = 0; i <= GATE_MAX_METRICS; i++)
        strcat(text, i ? ",q4_0" : "q4_0");
    err_clear(&err);
    assert_int_equal(gate_settings_set(&s, "kernels", text, &topo, "here", &err),
                     ST_USAGE);
    assert_non_null(strstr(err.msg, "here: more than 48 weight formats"));
    gate_settings_free(&s);
}

/* The rule alone, for rows that were measured elsewhere. */
static void a_rule_needs_no_model(void **state)
{
    struct gate_settings s = {0};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(gate_settings_make_rule(&s, NULL, "4%", NULL, &topo, &err), ST_OK);
    assert_float_equal(s.rule.margin, 0.04, 1e-12);
    assert_int_equal(s.exit_code[2], 4);
    gate_settings_free(&s);
    assert_int_equal(gate_settings_make_rule(&s, file_of("margin: 1%\n"), NULL, "1,2,3",
                                             &topo, &err),
                     ST_OK);
    assert_float_equal(s.rule.margin, 0.01, 1e-12);
    assert_int_equal(s.exit_code[0], 1);
    gate_settings_free(&s);
    assert_int_equal(
        gate_settings_make_rule(&s, file_of("margin: 0\n"), NULL, NULL, &topo, &err),
        ST_USAGE);
    gate_settings_free(&s);
}

/* No output is one of the files that the gate reads. */
static void outputs_are_none_of_the_inputs(void **state)
{
    char model[128], a[128], config[128], other[128];
    struct modelref ref = {.mix = QUANTMIX_N};
    struct gate_options o = {.config = config, .a = a};
    struct err err = ERR_INIT;

    (void)state;
    snprintf(model, sizeof model, "%s/model.gguf", root);
    snprintf(a, sizeof a, "%s/bench", root);
    snprintf(config, sizeof config, "%s/gate.yaml", root);
    snprintf(other, sizeof other, "%s/new.json", root);
    tree_put(root, "/model.gguf", "GGUF");
    tree_put(root, "/bench", "#!");
    tree_put(root, "/gate.yaml", "rounds: 2\n");
    snprintf(ref.path, sizeof ref.path, "%s", model);
    o.outputs.json = other;
    if (gate_options_check_outputs(&o, &ref, &err))
        fail_msg("%s", err.msg);
    const char *const inputs[] = {model, a, config};

    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        err_clear(&err);
        o.outputs.json = inputs[i];
        assert_int_equal(gate_options_check_outputs(&o, &ref, &err), ST_USAGE);
        assert_non_null(strstr(err.msg, inputs[i]));
    }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(options_come_on_top_of_a_file),
        TEST(a_file_is_enough),
        TEST(what_cannot_be_a_gate_is_refused),
        TEST(values_have_limits),
        TEST(a_rule_needs_no_model),
        TEST(outputs_are_none_of_the_inputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
