/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_random.c - clients in threads of their own that submit, read, and go
 */
#include "tests/harness/serve/scheduler/served_model.h"
#include "tests/support/models/kept_shapes.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N_CLIENTS = 4, N_HELD = 4, N_CTX = 600 };

/* Of each client. Under a sanitizer every access is checked, and takes long. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { OPERATIONS = 60 };
#else
enum { OPERATIONS = 150 };
#endif

struct held {
    struct completion *c;
    int n, most;  /* tokens that were read, and that there may be */
    int patience; /* tokens after which its reader goes */
    bool over;
};

struct client {
    struct scheduler *s;
    uint64_t id, random;
    struct held held[N_HELD];
    atomic_int n_wakes;
    int n_submitted, n_refused, n_complete, n_gone, n_tokens;
    pthread_t thread;
};

static uint64_t below(struct client *k, uint64_t n)
{
    return test_random(&k->random) % n;
}

static void wake(void *arg)
{
    struct client *k = arg;

    atomic_fetch_add(&k->n_wakes, 1);
}

static void submit(struct client *k, struct held *h)
{
    int32_t prompt[300];
    const int n = 1 + (int)below(k, below(k, 4) ? 40 : 300);
    const int most = below(k, 5) ? 1 + (int)below(k, 60) : N_CTX;
    struct completion_params p = served_params(prompt, n, most);
    const char *stops[] = {"ba", "zu"};
    struct err err = ERR_INIT;
    double retry_s;
    bool full;

    served_prompt(prompt, n, below(k, 3)); /* some begin alike */
    p.client = k->id;
    p.wake = wake;
    p.arg = k;
    p.sampling.temperature = (float)below(k, 2);
    p.sampling.seed = below(k, 100);
    p.n_logprobs = (int)below(k, 4) - 1;
    p.presence_penalty = below(k, 2) ? 0.5F : 0;
    p.ignore_end = below(k, 2);
    if (below(k, 3) == 0) {
        p.stops = stops;
        p.n_stops = 2;
    }
    *h = (struct held){.most = most < N_CTX - n + 1 ? most : N_CTX - n + 1,
                       .patience = below(k, 4) ? N_CTX : (int)below(k, 20)};
    if (scheduler_submit(k->s, &p, &h->c, &full, &retry_s, &err)) {
        assert_true(full);
        assert_null(h->c);
        k->n_refused++;
        usleep(5000);
    } else {
        k->n_submitted++;
    }
}

/* False: there was nothing to read. */
static bool read_one(struct client *k, struct held *h)
{
    struct completion_piece piece;
    struct completion_usage usage;
    enum completion_end end;

    if (completion_read(h->c, &piece)) {
        h->n++;
        assert_int_equal(piece.text[piece.len], '\0');
        assert_true(h->n <= h->most && !h->over);
        return true;
    }
    end = completion_end(h->c);
    if (end == COMPLETION_RUNS)
        return false;
    completion_read_usage(h->c, &usage);
    assert_int_equal(usage.n_generated, h->n);
    assert_true(end == COMPLETION_STOP || end == COMPLETION_LENGTH);
    assert_true(end == COMPLETION_STOP || h->n == h->most);
    if (!h->over) {
        k->n_complete++;
        k->n_tokens += h->n;
    }
    h->over = true;
    return true;
}

static void *run_client(void *arg)
{
    struct client *k = arg;

    for (int i = 0; i < OPERATIONS;) {
        struct held *h = &k->held[below(k, N_HELD)];

        if (!h->c) {
            submit(k, h);
            i++;
        } else if (h->over || h->n >= h->patience) {
            k->n_gone += !h->over;
            completion_close(h->c);
            h->c = NULL;
            i++;
        } else if (!read_one(k, h)) {
            usleep(200);
        }
    }
    for (int i = 0; i < N_HELD; i++) {
        k->n_gone += k->held[i].c && !k->held[i].over;
        completion_close(k->held[i].c);
    }
    return NULL;
}

