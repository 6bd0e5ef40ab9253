/* SPDX-License-Identifier: MIT
 *
 * test_other_engines.c - other programs: what a user calls them, commands made for
 * them, and figures in what they print
 */
#include "tests/support/test.h"

#include <math.h>
#include <sys/stat.h>

#include "harness/measure/engines/engine_child.h"
#include "harness/measure/engines/engine.h"
#include "harness/measure/engines/engine_command.h"
#include "harness/measure/engines/engine_output.h"
#include "harness/measure/engines/engine_run.h"

static struct err err;

static void clear(void)
{
    err = (struct err)ERR_INIT;
}

static struct engine parsed(const char *text)
{
    struct engine e;

    clear();
    if (engine_parse(&e, text, "--engine", &err))
        fail_msg("%s: %s", text, err.msg);
    return e;
}

/* ---- names and commands ---------------------------------------------------------- */

static void names_and_words(void **state)
{
    struct engine e = parsed("ik_llama.cpp=/opt/my\\ ik/llama-bench -fa  1");

    (void)state;
    assert_string_equal(e.name, "ik_llama.cpp");
    assert_int_equal(e.kind, ENGINE_LLAMA);
    assert_int_equal(e.n_words, 3);
    assert_string_equal(engine_word(&e, 0), "/opt/my ik/llama-bench");
    assert_string_equal(engine_word(&e, 2), "1");
    e = parsed("x=run '{model}' \"a b\" -t {threads} =~ is ([0-9.]+) => tok");
    assert_int_equal(e.kind, ENGINE_BY_JSON); /* the last one divides */
    e = parsed("x=run '{model}' \"a b\" -t{threads} =~ => ([0-9.]+) tok");
    assert_int_equal(e.kind, ENGINE_BY_JSON);
    e = parsed("x=run '{model}' \"a b\" -t{threads} =~ =>([0-9.]+) tok");
    assert_int_equal(e.kind, ENGINE_BY_REGEX);
    assert_string_equal(e.figure, "=>([0-9.]+) tok");
    assert_int_equal(e.n_words, 4);
    assert_string_equal(engine_word(&e, 2), "a b");
    e = parsed("x=run {model} => results.0.tps");
    assert_string_equal(e.figure, "results.0.tps");
}

static void wrong_texts(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "does not begin with a name"},
        {"/opt/llama-bench", "does not begin with a name"},
        {"=x", "does not begin with a name"},
        {"a b=x", "does not begin with a name"},
        {"a-name-that-is-much-too-long=x", "does not begin with a name"},
        {"slmbench=x", "is this program"},
        {"x=", "names no program"},
        {"x=  ", "names no program"},
        {"x='' b", "names no program"},
        {"x='a b", "a quote has no end"},
        {"x=run {model}", "add to the command where its figure is"},
        {"x=run {model} --port {port} =~ ([0-9.]+)", "measured over HTTP"},
        {"x=run {model} --port {port} => a.b", "measured over HTTP"},
        {"x=run --port {port}", "no word of the command has {model}"},
        {"x=run {model} =~ (", "regular expression"},
        {"x=run a\nb", "control character"},
        {"x=1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 "
         "8 9 "
         "0 1",
         "more than 40 words"},
    };
    char longest[400];

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct engine e;

        clear();
        assert_int_equal(engine_parse(&e, wrong[i].text, "--engine", &err), ST_USAGE);
        if (!strstr(err.msg, wrong[i].says))
            fail_msg("'%s' is refused with '%s'", wrong[i].text, err.msg);
    }
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "x=", 2);
    longest[ENGINE_MAX_TEXT + 1] = '\0';
    struct engine e;

    clear();
    assert_int_equal(engine_parse(&e, longest, "", &err), ST_USAGE);
    longest[ENGINE_MAX_TEXT] = '\0';
    assert_int_equal(strlen(longest), ENGINE_MAX_TEXT);
    parsed(longest);
}

