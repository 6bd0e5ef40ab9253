/* SPDX-License-Identifier: MIT
 *
 * test_gate_run.c - what a gate of two programs measures and how long, what goes over
 * the wire, and the lines of rounds.csv
 */
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/decide/gate/gate_run.h"
#include "harness/decide/gate/gate_sides.h"

static struct topology two_cpus(void)
{
    return (struct topology){.n_cpus = 2, .n_allowed = 2, .threads_default = 2};
}

static void set(struct gate_settings *s, const char *key, const char *text)
{
    const struct topology topo = two_cpus();
    struct err err = ERR_INIT;

    if (gate_settings_set(s, key, text, &topo, key, &err))
        fail_msg("%s: %s", key, err.msg);
}

static void refuses(const char *key, const char *text, const char *message)
{
    const struct topology topo = two_cpus();
    struct gate_settings s = {0};
    struct err err = ERR_INIT;

    assert_int_equal(gate_settings_set(&s, key, text, &topo, "here", &err), ST_USAGE);
    if (!strstr(err.msg, message))
        fail_msg("%s=%s says: %s", key, text, err.msg);
    gate_settings_free(&s);
}

static struct gate_settings some_settings(void)
{
    struct gate_settings s = {.rule = gate_rule_default(),
                              .n_rounds = 4,
                              .budget_s = 600,
                              .memory = true,
                              .load = true,
                              .margin_memory = 0.05,
                              .margin_load = 0.2};

    set(&s, "threads", "auto");
    set(&s, "ctx", "0,512");
    set(&s, "prefill", "32");
    return s;
}

/* ---- settings -------------------------------------------------------------------- */

static void keys_are_parsed_and_refused(void **state)
{
    struct gate_settings s = some_settings();

    (void)state;
    assert_int_equal(s.threads.n, 1);
    assert_int_equal(s.threads.v[0], 2);
    set(&s, "margin", "3 %");
    set(&s, "budget", "1.5m");
    set(&s, "inject_slowdown", "5%");
    set(&s, "exit_codes", "0,0,3");
    set(&s, "mem", "6G");
    set(&s, "weights", "stream");
    set(&s, "kv_window", "100");
    assert_float_equal(s.rule.margin, 0.03, 1e-12);
    assert_float_equal(s.budget_s, 90, 1e-12);
    assert_float_equal(s.slower, 0.05, 1e-12);
    assert_int_equal(s.exit_code[2], 3);
    assert_int_equal(s.setup.mem_limit, UINT64_C(6) << 30);
    assert_int_equal(s.setup.residency, WEIGHTS_STREAM);
    assert_int_equal(s.setup.kv_window, 100);
    gate_settings_free(&s);
    refuses("margin", "0", "outside");
    refuses("margin", "-3%", "outside");
    refuses("budget", "10x", "not a time");
    refuses("budget", "0.1s", "outside");
    refuses("budget", "", "not a time");
    refuses("threads", "none", "at least one");
    refuses("threads", "5000", "5000 threads are outside 1..1024");
    refuses("memory", "yes", "neither true nor false");
    refuses("exit_codes", "0,1,4,5", "not three numbers");
    refuses("exit_codes", "0,1,400", "outside");
    refuses("weights", "memory", "mmap, packed or stream");
    refuses("weights", "auto", "mmap, packed or stream");
    refuses("kv_window", "-1", "outside");
    refuses("rounds", "99", "outside");
    refuses("kernels", "q4_K,q9_K", "'q9_K' is no weight format");
    refuses("model_", "x", "no such key");
}

/* ---- the plan -------------------------------------------------------------------- */

