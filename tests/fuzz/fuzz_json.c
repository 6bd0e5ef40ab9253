/* SPDX-License-Identifier: MIT
 *
 * fuzz_json.c - JSON as others write it
 *
 * What jansson reads by itself is read as the same; what is read is written again,
 * which must be read as the same.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static const struct json_limit limit = {1 << 20, 1 << 16};

static void read_again(json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_t *again;

    if (!text)
        return; /* jansson writes no U+0000 in keys, and has none */
    again = json_try(text, strlen(text), limit, 0);
    if (!again)
        fuzz_fail("our own writing is refused");
    if (!json_equal(value, again))
        fuzz_fail("our own writing is read as something else");
    json_decref(again);
    free(text);
}

static void read_json(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    json_t *plain = json_loadb(text, size, JSON_ALLOW_NUL, NULL), *value = NULL;
    json_t *lossy = json_try(text, size, limit, JSON_LOSSY);
    struct err err = ERR_INIT;

    if (fuzz_accepted(json_read(&value, "it", text, size, limit, 0, &err), &err)) {
        if (plain && !json_equal(plain, value))
            fuzz_fail("it is read as something else than it is");
        if (!json_equal(lossy, value))
            fuzz_fail("well-formed UTF-8 was changed");
        read_again(value);
    } else if (plain && size < limit.values) {
        fuzz_fail("plain JSON is refused: %s", err.msg);
    }
    json_decref(plain);
    json_decref(lossy);
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_json, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"NaN", "a", "\\ud83d", NULL};

    return seed % 2 ? LLVMFuzzerMutate(data, size, max_size)
                    : mutate_json(data, size, max_size, seed, words);
}
