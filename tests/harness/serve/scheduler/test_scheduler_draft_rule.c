/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_draft_rule.c - drafts are made where they pay, by costs that are given
 */
#include "tests/harness/serve/scheduler/served_drafts.h"

static struct scheduler *open_ruled(struct served *d, const struct served_setting *set)
{
    struct scheduler_params params;
    struct scheduler *s;

    open_served(d, set);
    s = open_scheduler(d, set, true);
    params = s->params;
    params.always_drafts = false;
    s->params = params;
    return s;
}

static void close_ruled(struct served *d, struct scheduler *s)
{
    scheduler_close(s);
    tokenizer_close(d->tok);
    slm_close(d->draft);
    slm_close(d->m);
}

/* Before the first request, and nothing is left of what was computed for it. */
static void test_times_are_known(void **state)
{
    struct served_setting set = {
        .path = STORIES, .draft = STORIES, .drafts = DRAFTS_MODEL};
    struct scheduler *s;
    struct served d;

    (void)state;
    open_served(&d, &set);
    s = open_scheduler(&d, &set, false);
    for (int w = 1; w <= 8; w *= 2) {
        assert_true(s->cost.classes[w - 1].lasts);
        assert_true(step_cost_s(&s->cost, w) > 0);
    }
    assert_true(step_cost_s(&s->guess_cost, 1) > 0);
    assert_true(step_cost_s(&s->guess_cost, 64) >= step_cost_s(&s->guess_cost, 1));
    scheduler_close(s);
    served_check_idle_model(d.m);
    served_check_idle_model(d.draft);
    tokenizer_close(d.tok);
    slm_close(d.draft);
    slm_close(d.m);
}

/* What a draft model does for an answer of n_text tokens in the next step, where the
 * model takes 1 s for a token and gained_s were gained so far: > 0: it drafts, < 0: it
 * reads. Its text has 245 tokens, all unread, and it leaves out *n_skipped; it
 * reads one in read_s, and its guesses are trusted at first. */
static int planned_by_model(int n_text, double read_s, double gained_s, int *n_skipped)
{
    const struct served_setting set = {
        .path = STORIES, .draft = STORIES, .drafts = DRAFTS_MODEL};
    struct completion *c;
    struct served d;
    struct scheduler *s = open_ruled(&d, &set);
    int32_t prompt[300];
    int planned;

    for (int i = 0; i < 3 * 32; i++) {
        const int w = 1 + i / 3;

        step_cost_add(&s->cost, w, 1 + 0.02 * (w - 1));
        step_cost_add(&s->guess_cost, w, 0.1 + read_s * w);
    }
    s->gained_s = gained_s;
    for (int i = 0; i < 245; i++)
        prompt[i] = 10 + i;
    const struct completion_params p = served_params(prompt, 245, n_text);

    c = served_submit(s, &p);
    c->seq = 0;
    c->n_done = c->n - 1;
    speculate_rates_follow(&c->rates, &s->rates);
    s->part_of[0] = c;
    s->parts[0] = (struct slm_part){.seq = 0, .n = 1};
    s->n_parts = 1;
    c->n_draft = c->n_read = 0;
    scheduler_plan_drafts(s, 1);
    assert_true(!c->n_draft || !c->n_read);
    planned = c->n_draft - c->n_read;
    *n_skipped = c->n_skipped;
    c->n_done = 0;
    c->seq = -1;
    completion_close(c);
    close_ruled(&d, s);
    return planned;
}

/* A long text is read where the rest of an answer pays for it, in chunks of a pass; and
 * where no more can be lost than was gained, or than is allowed. Else its end is read,
 * under the same limit of loss. */
static void test_reading_rule(void **state)
{
    int skipped;

    (void)state;
    assert_int_equal(planned_by_model(500, 0.002, 0, &skipped), -64);
    assert_int_equal(skipped, 0);
    assert_int_equal(planned_by_model(3, 0.1, 100, &skipped), 0);
    assert_true(planned_by_model(500, 0.04, 0, &skipped) > 0);
    assert_int_equal(skipped, 245 - 32);
    assert_int_equal(planned_by_model(500, 0.04, 100, &skipped), -64);
    assert_int_equal(skipped, 0);
    assert_int_equal(planned_by_model(500, 0.2, 0, &skipped), 0);
    assert_int_equal(planned_by_model(500, 0.002, -8, &skipped), 0);
    /* guesses of 0.6 s pay where four of five are right, and not where one of two is */
    assert_int_equal(planned_by_model(500, 0.1, 100, &skipped), -64);
    /* what would take half of the answer's time */
    assert_true(planned_by_model(500, 0.5, 1000, &skipped) != -64);
    assert_int_equal(skipped, 245 - 32);
}

/* ---- whether they pay ------------------------------------------------------------ */

/* Tokens that n users draft in a step, where n tokens take 1 s, and one more takes
 * more_s of that. */
static int planned(int n, double more_s, double rate)
{
    const struct served_setting set = {.path = MTP_MODEL, .drafts = DRAFTS_MTP};
    struct completion *c[N_SEQUENCES];
    struct served d;
    struct scheduler *s = open_ruled(&d, &set);
    int32_t prompt[300];
    int n_planned = 0;

    s->guess_ratio = 0;
    for (int i = 3 * n; i < 3 * 33; i++)
        step_cost_add(&s->cost, i / 3, 1 + more_s * (i / 3 - n));
    for (int i = 0; i < n; i++) {
        const struct completion_params p =
            served_params(prompt, fill_prompt(prompt, i, &set), N_TEXT);

        c[i] = served_submit(s, &p);
        c[i]->n_done = c[i]->n - 1;
        c[i]->rates.rate[0] = rate;
        s->part_of[i] = c[i];
        s->parts[i] = (struct slm_part){.seq = i, .n = 1};
    }
    s->n_parts = n;
    scheduler_plan_drafts(s, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(s->parts[i].n, 1 + c[i]->n_draft);
        n_planned += c[i]->n_draft;
        c[i]->n_done = 0;
        completion_close(c[i]);
    }
    close_ruled(&d, s);
    return n_planned;
}

static void test_rule(void **state)
{
    (void)state;
    /* a token more costs little: the likelier, the more; several share the room */
    assert_int_equal(planned(1, 0.02, 0.95), SPECULATE_MAX);
    assert_in_range(planned(1, 0.02, 0.5), 1, 4);
    assert_int_equal(planned(3, 0.01, 0.95), SCHEDULER_MAX_DRAFTED);
    /* as much as it gains, or more: none */
    assert_int_equal(planned(1, 1, 0.95), 0);
    assert_int_equal(planned(3, 0.34, 0.95), 0);
    assert_int_equal(planned(1, 0.3, 0.1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_known),
        cmocka_unit_test(test_reading_rule),
        cmocka_unit_test(test_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
