/* SPDX-License-Identifier: MIT
 *
 * test_tune.c - tuning an invented machine whose best settings are known, and profiles
 * as files
 */
#include "tests/test.h"

#include <math.h>
#include <sched.h>
#include <sys/stat.h>

#include "engine/synth.h"
#include "harness/tune_model.h"
#include "harness/tuned_use.h"

/* ---- an invented machine ----------------------------------------------------------
 */

/* Its clock is what its samples take. The best: 3 of 4 threads to decode and 4 to
 * prefill, 2 chunks, 8192 ahead for q4_K, no matter what for q6_K, the level avx2 to
 * decode q6_K, batches of 256, mapped weights. */
struct invented {
    double clock, noise, effect; /* effect 0: nothing matters */
    double open_s;
    uint64_t seed;
    int n_samples, stop_after;
    long long opened; /* as weights' value */
};

static double better(const struct invented *v, bool is, double gain)
{
    return is ? exp(-v->effect * gain) : 1;
}

static double spread(struct invented *v)
{
    const double s = 1 + v->noise * (double)test_random_float(&v->seed);

    return test_random(&v->seed) % 20 ? s : s * 1.5;
}

static enum status invented_open(void *arg, const struct tune_setup *s, struct err *err)
{
    struct invented *v = arg;

    (void)err;
    v->clock += v->open_s;
    v->opened = tune_get(s, TUNE_WEIGHTS, KERN_N_FMT);
    return ST_OK;
}

static enum status invented_decode(void *arg, const struct tune_setup *s,
                                   struct tune_sample *out, struct err *err)
{
    struct invented *v = arg;
    const bool avx2 =
        tune_mask_level(s->tuning.isa_mask[KERN_FMT_q6_K]) == KERN_ISA_avx2;
    const double all = better(v, s->n_threads == 3, 0.2) *
                       better(v, s->tuning.chunks_decode == 2, 0.05) *
                       better(v, s->residency == WEIGHTS_MMAP, 0.1) * spread(v);

    (void)err;
    assert_int_equal(v->opened, tune_get(s, TUNE_WEIGHTS, KERN_N_FMT));
    memset(out, 0, sizeof *out);
    out->fmt_s[KERN_FMT_q4_K] =
        0.007 * all * better(v, s->tuning.ahead[KERN_FMT_q4_K] == 8192, 0.1);
    out->fmt_s[KERN_FMT_q6_K] = 0.002 * all * better(v, avx2, 0.1);
    out->seconds = 0.001 * all + out->fmt_s[KERN_FMT_q4_K] + out->fmt_s[KERN_FMT_q6_K];
    v->clock += out->seconds;
    v->n_samples++;
    return ST_OK;
}

static enum status invented_prefill(void *arg, const struct tune_setup *s, int n_tokens,
                                    struct tune_sample *out, struct err *err)
{
    struct invented *v = arg;

    (void)err;
    memset(out, 0, sizeof *out);
    out->seconds = 0.001 * n_tokens * spread(v) *
                   better(v, s->n_threads_prefill == 4, 0.3) *
                   better(v, s->tuning.n_batch == 256 && n_tokens > 64, 0.1) *
                   better(v, s->residency == WEIGHTS_MMAP, 0.1);
    v->clock += out->seconds;
    v->n_samples++;
    return ST_OK;
}

static double invented_now(void *arg)
{
    return ((struct invented *)arg)->clock;
}

static bool invented_stop(void *arg)
{
    const struct invented *v = arg;

    return v->stop_after && v->n_samples >= v->stop_after;
}

/* 4 CPUs, one core each. */
static void make_topology(struct topology *t)
{
    memset(t, 0, sizeof *t);
    t->n_cpus = t->n_cores = t->n_allowed = t->n_allowed_cores = 4;
    t->n_packages = t->n_nodes = 1;
    t->threads_default = 2;
    snprintf(t->thp, sizeof t->thp, "madvise");
    snprintf(t->cpu_model, sizeof t->cpu_model, "an \"invented\" CPU: 4 GHz # fast");
    for (int i = 0; i < 4; i++)
        t->cpu[i] = (struct topo_cpu){.os_id = i, .core = i, .allowed = true};
}

static void make_params(struct tune_params *p, const struct topology *t)
{
    memset(p, 0, sizeof *p);
    p->space.topo = t;
    p->space.isa_mask = isa_usable();
    p->space.formats[KERN_FMT_q4_K] = p->space.formats[KERN_FMT_q6_K] = true;
    p->space.can_pack = true;
    p->space.n_batch = 512;
    p->base = (struct tune_setup){.residency = WEIGHTS_PACKED,
                                  .n_threads = 2,
                                  .n_threads_prefill = 2,
                                  .tuning = slm_tuning_default()};
    p->base.tuning.n_batch = 64;
    p->budget_s = 120;
}

