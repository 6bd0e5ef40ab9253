/* SPDX-License-Identifier: MIT
 *
 * test_fair_queue.c - who is next
 */
#include "tests/support/test.h"

#include "harness/serve/scheduler/fair_queue.h"

enum { N_ITEMS = 64 };

struct world {
    struct fair_queue q;
    struct fair_item items[N_ITEMS];
    uint64_t client[N_ITEMS];
    int n;
};

static struct fair_item *add(struct world *w, uint64_t client)
{
    struct err err = ERR_INIT;
    struct fair_item *item = &w->items[w->n];

    w->client[w->n++] = client;
    item->ticket = (uint64_t)w->n;
    assert_int_equal(fair_queue_add(&w->q, item, client, &err), ST_OK);
    return item;
}

/* The client of the next item, which runs, takes n tokens and ends. */
static uint64_t serve(struct world *w, double n)
{
    struct fair_item *item = fair_queue_next(&w->q);
    const uint64_t client = w->client[item - w->items];

    fair_queue_take(&w->q, item);
    fair_queue_charge(item, n);
    fair_queue_remove(&w->q, item, false);
    return client;
}

static void first_come_within_a_client(void **state)
{
    struct world w = {.n = 0};

    (void)state;
    for (int i = 0; i < 5; i++)
        add(&w, 7);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(fair_queue_next(&w.q), &w.items[i]);
        assert_int_equal(serve(&w, 10), 7);
    }
    assert_null(fair_queue_next(&w.q));
    assert_null(w.q.clients);
}

/* Nor does the first request of a client count once it has been cancelled. */
static void first_come_of_two_clients(void **state)
{
    struct world w = {.n = 0};
    struct fair_item *cancelled = add(&w, 1), *second = add(&w, 2), *third = add(&w, 1);

    (void)state;
    assert_ptr_equal(fair_queue_next(&w.q), cancelled);
    fair_queue_remove(&w.q, cancelled, true);
    assert_ptr_equal(fair_queue_next(&w.q), second);
    assert_int_equal(serve(&w, 10), 2);
    assert_ptr_equal(fair_queue_next(&w.q), third);
    assert_int_equal(serve(&w, 10), 1);
    fair_queue_close(&w.q);
}

/* One with many requests does not hold up another one. */
static void clients_in_turn(void **state)
{
    struct world w = {.n = 0};
    const uint64_t expected[] = {1, 2, 1, 2, 1, 1};

    (void)state;
    for (int i = 0; i < 4; i++)
        add(&w, 1);
    add(&w, 2);
    add(&w, 2);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(serve(&w, 100), expected[i]);
    fair_queue_close(&w.q);
}

/* Who asks for long texts gets fewer of them. */
static void tokens_count(void **state)
{
    struct world w = {.n = 0};
    int served[3] = {0};

    (void)state;
    for (int i = 0; i < 30; i++) {
        add(&w, 1);
        add(&w, 2);
    }
    for (int i = 0; i < 22; i++) {
        const struct fair_item *next = fair_queue_next(&w.q);
        const uint64_t client = w.client[next - w.items];

        served[client]++;
        serve(&w, client == 1 ? 1000 : 100);
    }
    assert_int_equal(served[1], 2);
    assert_int_equal(served[2], 20);
    while (fair_queue_next(&w.q))
        serve(&w, 1);
    fair_queue_close(&w.q);
}