static void programs_are_found(void **state)
{
    struct engine e = parsed("x=sh"), none = parsed("x=no-such-program-anywhere"),
                  file = parsed("x=/no/such/program");
    char path[4096], text[ENGINE_MAX_TEXT + 1], want[4200];

    (void)state;
    assert_int_equal(engine_find(&e, path, sizeof path, &err), ST_OK);
    assert_int_equal(path[0], '/');
    assert_int_equal(engine_find(&none, path, sizeof path, &err), ST_INPUT);
    clear();
    assert_int_equal(engine_find(&file, path, sizeof path, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "No such file"));

    assert_int_equal(chdir("/"), 0);
    assert_int_equal(engine_absolute("x=usr/bin/env -a", text, sizeof text, "", &err),
                     ST_OK);
    assert_non_null(realpath("/usr/bin/env", path));
    snprintf(want, sizeof want, "x=%s -a", path);
    assert_string_equal(text, want);
    assert_int_equal(engine_absolute("x=sh -a", text, sizeof text, "", &err), ST_OK);
    assert_string_equal(text, "x=sh -a");
}

/* ---- commands made --------------------------------------------------------------- */

static struct point decode_point(void)
{
    struct point p;

    point_init(&p);
    snprintf(p.setup.model.path, sizeof p.setup.model.path, "/m/a b.gguf");
    p.setup.n_threads = 2;
    return p;
}

/* The words with '|' between. */
static const char *made(const struct engine *e, const struct point *p,
                        enum engine_depth depth, struct engine_effort effort)
{
    static char text[9000];
    static struct engine_command c;

    clear();
    memset(&c, 0, sizeof c);
    text[0] = '\0';
    if (engine_make_command(&c, e, p, depth, &effort, &err))
        return err.msg;
    for (int i = 0; c.argv[i]; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "|" : "",
                 c.argv[i]);
    return text;
}

static void commands_of_llama_bench(void **state)
{
    const struct engine e = parsed("x=/b/llama-bench -rtr 1");
    struct point p = decode_point();

    (void)state;
    assert_string_equal(made(&e, &p, ENGINE_DEPTH_NONE, (struct engine_effort){8, 4}),
                        "/b/llama-bench|-rtr|1|-m|/m/a b.gguf|-p|0|-n|8|-r|4|-t|2|-ub|"
                        "512|-o|json");
    p.ctx = 100;
    assert_string_equal(made(&e, &p, ENGINE_DEPTH_D, (struct engine_effort){8, 4}),
                        "/b/llama-bench|-rtr|1|-m|/m/a b.gguf|-p|0|-n|8|-d|100|-r|4|-t|"
                        "2|-ub|512|-o|json");
    assert_string_equal(made(&e, &p, ENGINE_DEPTH_GP, (struct engine_effort){8, 4}),
                        "/b/llama-bench|-rtr|1|-m|/m/a b.gguf|-p|0|-n|0|-gp|100,8|-r|4|"
                        "-t|2|-ub|512|-o|json");
    assert_non_null(strstr(
        made(&e, &p, ENGINE_DEPTH_NONE, (struct engine_effort){8, 4}), "--n-depth"));
    p.kind = POINT_PREFILL;
    p.n_prompt = 64;
    p.setup.kv_type = KERN_KV_q8_0;
    assert_string_equal(made(&e, &p, ENGINE_DEPTH_NONE, (struct engine_effort){64, 3}),
                        "/b/llama-bench|-rtr|1|-m|/m/a b.gguf|-p|64|-n|0|-r|3|-t|2|-ub|"
                        "512|-ctk|q8_0|-ctv|q8_0|-fa|1|-o|json");
    strcpy(p.setup.model.path, "/m/a,b.gguf");
    assert_non_null(
        strstr(made(&e, &p, ENGINE_DEPTH_NONE, (struct engine_effort){1, 1}), "comma"));
}

static void commands_of_templates(void **state)
{
    const struct engine e =
        parsed("x=run {model} -t{threads} {ctx}/{n} {other} {mod =~ ([0-9.]+)");
    const struct engine no_ctx = parsed("x=run {model} =~ ([0-9.]+)");
    struct point p = decode_point();

    (void)state;
    p.ctx = 7;
    strcpy(p.setup.model.path, "/m/{n} $(x) ';.gguf");
    assert_string_equal(made(&e, &p, ENGINE_DEPTH_NONE, (struct engine_effort){24, 1}),
                        "run|/m/{n} $(x) ';.gguf|-t2|7/24|{other}|{mod");
    assert_non_null(
        strstr(made(&no_ctx, &p, ENGINE_DEPTH_NONE, (struct engine_effort){24, 1}),
               "no {ctx}"));
    p.kind = POINT_PREFILL;
    assert_non_null(
        strstr(made(&e, &p, ENGINE_DEPTH_NONE, (struct engine_effort){24, 1}),
               "decoding only"));
}