static enum status tune(struct tune_result *r, const struct tune_params *p,
                        struct invented *v, struct err *err)
{
    const struct tune_machine m = {v,
                                   invented_open,
                                   invented_decode,
                                   invented_prefill,
                                   invented_now,
                                   invented_stop,
                                   NULL};

    return tune_run(r, p, &m, err);
}

struct fixture {
    struct topology topo;
    struct tune_params p;
    struct tune_result r;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    make_topology(&f->topo);
    make_params(&f->p, &f->topo);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

/* ---- what it chooses --------------------------------------------------------------
 */

static void the_best_is_chosen(void **state)
{
    struct fixture *f = *state;
    const struct kern_row *best =
        kern_best(KERN_OP_gemv_x16, KERN_FMT_q6_K, isa_usable());
    const bool has_avx2 = isa_usable() >> KERN_ISA_avx2 & 1 && best &&
                          best->isa > KERN_ISA_avx2; /* below the best */
    int n_right = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct invented v = {.noise = 0.02, .effect = 1, .open_s = 0.2, .seed = seed};
        struct err err = ERR_INIT;
        const struct tune_setup *s = &f->r.chosen;

        f->p.seed = seed;
        assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
        assert_true(v.clock <= f->p.budget_s);
        n_right += s->n_threads == 3 && s->n_threads_prefill == 4;
        n_right += s->tuning.chunks_decode == 2;
        n_right += s->tuning.ahead[KERN_FMT_q4_K] == 8192;
        n_right += s->tuning.ahead[KERN_FMT_q6_K] == 4096; /* a tie */
        n_right += !has_avx2 ||
                   s->tuning.isa_mask[KERN_FMT_q6_K] == tune_level_mask(KERN_ISA_avx2);
        n_right += s->tuning.n_batch == 256;
        n_right += s->residency == WEIGHTS_PACKED;
        assert_true(f->r.decode.changed && f->r.decode.kept);
        assert_true(f->r.decode.ratio.ratio > 1.2);
        assert_true(f->r.prefill.changed && f->r.prefill.kept);
    }
    assert_true(n_right >= 7 * 20 * 9 / 10);
}

/* Only there is no weight asked for ahead. */
static void weights_are_mapped_where_that_is_faster(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.02, .effect = 1, .open_s = 0.2, .seed = 2};
    struct err err = ERR_INIT;

    f->p.space.can_map = true;
    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
    assert_int_equal(f->r.chosen.residency, WEIGHTS_MMAP);
    assert_int_equal(v.opened, tune_get(&f->r.chosen, TUNE_WEIGHTS, KERN_N_FMT));
    assert_int_equal(tune_find(&f->r, TUNE_AHEAD, KERN_FMT_q4_K)->n, 1);
}

/* Where nothing matters a knob is turned for nothing in at most one of twenty races,
 * and what is turned has to win once more: the profile is the default. */
static void equal_settings_stay_the_default(void **state)
{
    struct fixture *f = *state;
    int n_decode = 0, n_prefill = 0, n_weights = 0;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct invented v = {.noise = 0.05, .open_s = 0.2, .seed = seed};
        struct tune_setup s;
        struct err err = ERR_INIT;

        f->p.seed = seed;
        assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
        s = f->r.chosen;
        n_weights += tune_get(&s, TUNE_WEIGHTS, KERN_N_FMT) !=
                     tune_get(&f->p.base, TUNE_WEIGHTS, KERN_N_FMT);
        n_decode += f->r.decode.kept;
        n_prefill += f->r.prefill.kept;
    }
    assert_true(n_weights <= 6 && n_decode <= 4 && n_prefill <= 4);
}

/* Prefill that a choice for decoding spoils takes it back. */
static enum status spoiled_prefill(void *arg, const struct tune_setup *s, int n_tokens,
                                   struct tune_sample *out, struct err *err)
{
    struct invented *v = arg;
    const enum status st = invented_prefill(arg, s, n_tokens, out, err);

    out->seconds *= s->tuning.ahead[KERN_FMT_q4_K] == 8192 ? 2 : 1;
    v->clock += out->seconds / 2;
    return st;
}

