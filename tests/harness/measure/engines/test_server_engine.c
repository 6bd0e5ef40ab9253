/* SPDX-License-Identifier: MIT
 *
 * test_server_engine.c - commands of servers, what they are asked, times of their
 * answers
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <math.h>

#include "harness/measure/engines/engine_command.h"
#include "harness/measure/engines/engine_talk.h"

static struct err err;

static struct engine parsed(const char *text)
{
    struct engine e;

    err_clear(&err);
    assert_int_equal(engine_parse(&e, text, "--engine", &err), ST_OK);
    return e;
}

static void kinds(void **state)
{
    const struct engine server = parsed("x=run {model} --port {port}");
    const struct engine llama = parsed("x=/opt/llama-server -fa");
    const struct engine prints = parsed("x=run {model} =~ ([0-9.]+)");

    (void)state;
    assert_true(engine_is_server(&server));
    assert_false(engine_prints(&server));
    assert_int_equal(llama.kind, ENGINE_LLAMA);
    assert_false(engine_is_server(&prints));
    assert_true(engine_prints(&prints));
}

/* ---- commands -------------------------------------------------------------------- */

static const char *made(const struct engine *e, const struct point *p,
                        const struct engine_serving *s)
{
    static char text[9000];
    static struct engine_command c;
    const struct engine_effort effort = {1, 24};

    err_clear(&err);
    memset(&c, 0, sizeof c);
    text[0] = '\0';
    if (engine_make_server(&c, e, p, &effort, s, &err))
        return err.msg;
    for (int i = 0; c.argv[i]; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "|" : "",
                 c.argv[i]);
    return text;
}

static struct point decode_point(void)
{
    struct point p;

    point_init(&p);
    snprintf(p.setup.model.path, sizeof p.setup.model.path, "/m/a b,c.gguf");
    p.setup.n_threads = 2;
    p.ctx = 100;
    return p;
}

static void commands(void **state)
{
    const struct engine_serving s = {.port = 8123, .n_window = 156};
    const struct engine_serving newer = {
        .port = 1, .n_window = 2, .flash_has_value = true, .has_prompt_cache = true};
    struct engine llama = parsed("x=/b/llama-server --mlock");
    const struct engine other =
        parsed("x=run {model} -p{port} -t{threads} {window} {ctx} {n} {other}");
    struct point p = decode_point();

    (void)state;
    llama.kind = ENGINE_LLAMA_SERVER;
    assert_string_equal(made(&llama, &p, &s),
                        "/b/llama-server|--mlock|-m|/m/a b,c.gguf|--host|127.0.0.1|"
                        "--port|8123|-c|156|-np|1|-t|2|-ub|512");
    assert_string_equal(made(&other, &p, &s),
                        "run|/m/a b,c.gguf|-p8123|-t2|156|100|24|{other}");
    p.setup.kv_type = KERN_KV_q8_0;
    assert_string_equal(
        made(&llama, &p, &s),
        "/b/llama-server|--mlock|-m|/m/a b,c.gguf|--host|127.0.0.1|"
        "--port|8123|-c|156|-np|1|-t|2|-ub|512|-ctk|q8_0|-ctv|q8_0|-fa");
    assert_string_equal(made(&llama, &p, &newer),
                        "/b/llama-server|--mlock|-m|/m/a b,c.gguf|--host|127.0.0.1|"
                        "--port|1|-c|2|-np|1|-t|2|-ub|512|--cache-ram|0|-ctk|q8_0|"
                        "-ctv|q8_0|-fa|on");
    assert_non_null(strstr(made(&other, &p, &s), "no KV cache but f16"));
    assert_null(strstr(made(&other, &(struct point){.ctx = 1}, &s), "{port}"));
}

