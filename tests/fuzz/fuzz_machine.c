/* SPDX-License-Identifier: MIT
 *
 * fuzz_machine.c - machine.json of a sweep: its settings, and what it says of a machine
 *
 * Settings and machines that are accepted are stored, and read again as the same.
 */
#include <string.h>

#include "harness/machine/machine_key.h"
#include "harness/rows/result_set.h"
#include "harness/measure/sweep/sweep.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void read_settings(const json_t *stored)
{
    struct sweep_settings s, again;
    struct err err = ERR_INIT;

    if (!fuzz_accepted(sweep_settings_from_json(&s, stored, &err), &err))
        return;
    json_t *object = sweep_settings_json(&s), *second;

    if (!fuzz_accepted(sweep_settings_from_json(&again, object, &err), &err))
        fuzz_fail("our own writing is refused");
    second = sweep_settings_json(&again);
    if (!json_equal(object, second))
        fuzz_fail("settings are read as others: %s", json_dumps(second, 0));
    sweep_settings_free(&again);
    sweep_settings_free(&s);
    json_decref(second);
    json_decref(object);
}

static void read_key(const json_t *topology)
{
    struct machine_key key, again;

    if (!machine_key_read(&key, topology))
        return;
    json_t *object = machine_key_json(&key);
    char why[256];

    if (!machine_key_from_json(&again, object))
        fuzz_fail("our own writing is refused");
    if (memcmp(&key, &again, sizeof key) != 0 ||
        machine_key_hash(&key) != machine_key_hash(&again))
        fuzz_fail("a machine is read as another");
    machine_key_same(&key, &again, why, sizeof why);
    json_decref(object);
}

static struct topology here;

static void read_machine(const uint8_t *data, size_t size)
{
    static const char table[] = "point,kind,status\na,decode,ok\n";
    struct result_set set;
    struct err err = ERR_INIT;
    struct sweep_dir *dir;
    json_t *machine;

    fuzz_file("machine.json", data, size);
    fuzz_file("sweep.csv", (const uint8_t *)table, sizeof table - 1);
    fuzz_accepted(result_set_open(&set, fuzz_dir(), RESULT_LAST, &err), &err);
    result_set_free(&set);
    fuzz_file("sweep.csv", "", 0);
    if (!fuzz_accepted(sweep_dir_resume(&dir, fuzz_dir(), &err), &err))
        return;
    if (fuzz_accepted(sweep_dir_read_machine(dir, &machine, &err), &err)) {
        read_settings(json_object_get(machine, "sweep"));
        read_key(json_object_get(machine, "topology"));
        fuzz_accepted(sweep_machine_check(machine, &here, fuzz_dir(), &err), &err);
        json_decref(machine);
    }
    sweep_dir_close(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_machine, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"sweep",     "topology",   "host",
                                        "models",    "threads",    "threads_prefill",
                                        "ctx",       "prefill",    "speculate",
                                        "weights",   "pages",      "placement",
                                        "kv_type",   "mem_limit",  "auto",
                                        "mmap",      "packed",     "all",
                                        "none",      "f16",        "q8_0",
                                        "cpu_model", "hypervisor", "isa",
                                        "caches",    "mem_total",  "kv_window",
                                        NULL};

    return mutate_json(data, size, max_size, seed, words);
}