/* Who was away neither saved anything up nor lost what was used before. */
static void who_was_away(void **state)
{
    struct world w = {.n = 0};

    (void)state;
    for (int i = 0; i < 10; i++)
        add(&w, 1);
    for (int i = 0; i < 5; i++)
        serve(&w, 100);
    add(&w, 2); /* begins where client 1 is */
    add(&w, 2);
    assert_int_equal(serve(&w, 100), 2); /* its turn is longer ago */
    assert_int_equal(serve(&w, 100), 1);
    assert_int_equal(serve(&w, 900), 2);
    /* away, and back: it still has had more */
    add(&w, 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(serve(&w, 100), 1);
    assert_int_equal(serve(&w, 1), 2);
    assert_null(w.q.clients);
}

/* Who is new begins where the one is that has had least. */
static void who_is_new(void **state)
{
    struct world w = {.n = 0};
    const double services[3] = {300, 100, 200};

    (void)state;
    for (uint64_t i = 0; i < 3; i++)
        add(&w, i);
    for (int i = 0; i < 3; i++)
        fair_queue_charge(&w.items[i], services[i]);
    assert_float_equal(fair_queue_service(add(&w, 9)), 100, 0);
    assert_float_equal(fair_queue_service(&w.items[0]), 300, 0);
    while (fair_queue_next(&w.q))
        serve(&w, 1);
    fair_queue_close(&w.q);
}

/* In whatever order they are put back. */
static void put_back_in_order(void **state)
{
    static const int orders[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {1, 2, 0}};

    (void)state;
    for (int k = 0; k < 4; k++) {
        struct world w = {.n = 0};

        for (uint64_t i = 0; i < 3; i++)
            fair_queue_take(&w.q, add(&w, i));
        for (int i = 0; i < 3; i++)
            fair_queue_put_back(&w.q, &w.items[orders[k][i]]);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(serve(&w, 1), i);
        fair_queue_close(&w.q);
    }
}

static void put_back_comes_first(void **state)
{
    struct world w = {.n = 0};
    struct fair_item *running[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        add(&w, (uint64_t)i);
    for (int i = 0; i < 3; i++) {
        running[i] = fair_queue_next(&w.q);
        fair_queue_take(&w.q, running[i]);
    }
    add(&w, 9);
    for (int i = 2; i >= 0; i--)
        fair_queue_put_back(&w.q, running[i]);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(fair_queue_next(&w.q), running[i]);
        serve(&w, 1000);
    }
    assert_int_equal(serve(&w, 1), 9);
    fair_queue_close(&w.q);
}

/* Random operations: what is gone over is what waits, and nothing is lost. */
static void all_that_wait(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct world w = {.n = 0};
        enum { AWAY, WAITS, RUNS } at[N_ITEMS] = {AWAY};

        for (int step = 0; step < 150; step++) {
            const int i = (int)(test_random(&random) % N_ITEMS);
            int n_waiting = 0, n_seen = 0;

            if (i >= w.n && w.n < N_ITEMS) {
                at[w.n] = WAITS;
                add(&w, test_random(&random) % 5);
            } else if (at[i] == WAITS) {
                if (test_random(&random) % 2) {
                    struct fair_item *next = fair_queue_next(&w.q);

                    fair_queue_take(&w.q, next);
                    at[next - w.items] = RUNS;
                } else {
                    fair_queue_remove(&w.q, &w.items[i], true);
                    at[i] = AWAY;
                }
            } else if (at[i] == RUNS) {
                fair_queue_charge(&w.items[i], (double)(test_random(&random) % 50));
                if (test_random(&random) % 2) {
                    fair_queue_put_back(&w.q, &w.items[i]);
                    at[i] = WAITS;
                } else {
                    fair_queue_remove(&w.q, &w.items[i], false);
                    at[i] = AWAY;
                }
            }
            for (int k = 0; k < w.n; k++)
                n_waiting += at[k] == WAITS;
            for (struct fair_item *item = fair_queue_each(&w.q, NULL); item;
                 item = fair_queue_each(&w.q, item)) {
                assert_int_equal(at[item - w.items], WAITS);
                n_seen++;
            }
            assert_int_equal(n_seen, n_waiting);
            assert_int_equal(fair_queue_next(&w.q) != NULL, n_waiting > 0);
        }
        for (int i = 0; i < w.n; i++)
            if (at[i] != AWAY)
                fair_queue_remove(&w.q, &w.items[i], at[i] == WAITS);
        assert_null(w.q.clients);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come_within_a_client),
        cmocka_unit_test(first_come_of_two_clients),
        cmocka_unit_test(clients_in_turn),
        cmocka_unit_test(tokens_count),
        cmocka_unit_test(who_was_away),
        cmocka_unit_test(who_is_new),
        cmocka_unit_test(put_back_in_order),
        cmocka_unit_test(put_back_comes_first),
        cmocka_unit_test(all_that_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
