/* SPDX-License-Identifier: MIT
 *
 * bench_kernels.cc - every kernel row that this CPU can run, in google-benchmark
 *
 * The only C++ of the project: it registers the cases of kernel_case.h and times
 * the work of kernel_work.h; `bench kernels` runs it and reads its JSON. Nothing is
 * allocated before a benchmark runs, so listing is instant.
 *
 * Counters: GB/s of weights (without weights: of data read and written),
 * weights/s, GOPS; of_read_roof and of_peak, where a roof applies, against a roof
 * measured once before the first row that needs it.
 */
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <benchmark/benchmark.h>

/* C has functions named like structures; C++ warns that they hide constructors. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "engine/base/clock.h"
#include "harness/base/program.h"
#include "harness/base/interrupt.h"
#include "harness/measure/kernels/kernel_work.h"
#include "harness/base/parse.h"
#include "harness/machine/topology.h"
}
#pragma GCC diagnostic pop

namespace
{

kernel_fixture *fixture;
bool any_error = false;
bool prints_progress = false;
std::map<std::string, benchmark::IterationCount> batches; /* by name of the case */

void fail(benchmark::State &state, const char *why)
{
    any_error = true;
    state.SkipWithError(why);
}

/* One line per run of a benchmark, for whoever shows progress: "seconds name". */
void report_progress(double seconds, const std::string &name)
{
    if (prints_progress && (std::printf("%.6f %s\n", seconds, name.c_str()) < 0 ||
                            std::fflush(stdout) != 0))
        prints_progress = false; /* nobody reads it any more */
}

void count(benchmark::State &state, const kernel_cost &cost, double calls_per_s,
           const double roofs[2])
{
    static const char *const names[2] = {"of_read_roof", "of_peak"};
    const double value[2] = {cost.bytes * calls_per_s * 1e-9,
                             cost.ops * calls_per_s * 1e-9};

    if (cost.bytes > 0)
        state.counters["GB/s"] = value[0];
    if (cost.ops > 0)
        state.counters["GOPS"] = value[1];
    if (cost.n_weights > 0)
        state.counters["weights/s"] = cost.n_weights * calls_per_s;
    for (int i = 0; i < 2; i++)
        if (roofs[i] > 0)
            state.counters[names[i]] = value[i] / roofs[i];
}

/* Runs of the same benchmark must have the same number of iterations, or
 * google-benchmark ends the program; so one that was interrupted does no work, but in
 * as many steps, and reports it. */
void run_nothing(benchmark::State &state, const std::string &name)
{
    const auto known = batches.find(name);
    const benchmark::IterationCount batch =
        known == batches.end() ? state.max_iterations : known->second;

    while (state.KeepRunningBatch(batch))
        ;
    state.counters["interrupted"] = 1;
}

void bench_case(benchmark::State &state, const kernel_case c, const std::string name)
{
    err e = ERR_INIT;
    kernel_case roof;
    kernel_work *work;
    double roofs[2] = {0, 0};

    if (interrupted())
        return run_nothing(state, name);
    if (kernel_case_read_roof(&roof, &c))
        roofs[0] = kernel_fixture_roof(fixture, &roof);
    if (kernel_case_peak(&roof, &c))
        roofs[1] = kernel_fixture_roof(fixture, &roof);
    if (kernel_work_open(&work, fixture, &c, &e) != ST_OK)
        return fail(state, e.msg);

    const auto batch = benchmark::IterationCount(kernel_work_batch(work));
    batches[name] = batch;
    uint64_t ns = 0;
    while (state.KeepRunningBatch(batch)) {
        if (kernel_work_is_cold(work)) {
            state.PauseTiming();
            kernel_work_cool(work, size_t(batch));
            state.ResumeTiming();
        }
        const uint64_t start = clock_ns();
        kernel_work_run(work, size_t(batch));
        benchmark::ClobberMemory();
        ns += clock_ns() - start;
    }
    const double seconds = double(ns) * 1e-9;

    count(state, kernel_work_cost(work), double(state.iterations()) / seconds, roofs);
    if (kernel_case_is_roof(&c) && std::strcmp(c.what, "read") == 0)
        state.counters["huge_pages"] = kernel_fixture_huge_share(fixture);
    kernel_work_close(work);
    report_progress(seconds, name);
}

/* ---- program -------------------------------------------------------------------- */

struct Settings {
    std::vector<int> threads; /* of what is cold; empty: 1 and the machine's default */
    std::string cases_file;   /* names of the only cases to register; "": all */
    placement pinning = PLACEMENT_SPREAD;
};

/* Whether this CPU can run the case with the levels that are switched on. */
bool is_usable(const kernel_case &c)
{
    const char *level = c.isa;

    for (int isa = 0; isa < KERN_N_ISA; isa++)
        if (std::strcmp(isa_name(static_cast<kern_isa>(isa)), level) == 0)
            return (isa_usable() >> isa & 1) != 0;
    return false;
}

/* False: the reason was printed. */
bool register_cases(const Settings &settings, const topology *topo)
{
    std::vector<int> threads = settings.threads;
    std::set<std::string> only;
    err e = ERR_INIT;
    kernel_case *cases;
    size_t n_cases;

    if (threads.empty()) {
        threads.push_back(1);
        if (topo->threads_default > 1)
            threads.push_back(topo->threads_default);
    }
    if (!settings.cases_file.empty()) {
        std::ifstream file(settings.cases_file);
        std::string line;

        if (!file) {
            std::fprintf(stderr, "bench_kernels: --cases: cannot read %s\n",
                         settings.cases_file.c_str());
            return false;
        }
        while (std::getline(file, line))
            only.insert(line);
    }
    if (kernel_cases_all(&cases, &n_cases, threads.data(), threads.size(), &e) !=
        ST_OK) {
        std::fprintf(stderr, "bench_kernels: %s\n", e.msg);
        return false;
    }
    for (const kernel_case *c = cases; c < cases + n_cases; c++) {
        const std::string name = kernel_case_name(c).text;

        if (is_usable(*c) && (settings.cases_file.empty() || only.count(name) != 0))
            benchmark::RegisterBenchmark(name.c_str(), bench_case, *c, name)
                ->Unit(benchmark::kMicrosecond);
    }
    free(cases);
    return true;
}

