/* SPDX-License-Identifier: MIT
 *
 * fuzz_gate_json.c - gate.json, and the reports that are written from it
 *
 * A result that is accepted is written in every form; its JSON is read as the same
 * again.
 */
#include <stdlib.h>

#include "harness/decide/gate/gate_report.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void write_all(const struct gate_result *r)
{
    struct gate_result *again = calloc(1, sizeof *again);
    struct err err = ERR_INIT;
    json_t *object = gate_json(r), *second;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    if (!f || !again || !object)
        fuzz_fail("no memory for a report");
    gate_markdown_write(f, r);
    gate_junit_write(f, r);
    gate_annotations_write(f, r);
    fclose(f);
    free(text);
    if (!fuzz_accepted(gate_json_parse(again, object, "again", &err), &err))
        fuzz_fail("our own writing is refused");
    second = gate_json(again);
    if (!json_equal(object, second))
        fuzz_fail("a result is read as another: %s", json_dumps(second, 0));
    json_decref(second);
    json_decref(object);
    free(again);
}

static void read_result(const uint8_t *data, size_t size)
{
    struct gate_result *r = calloc(1, sizeof *r);
    struct err err = ERR_INIT;

    if (!r)
        fuzz_fail("no memory for a result");
    if (fuzz_accepted(gate_json_read(r, fuzz_file("gate.json", data, size), &err),
                      &err))
        write_all(r);
    free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_result, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "mode",        "ab",           "baseline",  "verdict", "pass",
        "fail",        "inconclusive", "end",       "clear",   "budget",
        "interrupted", "rule",         "metrics",   "rounds",  "name",
        "unit",        "ratio",        "margin",    "|",       "<b>",
        "]]>",         "&amp;",        "::error::", "%0A",     NULL};

    return mutate_json(data, size, max_size, seed, words);
}
