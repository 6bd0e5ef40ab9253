/* SPDX-License-Identifier: MIT
 *
 * bench_kernels.cc - every kernel row that this CPU can run, in google-benchmark
 *
 * The only C++ of the project. One thread, not pinned: for pinned measurements of
 * a whole model use `bench decode`. Names:
 *
 *   gemv/q4_K/avx512vnni/rows:4096/cols:4096/cold
 *   gemm/q4_K/avx512vnni/rows:4096/cols:4096/n_x:64/cold
 *   rmsnorm/avx2/n:4096
 *
 * cold: each call takes the next matrix of a buffer far larger than the last-level
 * cache. hot: one matrix of at most 256 KiB, which stays in the second level.
 * Each row is first checked on a small case: weight rows against dequantised
 * weights in double precision, the others against the scalar row. Nothing is
 * allocated before a benchmark runs, so listing is instant.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

/* C has functions named like structures; C++ warns that they hide constructors. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "engine/mem.h"
#include "kernels/activations/activations.h"
#include "kernels/kernels.h"
}
#pragma GCC diagnostic pop

namespace
{

constexpr size_t kCols = 4096;
constexpr size_t kColdRows = 4096;
constexpr size_t kHotBytes = 256 << 10;
constexpr size_t kMinColdBytes = size_t{512} << 20;

bool any_error = false;

void fail(benchmark::State &state, const std::string &why)
{
    any_error = true;
    state.SkipWithError(why.c_str());
}

const kern_row *scalar_row(kern_op op, int what)
{
    return kern_best(op, what, 1u << KERN_ISA_scalar);
}

std::vector<float> random_floats(size_t n, float scale = 1)
{
    std::minstd_rand generator(1);
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> v(n);

    for (float &x : v)
        x = normal(generator);
    return v;
}

/* ---- weights ---------------------------------------------------------------- */

/* The one large buffer of cold weights, made when first asked for. */
class ColdBuffer
{
  public:
    ~ColdBuffer()
    {
        mem_free(&mem_);
    }

    /* Filled with copies of the blocks in `pattern`; NULL and *why when there is
     * no memory. */
    uint8_t *get(const std::vector<uint8_t> &pattern, const void *key, std::string *why)
    {
        struct err err = ERR_INIT;

        if (mem_.base == nullptr &&
            mem_alloc(&mem_, bytes(), MEM_PAGES_2M, "cold weights", &err) != ST_OK) {
            *why = err.msg;
            return nullptr;
        }
        auto *p = static_cast<uint8_t *>(mem_.base);
        if (key_ != key)
            for (size_t at = 0; at < bytes(); at += pattern.size())
                std::memcpy(p + at, pattern.data(),
                            std::min(pattern.size(), bytes() - at));
        key_ = key;
        return p;
    }

    static size_t bytes()
    {
        const long llc = sysconf(_SC_LEVEL3_CACHE_SIZE);

        return std::max(kMinColdBytes, llc > 0 ? size_t(llc) * 4 : 0);
    }

  private:
    struct mem mem_ = {};
    const void *key_ = nullptr; /* whose pattern it holds */
};

ColdBuffer cold_buffer;

/* n values of a format, quantised from normal random numbers. */
std::vector<uint8_t> random_weights(kern_format format, size_t n)
{
    std::vector<uint8_t> w(kern_format_bytes(format, n));

    scalar_row(KERN_OP_quantize, format)
        ->fn.quantize(random_floats(n, 0.05f).data(), w.data(), n);
    return w;
}

/* Columns of activations, k values each, on 64-byte boundaries. */
struct Columns {
    Columns(kern_act act, size_t k, size_t n)
        : stride(kern_act_bytes(act, k)), floats(random_floats(k * n)),
          storage(stride * n + 64)
    {
        const size_t misfit = reinterpret_cast<uintptr_t>(storage.data()) % 64;

        data = storage.data() + (64 - misfit) % 64;
        for (size_t j = 0; j < n; j++)
            scalar_row(KERN_OP_quantize_act, act)
                ->fn.quantize_act(&floats[j * k], data + j * stride, k);
    }

    size_t stride;
    std::vector<float> floats;
    std::vector<uint8_t> storage;
    uint8_t *data;
};

/* Value i of a column; layouts as in activations.h. */
double act_value(kern_act act, const uint8_t *column, size_t k, size_t i)
{
    switch (act) {
    case KERN_ACT_q8_32:
        return double(act_q8_32_d(column, k)[i / 32]) * act_q(column)[i];
    case KERN_ACT_q8_256:
        return double(act_q8_256_d(column, k)[i / 256]) * act_q(column)[i];
    default:
        return reinterpret_cast<const float *>(column)[i];
    }
}