static void a_spoiled_phase_takes_choices_back(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.01, .effect = 1, .open_s = 0.2, .seed = 5};
    const struct tune_machine m = {
        &v, invented_open, invented_decode, spoiled_prefill, invented_now, NULL, NULL};
    struct err err = ERR_INIT;

    f->p.seed = 4;
    assert_int_equal(tune_run(&f->r, &f->p, &m, &err), ST_OK);
    assert_true(f->r.prefill.ratio.hi < 1);
    assert_false(f->r.decode.kept);
    assert_int_equal(f->r.chosen.n_threads, 2);
    assert_int_equal(f->r.chosen.tuning.ahead[KERN_FMT_q4_K], 4096);
    assert_int_equal(f->r.chosen.tuning.n_batch, 64);
}

static void a_budget_is_kept(void **state)
{
    struct fixture *f = *state;

    for (double budget = 1; budget <= 64; budget *= 4) {
        struct invented v = {.noise = 0.02, .effect = 1, .open_s = 0.2, .seed = 3};
        struct err err = ERR_INIT;
        const struct tune_outcome *weights;

        f->p.budget_s = budget;
        assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
        /* The last comparison needs 8 rounds of both phases, whatever is left. */
        assert_true(v.clock <= budget + 16 * (0.01 + 0.064) * 1.5 + 0.5);
        weights = tune_find(&f->r, TUNE_WEIGHTS, KERN_N_FMT);
        assert_non_null(weights);
        if (budget < 5) {
            assert_int_equal(weights->state, RACE_CUT);
            assert_non_null(strstr(weights->note, "--budget"));
        }
    }
}

static void an_interruption_ends_it(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.02, .open_s = 0.2, .seed = 3, .stop_after = 100};
    struct err err = ERR_INIT;

    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_INTERRUPTED);
    assert_in_range(v.n_samples, 100, 110);
}

/* All combinations contain the best of them; what is found knob by knob is as fast. */
static void exhaustive_search_agrees(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.005, .effect = 1, .open_s = 0.2, .seed = 8};
    struct err err = ERR_INIT;
    FILE *null = fopen("/dev/null", "w");
    json_t *json;

    f->p.exhaustive = true;
    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
    assert_true(f->r.exhaustive.n_combinations >= 4 * 7 * 7);
    assert_int_equal(f->r.exhaustive.best.n_threads, 3);
    assert_true(f->r.exhaustive.ratio.hi < 1.02);
    tune_print(null, &f->r, true);
    fclose(null);
    json = tune_json(&f->r);
    assert_int_equal(json_array_size(json_object_get(json, "knobs")), f->r.n);
    assert_non_null(json_object_get(json, "exhaustive"));
    json_decref(json);
}

/* ---- profiles -------------------------------------------------------------------- */

static void make_key(struct tuned_key *key)
{
    memset(key, 0, sizeof *key);
    for (int i = 0; i < TUNED_N_FIELDS; i++)
        snprintf(key->text[i], sizeof key->text[i], "value %d: with # and ' in it", i);
    snprintf(key->text[TUNED_MODEL], sizeof key->text[0], "a model/of mine");
}

