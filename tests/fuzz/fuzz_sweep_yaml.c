/* SPDX-License-Identifier: MIT
 *
 * fuzz_sweep_yaml.c - the settings of a sweep, as YAML
 *
 * What is accepted is read as the same from the JSON that is stored of it.
 */
#include <string.h>

#include "harness/measure/sweep/sweep.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"
#include "tests/fuzz/support/small_machine.h"

static void store(struct sweep_settings *s)
{
    static const char *const model = "m";
    json_t *object, *second;
    struct sweep_settings again;
    struct err err = ERR_INIT;

    if (!s->n_models && sweep_set_models(s, &model, 1, "models", &err))
        fuzz_fail("no model can be given: %s", err.msg);
    object = sweep_settings_json(s);
    if (!fuzz_accepted(sweep_settings_from_json(&again, object, &err), &err))
        fuzz_fail("our own writing is refused: %s", json_dumps(object, 0));
    second = sweep_settings_json(&again);
    if (!json_equal(object, second))
        fuzz_fail("settings are read as others: %s", json_dumps(second, 0));
    sweep_settings_free(&again);
    json_decref(second);
    json_decref(object);
}

static void read_settings(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("s.yaml", data, size);
    struct sweep_settings s;
    struct err err = ERR_INIT;

    memset(&s, 0, sizeof s);
    if (!fuzz_accepted(sweep_settings_init(&s, small_machine(), &err), &err))
        fuzz_fail("no default settings");
    if (fuzz_accepted(sweep_config_load(&s, path, small_machine(), &err), &err))
        store(&s);
    sweep_settings_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_settings, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "models",  "threads", "threads_prefill", "prefill",   "ctx",       "speculate",
        "weights", "pages",   "placement",       "kv_type",   "mem_limit", "seed",
        "repeats", "budget",  "timeout",         "cache_dir", "quality",   "all",
        "auto",    "none",    "[1, 2]",          "\n- a\n",   "kv_window", NULL};

    return mutate_text(data, size, max_size, seed, words);
}