void run_product(const kern_row *row, size_t rows, size_t k, const void *w,
                 size_t w_stride, size_t n_x, const Columns &x, float *y)
{
    if (row->op == KERN_OP_gemv)
        row->fn.gemv(rows, k, w, w_stride, x.data, y);
    else
        row->fn.gemm(rows, k, w, w_stride, n_x, x.data, x.stride, y, rows);
}

/* Whether a small product is right: 19 rows of 768. */
bool product_is_right(const kern_row *row, size_t n_x)
{
    const size_t rows = 19, k = 768;
    const auto format = static_cast<kern_format>(row->what);
    const kern_act act = kern_format_info(format)->act;
    const std::vector<uint8_t> w = random_weights(format, rows * k);
    const Columns x(act, k, n_x);
    std::vector<float> plain(rows * k), y(rows * n_x);

    scalar_row(KERN_OP_dequantize, format)
        ->fn.dequantize(w.data(), plain.data(), rows * k);
    run_product(row, rows, k, w.data(), w.size() / rows, n_x, x, y.data());
    for (size_t j = 0; j < n_x; j++)
        for (size_t i = 0; i < rows; i++) {
            double dot = 0, terms = 0;

            for (size_t e = 0; e < k; e++) {
                const double term = double(plain[i * k + e]) *
                                    act_value(act, x.data + j * x.stride, k, e);

                dot += term;
                terms += std::fabs(term);
            }
            /* k roundings of 2^-24 each at most */
            if (!(std::fabs(y[j * rows + i] - dot) <= terms * k * 0x1p-24))
                return false;
        }
    return true;
}

void bench_product(benchmark::State &state, const kern_row *row, size_t rows,
                   size_t n_x, bool cold)
{
    const auto format = static_cast<kern_format>(row->what);
    const size_t row_bytes = kern_format_bytes(format, kCols);
    const size_t matrix_bytes = rows * row_bytes;

    if (!product_is_right(row, n_x))
        return fail(state, "wrong result on the small case");

    std::string why;
    const std::vector<uint8_t> pattern =
        random_weights(format, (cold ? 64 : rows) * kCols);
    const uint8_t *w = cold ? cold_buffer.get(pattern, kern_format_info(format), &why)
                            : pattern.data();
    const size_t n_matrices = cold ? ColdBuffer::bytes() / matrix_bytes : 1;
    const Columns x(kern_format_info(format)->act, kCols, n_x);
    std::vector<float> y(rows * n_x);
    size_t turn = 0;

    if (w == nullptr)
        return fail(state, why);
    const auto start = std::chrono::steady_clock::now();
    for (auto _ : state) {
        run_product(row, rows, kCols, w + turn * matrix_bytes, row_bytes, n_x, x,
                    y.data());
        benchmark::ClobberMemory();
        turn = turn + 1 == n_matrices ? 0 : turn + 1;
    }
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    const double calls_per_s = double(state.iterations()) / seconds.count();

    state.counters["GB/s"] = calls_per_s * double(matrix_bytes) * 1e-9;
    state.counters["weights/s"] = calls_per_s * double(rows * kCols);
    state.counters["GOPS"] = calls_per_s * 2.0 * double(rows * kCols * n_x) * 1e-9;
}

void register_product(const kern_row *row)
{
    const auto format = static_cast<kern_format>(row->what);
    const size_t fitting = kHotBytes / kern_format_bytes(format, kCols) / 4 * 4;

    for (const size_t n_x : {1, 4, 64})
        for (const bool cold : {true, false}) {
            const size_t rows = cold ? kColdRows : fitting;
            std::string name = std::string(row->name) +
                               "/rows:" + std::to_string(rows) +
                               "/cols:" + std::to_string(kCols);

            if ((row->op == KERN_OP_gemv) != (n_x == 1))
                continue;
            if (n_x > 1)
                name += "/n_x:" + std::to_string(n_x);
            benchmark::RegisterBenchmark((name + (cold ? "/cold" : "/hot")).c_str(),
                                         bench_product, row, rows, n_x, cold)
                ->Unit(benchmark::kMicrosecond);
        }
}

/* ---- conversions and vector operations ---------------------------------------- */

/* One call on buffers of its own. `out` is what the call wrote. */
struct Call {
    std::function<void()> run;
    std::vector<uint8_t> *out;
    double bytes; /* read and written */
    double ops;
    size_t n_weights; /* 0: no weights are involved */
};

/* Buffers that live as long as the call: the first is written. */
struct Buffers {
    std::vector<uint8_t> out;
    std::vector<uint8_t> blocks;
    std::vector<float> a, b;
    std::vector<uint16_t> halves;