static void efforts(void **state)
{
    const struct engine e = parsed("x=llama-bench"),
                        t = parsed("x=run {model} =~ ([0-9.]+)");
    struct point p = decode_point();
    struct engine_effort f;

    (void)state;
    p.n_tokens = 64;
    p.budget_s = 10;
    f = engine_effort(&e, &p, ENGINE_DEPTH_D, 0, true);
    assert_int_equal(f.n_tokens, 8);
    assert_int_equal(f.n_reps, 8);
    f = engine_effort(&e, &p, ENGINE_DEPTH_D, 1, true); /* 7 tokens in 7 s */
    assert_int_equal(f.n_tokens * f.n_reps, 7);
    f = engine_effort(&e, &p, ENGINE_DEPTH_D, 0.001, true);
    assert_int_equal(f.n_tokens * f.n_reps, 1);
    f = engine_effort(&e, &p, ENGINE_DEPTH_D, 1e6, false);
    assert_int_equal(f.n_tokens * f.n_reps, 2);
    f = engine_effort(&t, &p, ENGINE_DEPTH_D, 1e6, true);
    assert_int_equal(f.n_tokens, 64);
    assert_int_equal(f.n_reps, 1);
    p.ctx = 10;
    f = engine_effort(&e, &p, ENGINE_DEPTH_GP, 1e6, true);
    assert_int_equal(f.n_reps, 2);
    assert_int_equal(f.n_tokens, 32);
    p.kind = POINT_PREFILL;
    p.n_prompt = 128;
    p.n_tokens = 5;
    f = engine_effort(&e, &p, ENGINE_DEPTH_NONE, 0, true);
    assert_int_equal(f.n_tokens, 128);
    assert_int_equal(f.n_reps, 5);
}

static void helps(void **state)
{
    static const char old[] = "  -n, --n-gen <n>\n  -o, --output <csv|json>\n";
    static const char ik[] = "  -n, --n-gen <n>\n  -gp <pp,tg>\n  -o, --output <csv>\n";
    static const char new[] =
        "  -n, --n-gen <n>\n  -d, --n-depth <n>\n  -o, --output\n";
    const struct engine e = parsed("x=llama-bench");
    enum engine_depth depth = ENGINE_DEPTH_D;

    (void)state;
    assert_int_equal(engine_read_help(&depth, &e, old, strlen(old), &err), ST_OK);
    assert_int_equal(depth, ENGINE_DEPTH_NONE);
    assert_int_equal(engine_read_help(&depth, &e, ik, strlen(ik), &err), ST_OK);
    assert_int_equal(depth, ENGINE_DEPTH_GP);
    assert_int_equal(engine_read_help(&depth, &e, new, strlen(new), &err), ST_OK);
    assert_int_equal(depth, ENGINE_DEPTH_D);
    assert_int_equal(engine_read_help(&depth, &e, "usage: ls", 9, &err), ST_INPUT);
}

/* ---- outputs --------------------------------------------------------------------- */

/* As llama-bench prints it, two of three members that matter to us changed. */
#define TEST(n_gen, samples)                                                     \
    "{\"build_commit\": \"abc1234\", \"build_number\": 4754, \"n_threads\": 2, " \
    "\"n_prompt\": 0, \"n_gen\": " n_gen ", \"avg_ns\": 1, \"avg_ts\": 8.0, "    \
    "\"stddev_ts\": 0.5, \"samples_ns\": " samples "}"

static const struct engine_requested asked = {.n_gen = 8, .n_threads = 2};

static enum status read_bench(struct engine_figures *f, const char *text)
{
    clear();
    return engine_read_llama_bench(f, text, strlen(text), &asked, &err);
}