static void metrics_follow_from_settings(void **state)
{
    struct gate_settings s = some_settings();
    struct gate_metric m;
    struct gate_plan p;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(gate_plan_steps(&p, &s, &err), ST_OK);
    assert_int_equal(p.n_steps, 3);
    assert_int_equal(gate_plan_n_metrics(&p, &s), 5);
    gate_plan_metric(&p, &s, 1, &m);
    assert_string_equal(m.name, "decode, depth 512, 2 threads");
    assert_string_equal(m.unit, "tok/s");
    assert_false(m.less_is_better);
    assert_float_equal(m.margin, 0.02, 1e-12);
    assert_float_equal(gate_plan_speed(&s, &p.step[2], 0.5), 64, 1e-9);
    gate_plan_metric(&p, &s, 3, &m);
    assert_string_equal(m.name, "peak memory");
    assert_true(m.less_is_better);
    gate_plan_metric(&p, &s, 4, &m);
    assert_string_equal(m.name, "load time");
    assert_float_equal(m.margin, 0.2, 1e-12);
    set(&s, "kernels", "q4_K,Q8_0");
    assert_int_equal(gate_plan_steps(&p, &s, &err), ST_OK);
    assert_int_equal(p.n_steps, 5);
    gate_plan_metric(&p, &s, 4, &m);
    assert_string_equal(m.name, "gemv of q8_0 in the cache, 1 thread");
    assert_string_equal(m.unit, "GB/s");
    set(&s, "kernels", "none");
    assert_int_equal(gate_plan_steps(&p, &s, &err), ST_OK);
    s.memory = false;
    gate_plan_metric(&p, &s, 3, &m);
    assert_string_equal(m.name, "load time");
    set(&s, "ctx", "0-20");
    assert_int_equal(gate_plan_steps(&p, &s, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "more than the 16"));
    set(&s, "ctx", "none");
    set(&s, "prefill", "none");
    err_clear(&err);
    assert_int_equal(gate_plan_steps(&p, &s, &err), ST_USAGE);
    gate_settings_free(&s);
}

/* A server's samples are of one request, whose own time counts to its turn. */
static void servers_have_times_and_whole_requests(void **state)
{
    const struct gate_timing t = {.launch_s = 1,
                                  .sample_s = {0.1, 0.1, 0.5},
                                  .asking_s = {0.3, 0.3, 0.1},
                                  .is_undivided = true};
    struct gate_settings s = some_settings();
    struct gate_metric m;
    struct gate_plan p;
    struct err err = ERR_INIT;

    (void)state;
    s.over_http = true;
    assert_int_equal(gate_plan_steps(&p, &s, &err), ST_OK);
    gate_plan_metric(&p, &s, 1, &m);
    assert_string_equal(m.name, "TPOT, depth 512");
    assert_string_equal(m.unit, "ms");
    assert_true(m.less_is_better);
    gate_plan_metric(&p, &s, 2, &m);
    assert_string_equal(m.name, "TTFT, 32 tokens");
    assert_float_equal(gate_plan_speed(&s, &p.step[2], 0.5), 500, 1e-9);
    assert_int_equal(gate_plan_fit(&p, &s, &t, 590, &err), ST_OK);
    assert_int_equal(p.n_passes[0], 1);
    assert_true(p.n_samples[0] > 1);
    assert_float_equal(p.round_s[0], 4 * (0.3 + 0.1 * (p.n_samples[0] + 1)), 1e-9);
    gate_settings_free(&s);
}

static void fewest_launches_can_fail(void **state)
{
    struct gate_rule rule = gate_rule_default();

    (void)state;
    for (size_t n = 1; n <= GATE_MAX_METRICS; n++) {
        const size_t fewest = gate_plan_fewest(&rule, n);
        double p_fail[GATE_MAX_METRICS], p_pass[GATE_MAX_METRICS];
        enum gate_verdict verdict;
        struct err err = ERR_INIT;

        rule.n_interim = gate_n_interim(fewest);
        for (size_t i = 0; i < n; i++)
            p_fail[i] = p_pass[i] = 1;
        p_fail[0] = ldexp(1, -(int)fewest);
        gate_decide(&verdict, &rule, p_fail, p_pass, n, NULL, &err);
        assert_int_equal(verdict, GATE_FAIL);
        p_fail[0] *= 2;
        gate_decide(&verdict, &rule, p_fail, p_pass, n, NULL, &err);
        assert_int_equal(verdict, GATE_OPEN);
    }
}

static struct gate_plan fit(const struct gate_settings *s, double decode_s,
                            double prefill_s, double launch_s)
{
    const struct gate_timing t = {.launch_s = launch_s,
                                  .sample_s = {decode_s, decode_s, prefill_s}};
    struct gate_plan p;
    struct err err = ERR_INIT;

    assert_int_equal(gate_plan_steps(&p, s, &err), ST_OK);
    if (gate_plan_fit(&p, s, &t, s->budget_s, &err))
        fail_msg("%s", err.msg);
    assert_true((double)p.max_launches * p.launch_s <= s->budget_s);
    for (int i = 0; i < p.n_steps; i++)
        launch_s += (double)p.n_rounds[i] * p.round_s[i];
    assert_float_equal(p.launch_s, launch_s, 1e-9);
    return p;
}

