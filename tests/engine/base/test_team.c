/* SPDX-License-Identifier: MIT
 *
 * test_team.c - the thread team: barriers, work counter, placement, oversubscription
 */
#include <sched.h>
#include <stdatomic.h>

#include "engine/base/team.h"
#include "tests/support/test.h"

#define MAX_MEMBERS 16

struct shared {
    struct team *team;
    int n_rounds;
    int value[MAX_MEMBERS]; /* one per member, written without atomics */
    atomic_int n_wrong;
    size_t n_items;
    unsigned char *taken; /* [n_items] */
    atomic_size_t n_taken;
    int cpu[MAX_MEMBERS];
};

static struct team *start(int n, const int *cpus)
{
    struct err err = ERR_INIT;
    struct team *team = NULL;

    assert_int_equal(team_start(&team, n, cpus, &err), ST_OK);
    assert_int_equal(team_size(team), n);
    return team;
}

/* Each round everyone writes, passes the barrier, and must see what all wrote. */
static void rounds(void *arg, int member, int n_members)
{
    struct shared *s = arg;

    for (int round = 1; round <= s->n_rounds; round++) {
        s->value[member] = round * 100 + member;
        team_barrier(s->team);
        for (int i = 0; i < n_members; i++)
            if (s->value[i] != round * 100 + i)
                atomic_fetch_add(&s->n_wrong, 1);
        team_barrier(s->team);
    }
}

static void test_barrier_publishes(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_MEMBERS; n *= 2) {
        struct shared s = {.team = start(n, NULL), .n_rounds = 300};

        for (int run = 0; run < 10; run++)
            team_run(s.team, rounds, &s);
        assert_int_equal(atomic_load(&s.n_wrong), 0);
        for (int i = 0; i < n; i++)
            assert_int_equal(s.value[i], 300 * 100 + i);
        team_stop(s.team);
    }
}

/* Two counted loops with a barrier between: the second starts at 0 again. */
static void take_items(void *arg, int member, int n_members)
{
    struct shared *s = arg;

    (void)member;
    (void)n_members;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i; (i = team_next(s->team, 3)) < s->n_items;)
            for (size_t k = i; k < i + 3 && k < s->n_items; k++) {
                s->taken[k]++;
                atomic_fetch_add(&s->n_taken, 1);
            }
        team_barrier(s->team);
    }
}

static void test_next_hands_out_each_item_once(void **state)
{
    (void)state;
    for (int n = 1; n <= 8; n++) {
        unsigned char taken[1000] = {0};
        struct shared s = {
            .team = start(n, NULL), .n_items = sizeof taken, .taken = taken};

        team_run(s.team, take_items, &s);
        team_run(s.team, take_items, &s);
        for (size_t i = 0; i < sizeof taken; i++)
            assert_int_equal(taken[i], 4);
        assert_int_equal(atomic_load(&s.n_taken), 4 * sizeof taken);
        team_stop(s.team);
    }
}

/* Every count up and down again: each run is for the first members only, and the
 * barrier waits for no others. Three times more members than CPUs may be there. */
static void test_runs_on_the_first_members(void **state)
{
    struct shared s = {.team = start(MAX_MEMBERS, NULL), .n_rounds = 20};

    (void)state;
    assert_int_equal(team_capacity(s.team), MAX_MEMBERS);
    for (int i = 0; i < 40; i++) {
        const int n = i % 2 ? 1 + i % MAX_MEMBERS : MAX_MEMBERS - i % MAX_MEMBERS;

        memset(s.value, 0, sizeof s.value);
        team_use(s.team, n);
        assert_int_equal(team_size(s.team), n);
        team_run(s.team, rounds, &s);
        for (int m = 0; m < MAX_MEMBERS; m++)
            assert_int_equal(s.value[m], m < n ? 20 * 100 + m : 0);
    }
    assert_int_equal(atomic_load(&s.n_wrong), 0);
    team_stop(s.team);
}

/* Stopping wakes members that have slept through every run. */
static void test_stops_members_never_used(void **state)
{
    struct shared s = {.team = start(MAX_MEMBERS, NULL), .n_rounds = 1};

    (void)state;
    team_use(s.team, 2);
    team_run(s.team, rounds, &s);
    team_stop(s.team);
    assert_int_equal(atomic_load(&s.n_wrong), 0);
}

