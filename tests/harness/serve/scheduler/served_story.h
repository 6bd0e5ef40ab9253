/* SPDX-License-Identifier: MIT
 *
 * served_story.h - a model of three sequences, and requests whose readers note in what
 * order they end
 */
#ifndef SLM_TESTS_SERVED_STORY_H
#define SLM_TESTS_SERVED_STORY_H

#include "tests/harness/serve/scheduler/served_model.h"

enum { N_CTX = 400 };

static struct served model;

static inline int open_all(void **state)
{
    (void)state;
    served_open(&model, &SERVED_PLAIN, 3, N_CTX, 0);
    return 0;
}

static inline int close_all(void **state)
{
    (void)state;
    served_close(&model);
    return 0;
}

static inline struct served_text *text_of(struct completion *c)
{
    static struct served_text t;

    served_read(c, &t);
    return &t;
}

struct story {
    struct scheduler *s;
    struct completion *c[8];
    int order[8], n_over, n_wakes;
    int stop_at; /* wakes; 0: never */
    bool closes;
};

struct reader {
    struct story *story;
    int i;
    bool over;
};

/* In the scheduler's thread. */
static inline void wake(void *arg)
{
    struct reader *r = arg;
    struct story *story = r->story;
    struct completion_piece piece;

    while (completion_read(story->c[r->i], &piece))
        ;
    if (!r->over && completion_end(story->c[r->i]) != COMPLETION_RUNS) {
        r->over = true;
        story->order[story->n_over++] = r->i;
    }
    if (++story->n_wakes == story->stop_at && story->closes) {
        for (int i = 0; i < 8; i++)
            if (i != r->i) {
                completion_close(story->c[i]);
                story->c[i] = NULL;
            }
    } else if (story->n_wakes == story->stop_at) {
        scheduler_stop(story->s, false);
    }
}

/* Eight requests of 40 tokens, three at a time. */
static inline void begin_story(struct story *story, struct reader *readers,
                               const int32_t *prompt, struct scheduler *s)
{
    struct completion_params p = served_params(prompt, 30, 40);

    story->s = s;
    for (int i = 0; i < 8; i++) {
        readers[i] = (struct reader){story, i, false};
        p.wake = wake;
        p.arg = &readers[i];
        story->c[i] = served_submit(s, &p);
    }
}

#endif