static void figures_of_llama_bench(void **state)
{
    static struct engine_figures f;

    (void)state;
    assert_int_equal(
        read_bench(&f, "[\n" TEST("8", "[ 1000000000, 500000000 ]") "\n]\n"), ST_OK);
    assert_int_equal(f.n, 2);
    assert_float_equal(f.tok_per_s[0], 8, 1e-9);
    assert_float_equal(f.tok_per_s[1], 16, 1e-9);
    assert_string_equal(f.version, "abc1234 (build 4754)");
    /* lines, and what a library prints before them */
    assert_int_equal(read_bench(&f, "ggml: {found} [0\n" TEST("64", "[1]") "\n" TEST(
                                        "8", "[1000000000]") "\n"),
                     ST_OK);
    assert_int_equal(f.n, 1);
    /* built outside a repository */
    assert_int_equal(read_bench(&f, "[{\"avg_ts\": 8, \"n_gen\": 8, \"build_commit\": "
                                    "\"unknown\", \"build_number\": 0}]"),
                     ST_OK);
    assert_string_equal(f.version, "");
    /* only mean and deviation */
    assert_int_equal(read_bench(&f, "[" TEST("8", "[]") "]"), ST_OK);
    assert_int_equal(f.n, 0);
    assert_float_equal(f.mean, 8, 1e-9);
    assert_float_equal(f.deviation, 0.5, 1e-9);
}

static void wrong_outputs(void **state)
{
    static const char *const wrong[] = {
        "",
        "[",
        "no JSON",
        "[]",
        "{\"avg_ts\": 1}",
        "[" TEST("9", "[1]") "]",
        "[" TEST("8", "[0]") "]",
        "[" TEST("8", "[-5]") "]",
        "[" TEST("8", "[\"1\"]") "]",
        "[" TEST("8", "[1e-300]") "]",
        "[" TEST("8", "[1]") ", 7]",
        "[{\"avg_ts\": 0, \"n_gen\": 8}]",
        "[{\"avg_ts\": 1e10, \"n_gen\": 8}]",
        "[{\"avg_ts\": \"8\", \"n_gen\": 8}]",
    };
    static struct engine_figures f;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (read_bench(&f, wrong[i]) != ST_INPUT || !*err.msg)
            fail_msg("output %zu is taken", i);
}

/* A prefill test has the requested prompt, each test the requested threads. */
static void what_was_not_requested(void **state)
{
    static const struct {
        struct engine_requested requested;
        const char *test, *words; /* "": it is taken */
    } cases[] = {
        {{64, 0, 2}, "\"n_prompt\": 64, \"n_gen\": 0, \"n_threads\": 2", ""},
        {{64, 0, 2},
         "\"n_prompt\": 32, \"n_gen\": 0, \"n_threads\": 2",
         "n_prompt 32, n_gen 0, n_threads 2 instead of 64, 0, 2"},
        {{64, 0, 2}, "\"n_prompt\": 64, \"n_gen\": 8", "n_gen 8, n_threads 0 instead"},
        {{0, 8, 2}, "\"n_prompt\": 32, \"n_gen\": 8", ""},
        {{0, 8, 2}, "\"n_gen\": 8, \"n_threads\": 4", "n_threads 4 instead of 0, 8, 2"},
    };
    static struct engine_figures f;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[200];

        snprintf(text, sizeof text, "{\"avg_ts\": 5, \"stddev_ts\": -1, %s}",
                 cases[i].test);
        clear();
        assert_int_equal(
            engine_read_llama_bench(&f, text, strlen(text), &cases[i].requested, &err),
            *cases[i].words ? ST_INPUT : ST_OK);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("%s: '%s'", text, err.msg);
        if (!*cases[i].words)
            assert_true(f.n == 0 && f.mean == 5 && isnan(f.deviation) && !*f.version);
    }
}

