/* SPDX-License-Identifier: MIT
 *
 * served_check.h - what must be true of a scheduler in each of its steps
 *
 * served_check_step() is for a hook of the engine's, which is called when a step has
 * been planned and nothing of it computed.
 */
#ifndef SLM_TESTS_SERVED_CHECK_H
#define SLM_TESTS_SERVED_CHECK_H

#include "harness/serve/scheduler/scheduler_impl.h"
#include "tests/harness/serve/scheduler/served_model.h"

/* Sequences are those of completions that run, as long as what they have computed;
 * whose are free are empty. Only drafts are run again. */
static inline void served_check_sequences(const struct served *d,
                                          const struct scheduler *s)
{
    int n_running = 0;

    for (int seq = 0; seq < s->n_sequences; seq++) {
        const struct completion *c = s->running[seq];

        n_running += c != NULL;
        assert_int_equal(slm_seq_n_past(d->m, seq), c ? c->n_done : 0);
        if (d->draft)
            assert_in_range(slm_seq_n_past(d->draft, seq), 0,
                            c ? c->n + (c->n_draft ? c->n_draft - 1 : -1) : 0);
        if (!c)
            continue;
        assert_int_equal(c->seq, seq);
        assert_int_equal(c->ending, COMPLETION_RUNS);
        assert_in_range(c->n_done, 0, c->n - 1);
        assert_true(c->n_done <= c->n_charged && c->n_charged <= c->n);
        if (c->n_done < c->n_prefill)
            assert_int_equal(c->n_again, 0);
    }
    assert_int_equal(n_running, s->n_running);
}

/* What waits has no sequence; what was dropped came after all that run, and is in the
 * order in which it came. */
static inline void served_check_waiting(const struct scheduler *s)
{
    uint64_t last = 0;
    int n_waiting = 0, n_put_back = 0;

    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq] && s->running[seq]->item.ticket > last)
            last = s->running[seq]->item.ticket;
    for (const struct fair_item *i = s->queue.put_back.first; i; i = i->next) {
        assert_true(i->ticket > last);
        last = i->ticket;
        n_put_back++;
    }
    for (struct fair_item *i = fair_queue_each(&s->queue, NULL); i;
         i = fair_queue_each(&s->queue, i)) {
        assert_int_equal(((struct completion *)i)->seq, -1);
        assert_int_equal(((struct completion *)i)->n_done, 0);
        n_waiting++;
    }
    assert_int_equal(n_put_back, s->n_put_back);
    assert_int_equal(n_waiting, s->n_waiting + s->n_put_back);
}

/* A step has a token of each that generates, no more tokens than it may, and its pages
 * are free. */
static inline void served_check_parts(const struct served *d, const struct scheduler *s)
{
    size_t n_pages, n_free;
    int n_tokens = 0;

    slm_pages(d->m, &n_pages, &n_free);
    for (int i = 0; i < s->n_parts; i++) {
        assert_true(s->parts[i].n > 0);
        n_tokens += s->parts[i].n;
    }
    assert_in_range(n_tokens, 1, s->max_step_tokens);
    assert_true(slm_batch_pages(d->m, s->parts, s->n_parts) <= n_free);
    /* a limit that no step can keep: prompts have 8 tokens, all of them together */
    if (s->limited && s->params.max_itl_s < 1e-6) {
        for (int i = 0; i < s->n_parts; i++)
            n_tokens -= s->part_of[i]->n_done >= s->part_of[i]->n_prefill;
        assert_in_range(n_tokens, 1, 8);
    }
    for (int seq = 0; seq < s->n_sequences; seq++) {
        const struct completion *c = s->running[seq];
        int n_parts = 0;

        for (int i = 0; i < s->n_parts; i++)
            n_parts += s->part_of[i] == c && s->parts[i].seq == seq;
        if (c && c->n_done >= c->n_prefill)
            assert_int_equal(n_parts, 1);
        assert_true(n_parts <= 1);
    }
}

static inline void served_check_step(const struct served *d, struct scheduler *s)
{
    served_check_sequences(d, s);
    served_check_waiting(s);
    served_check_parts(d, s);
}

#endif