    float *floats()
    {
        return reinterpret_cast<float *>(out.data());
    }
};

constexpr size_t kHeadDim = 128, kHeads = 8;

/* How many elements an operation is timed on; attention: positions. */
size_t usual_n(kern_op op)
{
    switch (op) {
    case KERN_OP_rope:
        return kHeadDim;
    case KERN_OP_silu_mul:
        return 11008;
    case KERN_OP_attn_dot:
    case KERN_OP_attn_mix:
        return 1024;
    default:
        return kCols;
    }
}

Call conversion_call(const kern_row *row, Buffers &m, size_t n)
{
    const double plain = double(n) * sizeof(float);

    m.a = random_floats(n);
    if (row->op == KERN_OP_quantize_act) {
        m.out.assign(kern_act_bytes(static_cast<kern_act>(row->what), n), 0);
        return {[=, &m] { row->fn.quantize_act(m.a.data(), m.out.data(), n); }, &m.out,
                plain + double(m.out.size()), double(n), 0};
    }
    const auto format = static_cast<kern_format>(row->what);

    m.blocks = random_weights(format, n);
    if (row->op == KERN_OP_quantize) {
        m.out.assign(m.blocks.size(), 0);
        return {[=, &m] { row->fn.quantize(m.a.data(), m.out.data(), n); }, &m.out,
                plain + double(m.out.size()), double(n), n};
    }
    m.out.assign(n * sizeof(float), 0);
    return {[=, &m] { row->fn.dequantize(m.blocks.data(), m.floats(), n); }, &m.out,
            plain + double(m.blocks.size()), double(n), n};
}

Call attention_call(const kern_row *row, Buffers &m, size_t n)
{
    const size_t d = kHeadDim, n_q = kHeads;
    const std::vector<float> kv = random_floats(n * d);
    const double cache = double(n * d) * sizeof(uint16_t),
                 ops = 2.0 * double(n_q * n * d);

    m.halves.resize(n * d);
    scalar_row(KERN_OP_to_f16, -1)->fn.to_f16(m.halves.data(), kv.data(), n * d);
    if (row->op == KERN_OP_attn_dot) {
        m.a = random_floats(n_q * d);
        m.out.assign(n_q * n * sizeof(float), 0);
        return {[=, &m] {
                    row->fn.attn_dot(m.floats(), n, m.a.data(), d, m.halves.data(), d,
                                     n_q, n, d, 0.0884f);
                },
                &m.out, cache, ops, 0};
    }
    m.a.assign(n_q * n, 1.0f / float(n));
    m.out.assign(n_q * d * sizeof(float), 0);
    return {[=, &m] {
                row->fn.attn_mix(m.floats(), d, m.a.data(), n, m.halves.data(), d, n_q,
                                 n, d);
            },
            &m.out, cache, ops, 0};
}

/* Operations in place start from the same values at the first call only; their
 * time does not depend on the values. */
Call vector_call(const kern_row *row, Buffers &m, size_t n)
{
    const double column = double(n) * sizeof(float);
    const std::vector<float> start = random_floats(n);

    m.a = random_floats(n);
    m.b = random_floats(n);
    m.out.resize(n * sizeof(float));
    std::memcpy(m.out.data(), start.data(), m.out.size());
    switch (row->op) {
    case KERN_OP_rmsnorm:
        return {
            [=, &m] { row->fn.rmsnorm(m.floats(), m.a.data(), m.b.data(), n, 1e-5f); },
            &m.out, 3 * column, 4.0 * double(n), 0};
    case KERN_OP_rope:
        for (size_t i = 0; i < n; i++)
            m.a[i] = float(i % 2 == 0 ? std::cos(double(i)) : std::sin(double(i - 1)));
        return {[=, &m] { row->fn.rope(m.floats(), m.a.data(), n); }, &m.out,
                3 * column, 3.0 * double(n), 0};
    case KERN_OP_softmax:
        return {[=, &m] { row->fn.softmax(m.floats(), n); }, &m.out, 2 * column,
                4.0 * double(n), 0};
    case KERN_OP_silu_mul:
        return {[=, &m] { row->fn.silu_mul(m.floats(), m.a.data(), m.b.data(), n); },
                &m.out, 3 * column, 4.0 * double(n), 0};
    case KERN_OP_add:
        return {[=, &m] { row->fn.add(m.floats(), m.a.data(), n); }, &m.out, 3 * column,
                double(n), 0};
    default: /* to_f16 */
        return {[=, &m] {
                    row->fn.to_f16(reinterpret_cast<uint16_t *>(m.out.data()),
                                   m.a.data(), n);
                },
                &m.out, 1.5 * column, double(n), 0};
    }
}

