/* SPDX-License-Identifier: MIT
 *
 * fuzz_machines_yaml.c - CPUs by their data sheets, and shares of roofs, as YAML
 */
#include "harness/decide/predict/predict.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void read_machines(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("m.yaml", data, size);
    const struct cpu *cpu;
    struct cpus cpus;
    struct shares shares;
    struct share_band band;
    const struct share_want want = {.format = KERN_FMT_q4_0, .machine = ""};
    struct err err = ERR_INIT;

    if (fuzz_accepted(cpus_load(&cpus, path, &err), &err)) {
        if (!cpus_find(&cpus, cpus.v[0].name, &cpu, &err) &&
            !(cpu_read_gbps(cpu, 2) >= 0 && cpu_read_gbps(cpu, 2) <= cpu->peak_gbps))
            fuzz_fail("a CPU reads %g GB/s", cpu_read_gbps(cpu, 2));
        cpus_free(&cpus);
    }
    err_clear(&err);
    if (fuzz_accepted(shares_load(&shares, path, &err), &err)) {
        if (shares_expect(&shares, &want, &band) &&
            !(band.lo > 0 && band.lo <= band.mid && band.mid <= band.hi))
            fuzz_fail("expected are %g, %g, %g", band.lo, band.mid, band.hi);
        shares_free(&shares);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_machines, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "cpus",   "name",   "also",    "memory", "cores",  "peak_gbps", "core_gbps",
        "gops",   "llc",    "source",  "date",   "shares", "machine",   "kind",
        "format", "median", "threads", "lo",     "hi",     "decode",    "prefill",
        "kernel", "q4_0",   "51.2",    "0.8",    NULL};

    return mutate_text(data, size, max_size, seed, words);
}
