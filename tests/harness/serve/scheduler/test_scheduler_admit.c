/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_admit.c - who is admitted with so many pages, and who has to wait
 */
#include "tests/harness/serve/scheduler/served_check.h"

enum { N_CTX = 900, MAX_REQUESTS = 7 };

struct scene {
    const char *what;
    int n_sequences, n_pages;
    bool keeps;
    double max_itl_s;
    struct {
        int n_prompt, n_answer; /* tokens */
        uint64_t client;
        int step;      /* in which it comes */
        uint64_t text; /* prompts of equal ones are equal; 0: its own */
    } requests[MAX_REQUESTS];
    int n_together; /* that ran in one step, at most */
    int n_dropped;
    int order[MAX_REQUESTS]; /* in which they end */
};

static const struct scene SCENES[] = {
    {.what = "who finds no pages waits, and drops nobody",
     .n_sequences = 3,
     .n_pages = 4,
     .requests = {{300, 100, 1, 0, 0}, {300, 100, 2, 0, 0}, {300, 100, 3, 0, 0}},
     .n_together = 2,
     .order = {0, 1, 2}},
    {.what = "the first page of an answer is counted",
     .n_sequences = 3,
     .n_pages = 4,
     .requests = {{200, 200, 1, 0, 0}, {200, 200, 2, 0, 0}, {200, 200, 3, 0, 0}},
     .n_together = 2,
     .order = {0, 1, 2}},
    {.what = "more of an answer is not",
     .n_sequences = 3,
     .n_pages = 4,
     .requests = {{100, 450, 1, 0, 0}, {100, 150, 2, 0, 0}, {100, 140, 3, 0, 0}},
     .n_together = 3,
     .order = {2, 1, 0}},
    {.what = "what was generated is not counted again",
     .n_sequences = 2,
     .n_pages = 4,
     .requests = {{200, 200, 1, 0, 0}, {200, 150, 2, 150, 0}},
     .n_together = 2,
     .order = {0, 1}},
    {.what = "the last token takes no position",
     .n_sequences = 2,
     .n_pages = 2,
     .requests = {{200, 57, 1, 0, 0}, {200, 57, 2, 0, 0}},
     .n_together = 2,
     .order = {0, 1}},
    {.what = "a position more takes a page more",
     .n_sequences = 2,
     .n_pages = 2,
     .requests = {{200, 58, 1, 0, 0}, {200, 57, 2, 0, 0}},
     .n_together = 1,
     .order = {0, 1}},
    {.what = "what is kept gives its pages up",
     .n_sequences = 3,
     .n_pages = 4,
     .keeps = true,
     .requests = {{400, 20, 1, 0, 0}, {300, 100, 2, 20, 0}, {300, 80, 3, 20, 0}},
     .n_together = 2,
     .order = {0, 2, 1}},
    {.what = "next is the client for whom less was computed",
     .n_sequences = 1,
     .n_pages = 4,
     .requests = {{30, 40, 1, 0, 0},
                  {30, 40, 1, 0, 0},
                  {10, 10, 2, 0, 0},
                  {10, 10, 2, 0, 0},
                  {10, 10, 2, 0, 0}},
     .n_together = 1,
     .order = {0, 2, 3, 4, 1}},
    {.what = "what was dropped is charged once",
     .n_sequences = 2,
     .n_pages = 4,
     .requests = {{200, 400, 1, 0, 0},
                  {100, 500, 2, 0, 0},
                  {10, 10, 2, 0, 0},
                  {10, 10, 2, 0, 0},
                  {10, 10, 1, 0, 0}},
     .n_together = 2,
     .n_dropped = 1,
     .order = {0, 2, 3, 4, 1}},
    {.what = "what was dropped is computed again in chunks, as prompts are",
     .n_sequences = 2,
     .n_pages = 4,
     .max_itl_s = 1e-9,
     .requests = {{200, 400, 1, 0, 0}, {100, 500, 2, 0, 0}, {10, 150, 2, 0, 0}},
     .n_together = 2,
     .n_dropped = 1,
     .order = {0, 2, 1}},
    /* beside one that runs all the time */
    {.what = "what was kept is charged to nobody",
     .n_sequences = 2,
     .n_pages = 16,
     .keeps = true,
     .requests = {{10, 300, 3, 0, 0},
                  {200, 10, 1, 0, 7},
                  {200, 10, 2, 0, 0},
                  {200, 10, 1, 0, 7},
                  {100, 10, 2, 0, 0},
                  {200, 10, 1, 0, 7},
                  {100, 10, 2, 0, 0}},
     .n_together = 2,
     .order = {1, 2, 3, 4, 5, 6, 0}},
};