/* As many samples as there is room for, however many are printed. */
static void more_samples_than_there_is_room_for(void **state)
{
    static char text[40000], json[8000], bench[40000];
    static struct engine_figures f;
    const size_t n = ENGINE_MAX_SAMPLES + 50;

    (void)state;
    strcpy(json, "{\"a\": [");
    strcpy(bench, "{\"avg_ts\": 8, \"n_gen\": 8, \"samples_ns\": [");
    for (size_t i = 0; i < n; i++) {
        strcat(text, "5 tok/s ");
        strcat(json, i ? ",5" : "5");
        strcat(bench, i ? ",1600000000" : "1600000000");
    }
    strcat(json, "]}");
    strcat(bench, "]}");
    clear();
    assert_int_equal(engine_read_regex(&f, text, strlen(text), "([0-9]+) tok/s", &err),
                     ST_OK);
    assert_int_equal(f.n, ENGINE_MAX_SAMPLES);
    assert_int_equal(engine_read_json(&f, json, strlen(json), "a", &err), ST_OK);
    assert_int_equal(f.n, ENGINE_MAX_SAMPLES);
    assert_int_equal(read_bench(&f, bench), ST_OK);
    assert_int_equal(f.n, ENGINE_MAX_SAMPLES);
    assert_float_equal(f.tok_per_s[ENGINE_MAX_SAMPLES - 1], 5, 1e-9);
    /* brackets that begin nothing: after a hundred of them nobody looks further */
    memset(text, '{', 200);
    text[100] = '\0';
    strcat(text, "{\"avg_ts\": 8, \"n_gen\": 8}");
    assert_int_equal(read_bench(&f, text), ST_INPUT);
    assert_int_equal(read_bench(&f, text + 1), ST_OK);
}

/* Every part of a sound output is refused or has sound figures. */
static void cut_outputs(void **state)
{
    static const char whole[] = "[\n" TEST("8", "[ 1000000000, 500000000 ]") "\n]\n";
    static struct engine_figures f;

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++) {
        char *text = guard_alloc(n);

        memcpy(text, whole, n);
        clear();
        if (engine_read_llama_bench(&f, text, n, &asked, &err) == ST_OK)
            assert_int_equal(f.n, 2);
        else
            assert_true(*err.msg != '\0');
        guard_free(text, n);
    }
}

/* Lines, or one without an end: more than there may be ends it at once. */
static void who_prints_too_much_is_ended(void **state)
{
    static const char *const scripts[] = {"cat /dev/zero", "exec yes"};
    char name[] = "sh", option[] = "-c";

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char *argv[] = {name, option, (char *)(uintptr_t)scripts[i], NULL};
        struct engine_child c = {
            .params = {.program = "/bin/sh", .argv = argv, .foreign = true},
            .limit_s = 10};

        clear();
        assert_int_equal(engine_child_run(&c, &err), ST_OK);
        assert_int_equal(c.end, ENGINE_TALKS);
        assert_true(c.wall_s < c.limit_s / 2);
        engine_child_free(&c);
    }
}

static void figures_of_others(void **state)
{
    static const char text[] = "warm 3\nspeed: 12.5 tok/s\nspeed: 13 tok/s\n";
    static const char slow[] = "speed: 1e-320 tok/s\n";
    static const char json[] = "log\n{\"runs\": [{\"tps\": [1, 2.5]}, {\"tps\": 7}]}";
    static struct engine_figures f;

    (void)state;
    clear();
    assert_int_equal(
        engine_read_regex(&f, text, strlen(text), "^speed: ([0-9.]+)", &err), ST_OK);
    assert_int_equal(f.n, 2);
    assert_float_equal(f.tok_per_s[1], 13, 1e-9);
    assert_int_equal(engine_read_regex(&f, text, strlen(text), "[0-9.]+(?= tok)", &err),
                     ST_OK);
    assert_float_equal(f.tok_per_s[0], 12.5, 1e-9);
    assert_int_equal(engine_read_regex(&f, text, strlen(text), "none ([0-9]+)", &err),
                     ST_INPUT);
    clear();
    assert_int_equal(
        engine_read_regex(&f, slow, strlen(slow), "^speed: ([-0-9.e]+)", &err),
        ST_INPUT);
    err_clear(&err);
    assert_int_equal(engine_read_regex(&f, text, strlen(text), "(speed)", &err),
                     ST_INPUT);
    clear(); /* as many steps as there are parts of it */
    assert_int_equal(engine_read_regex(&f, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
                                       41, "(a+)+$", &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "too long"));
    clear();
    assert_int_equal(engine_read_json(&f, json, strlen(json), "runs.0.tps", &err),
                     ST_OK);
    assert_int_equal(f.n, 2);
    assert_int_equal(engine_read_json(&f, json, strlen(json), "runs.1.tps", &err),
                     ST_OK);
    assert_float_equal(f.tok_per_s[0], 7, 1e-9);
    assert_int_equal(engine_read_json(&f, json, strlen(json), "runs.2.tps", &err),
                     ST_INPUT);
    clear();
    assert_int_equal(engine_read_json(&f, json, strlen(json), "runs", &err), ST_INPUT);
}