/* All members on one CPU, and back to fewer than there are: whoever waits must let
 * the others run. */
static void test_survives_one_cpu(void **state)
{
    cpu_set_t mask;
    int cpus[MAX_MEMBERS], cpu = 0;
    struct shared s = {.n_rounds = 50};

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    while (!CPU_ISSET((size_t)cpu, &mask))
        cpu++;
    for (int i = 0; i < MAX_MEMBERS; i++)
        cpus[i] = cpu;
    s.team = start(MAX_MEMBERS, cpus);
    for (int n = MAX_MEMBERS; n >= 1; n /= 2) {
        team_use(s.team, n);
        team_run(s.team, rounds, &s);
    }
    assert_int_equal(atomic_load(&s.n_wrong), 0);
    team_stop(s.team);
}

/* Chunks are handed out once each, whoever runs. */
static void test_next_with_fewer_members(void **state)
{
    unsigned char taken[1000] = {0};
    struct shared s = {
        .team = start(MAX_MEMBERS, NULL), .n_items = sizeof taken, .taken = taken};

    (void)state;
    for (int n = 1; n <= MAX_MEMBERS; n += 3) {
        memset(taken, 0, sizeof taken);
        team_use(s.team, n);
        team_run(s.team, take_items, &s);
        for (size_t i = 0; i < sizeof taken; i++)
            assert_int_equal(taken[i], 2);
    }
    team_stop(s.team);
}

static void note_cpu(void *arg, int member, int n_members)
{
    struct shared *s = arg;
    cpu_set_t mask;

    (void)n_members;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) == 1)
        s->cpu[member] = sched_getcpu();
    else
        s->cpu[member] = -1;
}

/* The allowed CPUs in reverse order, so that member 0 is not on the first by
 * chance; more members than CPUs wrap around. */
static void test_pins_and_restores(void **state)
{
    cpu_set_t before, after;
    int allowed[CPU_SETSIZE], cpus[MAX_MEMBERS], n_allowed = 0;
    struct shared s = {0};

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET((size_t)i, &before))
            allowed[n_allowed++] = i;
    for (int i = 0; i < 5; i++)
        cpus[i] = allowed[i % n_allowed];
    s.team = start(5, cpus);
    team_run(s.team, note_cpu, &s);
    for (int i = 0; i < 5; i++)
        assert_int_equal(s.cpu[i], cpus[i]);
    team_stop(s.team);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void test_refuses_foreign_cpu(void **state)
{
    struct err err = ERR_INIT;
    struct team *team = NULL;
    const int cpus[2] = {0, 999999};
    const int negative[1] = {-1};

    (void)state;
    assert_int_equal(team_start(&team, 2, cpus, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "999999"));
    assert_null(team);
    err_clear(&err);
    assert_int_equal(team_start(&team, 1, negative, &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(team_start(&team, 0, NULL, &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(team_start(&team, TEAM_MAX_MEMBERS + 1, NULL, &err), ST_USAGE);
    team_stop(NULL);
}

static void test_share_covers_exactly(void **state)
{
    (void)state;
    for (size_t n = 0; n < 200; n++)
        for (size_t unit = 1; unit <= 16; unit *= 4)
            for (int members = 1; members <= 7; members++) {
                size_t expect = 0, least = SIZE_MAX, most = 0;

                for (int i = 0; i < members; i++) {
                    size_t begin, end;

                    team_share(n, unit, i, members, &begin, &end);
                    assert_int_equal(begin, expect);
                    assert_true(end >= begin && end <= n);
                    assert_true(end == n || end % unit == 0);
                    const size_t units = (end - begin + unit - 1) / unit;
                    least = units < least ? units : least;
                    most = units > most ? units : most;
                    expect = end;
                }
                assert_int_equal(expect, n);
                assert_true(most - least <= 1);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier_publishes),
        cmocka_unit_test(test_next_hands_out_each_item_once),
        cmocka_unit_test(test_runs_on_the_first_members),
        cmocka_unit_test(test_stops_members_never_used),
        cmocka_unit_test(test_survives_one_cpu),
        cmocka_unit_test(test_next_with_fewer_members),
        cmocka_unit_test(test_pins_and_restores),
        cmocka_unit_test(test_refuses_foreign_cpu),
        cmocka_unit_test(test_share_covers_exactly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