static void helps(void **state)
{
    static const char old[] =
        "-c, --ctx-size N\n--port PORT\n-fa, --flash-attn  enable\n"
        "--other [on|off]\n";
    static const char newer[] =
        "-c, --ctx-size N\n-fa, --flash-attn [on|off|auto] set\n"
        "-cram, --cache-ram N\n--port PORT";
    static const char bench[] = "  -n, --n-gen <n>\n  -o, --output <csv|json>\n";
    struct engine_serving s = {0};

    (void)state;
    assert_true(engine_read_server_help(&s, old, strlen(old)));
    assert_false(s.flash_has_value);
    assert_false(s.has_prompt_cache);
    assert_true(engine_read_server_help(&s, newer, strlen(newer)));
    assert_true(s.flash_has_value);
    assert_true(s.has_prompt_cache);
    assert_false(engine_read_server_help(&s, bench, strlen(bench)));
    for (size_t n = 0; n <= strlen(newer); n++) {
        char *text = guard_alloc(n);

        memcpy(text, newer, n);
        engine_read_server_help(&s, text, n);
        guard_free(text, n);
    }
}

static void efforts(void **state)
{
    struct engine e = parsed("x=llama-server");
    struct point p = decode_point();
    struct engine_effort f;

    (void)state;
    e.kind = ENGINE_LLAMA_SERVER;
    p.n_tokens = 64;
    p.budget_s = 10;
    f = engine_effort(&e, &p, ENGINE_DEPTH_NONE, 0, true);
    assert_int_equal(f.n_tokens, 1);
    assert_int_equal(f.n_reps, 64);
    p.n_tokens = 100000;
    f = engine_effort(&e, &p, ENGINE_DEPTH_NONE, 0, true);
    assert_int_equal(f.n_reps, ENGINE_MAX_SAMPLES);
    p.kind = POINT_PREFILL;
    p.n_prompt = 128;
    p.n_tokens = 5;
    f = engine_effort(&e, &p, ENGINE_DEPTH_NONE, 0, true);
    assert_int_equal(f.n_tokens, 128);
    assert_int_equal(f.n_reps, 5);
}

/* ---- what it is asked ------------------------------------------------------------ */

static void prompts(void **state)
{
    static const int vocabs[] = {1, 32, 1024, 1025, 32000, 262144};

    (void)state;
    for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
        const int n = vocabs[i] < 64 ? 64 : vocabs[i];
        char *body =
            engine_talk_body(&(struct engine_talk){.n_vocab = vocabs[i]}, 50, 9, 7);
        json_t *o = json_loads(body, 0, NULL);
        const json_t *prompt = json_object_get(o, "prompt");

        assert_int_equal(json_array_size(prompt), 50);
        for (size_t k = 0; k < 50; k++) {
            const json_int_t id = json_integer_value(json_array_get(prompt, k));

            assert_true(id >= (n > 1024 ? 300 : n / 4) && id < n);
        }
        assert_int_equal(json_integer_value(json_object_get(o, "max_tokens")), 9);
        assert_true(json_is_true(json_object_get(o, "ignore_eos")));
        assert_true(json_is_false(json_object_get(o, "cache_prompt")));
        json_decref(o);
        free(body);
    }
    const struct engine_talk t = {.n_vocab = 32000};
    char *a = engine_talk_body(&t, 8, 1, 1), *b = engine_talk_body(&t, 8, 1, 2);

    assert_string_not_equal(a, b);
    free(a);
    free(b);
}

/* ---- times ----------------------------------------------------------------------- */

static struct engine_figures figures;

/* An answer of n pieces, with these times and tokens between. */
static enum status read_stream(const float *ms, const int *tokens, int n, int64_t said)
{
    struct load_record r = {.n_pieces = n,
                            .n_first_tokens = 1,
                            .first_ns = 1000,
                            .last_ns = 1000,
                            .n_tokens = said,
                            .gap_ms = (float *)(uintptr_t)ms,
                            .gap_tokens = (int *)(uintptr_t)tokens};

    for (int i = 0; i + 1 < n; i++)
        r.last_ns += (uint64_t)((double)ms[i] * 1e6);
    err_clear(&err);
    return engine_read_stream(&figures, &r, &err);
}

