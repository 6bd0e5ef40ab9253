/* SPDX-License-Identifier: MIT
 *
 * fuzz_prices_yaml.c - prices of machines, as YAML
 */
#include "harness/judge/compare/prices.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void read_prices(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("p.yaml", data, size);
    struct prices prices;
    struct err err = ERR_INIT;

    if (!fuzz_accepted(prices_load(&prices, path, &err), &err))
        return;
    for (size_t i = 0; i < prices.n; i++)
        if (!(prices.v[i].per_hour >= 0 && prices.v[i].per_hour < 1e300))
            fuzz_fail("a price of %g", prices.v[i].per_hour);
    prices_find(&prices, "zen5-2vcpu-busy");
    prices_free(&prices);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_prices, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"prices", "machine", "per_hour", "currency",
                                        "what",   "source",  "date",     "USD",
                                        "0.1",    "*",       "[a-z]*",   NULL};

    return mutate_text(data, size, max_size, seed, words);
}
