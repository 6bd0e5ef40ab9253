/* SPDX-License-Identifier: MIT
 *
 * test_machine_key.c - profiles of machines from files that anybody may have written
 */
#include "tests/support/test.h"

#include "harness/machine/machine_key.h"

static bool read_key(struct machine_key *key, const char *topology)
{
    json_t *object = json_loads(topology, JSON_ALLOW_NUL, NULL);

    assert_non_null(object);
    const bool found = machine_key_read(key, object);

    json_decref(object);
    return found;
}

/* A topology with one object more, and the profile's field that depends on it. */
static void fields_are_those_of_the_topology(void **state)
{
    static const struct {
        const char *cpu, *limits, *memory;
        enum machine_field field;
        const char *text;
    } cases[] = {
        {"", "", "", MACHINE_CPU, "unknown"},
        {"\"model\": \"\"", "", "", MACHINE_CPU, "unknown"},
        {"\"model\": 7", "", "", MACHINE_CPU, "unknown"},
        {"\"model\": \"a\\u0000b\"", "", "", MACHINE_CPU, "unknown"},
        {"\"model\": \" AMD   EPYC \"", "", "", MACHINE_CPU, "AMD EPYC"},
        {"\"model\": \"a\\u001b[31m\"", "", "", MACHINE_CPU, "a\\x1b[31m"},
        {"", "", "", MACHINE_HYPERVISOR, "none"},
        {"\"hypervisor\": \"kvm\"", "", "", MACHINE_HYPERVISOR, "kvm"},
        {"", "", "", MACHINE_ISA, "unknown"},
        {"\"isa\": {\"avx2\": {\"usable\": true}, \"amx\": {}}", "", "", MACHINE_ISA,
         "+avx2 -amx"},
        {"\"isa\": [1]", "", "", MACHINE_ISA, "unknown"},
        {"\"packages\": 1, \"nodes\": 2, \"cores\": 3, \"cpus\": 4, \"smt\": \"on\"",
         "\"cpus_allowed\": 2", "", MACHINE_CPUS,
         "packages 1, nodes 2, cores 3, CPUs 4, allowed 2, SMT on"},
        {"\"cores\": \"many\"", "", "", MACHINE_CPUS,
         "packages 0, nodes 0, cores 0, CPUs 0, allowed 0, SMT unknown"},
        {"", "", "", MACHINE_CACHES, "unknown"},
        {"\"caches\": [{\"level\": 1, \"type\": \"data\", \"bytes\": 32768}, "
         "{\"level\": 1, \"type\": \"instruction\", \"bytes\": 65536}, "
         "{\"level\": 3, \"type\": \"unified\", \"bytes\": 33554432}]",
         "", "", MACHINE_CACHES, "L1d 32K, L1i 64K, L3 32M"},
        {"", "", "", MACHINE_QUOTA, "none"},
        {"", "\"cpu_quota\": 1.5", "", MACHINE_QUOTA, "1.50 CPUs"},
        {"", "\"cpu_quota\": -1", "", MACHINE_QUOTA, "none"},
        {"", "", "", MACHINE_MEMORY, "unknown"},
        {"", "\"memory_bytes\": 1073741824", "", MACHINE_MEMORY, "unknown"},
        {"", "", "\"total_bytes\": 2147483648", MACHINE_MEMORY, "2.00 GiB"},
        {"", "\"memory_bytes\": 1073741824", "\"total_bytes\": 2147483648",
         MACHINE_MEMORY, "1.00 GiB"},
        {"", "\"memory_bytes\": 4294967296", "\"total_bytes\": 2147483648",
         MACHINE_MEMORY, "2.00 GiB"},
        {"", "", "\"transparent_huge_pages\": \"always\"", MACHINE_PAGES, "always"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine_key key;
        char text[600];

        snprintf(text, sizeof text,
                 "{\"cpu\": {%s}, \"limits\": {%s}, \"memory\": {%s}}", cases[i].cpu,
                 cases[i].limits, cases[i].memory);
        if (!read_key(&key, text))
            fail_msg("%s is of no machine", text);
        if (strcmp(key.text[cases[i].field], cases[i].text))
            fail_msg("%s: '%s', not '%s'", text, key.text[cases[i].field],
                     cases[i].text);
    }
}

static void other_objects_are_no_topologies(void **state)
{
    static const char *const cases[] = {
        "{}",
        "[]",
        "{\"cpu\": {}, \"limits\": {}}",
        "{\"cpu\": {}, \"memory\": {}}",
        "{\"limits\": {}, \"memory\": {}}",
        "{\"cpu\": [], \"limits\": {}, \"memory\": {}}",
    };
    struct machine_key key = {.text = {"kept"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (read_key(&key, cases[i]))
            fail_msg("%s is a machine", cases[i]);
    assert_string_equal(key.text[0], "kept");
}

#define PROFILE(isa, memory)                                                  \
    "{\"CPU\": \"c\", \"hypervisor\": \"none\", \"ISA levels\": \"" isa       \
    "\", \"CPU layout\": \"allowed 2\", \"caches\": \"L1d\", \"CPU quota\": " \
    "\"none\", \"memory\": \"" memory "\", \"huge pages\": \"never\"}"

static void profiles_are_read_back(void **state)
{
    static const char *const bad[] = {"", "{", "[]", "{\"CPU\": \"c\"}",
                                      "{\"CPU\": 1, \"hypervisor\": \"none\"}"};
    struct machine_key key, again;

    (void)state;
    assert_false(machine_key_parse(&key, NULL));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(machine_key_parse(&key, bad[i]));
    assert_true(machine_key_parse(&key, PROFILE("+avx2  -amx", "1 GiB")));
    assert_string_equal(key.text[MACHINE_ISA], "+avx2 -amx");
    json_t *object = machine_key_json(&key);

    assert_true(machine_key_from_json(&again, object));
    for (int i = 0; i < MACHINE_N_FIELDS; i++)
        assert_string_equal(again.text[i], key.text[i]);
    assert_true(machine_key_hash(&again) == machine_key_hash(&key));
    json_decref(object);
}

/* Memory may differ by 3 %; levels that only one of them knows do not count. */
static void machines_are_the_same_within_what_kernels_keep(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {PROFILE("+avx2", "10 GiB"), PROFILE("+avx2", "10 GiB"), true},
        {PROFILE("+avx2", "10 GiB"), PROFILE("+avx2", "9.8 GiB"), true},
        {PROFILE("+avx2", "10 GiB"), PROFILE("+avx2", "9.6 GiB"), false},
        {PROFILE("+avx2", "10 GiB"), PROFILE("+avx2", "unknown"), false},
        {PROFILE("+avx2", "unknown"), PROFILE("+avx2", "10 GiB"), false},
        {PROFILE("+avx2", "-1 GiB"), PROFILE("+avx2", "-1.01 GiB"), false},
        {PROFILE("+avx2 -amx", "1 GiB"), PROFILE("+avx2 +amx", "1 GiB"), false},
        {PROFILE("+avx2 -amx", "1 GiB"), PROFILE("-amx +avx2 +sve", "1 GiB"), true},
        {PROFILE("+avx2", "1 GiB"), PROFILE("+avx512", "1 GiB"), true},
        {PROFILE("+ - +avx2", "1 GiB"), PROFILE("- +", "1 GiB"), true},
        {PROFILE("", "1 GiB"), PROFILE("+avx2", "1 GiB"), true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine_key a, b;
        char why[300] = "";

        assert_true(machine_key_parse(&a, cases[i].a));
        assert_true(machine_key_parse(&b, cases[i].b));
        if (machine_key_same(&a, &b, why, sizeof why) != cases[i].same)
            fail_msg("%s and %s: '%s'", cases[i].a, cases[i].b, why);
        assert_true(machine_key_same(&a, &b, NULL, 0) == cases[i].same);
        assert_true((strstr(why, "its ") == why) == !cases[i].same);
    }
}

static void names_leave_out_what_is_not_known(void **state)
{
    static const struct {
        const char *cpu, *limits, *memory, *name;
    } cases[] = {
        {"", "", "", "0 CPUs"},
        {"\"model\": \"AMD EPYC\", \"hypervisor\": \"kvm\"", "\"cpus_allowed\": 2",
         "\"total_bytes\": 1073741824", "AMD EPYC, 2 CPUs, 1.00 GiB, kvm"},
        {"\"hypervisor\": \"unknown\"", "\"cpus_allowed\": 1", "", "1 CPU"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine_key key;
        char text[300], name[200];

        snprintf(text, sizeof text,
                 "{\"cpu\": {%s}, \"limits\": {%s}, \"memory\": {%s}}", cases[i].cpu,
                 cases[i].limits, cases[i].memory);
        assert_true(read_key(&key, text));
        assert_string_equal(machine_key_name(&key, name, sizeof name), cases[i].name);
    }
    struct machine_key none = {.text = {"unknown", "none"}};
    char name[200];

    strcpy(none.text[MACHINE_MEMORY], "unknown");
    assert_string_equal(machine_key_name(&none, name, sizeof name), "0 CPUs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_those_of_the_topology),
        cmocka_unit_test(other_objects_are_no_topologies),
        cmocka_unit_test(profiles_are_read_back),
        cmocka_unit_test(machines_are_the_same_within_what_kernels_keep),
        cmocka_unit_test(names_leave_out_what_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