static char *temporary(void)
{
    static char path[64];
    int fd;

    snprintf(path, sizeof path, "/tmp/test_tune.XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

static void make_profile(struct tuned *t, const struct fixture *f)
{
    memset(t, 0, sizeof *t);
    make_key(&t->key);
    snprintf(t->made, sizeof t->made, "2026-01-02T03:04:05Z");
    t->setup = f->r.chosen;
}

static void a_profile_reads_back(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.02, .effect = 1, .open_s = 0.2, .seed = 1};
    struct tuned there, here;
    struct err err = ERR_INIT;
    char *path = temporary(), why[256];

    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
    make_profile(&there, f);
    assert_int_equal(tuned_save(path, &there, &f->r, &err), ST_OK);
    assert_int_equal(tuned_load(&here, path, &err), ST_OK);
    assert_string_equal(here.made, there.made);
    for (int i = 0; i < TUNED_N_FIELDS; i++)
        assert_string_equal(here.key.text[i], there.key.text[i]);
    for (int k = 0; k < TUNE_N_KNOBS; k++)
        for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
            assert_int_equal(
                tune_get(&here.setup, (enum tune_knob)k, (enum kern_format)fmt),
                tune_get(&there.setup, (enum tune_knob)k, (enum kern_format)fmt));
    assert_true(tuned_key_fits(&here.key, &there.key, why, sizeof why));
    for (int i = 0; i < TUNED_N_FIELDS; i++) {
        struct tuned_key other = there.key;

        snprintf(other.text[i], sizeof other.text[i], "something else");
        assert_int_equal(tuned_key_fits(&here.key, &other, why, sizeof why),
                         i == TUNED_MODEL);
        if (i != TUNED_MODEL)
            assert_non_null(strstr(why, "something else"));
    }
    unlink(path);
}

/* The file at path with its first `from` replaced. */
static void edit(const char *path, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    FILE *f = fopen(path, "w");

    assert_non_null(at);
    fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    fclose(f);
}

static void a_spoiled_profile_is_refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } edits[] = {
        {"threads: 2", "threads: 0", "threads"},
        {"threads: 2", "threads: many", "threads"},
        {"threads: 2", "threads: [1, 2]", "line"},
        {"chunks: 8", "chunks: 9999999999", "chunks"},
        {"batch: 64", "batch: 1000000", "batch"},
        {"placement: spread", "placement: none", "placement"},
        {"weights: packed", "weights: glued", "packed, mmap, memory"},
        {"pages: 2m", "pages: 1g", "1g"},
        {"name: q4_K", "name: q4_Q", "q4_Q"},
        {"name: q4_K", "name: q6_K", "twice"},
        {"ahead: 4096", "ahead: -1", "ahead"},
        {"ahead: 4096", "ahead: 1048577", "ahead"},
        {"level: best", "level: avx1024", "avx1024"},
        {"version: 1", "version: 2", "tune again"},
        {"  cpu:", "  cqu:", "cqu"},
        {"  pages: 2m\n", "", "pages"},
        {"choices:", "choice:", "choices"},
        {"version: 1", "version: 1\nmore: 1", "more"},
        {"key:", "key: [", ""},
    };
    struct fixture *f = *state;
    struct tuned t;
    struct err err = ERR_INIT;
    char *path = temporary(), text[8192];
    FILE *file;
    size_t n;

    f->p.budget_s = 0.1; /* nothing but defaults */
    struct invented v = {.open_s = 0.2, .seed = 1};
    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
    make_profile(&t, f);
    assert_int_equal(tuned_save(path, &t, &f->r, &err), ST_OK);
    file = fopen(path, "r");
    n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        edit(path, text, edits[i].from, edits[i].to);
        err_clear(&err);
        if (tuned_load(&t, path, &err) != ST_INPUT || !strstr(err.msg, edits[i].says) ||
            !strstr(err.msg, path))
            fail_msg("'%s' as '%s': %s", edits[i].from, edits[i].to, err.msg);
    }
    /* Cut anywhere it is refused, or complete but for formats. */
    for (size_t len = 0; len < n; len++) {
        file = fopen(path, "w");
        fwrite(text, 1, len, file);
        fclose(file);
        err_clear(&err);
        if (tuned_load(&t, path, &err))
            assert_true(*err.msg);
    }
    unlink(path);
    err_clear(&err);
    assert_int_equal(tuned_load(&t, path, &err), ST_IO);
}

/* ---- a real model ------------------------------------------------------------------
 */

#define N_TOKENS 12

static const struct synth_shape small = {.name = "small",
                                         .arch = "llama",
                                         .n_layers = 2,
                                         .n_embd = 256,
                                         .n_ff = 512,
                                         .n_heads = 4,
                                         .n_kv_heads = 1,
                                         .head_dim = 40,
                                         .n_vocab = 1013,
                                         .n_ctx_train = 64,
                                         .rope_base = 10000,
                                         .norm_eps = 1e-5f};

