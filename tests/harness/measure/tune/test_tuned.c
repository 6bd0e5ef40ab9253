/* SPDX-License-Identifier: MIT
 *
 * test_tuned.c - profiles: as files, for a model's logits, and when they are loaded
 */
#include "tests/support/nmse.h"
#include "tests/support/synth_file.h"
#include "tests/support/tune_machine.h"

#include <sched.h>

#include "harness/measure/tune/tuned_use.h"

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
    for (int k = 0; k < TUNE_N_SETTINGS; k++)
        for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
            assert_int_equal(
                tune_get(&here.setup, (enum tune_setting)k, (enum kern_format)fmt),
                tune_get(&there.setup, (enum tune_setting)k, (enum kern_format)fmt));
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

/* Older ones have a distance alone, and its hint was T1. */
static void an_older_profile_reads(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.open_s = 0.2, .seed = 1};
    char *path = temporary(), text[8192];
    struct err err = ERR_INIT;
    struct tuned t;
    FILE *file;

    f->p.budget_s = 0.1;
    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
    make_profile(&t, f);
    assert_int_equal(tuned_save(path, &t, &f->r, &err), ST_OK);
    file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    edit(path, text, "prefetch: off", "ahead: 8192");
    assert_int_equal(tuned_load(&t, path, &err), ST_OK);
    assert_int_equal(t.setup.tuning.prefetch[KERN_FMT_q4_K].distance, 8192);
    assert_int_equal(t.setup.tuning.prefetch[KERN_FMT_q4_K].hint, KERN_PREFETCH_T1);
    unlink(path);
}

static void a_spoiled_profile_is_refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } edits[] = {
        {"threads: 2", "threads: 0", "threads"},
        {"threads: 2", "threads: many", "threads"},
        {"threads: 2", "threads: [1, 2]", "line"},
        {"chunks: 3", "chunks: 9999999999", "chunks"},
        {"batch: 64", "batch: 1000000", "batch"},
        {"placement: spread", "placement: none", "placement"},
        {"weights: packed", "weights: glued", "packed, mmap, memory"},
        {"weights: packed", "weights: stream", "packed, mmap, memory"},
        {"pages: 2m", "pages: 1g", "1g"},
        {"name: q4_K", "name: q4_Q", "q4_Q"},
        {"name: q4_K", "name: q6_K", "twice"},
        {"prefetch: off", "prefetch: T0 0", "T0 0"},
        {"prefetch: off", "prefetch: T0 1048577", "T0 1048577"},
        {"prefetch: off", "prefetch: T2 4096", "T2 4096"},
        {"prefetch: off", "prefetch: 4096", "off nor a hint"},
        {"panels: 4", "panels: 3", "not one of 1, 2, 4"},
        {"prefetch: off", "ahead: -1", "ahead"},
        {"prefetch: off", "ahead: 1048577", "ahead"},
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

/* ---- a real model --------------------------------------------------------------- */

#define N_TOKENS 12

/* Mapped or packed, for up to 3 threads and passes of 8 tokens. */
static struct slm *open_model(char *path, enum weights_residency residency)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    write_synth_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    p.path = path;
    p.residency = residency;
    p.n_threads = 3;
    p.n_ctx = 32;
    p.n_batch = 8;
    if (slm_open(&m, &p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
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
        struct tuned t;

        f->p.budget_s = 0.1;
        assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
        make_profile(&t, f);
        t.setup.n_threads = 1 + i % 3;
        t.setup.n_threads_prefill = 3 - i % 3;
        t.setup.tuning.chunks_decode = 1 + 5 * i;
        t.setup.tuning.chunks_prefill = 1 + i;
        t.setup.tuning.n_batch = 1 + i % 8; /* as open_model() has */
        for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
            t.setup.tuning.prefetch[fmt] = (struct kern_prefetch){
                64u << i, (enum kern_prefetch_hint)(i % KERN_N_PREFETCH), 1u << i % 3};
            t.setup.tuning.isa_mask[fmt] = tune_level_mask(i);
            t.setup.tuning.isa_mask_prefill[fmt] = tune_level_mask(KERN_N_ISA - 1 - i);
        }
        if (tuned_save(profile, &t, &f->r, &err) || tuned_load(&t, profile, &err) ||
            slm_tune(m, t.setup.n_threads, t.setup.n_threads_prefill, &t.setup.tuning,
                     &err))
            fail_msg("%s", err.msg);
        assert_int_equal(t.setup.tuning.isa_mask[KERN_FMT_q4_K], tune_level_mask(i));
        assert_int_equal(t.setup.tuning.prefetch[KERN_FMT_q4_K].n_panels, 1 << i % 3);
        logits_of(m, have);
        if (!(nmse(have, want, n) <= 1e-5))
            fail_msg("profile %d: NMSE %g", i, nmse(have, want, n));
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
    struct tuned_side sides[2] = {{1, 1, NULL, slm_tuning_default(), 0},
                                  {1, 1, NULL, slm_tuning_default(), 0}};
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
        cmocka_unit_test_setup_teardown(a_profile_reads_back, setup, teardown),
        cmocka_unit_test_setup_teardown(an_older_profile_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(a_spoiled_profile_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(same_logits_under_a_profile, setup, teardown),
        cmocka_unit_test(a_slower_profile_is_seen_when_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
