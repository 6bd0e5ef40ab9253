/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_drafts.c - completions that draft: every text is what it is without
 * drafts, whoever runs at the same time, is dropped or begins alike; drafts save steps
 * where they are right
 */
#include "tests/harness/serve/scheduler/served_drafts.h"
#include "tests/support/mtp_image.h"

#define OTHER_MODEL SLM_SOURCE_DIR "/../shared/golden/models/zoo/glm4moe.gguf"
#define SHAKESPEARE TEST_DATA "models/shakespeare3M-f16.gguf"

/* ---- a run ----------------------------------------------------------------------- */

struct outcome {
    struct served_text text[N_USERS];
    struct scheduler_stats stats;
};

/* User i's request: greedy, drawn, with penalties, with a stop string, ... */
static struct completion_params request(const int32_t *prompt, int n, int i,
                                        const struct served_setting *set)
{
    static const char *const stops[] = {"ee", "qu"};
    struct completion_params p = served_params(prompt, n, set->n_text);

    p.client = (uint64_t)i;
    p.grammar = set->grammar;
    p.begins_text = set->grammar != NULL;
    p.sampling.seed = (uint64_t)i;
    p.sampling.temperature = i % 3 == 1 ? 0.8F : 0;
    if (set->plain)
        return p;
    p.sampling.repeat_penalty = i % 3 == 2 ? 1.2F : 1;
    p.sampling.repeat_window = 32;
    p.frequency_penalty = i % 4 == 3 ? 0.3F : 0;
    p.n_logprobs = i % 2 ? 2 : -1;
    p.ignore_end = i % 2;
    if (i % 4 == 0) {
        p.stops = stops;
        p.n_stops = 2;
    }
    return p;
}

struct checked {
    struct served *d;
    struct scheduler *s;
    bool skips;
};

static void check_step(void *arg)
{
    const struct checked *k = arg;

    served_check_step(k->d, k->s);
    for (int seq = 0; k->skips && seq < N_SEQUENCES; seq++) {
        struct completion *c = k->s->running[seq];

        if (c && c->n > 20 && !slm_seq_n_past(k->d->draft, seq))
            c->n_skipped = c->n - 12;
    }
}

static void run(const struct served_setting *set, struct outcome *out)
{
    struct completion *c[N_USERS];
    struct served d;
    struct checked checked = {.d = &d,
                              .skips = set->skips && set->drafts == DRAFTS_MODEL};
    struct scheduler *s;

    open_served(&d, set);
    checked.s = s = open_scheduler(&d, set, true);
    slm_set_eval_hook(d.m, check_step, &checked);
    for (int i = 0; i < set->n_users; i++) {
        int32_t prompt[300];
        const int n = fill_prompt(prompt, i, set);
        const struct completion_params p = request(prompt, n, i, set);

        c[i] = served_submit(s, &p);
    }
    served_run(s);
    for (int i = 0; i < set->n_users; i++) {
        served_read(c[i], &out->text[i]);
        completion_close(c[i]);
    }
    scheduler_read_stats(s, &out->stats);
    scheduler_close(s);
    served_check_idle(&d);
    tokenizer_close(d.tok);
    slm_close(d.draft);
    slm_close(d.m);
}

/* ---- texts ----------------------------------------------------------------------- */

static void check_counts(const struct outcome *o, int n_users)
{
    const struct scheduler_stats *st = &o->stats;
    uint64_t n_drafted = 0, n_accepted = 0, accepted = 0;

    for (int i = 0; i < n_users; i++) {
        n_drafted += (uint64_t)o->text[i].usage.n_drafted;
        n_accepted += (uint64_t)o->text[i].usage.n_accepted;
    }
    for (int k = 0; k < SPECULATE_MAX; k++) {
        accepted += st->accepted_at[k];
        assert_true(st->accepted_at[k] <= st->drafted_at[k]);
        assert_true(!k || st->drafted_at[k] <= st->accepted_at[k - 1]);
    }
    assert_int_equal(n_drafted, st->n_drafted);
    assert_int_equal(n_accepted, accepted);
    assert_true(n_drafted > 0 && n_accepted <= n_drafted);
}

/* The outcome with drafts by lookup, or by a draft model where one is set, whose texts
 * are those without. Weights are F32, with which passes of other widths hardly round
 * otherwise. */