struct play {
    const struct scene *scene;
    struct served d;
    struct scheduler *s;
    struct completion *c[MAX_REQUESTS];
    int32_t prompts[MAX_REQUESTS][N_CTX];
    int n_requests, n_steps, n_together, n_over;
    bool over[MAX_REQUESTS];
    int order[MAX_REQUESTS];
};

static void note_ends(struct play *play)
{
    struct completion_piece piece;

    for (int i = 0; i < play->n_requests; i++) {
        if (!play->c[i] || play->over[i])
            continue;
        while (completion_read(play->c[i], &piece))
            ;
        if (completion_end(play->c[i]) == COMPLETION_RUNS)
            continue;
        play->over[i] = true;
        play->order[play->n_over++] = i;
    }
}

/* Those that come in this step; the last of all lets the scheduler end. */
static void come(struct play *play, int step)
{
    int n_here = 0;

    for (int i = 0; i < play->n_requests; i++) {
        const int n_prompt = play->scene->requests[i].n_prompt;
        struct completion_params p = served_params(play->prompts[i], n_prompt,
                                                   play->scene->requests[i].n_answer);

        if (!play->c[i] && play->scene->requests[i].step == step) {
            const uint64_t text = play->scene->requests[i].text;

            served_prompt(play->prompts[i], n_prompt, text ? text : 100 + (uint64_t)i);
            p.client = play->scene->requests[i].client;
            play->c[i] = served_submit(play->s, &p);
        }
        n_here += play->c[i] != NULL;
    }
    if (n_here == play->n_requests)
        scheduler_stop(play->s, true);
}

static void step(void *arg)
{
    struct play *play = arg;

    served_check_step(&play->d, play->s);
    note_ends(play);
    if (play->s->n_running > play->n_together)
        play->n_together = play->s->n_running;
    come(play, ++play->n_steps);
}

static void check_scene(const struct scene *scene)
{
    struct play play = {.scene = scene};
    struct scheduler_stats stats;
    struct err err = ERR_INIT;

    while (play.n_requests < MAX_REQUESTS &&
           scene->requests[play.n_requests].n_prompt > 0)
        play.n_requests++;
    served_open(&play.d, &SERVED_PLAIN, scene->n_sequences, N_CTX, scene->n_pages);
    play.s = served_scheduler(&play.d, MAX_REQUESTS, scene->keeps);
    play.s->params.max_itl_s = scene->max_itl_s;
    come(&play, 0);
    slm_set_eval_hook(play.d.m, step, &play);
    if (scheduler_run(play.s, &err))
        fail_msg("%s", err.msg);
    slm_set_eval_hook(play.d.m, NULL, NULL);
    note_ends(&play);
    scheduler_read_stats(play.s, &stats);
    print_message("%s\n", scene->what);
    assert_int_equal(play.n_over, play.n_requests);
    assert_int_equal(play.n_together, scene->n_together);
    assert_int_equal(stats.n_preempted, scene->n_dropped);
    for (int i = 0; i < play.n_requests; i++) {
        assert_int_equal(play.order[i], scene->order[i]);
        assert_int_equal(completion_end(play.c[i]), COMPLETION_LENGTH);
        completion_close(play.c[i]);
    }
    scheduler_close(play.s);
    served_check_idle(&play.d);
    served_close(&play.d);
}

static void scenes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES; i++)
        check_scene(&SCENES[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