/* Mapped or packed, for up to 3 threads and passes of 8 tokens. */
static struct slm *open_model(char *path, enum weights_residency residency)
{
    struct slm_params p = slm_params_default();
    struct synth_plan *plan;
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (synth_plan_make(&plan, &small, QUANTMIX_Q4_K_M, 3, &err) ||
        synth_write_file(plan, path, NULL, NULL, &err))
        fail_msg("%s", err.msg);
    synth_plan_free(plan);
    p.path = path;
    p.residency = residency;
    p.n_threads = 3;
    p.n_ctx = 32;
    p.n_batch = 8;
    if (slm_open(&m, &p, &err) ||
        weights_preload(slm_weights(m), slm_team(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Logits after N_TOKENS tokens in passes, and one more. */
static void logits_of(struct slm *m, float *out)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    int32_t tokens[N_TOKENS + 1];
    struct err err = ERR_INIT;

    for (int i = 0; i <= N_TOKENS; i++)
        tokens[i] = (1 + 37 * i) % 1013;
    slm_truncate(m, 0);
    assert_int_equal(slm_eval(m, tokens, N_TOKENS, SLM_LOGITS_LAST, &err), ST_OK);
    memcpy(out, slm_logits(m, 0), n_vocab * sizeof *out);
    assert_int_equal(slm_eval(m, tokens + N_TOKENS, 1, SLM_LOGITS_LAST, &err), ST_OK);
    memcpy(out + n_vocab, slm_logits(m, 0), n_vocab * sizeof *out);
}

/* Whatever stands in a profile, the model says the same. */
static void same_logits_under_a_profile(void **state)
{
    struct fixture *f = *state;
    char path[64], *profile;
    float *want, *have;
    struct err err = ERR_INIT;
    struct slm *m;
    size_t n;

    snprintf(path, sizeof path, "%s", temporary());
    m = open_model(path, WEIGHTS_PACKED);
    n = 2 * (size_t)slm_info(m)->n_vocab;
    want = calloc(n, sizeof *want);
    have = calloc(n, sizeof *have);
    logits_of(m, want);
    profile = temporary();
    for (int i = 0; i < KERN_N_ISA; i++) {
        struct invented v = {.open_s = 0.2, .seed = 1};
        double error = 0, power = 0;
        struct tuned t;

        f->p.budget_s = 0.1;
        assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
        make_profile(&t, f);
        t.setup.n_threads = 1 + i % 3;
        t.setup.n_threads_prefill = 3 - i % 3;
        t.setup.tuning.chunks_decode = 1 + 5 * i;
        t.setup.tuning.chunks_prefill = 1 + i;
        t.setup.tuning.n_batch = 1 + i;
        for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
            t.setup.tuning.ahead[fmt] = 64u << i;
            t.setup.tuning.isa_mask[fmt] = tune_level_mask(i);
            t.setup.tuning.isa_mask_prefill[fmt] = tune_level_mask(KERN_N_ISA - 1 - i);
        }
        if (tuned_save(profile, &t, &f->r, &err) || tuned_load(&t, profile, &err) ||
            slm_tune(m, t.setup.n_threads, t.setup.n_threads_prefill, &t.setup.tuning,
                     &err))
            fail_msg("%s", err.msg);
        assert_int_equal(t.setup.tuning.isa_mask[KERN_FMT_q4_K], tune_level_mask(i));
        logits_of(m, have);
        for (size_t k = 0; k < n; k++) {
            error += pow((double)have[k] - (double)want[k], 2);
            power += pow((double)want[k], 2);
        }
        if (!(error <= 1e-5 * power && power > 0))
            fail_msg("profile %d: NMSE %g", i, error / power);
    }
    free(want);
    free(have);
    slm_close(m);
    unlink(path);
    unlink(profile);
}

/* Portable code instead of the machine's best loses; the model goes on as before. */
static void a_slower_profile_is_seen_when_loaded(void **state)
{
    const int cpus[3] = {sched_getcpu(), sched_getcpu(), sched_getcpu()};
    struct tuned_side sides[2] = {{1, 1, NULL, slm_tuning_default()},
                                  {1, 1, NULL, slm_tuning_default()}};
    const int32_t token = 1;
    struct err err = ERR_INIT;
    char path[64], note[320] = "";
    bool slower = false;
    struct slm *m;

    (void)state;
    if (isa_usable() == 1)
        skip();
    snprintf(path, sizeof path, "%s", temporary());
    m = open_model(path, WEIGHTS_MMAP);
    assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        sides[1].tuning.isa_mask[fmt] = sides[1].tuning.isa_mask_prefill[fmt] = 1;
    assert_int_equal(
        tuned_check(m, sides, 0, TUNE_BOTH, &slower, note, sizeof note, &err), ST_OK);
    assert_true(slower);
    assert_non_null(strstr(note, "tune again"));
    assert_int_equal(slm_n_past(m), 1);
    /* On other CPUs, or on the same twice: it moves there and back. */
    sides[1] = sides[0];
    sides[1].cpus = cpus;
    assert_int_equal(
        tuned_check(m, sides, 0, TUNE_DECODE, &slower, note, sizeof note, &err), ST_OK);
    assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
    slm_close(m);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_are_mapped_where_that_is_faster, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(equal_settings_stay_the_default, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_spoiled_phase_takes_choices_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_budget_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interruption_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(exhaustive_search_agrees, setup, teardown),
        cmocka_unit_test_setup_teardown(a_profile_reads_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_spoiled_profile_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(same_logits_under_a_profile, setup, teardown),
        cmocka_unit_test(a_slower_profile_is_seen_when_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