static void turns_are_as_long_as_the_budget_lets_them(void **state)
{
    struct gate_settings s = some_settings();
    struct gate_plan p;

    (void)state;
    /* 3 million parameters and ten minutes: more than enough */
    p = fit(&s, 0.0002, 0.002, 0.03);
    assert_int_equal(gate_plan_rounds(&p), 4);
    assert_int_equal(p.n_passes[0], 1);
    assert_true(p.max_launches >= 40);
    assert_true(p.n_samples[0] * 0.0002 <= 0.26 && p.n_samples[0] * 0.0002 >= 0.1);
    /* the same in six seconds: shorter turns, fewer rounds */
    s.budget_s = 6;
    p = fit(&s, 0.0002, 0.002, 0.03);
    assert_true(p.max_launches >= 14);
    assert_true(p.n_samples[0] >= 40 && p.n_samples[2] >= 4);
    /* nine billion parameters: as many launches as can say anything, long samples taken
       singly, and fewer rounds of prefill, which takes the longest */
    s.budget_s = 600;
    set(&s, "ctx", "0");
    const struct gate_timing slow = {.launch_s = 6, .sample_s = {0.17, 1.6}};
    struct err err = ERR_INIT;
    assert_int_equal(gate_plan_steps(&p, &s, &err), ST_OK);
    assert_int_equal(gate_plan_fit(&p, &s, &slow, 590, &err), ST_OK);
    assert_int_equal(p.n_rounds[0], 4);
    assert_in_range(p.n_rounds[1], 1, 2);
    assert_in_range(p.max_launches, 20, 40);
    assert_true(p.n_samples[0] >= 3 && p.n_samples[1] >= 1);
    assert_int_equal(p.n_passes[0], p.n_samples[0]);
    gate_settings_free(&s);
}

static void a_budget_too_short_is_refused_with_one_that_does(void **state)
{
    struct gate_settings s = some_settings();
    const struct gate_timing t = {.launch_s = 6, .sample_s = {0.17, 0.17, 1.6}};
    struct gate_plan p;
    struct err err = ERR_INIT;
    const char *advice;

    (void)state;
    s.budget_s = 60;
    assert_int_equal(gate_plan_steps(&p, &s, &err), ST_OK);
    assert_int_equal(gate_plan_fit(&p, &s, &t, 50, &err), ST_USAGE);
    advice = strstr(err.msg, "--budget ");
    assert_non_null(advice);
    s.budget_s = 60 * strtod(advice + 9, NULL);
    err_clear(&err);
    assert_int_equal(gate_plan_fit(&p, &s, &t, s.budget_s - 10, &err), ST_OK);
    gate_settings_free(&s);
}

static void a_busier_machine_shortens_turns(void **state)
{
    struct gate_settings s = some_settings();
    struct gate_timing t = {.launch_s = 0.03, .sample_s = {0.0002, 0.0002, 0.002}};
    struct gate_plan p = fit(&s, 0.0002, 0.002, 0.03);
    const double before = p.launch_s;

    (void)state;
    gate_plan_shorten(&p, &t, 10, 30, 12);
    assert_true(12 * p.launch_s <= 30);
    assert_true(p.launch_s < 10 * before);
    assert_float_equal(t.launch_s, 0.3, 1e-9);
    assert_float_equal(t.sample_s[2], 0.02, 1e-9);
    gate_plan_shorten(&p, &t, 1000, 30, 12); /* hopeless, but defined */
    assert_int_equal(gate_plan_rounds(&p), 1);
    assert_true(p.n_samples[0] >= 3 && p.n_samples[2] >= 1);
    gate_settings_free(&s);
}

/* ---- the wire -------------------------------------------------------------------- */

