/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_end.c - everything ends at once: what ran, what was dropped, what
 * waits; each reader learns it once, and nothing is left
 */
#include "tests/harness/serve/scheduler/served_check.h"

enum { N_REQUESTS = 7, N_PAGES = 4, MAX_TOKENS = 600 };

struct ended {
    struct served d;
    struct scheduler *s;
    struct completion *c[N_REQUESTS];
    struct one {
        struct ended *all;
        int n_wakes_over, n_read; /* wakes after its end; tokens */
        int i;
    } one[N_REQUESTS];
    int n_running, n_put_back, n_waiting; /* when it was stopped, */
    uint64_t n_steps;                     /* in this step; 0: before the first one */
};

static void wake(void *arg)
{
    struct one *o = arg;
    struct completion *c = o->all->c[o->i];
    struct completion_piece piece;

    while (completion_read(c, &piece))
        o->n_read++;
    o->n_wakes_over += completion_end(c) != COMPLETION_RUNS;
}

/* More requests than sequences, and fewer pages than those that run come to need. */
static void submit_all(struct ended *e)
{
    int32_t prompt[40];

    served_open(&e->d, &SERVED_PLAIN, 3, 1000, N_PAGES);
    e->s = served_scheduler(&e->d, N_REQUESTS, true);
    for (int i = 0; i < N_REQUESTS; i++) {
        struct completion_params p = served_params(prompt, 40, MAX_TOKENS);

        served_prompt(prompt, 40, (uint64_t)i);
        e->one[i] = (struct one){.all = e, .i = i};
        p.client = (uint64_t)i % 2;
        p.wake = wake;
        p.arg = &e->one[i];
        e->c[i] = served_submit(e->s, &p);
    }
}

/* All of them ended in this way, once, and the model is as if nobody had been there. */
static void check_all(struct ended *e, enum completion_end end, const char *why)
{
    struct scheduler_stats stats;

    scheduler_read_stats(e->s, &stats);
    assert_int_equal(stats.n_running + stats.n_waiting, 0);
    assert_int_equal(e->s->n_running + e->s->n_waiting + e->s->n_put_back, 0);
    assert_null(e->s->over);
    assert_null(fair_queue_each(&e->s->queue, NULL));
    for (int seq = 0; seq < e->s->n_sequences; seq++)
        assert_null(e->s->running[seq]);
    for (uint64_t client = 0; client < 2; client++)
        assert_false(fair_queue_waits(&e->s->queue, client));
    assert_int_equal(stats.n_cancelled, end == COMPLETION_ABORTED ? N_REQUESTS : 0);
    assert_int_equal(stats.n_failed, end == COMPLETION_FAILED ? N_REQUESTS : 0);
    assert_int_equal(stats.n_completed, 0);
    assert_int_equal(stats.n_steps, e->n_steps); /* nothing more is computed */
    for (int i = 0; i < N_REQUESTS; i++) {
        struct completion_usage usage;

        assert_int_equal(completion_end(e->c[i]), end);
        assert_int_equal(e->one[i].n_wakes_over, 1);
        completion_read_usage(e->c[i], &usage);
        assert_int_equal(usage.n_generated, e->one[i].n_read);
        assert_string_equal(completion_error(e->c[i]), why);
        assert_int_equal(atomic_load(&e->c[i]->n_owners), 1); /* the reader */
        completion_close(e->c[i]);
    }
}

static void close_all(struct ended *e)
{
    scheduler_close(e->s);
    served_check_idle(&e->d);
    served_close(&e->d);
}

/* Stops as soon as one was dropped. */
static void stop_after_a_drop(void *arg)
{
    struct ended *e = arg;

    if (e->s->n_put_back == 0 || e->n_running)
        return;
    e->n_running = e->s->n_running;
    e->n_put_back = e->s->n_put_back;
    e->n_waiting = e->s->n_waiting;
    e->n_steps = e->s->stats.n_steps + 1;
    scheduler_stop(e->s, false);
}

static void cancelled_in_the_middle(void **state)
{
    static struct ended e;
    struct err err = ERR_INIT;

    (void)state;
    e = (struct ended){.n_running = 0};
    submit_all(&e);
    slm_set_eval_hook(e.d.m, stop_after_a_drop, &e);
    assert_int_equal(scheduler_run(e.s, &err), ST_OK);
    assert_true(e.n_running > 0 && e.n_put_back > 0 && e.n_waiting > 0);
    check_all(&e, COMPLETION_ABORTED, "");
    close_all(&e);
}

/* The engine fails with some in sequences, as scheduler_run() ends them. */
static void failed_in_the_middle(void **state)
{
    static struct ended e;
    struct err why = ERR_INIT;

    (void)state;
    e = (struct ended){.n_running = 0};
    submit_all(&e);
    err_set(&why, ST_IO, "the disk is gone");
    pthread_mutex_lock(&e.s->mu);
    scheduler_admit(e.s);
    assert_true(e.s->n_running > 1);
    scheduler_end_all(e.s, COMPLETION_FAILED, &why);
    scheduler_count(e.s);
    pthread_mutex_unlock(&e.s->mu);
    assert_non_null(e.s->over);
    served_run(e.s); /* wakes the readers, and finds no work */
    check_all(&e, COMPLETION_FAILED, "the disk is gone");
    close_all(&e);
}

/* A scheduler that never ran is closed: whoever waited is woken once. */
static void closed_before_it_ran(void **state)
{
    static struct ended e;

    (void)state;
    e = (struct ended){.n_running = 0};
    submit_all(&e);
    scheduler_close(e.s);
    for (int i = 0; i < N_REQUESTS; i++) {
        assert_int_equal(completion_end(e.c[i]), COMPLETION_ABORTED);
        assert_int_equal(e.one[i].n_wakes_over, 1);
        completion_close(e.c[i]);
    }
    served_check_idle(&e.d);
    served_close(&e.d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cancelled_in_the_middle),
                                       cmocka_unit_test(failed_in_the_middle),
                                       cmocka_unit_test(closed_before_it_ran)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