static const struct outcome *compare(struct served_setting set)
{
    static struct outcome plain, drafted;

    set.path = STORIES;
    run(&set, &plain);
    assert_int_equal(plain.stats.n_drafted, 0);
    set.drafts = set.draft ? DRAFTS_MODEL : DRAFTS_LOOKUP;
    run(&set, &drafted);
    for (int i = 0; i < set.n_users; i++) {
        const struct served_text *a = &plain.text[i], *b = &drafted.text[i];

        for (int k = 0; k < a->n && k < b->n; k++)
            if (a->tokens[k] != b->tokens[k])
                fail_msg("user %d: token %d is %d without drafts and %d with them", i,
                         k, (int)a->tokens[k], (int)b->tokens[k]);
        assert_int_equal(a->n, b->n);
        assert_int_equal(a->end, b->end);
        assert_string_equal(a->text, b->text);
        assert_int_equal(a->usage.n_forced, b->usage.n_forced);
    }
    check_counts(&drafted, set.n_users);
    return &drafted;
}

/* How many tokens of user i's text are not those that are drawn after the ones before
 * them, one by one. */
static int count_others(struct slm *m, const struct served_setting *set, int i,
                        const struct served_text *t)
{
    const int n_vocab = slm_info(m)->n_vocab;
    int32_t prompt[300];
    const int n = fill_prompt(prompt, i, set);
    const struct completion_params p = request(prompt, n, i, set);
    struct err err = ERR_INIT;
    struct sampler *s;
    int n_others = 0;

    slm_truncate(m, 0);
    assert_int_equal(sampler_open(&s, &p.sampling, n_vocab, &err), ST_OK);
    for (int k = 0; k < n; k++)
        sampler_accept(s, prompt[k]);
    assert_int_equal(slm_eval(m, prompt, (size_t)n, SLM_LOGITS_LAST, &err), ST_OK);
    for (int k = 0; k < t->n; k++) {
        n_others += sampler_next(s, slm_logits(m, 0)) != t->tokens[k];
        sampler_accept(s, t->tokens[k]);
        assert_int_equal(slm_eval(m, &t->tokens[k], 1, SLM_LOGITS_LAST, &err), ST_OK);
    }
    sampler_close(s);
    return n_others;
}

/* Also a model of eight bits, whose texts part for good after a draw that is
 * all but a tie: with a wrong state or position hardly any draw would be the same. */
static const struct outcome *replay(struct served_setting set, const char *path,
                                    enum session_drafts drafts)
{
    static struct outcome out;
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;

    set.path = p.path = path;
    set.drafts = drafts;
    run(&set, &out);
    check_counts(&out, set.n_users);
    p.n_ctx = N_CTX;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    for (int i = 0; i < set.n_users; i++) {
        const int n_others = count_others(m, &set, i, &out.text[i]);

        if (n_others > 2 + out.text[i].n / 4)
            fail_msg("user %d: %d of %d tokens are not those without drafts", i,
                     n_others, out.text[i].n);
    }
    slm_close(m);
    return &out;
}

static void test_texts_are_the_same(void **state)
{
    struct served_setting set = {.n_users = N_USERS, .n_text = N_TEXT};

    (void)state;
    compare(set);
    set.plain = true;
    replay(set, MTP_MODEL, DRAFTS_MTP);
    replay(set, MTP_MODEL, DRAFTS_LOOKUP);
}

/* Pages run out, and who was dropped is computed again. */
static void test_dropped(void **state)
{
    const struct served_setting set = {
        .n_users = N_USERS, .n_text = 400, .n_pages = 5, .plain = true};

    (void)state;
    /* drawn texts of this length meet draws that are all but ties */
    replay(set, STORIES, DRAFTS_LOOKUP);
    assert_true(replay(set, MTP_MODEL, DRAFTS_MTP)->stats.n_preempted > 0);
}

/* What prompts begin with is computed once; the layer that predicts does without. */
static void test_alike(void **state)
{
    struct served_setting set = {
        .n_users = N_USERS, .n_text = N_TEXT, .n_pages = 5, .alike = true};

    (void)state;
    assert_true(compare(set)->stats.n_cached > 0);
    set.plain = true;
    /* a model with such a layer and without states is not among the tests' own */
    if (!access(OTHER_MODEL, R_OK))
        assert_true(replay(set, OTHER_MODEL, DRAFTS_MTP)->stats.n_cached > 0);
}