static void wrong_figures_of_others(void **state)
{
    static const struct {
        bool regex;
        const char *text, *figure, *words;
        enum status st;
    } cases[] = {
        {false, "{\"a\": []}", "a", "a of its JSON is an empty list", ST_INPUT},
        {false, "{\"a\": [1, 0]}", "a", "a of its JSON is no number", ST_INPUT},
        {false, "{\"a\": 2e9}", "a", "a of its JSON is no number", ST_INPUT},
        {false, "{\"a\": \"5\"}", "a", "a of its JSON is no number", ST_INPUT},
        {false, "{\"a\": {\"b\": 1}}", "a.c", "no JSON with a.c", ST_INPUT},
        {false, "{\"a\": 1}", "a.b.c", "no JSON with a.b.c", ST_INPUT},
        {true, "5 tok", "(", "its figure: the regular expression (", ST_USAGE},
        {true, "5 tok", "", "is not a number of tokens per second", ST_INPUT},
        {true, "2e9 tok", "(.*) tok", "is not a number of tokens", ST_INPUT},
        {true, "", "[0-9]+", "finds nothing in its output", ST_INPUT},
    };
    static struct engine_figures f;
    char zeros[100];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = cases[i].text;

        clear();
        assert_int_equal((cases[i].regex ? engine_read_regex : engine_read_json)(
                             &f, text, strlen(text), cases[i].figure, &err),
                         cases[i].st);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("%s: '%s'", text, err.msg);
    }
    /* a group that is not set, one ahead of an empty match, a number of 90 digits */
    clear();
    assert_int_equal(engine_read_regex(&f, "5", 1, "(x)?(5)", &err), ST_OK);
    assert_true(f.n == 1 && f.tok_per_s[0] == 5);
    assert_int_equal(engine_read_regex(&f, "a 7 tok", 7, "(?=([0-9]+) tok)", &err),
                     ST_OK);
    assert_true(f.n == 1 && f.tok_per_s[0] == 7);
    memset(zeros, '0', 90);
    strcpy(zeros + 90, "5");
    assert_int_equal(engine_read_regex(&f, zeros, 91, "[0-9]+", &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "is not a number of tokens per second"));
}

/* ---- what it can be asked for ---------------------------------------------------- */

static void points_and_models(void **state)
{
    struct point p = decode_point();
    struct err why = ERR_INIT;

    (void)state;
    assert_int_equal(engine_check_point(&p, &why), ST_OK);
    p.setup.kv_window = 64;
    assert_int_equal(engine_check_point(&p, &why), ST_USAGE);
    assert_non_null(strstr(why.msg, "--kv-window"));
    why = (struct err)ERR_INIT;
    strcpy(p.setup.model.path, "/tmp");
    assert_int_equal(engine_check_model(&p.setup.model, &why), ST_USAGE);
    assert_non_null(strstr(why.msg, "folder"));
    why = (struct err)ERR_INIT;
    p.setup.model.at_load = true;
    assert_int_equal(engine_check_model(&p.setup.model, &why), ST_USAGE);
    assert_non_null(strstr(why.msg, "bench quantize"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_words),
        cmocka_unit_test(wrong_texts),
        cmocka_unit_test(programs_are_found),
        cmocka_unit_test(commands_of_llama_bench),
        cmocka_unit_test(commands_of_templates),
        cmocka_unit_test(efforts),
        cmocka_unit_test(helps),
        cmocka_unit_test(figures_of_llama_bench),
        cmocka_unit_test(wrong_outputs),
        cmocka_unit_test(what_was_not_requested),
        cmocka_unit_test(more_samples_than_there_is_room_for),
        cmocka_unit_test(cut_outputs),
        cmocka_unit_test(who_prints_too_much_is_ended),
        cmocka_unit_test(figures_of_others),
        cmocka_unit_test(wrong_figures_of_others),
        cmocka_unit_test(points_and_models),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