static struct worker_open some_opening(void)
{
    struct worker_open o = {.setup = {.residency = WEIGHTS_MMAP,
                                      .kv_type = KERN_KV_q8_0,
                                      .n_batch = 64,
                                      .n_threads = 2,
                                      .cpus = {0, 1},
                                      .explicit_cpus = true,
                                      .mem_limit = UINT64_C(6) << 30,
                                      .seed = 77},
                            .slower = 0.05,
                            .n_loads = 3,
                            .step = {{WORKER_DECODE, 2, 512, KERN_N_FMT},
                                     {WORKER_PREFILL, 1, 32, KERN_N_FMT},
                                     {WORKER_KERNEL, 1, 0, KERN_FMT_q4_K}},
                            .n_steps = 3};

    snprintf(o.setup.model.text, sizeof o.setup.model.text, "m.gguf");
    snprintf(o.setup.model.path, sizeof o.setup.model.path, "/some where/m.gguf");
    return o;
}

static void what_is_opened_survives_the_wire(void **state)
{
    const struct worker_open o = some_opening();
    struct worker_open back;
    struct err err = ERR_INIT;
    json_t *j = worker_open_json(&o);

    (void)state;
    assert_int_equal(worker_open_from_json(&back, j, &err), ST_OK);
    assert_string_equal(back.setup.model.path, o.setup.model.path);
    assert_int_equal(back.setup.kv_type, o.setup.kv_type);
    assert_int_equal(back.setup.mem_limit, o.setup.mem_limit);
    assert_int_equal(back.setup.seed, 77);
    assert_true(back.slower == 0.05);
    assert_int_equal(back.n_steps, 3);
    assert_memory_equal(back.step, o.step, 3 * sizeof o.step[0]);
    assert_int_equal(back.setup.cpus[1], 1);
    assert_int_equal(worker_n_threads(&back), 2);
    assert_int_equal(worker_n_ctx(&back), 512 + WORKER_DECODE_SPAN + 2);
    json_decref(j);
}

/* Lines of protocol 1. Programs of all its versions are compared by gates, so what is
 * written and read stays the same, member for member. */
static const char recorded_open[] =
    "{\"model\":\"m.gguf\",\"path\":\"/some where/m.gguf\",\"quant\":\"Q4_K_M\","
    "\"residency\":1,\"kv_type\":1,\"n_batch\":64,\"cpus\":[0,1],"
    "\"memory_bytes\":6442450944,\"isa_disabled\":4,\"seed\":-77,"
    "\"slower\":0.050000000000000003,\"n_loads\":3,"
    "\"steps\":[[0,2,512,\"\"],[1,1,32,\"\"],[2,1,0,\"q4_K\"]]}";
static const char recorded_ready[] =
    "{\"load_s\":[0.5,0.25],\"quant\":\"Q4_K_M\",\"isa\":\"avx2\","
    "\"residency\":\"mmap\",\"weight_bytes\":123456789}";

static void lines_are_as_recorded(void **state)
{
    json_t *open = json_loads(recorded_open, 0, NULL);
    json_t *ready = json_loads(recorded_ready, 0, NULL), *again;
    struct worker_open o;
    struct worker_ready r;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(WORKER_OPEN_PROTOCOL, 1);
    if (worker_open_from_json(&o, open, &err))
        fail_msg("%s", err.msg);
    assert_true(o.setup.model.at_load && o.setup.model.mix == QUANTMIX_Q4_K_M);
    assert_int_equal(o.setup.isa_disabled, 4);
    assert_true(o.setup.seed == UINT64_MAX - 76);
    again = worker_open_json(&o);
    assert_true(json_equal(again, open));
    json_decref(again);
    assert_int_equal(worker_ready_from_json(&r, ready, &err), ST_OK);
    again = worker_ready_json(&r);
    assert_true(json_equal(again, ready));
    json_decref(again);
    json_decref(open);
    json_decref(ready);
}

/* A key that came later than the protocol is written where it is set, and only a
 * program that names it in its greeting takes part. */