static void test_grammar(void **state)
{
    static const char schema[] =
        "{\"type\":\"array\",\"minItems\":6,\"maxItems\":6,\"items\":{"
        "\"enum\":[\"first one\",\"second one\",\"third\"]}}";
    static struct outcome out;
    struct served_setting set = {.n_users = N_USERS, .n_text = 300};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(grammar_from_schema(&set.grammar, schema, strlen(schema), &err),
                     ST_OK);
    assert_true(compare(set)->text[0].usage.n_forced > 0);
    set.draft = STORIES;
    assert_true(compare(set)->text[0].usage.n_forced > 0);
    set.path = MTP_MODEL;
    set.drafts = DRAFTS_MTP;
    set.plain = true;
    run(&set, &out);
    check_counts(&out, N_USERS);
    for (int i = 0; i < N_USERS; i++) {
        int n_items = 0;

        assert_int_equal(out.text[i].end, COMPLETION_STOP);
        for (const char *at = out.text[i].text; (at = strchr(at, ',')); at++)
            n_items++;
        assert_int_equal(n_items, 5);
    }
    grammar_unref(set.grammar);
}

/* ---- draft models ---------------------------------------------------------------- */

/* A model that drafts for itself is right all but always: its sequences are those of
 * the texts, also where prompts begin alike and are shared, or pages run out and texts
 * are computed again. */
static void test_draft_model(void **state)
{
    struct served_setting set = {
        .n_users = N_USERS, .n_text = N_TEXT, .draft = STORIES};
    const struct outcome *o;

    (void)state;
    for (int i = 0; i < 3; i++) {
        set.plain = i > 0;
        set.alike = i == 1;
        set.n_pages = i > 0 ? 5 : 0;
        o = compare(set);
        assert_true(i != 1 || o->stats.n_cached > 0);
        for (int k = 0, n = 0; set.plain && k < N_USERS; k++) {
            n = o->text[k].usage.n_drafted;
            assert_true(n >= N_TEXT / 2 && o->text[k].usage.n_accepted >= n - n / 10);
        }
    }
    /* the end alone, of texts that are dropped and begin alike, too */
    set.skips = true;
    set.alike = true;
    set.n_text = 100;
    o = compare(set);
    assert_true(o->stats.n_cached > 0 && o->stats.accepted_at[0] > 0);
    set.skips = false;
    set.n_text = 400;
    set.alike = false;
    set.draft = SHAKESPEARE;
    set.drafts = DRAFTS_MODEL;
    o = replay(set, STORIES, DRAFTS_MODEL);
    assert_true(o->stats.n_preempted > 0);
    set.draft = MTP_MODEL; /* with states */
    set.n_text = N_TEXT;
    o = replay(set, MTP_MODEL, DRAFTS_MODEL);
    assert_true(o->stats.accepted_at[0] * 10 >= o->stats.drafted_at[0] * 8);
}

/* Its error ends drafts, and no text. */
static void test_draft_model_fails(void **state)
{
    struct served_setting set = {.path = STORIES, .n_users = N_USERS, .n_text = N_TEXT};
    unsigned char *image = (unsigned char *)test_read_file(STORIES, &set.draft_bytes);
    static struct outcome plain, drafted;
    struct err err = ERR_INIT;
    struct gguf *g;
    uint64_t bytes = 0;

    (void)state;
    assert_int_equal(gguf_parse(&g, image, set.draft_bytes, "changed", &err), ST_OK);
    memset(mtp_tensor_in(image, g, "output_norm.weight", &bytes), 0xff, 64);
    gguf_close(g);
    run(&set, &plain);
    set.drafts = DRAFTS_MODEL;
    set.draft_image = image;
    run(&set, &drafted);
    free(image);
    assert_int_equal(drafted.stats.n_drafted, 0);
    assert_int_equal(drafted.stats.n_failed, 0);
    for (int i = 0; i < N_USERS; i++)
        assert_string_equal(drafted.text[i].text, plain.text[i].text);
}

/* ---- what they save -------------------------------------------------------------- */

/* Steps for one token with drafts of a layer that cannot err, and one that does. */
static double steps_per_token(size_t skip, int n_users)
{
    struct served_setting set = {
        .n_users = n_users, .n_text = N_TEXT, .plain = true, .drafts = DRAFTS_MTP};
    static struct outcome out;
    unsigned char *image = mtp_image_make(MTP_MODEL, skip, &set.image_bytes);
    int n = 0;

    set.image = image;
    run(&set, &out);
    check_counts(&out, n_users);
    for (int i = 0; i < n_users; i++)
        n += out.text[i].n;
    free(image);
    return (double)out.stats.n_steps / n;
}

static void test_right_drafts_save_steps(void **state)
{
    (void)state;
    assert_true(steps_per_token(0, 1) < 0.25);
    /* at once: a step has a token of each, and sixteen more at most */
    assert_true(steps_per_token(0, N_SEQUENCES) < 0.15);
    assert_true(steps_per_token(64, N_SEQUENCES) > 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_are_the_same),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_draft_model),
        cmocka_unit_test(test_draft_model_fails),
        cmocka_unit_test(test_right_drafts_save_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
