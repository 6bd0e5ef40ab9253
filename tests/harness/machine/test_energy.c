/* SPDX-License-Identifier: MIT
 *
 * test_energy.c - counters of energy in made trees: which count, wrapping, and no
 * figure
 */
#include "tests/support/tree_root.h"

#include <math.h>

#include "harness/machine/energy.h"

static void count(const char *zone, unsigned long long uj)
{
    char path[128], text[32];

    snprintf(path, sizeof path, "/sys/class/powercap/%s/energy_uj", zone);
    snprintf(text, sizeof text, "%llu\n", uj);
    tree_put(root, path, text);
}

static void zone(const char *name, const char *what, unsigned long long uj)
{
    char path[128];

    snprintf(path, sizeof path, "/sys/class/powercap/%s/name", name);
    tree_put(root, path, what);
    snprintf(path, sizeof path, "/sys/class/powercap/%s/max_energy_range_uj", name);
    tree_put(root, path, "262143328850\n");
    count(name, uj);
}

/* Two packages, of which one has its memory apart; their cores and the platform around
 * them would count twice. */
static void two_packages(void)
{
    tree_put(root, "/sys/class/powercap/intel-rapl/enabled", "1\n");
    zone("intel-rapl:0", "package-0\n", 1000000);
    zone("intel-rapl:0:0", "core\n", 500000);
    zone("intel-rapl:0:1", "dram\n", 2000000);
    zone("intel-rapl:1", "package-1\n", 262143000000);
    zone("intel-rapl:2", "psys\n", 7);
    zone("intel-rapl-mmio:0", "package-0\n", 1000000);
}

static void packages_and_their_memory(void **state)
{
    struct energy e;

    (void)state;
    two_packages();
    energy_open(&e, root);
    assert_int_equal(e.n, 3);
    assert_true(isnan(energy_joules(&e))); /* nothing has moved yet */
    energy_mark(&e, root);
    count("intel-rapl:0", 4000000);
    count("intel-rapl:0:0", 3500000);
    count("intel-rapl:0:1", 2500000);
    count("intel-rapl:1", 671150); /* it has begun again */
    count("intel-rapl:2", 9000000);
    energy_add(&e, root);
    assert_float_equal(energy_joules(&e), 3 + 0.5 + 1, 1e-9);

    /* what is used between does not count */
    count("intel-rapl:0", 9000000);
    energy_mark(&e, root);
    count("intel-rapl:0", 9250000);
    energy_add(&e, root);
    assert_float_equal(energy_joules(&e), 4.75, 1e-9);
}

/* Of a virtual machine, say: there, and always the same. */
static void a_counter_that_does_not_move(void **state)
{
    struct energy e;

    (void)state;
    two_packages();
    energy_open(&e, root);
    energy_mark(&e, root);
    count("intel-rapl:0", 4000000); /* only one of two packages */
    energy_add(&e, root);
    assert_true(isnan(energy_joules(&e)));
}

static void no_counters(void **state)
{
    struct energy e;

    (void)state;
    energy_open(&e, root);
    energy_mark(&e, root);
    energy_add(&e, root);
    assert_int_equal(e.n, 0);
    assert_true(isnan(energy_joules(&e)));

    zone("intel-rapl:2", "psys\n", 7); /* none of a package */
    energy_open(&e, root);
    count("intel-rapl:2", 9);
    energy_add(&e, root);
    assert_true(isnan(energy_joules(&e)));
}

/* A package whose counter cannot be read would be missing in the sum. */
static void a_counter_that_cannot_be_read(void **state)
{
    struct energy e;

    (void)state;
    two_packages();
    tree_put(root, "/sys/class/powercap/intel-rapl:1/energy_uj", "");
    energy_open(&e, root);
    energy_mark(&e, root);
    count("intel-rapl:0", 4000000);
    energy_add(&e, root);
    assert_true(isnan(energy_joules(&e)));

    two_packages();
    energy_open(&e, root);
    energy_mark(&e, root);
    count("intel-rapl:0", 4000000);
    tree_put(root, "/sys/class/powercap/intel-rapl:1/energy_uj", "?\n");
    energy_add(&e, root);
    assert_true(isnan(energy_joules(&e)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packages_and_their_memory, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(a_counter_that_does_not_move, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(no_counters, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_counter_that_cannot_be_read, make_root,
                                        remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