static void later_settings_are_optional(void **state)
{
    json_t *open = json_loads(recorded_open, 0, NULL), *again;
    json_t *known = model_setup_optional_keys(), *none = json_array();
    struct worker_open o, back;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(worker_open_from_json(&o, open, &err), ST_OK);
    assert_int_equal(o.setup.kv_window, 0);
    assert_null(model_setup_unknown_key(&o.setup, NULL));
    o.setup.kv_window = 77;
    again = worker_open_json(&o);
    assert_int_equal(worker_open_from_json(&back, again, &err), ST_OK);
    assert_int_equal(back.setup.kv_window, 77);
    assert_null(model_setup_unknown_key(&o.setup, known));
    assert_string_equal(model_setup_unknown_key(&o.setup, none), "kv_window");
    assert_string_equal(model_setup_unknown_key(&o.setup, NULL), "kv_window");
    json_decref(again);
    json_decref(known);
    json_decref(none);
    json_decref(open);
}

static void what_is_not_sensible_is_refused(void **state)
{
    static const struct {
        const char *key, *value;
    } bad[] = {{"slower", "1.0"},
               {"slower", "-0.1"},
               {"n_loads", "0"},
               {"n_loads", "99"},
               {"residency", "7"},
               {"kv_type", "-1"},
               {"n_batch", "0"},
               {"cpus", "[1]"},
               {"steps", "[]"},
               {"steps", "[[0, 0, 0, \"\"]]"},
               {"steps", "[[1, 1, 0, \"\"]]"},
               {"steps", "[[5, 1, 1, \"\"]]"},
               {"steps", "[[0, 1, -1, \"\"]]"},
               {"steps", "[[0, 1]]"},
               {"steps", "[[2, 1, 0, \"q9\"]]"},
               {"model", "3"},
               {"quant", "\"Q9_9\""},
               {"seed", "\"x\""}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct worker_open o = some_opening();
        struct worker_open back;
        struct err err = ERR_INIT;
        json_t *j = worker_open_json(&o);

        json_object_set_new(j, bad[i].key,
                            json_loads(bad[i].value, JSON_DECODE_ANY, NULL));
        if (worker_open_from_json(&back, j, &err) != ST_USAGE || !err.msg[0])
            fail_msg("%s: %s was taken", bad[i].key, bad[i].value);
        json_decref(j);
    }
}

/* ---- rounds.csv ------------------------------------------------------------------ */

static void rounds_are_whole_lines(void **state)
{
    static const double times[4] = {0.5, 0.25, 0.125, 1}, memory[2] = {10, 20};
    struct gate_metric metric[2] = {{.name = "decode, depth 0", .unit = "tok/s"},
                                    {.name = "peak memory", .unit = "MiB"}};
    struct gate_round_line line = {1, 2, "ABBA", true, {times}, 4, {-0.5}, "steal 5 %"};
    char dir[] = "/tmp/test_gate_run.XXXXXX", path[64], text[512];
    struct err err = ERR_INIT;
    FILE *f;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(gate_rounds_open(&fd, dir, &err), ST_OK);
    assert_int_equal(gate_rounds_write(fd, &line, metric, 2, &err), ST_OK);
    line =
        (struct gate_round_line){1, 0, "AB", true, {NULL, memory}, 2, {0, -0.6931}, ""};
    assert_int_equal(gate_rounds_write(fd, &line, metric, 2, &err), ST_OK);
    close(fd);
    snprintf(path, sizeof path, "%s/" GATE_ROUNDS_NAME, dir);
    assert_non_null(f = fopen(path, "r"));
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(
        text, "launch,round,order,counted,metric,unit,t1,t2,t3,t4,log_ratio,note\n"
              "1,2,ABBA,1,\"decode, depth 0\",tok/s,0.5,0.25,0.125,1,-0.5,"
              "\"steal 5 %\"\n"
              "1,0,AB,1,\"peak memory\",MiB,10,20,,,-0.6931,\"\"\n");
    assert_int_equal(gate_rounds_open(&fd, dir, &err), ST_USAGE);
    unlink(path);
    rmdir(dir);
}

/* ---- turns ----------------------------------------------------------------------- */

static int n_turns, n_disturbed; /* played; disturbed from the second one on */
static double turn_s;            /* that each takes */

static enum status some_turn(struct gate_run *run, int side, int step, int n,
                             struct gate_turn *turn, struct err *err)
{
    const bool is_disturbed = n_turns >= 1 && n_turns <= n_disturbed;