static void times(void **state)
{
    static const int ones[] = {1, 1, 1, 1, 1, 1};
    static const int two[] = {1, 2, 1};
    static const float even[] = {10, 10, 20}, burst[] = {0, 10, 0.01F, 0, 12, 10};

    (void)state;
    assert_int_equal(read_stream(even, ones, 4, 4), ST_OK);
    assert_int_equal(figures.n, 3);
    assert_float_equal(figures.tok_per_s[0], 100, 1e-6);
    assert_float_equal(figures.tok_per_s[2], 50, 1e-6);
    assert_int_equal(read_stream(even, ones, 4, -1), ST_OK); /* pieces count then */
    assert_int_equal(figures.n, 3);
    /* a piece of two tokens is two samples of half its time */
    assert_int_equal(read_stream(even, two, 4, 5), ST_OK);
    assert_int_equal(figures.n, 4);
    assert_float_equal(figures.tok_per_s[1], 200, 1e-6);
    assert_float_equal(figures.tok_per_s[2], 200, 1e-6);
    /* the first gap is no time; three pieces share the 10 ms before them */
    assert_int_equal(read_stream(burst, ones, 7, 7), ST_OK);
    assert_int_equal(figures.n, 5);
    assert_float_equal(figures.tok_per_s[0], 3e3 / 10.01, 1e-3);
    assert_float_equal(figures.tok_per_s[2], 3e3 / 10.01, 1e-3);
    assert_float_equal(figures.tok_per_s[3], 1e3 / 12, 1e-3);
    /* tokens that came with no piece of their own: only a mean */
    assert_int_equal(read_stream(even, ones, 4, 6), ST_OK);
    assert_int_equal(figures.n, 0);
    assert_float_equal(figures.mean, 5e3 / 40, 1e-6);
    assert_true(isnan(figures.deviation));
}

static void no_times(void **state)
{
    static const int ones[] = {1, 1};
    static const float none[] = {0, 0};

    (void)state;
    assert_int_equal(read_stream(none, ones, 0, 5), ST_INPUT);
    assert_int_equal(read_stream(none, ones, 1, 5), ST_INPUT);
    assert_int_equal(read_stream(none, ones, 3, 3), ST_INPUT);
    assert_non_null(strstr(err.msg, "no time of a token"));
}

/* ---- versions -------------------------------------------------------------------- */

static const char *version(const char *text)
{
    static char v[64];

    v[0] = '\0';
    engine_read_server_version(v, sizeof v, text, strlen(text));
    return v;
}

static const char *words(const char *text)
{
    static char v[64];

    v[0] = '\0';
    engine_read_version_words(v, sizeof v, text);
    return v;
}

static void versions(void **state)
{
    (void)state;
    assert_string_equal(version("{\"build_info\": \"b4754-abc1234\"}"),
                        "b4754-abc1234");
    assert_string_equal(version("{\"version\": \"0.6.3\"}"), "0.6.3");
    assert_string_equal(version("{\"build_info\": \"b0-unknown\"}"), "");
    assert_string_equal(version("{\"build_info\": 7}"), "");
    assert_string_equal(version("{\"build_info\": \"b1"), "");
    assert_null(strchr(version("{\"version\": \"a\\u001b[2J\"}"), '\033'));
    assert_string_equal(words("version: 4754 (abc1234) built with cc"),
                        "abc1234 (build 4754)");
    assert_string_equal(words("warning: x version: 1 (ab) built"), "ab (build 1)");
    assert_null(strchr(words("version: 1 (a\033b)"), '\033'));
    assert_string_equal(words("version: 0 (unknown) built with cc"), "");
    assert_string_equal(words("version: "), "");
    assert_string_equal(words(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),    cmocka_unit_test(commands), cmocka_unit_test(helps),
        cmocka_unit_test(efforts),  cmocka_unit_test(prompts),  cmocka_unit_test(times),
        cmocka_unit_test(no_times), cmocka_unit_test(versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