struct clients {
    struct client k[N_CLIENTS];
    struct scheduler *s;
};

static void *run_clients(void *arg)
{
    struct clients *all = arg;

    for (int i = 0; i < N_CLIENTS; i++)
        pthread_create(&all->k[i].thread, NULL, run_client, &all->k[i]);
    for (int i = 0; i < N_CLIENTS; i++)
        pthread_join(all->k[i].thread, NULL);
    scheduler_stop(all->s, true);
    return NULL;
}

static void check_clients(const struct synth_shape *shape, bool keeps)
{
    struct clients all = {.s = NULL};
    struct scheduler_stats stats;
    struct served d;
    struct err err = ERR_INIT;
    pthread_t thread;
    int n_wakes = 0;
    uint64_t n_submitted = 0, n_refused = 0, n_complete = 0, n_gone = 0;

    served_open(&d, shape, 3, N_CTX, 3);
    all.s = served_scheduler(&d, 6, keeps);
    for (uint64_t i = 0; i < N_CLIENTS; i++) {
        all.k[i] = (struct client){.s = all.s, .id = i, .random = i + 10};
        atomic_init(&all.k[i].n_wakes, 0);
    }
    assert_int_equal(pthread_create(&thread, NULL, run_clients, &all), 0);
    if (scheduler_run(all.s, &err))
        fail_msg("%s", err.msg);
    pthread_join(thread, NULL);
    for (int i = 0; i < N_CLIENTS; i++) {
        n_submitted += (uint64_t)all.k[i].n_submitted;
        n_refused += (uint64_t)all.k[i].n_refused;
        n_complete += (uint64_t)all.k[i].n_complete;
        n_gone += (uint64_t)all.k[i].n_gone;
        n_wakes += atomic_load(&all.k[i].n_wakes);
    }
    scheduler_read_stats(all.s, &stats);
    assert_int_equal(stats.n_requests, n_submitted);
    assert_int_equal(stats.n_refused, n_refused);
    assert_int_equal(stats.n_failed, 0);
    assert_int_equal(n_complete + n_gone, n_submitted);
    /* one that was complete and not read to its end was closed */
    assert_int_equal(stats.n_completed + stats.n_cancelled, n_submitted);
    assert_true(stats.n_completed >= n_complete);
    assert_int_equal(stats.n_running + stats.n_waiting, 0);
    assert_true(keeps || stats.n_cached == 0);
    assert_true(n_gone > 0 && n_complete > 0 && n_wakes > 0);
    scheduler_close(all.s);
    served_check_idle(&d);
    served_close(&d);
}

static void prefixes_are_kept(void **state)
{
    (void)state;
    check_clients(&SERVED_PLAIN, true);
}

static void nothing_is_kept(void **state)
{
    (void)state;
    check_clients(&SERVED_PLAIN, false);
}

/* Besides pages windows, or states, which drafts bring back. */
static void checkpoints_are_kept(void **state)
{
    static const enum kept_shape kinds[] = {KEPT_WINDOWS, KEPT_DELTA};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct synth_shape shape = kept_shape(kinds[i]);

        shape.n_vocab = SERVED_VOCAB;
        shape.n_ctx_train = SERVED_MAX;
        served_checkpoints = 4;
        served_drafts = i == 1 ? DRAFTS_LOOKUP : DRAFTS_OFF;
        check_clients(&shape, true);
    }
    served_drafts = DRAFTS_OFF;
}

static void all_draft(void **state)
{
    (void)state;
    served_drafts = DRAFTS_LOOKUP;
    check_clients(&SERVED_PLAIN, true);
    served_drafts = DRAFTS_MODEL;
    check_clients(&SERVED_PLAIN, true);
    check_clients(&SERVED_PLAIN, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_kept),
        cmocka_unit_test(nothing_is_kept),
        cmocka_unit_test(checkpoints_are_kept),
        cmocka_unit_test(all_draft),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