    (void)side, (void)step, (void)n, (void)err;
    turn->seconds = is_disturbed ? 8 : 2;
    if (is_disturbed)
        snprintf(turn->why, sizeof turn->why, "others 50 %%");
    n_turns++;
    run->begin_ns -= (uint64_t)(turn_s * 1e9); /* a clock of its own */
    return ST_OK;
}

static bool is_calm, has_waited;

static bool some_calm(struct gate_run *run)
{
    (void)run;
    has_waited = true;
    return is_calm;
}

/* A launch of one round, whose turns from the second one on are disturbed. */
static void play(bool has_long_turns, int disturbed, struct gate_result *r)
{
    const struct gate_sides sides = {.turn = some_turn,
                                     .has_long_turns = has_long_turns};
    const struct gate_settings s = {.budget_s = 600};
    struct gate_run run = {
        .s = &s, .sides = &sides, .r = r, .csv = -1, .calm = some_calm};
    char dir[] = "/tmp/test_gate_run.XXXXXX", path[64];
    struct err err = ERR_INIT;

    assert_non_null(mkdtemp(dir));
    assert_int_equal(gate_rounds_open(&run.csv, dir, &err), ST_OK);
    assert_non_null(run.values = calloc(1, sizeof *run.values));
    run.plan = (struct gate_plan){.n_steps = 1,
                                  .step = {{.kind = WORKER_DECODE, .n_threads = 1}},
                                  .n_samples = {1},
                                  .n_passes = {1},
                                  .n_rounds = {1},
                                  .launch_s = 1};
    memset(r, 0, sizeof *r);
    r->n_metrics = 1;
    n_turns = 0;
    n_disturbed = disturbed;
    progress_begin(&run.progress, "gate");
    assert_int_equal(gate_run_launch(&run, &err), ST_OK);
    gate_run_sum_up(&run);
    gate_run_close(&run);
    snprintf(path, sizeof path, "%s/" GATE_ROUNDS_NAME, dir);
    unlink(path);
    rmdir(dir);
}

static void long_turns_are_played_again_one_by_one(void **state)
{
    struct gate_result *r = calloc(1, sizeof *r);

    (void)state;
    assert_non_null(r);
    is_calm = true;
    play(true, 3, r);
    assert_int_equal(n_turns, 7);
    assert_int_equal(r->n_again, 3);
    assert_int_equal(r->n_disturbed, 0);
    assert_float_equal(r->metric[0].series.v[0][0], 0, 1e-12);

    /* short ones with their round, as what disturbed one may show in the next */
    play(false, 3, r);
    assert_int_equal(n_turns, 8);
    assert_int_equal(r->n_again, 0);
    assert_int_equal(r->n_disturbed, 1);
    assert_string_equal(r->disturbed, "others in 1");

    /* a turn that stays disturbed disturbs the round */
    play(true, 5, r);
    assert_int_equal(n_turns, 12);
    assert_int_equal(r->n_again, 4);
    assert_int_equal(r->n_disturbed, 1);

    /* where it does not become calm, waiting ends */
    is_calm = false;
    play(true, 20, r);
    assert_int_equal(n_turns, 8);
    assert_int_equal(r->n_again, 0);
    assert_true(has_waited);

    /* nor is a turn played again where its launch takes too long already */
    is_calm = true;
    turn_s = 2.1; /* a launch is expected to take 1 s */
    play(true, 4, r);
    turn_s = 0;
    assert_int_equal(n_turns, 4 + 4); /* none by itself, all with their round */
    assert_int_equal(r->n_again, 0);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_parsed_and_refused),
        cmocka_unit_test(metrics_follow_from_settings),
        cmocka_unit_test(servers_have_times_and_whole_requests),
        cmocka_unit_test(fewest_launches_can_fail),
        cmocka_unit_test(turns_are_as_long_as_the_budget_lets_them),
        cmocka_unit_test(a_budget_too_short_is_refused_with_one_that_does),
        cmocka_unit_test(a_busier_machine_shortens_turns),
        cmocka_unit_test(what_is_opened_survives_the_wire),
        cmocka_unit_test(lines_are_as_recorded),
        cmocka_unit_test(later_settings_are_optional),
        cmocka_unit_test(what_is_not_sensible_is_refused),
        cmocka_unit_test(rounds_are_whole_lines),
        cmocka_unit_test(long_turns_are_played_again_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