Call make_call(const kern_row *row, Buffers &m, size_t n)
{
    switch (row->op) {
    case KERN_OP_quantize:
    case KERN_OP_dequantize:
    case KERN_OP_quantize_act:
        return conversion_call(row, m, n);
    case KERN_OP_attn_dot:
    case KERN_OP_attn_mix:
        return attention_call(row, m, n);
    default:
        return vector_call(row, m, n);
    }
}

/* Whether one call writes what the scalar row writes: the same bytes where the
 * result is not an array of floats, else values that differ by rounding. */
bool call_is_right(const kern_row *row, size_t n)
{
    Buffers got, want;
    const kern_row *scalar = scalar_row(row->op, row->what);
    float largest = 0;

    make_call(row, got, n).run();
    make_call(scalar, want, n).run();
    if (row->op == KERN_OP_quantize || row->op == KERN_OP_quantize_act ||
        row->op == KERN_OP_to_f16)
        return got.out == want.out;
    const size_t count = want.out.size() / sizeof(float);
    for (size_t i = 0; i < count; i++)
        largest = std::max(largest, std::fabs(want.floats()[i]));
    for (size_t i = 0; i < count; i++)
        if (!(std::fabs(got.floats()[i] - want.floats()[i]) <= 1e-5f * largest))
            return false;
    return true;
}

void bench_call(benchmark::State &state, const kern_row *row, size_t n)
{
    Buffers m;

    if (!call_is_right(row, 256))
        return fail(state, "differs from the scalar row on the small case");
    const Call call = make_call(row, m, n);
    const auto start = std::chrono::steady_clock::now();
    for (auto _ : state) {
        call.run();
        benchmark::ClobberMemory();
    }
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    const double calls_per_s = double(state.iterations()) / seconds.count();

    state.counters["GB/s"] = calls_per_s * call.bytes * 1e-9;
    state.counters["GOPS"] = calls_per_s * call.ops * 1e-9;
    if (call.n_weights > 0)
        state.counters["weights/s"] = calls_per_s * double(call.n_weights);
}

/* ---- program -------------------------------------------------------------------- */

void register_rows()
{
    size_t n_rows;
    const kern_row *rows = kern_rows(&n_rows);

    for (const kern_row *row = rows; row < rows + n_rows; row++) {
        if ((isa_usable() >> row->isa & 1) == 0)
            continue;
        if (row->op == KERN_OP_gemv || row->op == KERN_OP_gemm) {
            register_product(row);
            continue;
        }
        const size_t n = usual_n(row->op);
        const std::string name = std::string(row->name) + "/n:" + std::to_string(n);
        benchmark::RegisterBenchmark(name.c_str(), bench_call, row, n);
    }
}

void print_help()
{
    std::puts("bench_kernels - time every kernel that this CPU can run\n"
              "\n"
              "  --isa-disable=LIST   switch levels off, e.g. avx512vnni,avx2\n"
              "\n"
              "Examples:\n"
              "  bench_kernels --benchmark_list_tests\n"
              "  bench_kernels --benchmark_filter=gemv/q4_K/.*/cold\n"
              "  bench_kernels --isa-disable=avx512 --benchmark_filter=gemm\n"
              "\n"
              "The options of google-benchmark:\n");
}

/* Takes --isa-disable=LIST out of argv. False: said why. */
bool take_isa_options(int *argc, char **argv)
{
    static const char option[] = "--isa-disable";
    const size_t len = sizeof(option) - 1;
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        uint32_t mask;
        const char *bad;
        int bad_len;

        if (std::strncmp(argv[i], option, len) != 0) {
            argv[kept++] = argv[i];
            continue;
        }
        if (argv[i][len] != '=') {
            std::fprintf(stderr, "bench_kernels: write %s=LIST, got '%s'\n", option,
                         argv[i]);
            return false;
        }
        if (isa_parse_list(argv[i] + len + 1, &mask, &bad, &bad_len) != 0) {
            std::fprintf(stderr,
                         "bench_kernels: %s: unknown level '%.*s'; known:", option,
                         bad_len, bad);
            for (int isa = KERN_ISA_scalar + 1; isa < KERN_N_ISA; isa++)
                std::fprintf(stderr, " %s", isa_name(static_cast<kern_isa>(isa)));
            std::fputc('\n', stderr);
            return false;
        }
        isa_disable(mask);
    }
    argv[kept] = nullptr;
    *argc = kept;
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    if (!take_isa_options(&argc, argv))
        return 2;
    if (argc > 1 && std::strcmp(argv[1], "--help") == 0)
        print_help();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    register_rows();
    if (benchmark::RunSpecifiedBenchmarks() == 0)
        return 2;
    return any_error ? 1 : 0;
}
