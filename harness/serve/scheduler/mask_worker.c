/* SPDX-License-Identifier: MIT
 *
 * mask_worker.c - jobs, each begun by the thread that comes first
 */
#include "harness/serve/scheduler/mask_worker.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct mask_worker {
    pthread_mutex_t mu;
    pthread_cond_t posted, done;
    pthread_t thread;
    bool has_thread, ends;
    struct mask_job **jobs; /* [n]; the thread looks at `at` next */
    int n, at, cap;
};

/* With the mutex held, which is released during the computation. */
static void compute(struct mask_worker *w, struct mask_job *job)
{
    job->stage = MASK_BEGUN;
    pthread_mutex_unlock(&w->mu);
    job->all = grammar_state_mask(job->state, job->mask);
    pthread_mutex_lock(&w->mu);
    job->stage = MASK_DONE;
    pthread_cond_broadcast(&w->done);
}

static void *work(void *arg)
{
    struct mask_worker *w = arg;

    pthread_mutex_lock(&w->mu);
    while (!w->ends) {
        if (w->at == w->n) {
            pthread_cond_wait(&w->posted, &w->mu);
            continue;
        }
        struct mask_job *job = w->jobs[w->at++];

        if (job->stage == MASK_WAITS)
            compute(w, job);
    }
    pthread_mutex_unlock(&w->mu);
    return NULL;
}

enum status mask_worker_open(struct mask_worker **w, int max_jobs, struct err *err)
{
    struct mask_worker *new = calloc(1, sizeof *new);

    if (new)
        new->jobs = calloc((size_t)max_jobs, sizeof *new->jobs);
    if (!new || !new->jobs) {
        free(new);
        return err_set(err, ST_NO_MEMORY, "no memory for the masks of grammars");
    }
    new->cap = max_jobs;
    pthread_mutex_init(&new->mu, NULL);
    pthread_cond_init(&new->posted, NULL);
    pthread_cond_init(&new->done, NULL);
    new->has_thread = !pthread_create(&new->thread, NULL, work, new);
    *w = new;
    return ST_OK;
}

void mask_worker_close(struct mask_worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->mu);
    w->ends = true;
    pthread_cond_signal(&w->posted);
    pthread_mutex_unlock(&w->mu);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->posted);
    pthread_cond_destroy(&w->done);
    pthread_mutex_destroy(&w->mu);
    free(w->jobs);
    free(w);
}

void mask_worker_post(struct mask_worker *w, struct mask_job *const *jobs, int n)
{
    assert(n <= w->cap);
    pthread_mutex_lock(&w->mu);
    for (int i = 0; i < n; i++) {
        w->jobs[i] = jobs[i];
        w->jobs[i]->stage = MASK_WAITS;
    }
    w->n = n;
    w->at = 0;
    pthread_cond_signal(&w->posted);
    pthread_mutex_unlock(&w->mu);
}

void mask_worker_finish(struct mask_worker *w, struct mask_job *job)
{
    pthread_mutex_lock(&w->mu);
    if (job->stage == MASK_WAITS)
        compute(w, job);
    while (job->stage != MASK_DONE)
        pthread_cond_wait(&w->done, &w->mu);
    pthread_mutex_unlock(&w->mu);
}