void add_context(const topology *topo)
{
    std::string levels;

    for (int isa = 0; isa < KERN_N_ISA; isa++)
        if ((isa_usable() >> isa & 1) != 0)
            levels += (levels.empty() ? "" : " ") +
                      std::string(isa_name(static_cast<kern_isa>(isa)));
    benchmark::AddCustomContext("slmbench_version", build_version());
    benchmark::AddCustomContext("slmbench_compiler", build_compiler());
    benchmark::AddCustomContext("slmbench_isa", levels);
    benchmark::AddCustomContext("cpu_model", topo->cpu_model);
    benchmark::AddCustomContext("kernel", topo->kernel);
    benchmark::AddCustomContext("cold_bytes",
                                std::to_string(kernel_fixture_cold_bytes(fixture)));
}

void print_help()
{
    std::puts(
        "bench_kernels - time every kernel that this CPU can run\n"
        "\n"
        "`bench kernels` runs it for you, and makes tables and charts of the result.\n"
        "\n"
        "  --isa-disable=LIST   switch levels off, e.g. avx512vnni,avx2\n"
        "  --threads=LIST       thread counts of cold products (default: 1 and what\n"
        "                       the machine allows)\n"
        "  --placement=P        spread, compact, smt or none (default spread)\n"
        "  --cases=FILE         only the benchmarks named in FILE, one per line\n"
        "  --progress           print a line after every run, and no table\n"
        "\n"
        "Examples:\n"
        "  bench_kernels --benchmark_list_tests\n"
        "  bench_kernels --benchmark_filter=gemv/q4_K/.*/cold\n"
        "  bench_kernels --isa-disable=avx512 --benchmark_filter=gemm\n"
        "\n"
        "The options of google-benchmark:\n");
}

bool disable_isa(const char *list)
{
    uint32_t mask;
    const char *bad;
    int bad_len;

    if (isa_parse_list(list, &mask, &bad, &bad_len) == 0) {
        isa_disable(mask);
        return true;
    }
    std::fprintf(stderr,
                 "bench_kernels: --isa-disable: unknown level '%.*s'; known:", bad_len,
                 bad);
    for (int isa = KERN_ISA_scalar + 1; isa < KERN_N_ISA; isa++)
        std::fprintf(stderr, " %s", isa_name(static_cast<kern_isa>(isa)));
    std::fputs(" amx\n", stderr);
    return false;
}

/* The value of "--name=value"; NULL when arg is another option. */
const char *value_of(const char *arg, const char *name)
{
    const size_t len = std::strlen(name);

    return std::strncmp(arg, name, len) == 0 && arg[len] == '=' ? arg + len + 1
                                                                : nullptr;
}

/* Takes our options out of argv. False: the reason was printed. */
bool take_options(Settings *settings, int *argc, char **argv)
{
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        err e = ERR_INIT;

        if (const char *list = value_of(argv[i], "--isa-disable")) {
            if (!disable_isa(list))
                return false;
        } else if (const char *file = value_of(argv[i], "--cases")) {
            settings->cases_file = file;
        } else if (const char *counts = value_of(argv[i], "--threads")) {
            int_list threads = {nullptr, 0};

            parse_counts(counts, "--threads", "", 1, TOPO_MAX_CPUS, &threads, &e);
            settings->threads.assign(threads.v, threads.v + threads.n);
            free(threads.v);
        } else if (const char *name = value_of(argv[i], "--placement")) {
            choice_parse(&choices_placement, name, "--placement", &settings->pinning,
                         &e);
        } else if (std::strcmp(argv[i], "--progress") == 0) {
            prints_progress = true;
            std::cout.setstate(std::ios_base::failbit);
        } else {
            argv[kept++] = argv[i];
        }
        if (e.code != ST_OK) {
            std::fprintf(stderr, "bench_kernels: %s\n", e.msg);
            return false;
        }
    }
    argv[kept] = nullptr;
    *argc = kept;
    return true;
}

int run(const Settings &settings, const topology *topo)
{
    err e = ERR_INIT;

    if (kernel_fixture_open(&fixture, topo, settings.pinning, &e) != ST_OK) {
        std::fprintf(stderr, "bench_kernels: %s\n", e.msg);
        return 2;
    }
    if (!register_cases(settings, topo))
        return 2;
    add_context(topo);
    const size_t n_run = benchmark::RunSpecifiedBenchmarks();
    kernel_fixture_close(fixture);
    if (interrupted())
        return 130;
    return n_run == 0 ? 2 : any_error ? 1 : 0;
}

} // namespace

int main(int argc, char **argv)
{
    static topology topo;
    Settings settings;
    err e = ERR_INIT;

    if (!take_options(&settings, &argc, argv))
        return 2;
    if (argc > 1 && std::strcmp(argv[1], "--help") == 0)
        print_help();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    if (topology_read(&topo, "", &e) != ST_OK) {
        std::fprintf(stderr, "bench_kernels: %s\n", e.msg);
        return status_exit_code(e.code);
    }
    interrupt_catch();
    return run(settings, &topo);
}
