/* SPDX-License-Identifier: MIT
 *
 * fuzz_engine.c - what other programs print, and how a user names them
 *
 * The first byte chooses: the text of an engine, the JSON of llama-bench, JSON with a
 * path, or a text that a regular expression is for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/engines/engine.h"
#include "harness/measure/engines/engine_output.h"
#include "harness/measure/engines/engine_talk.h"
#include "tests/fuzz/support/oracle.h"

static struct engine_figures figures;

static void check(enum status st, struct err *err)
{
    if (!fuzz_accepted(st, err))
        return;
    for (size_t i = 0; i < figures.n; i++)
        if (!(figures.tok_per_s[i] > 0) || !isfinite(figures.tok_per_s[i]))
            fuzz_fail("a figure of %g", figures.tok_per_s[i]);
    if (!figures.n && !(figures.mean > 0))
        fuzz_fail("no figure");
}

static void use_text(const char *text)
{
    struct err err = ERR_INIT;
    struct engine e;

    if (!fuzz_accepted(engine_parse(&e, text, "--engine", &err), &err))
        return;
    for (int i = 0; i < e.n_words; i++)
        if (engine_word(&e, i) + strlen(engine_word(&e, i)) >= e.words + sizeof e.words)
            fuzz_fail("a word beyond its buffer");
}

static void read_versions(const char *text, size_t size)
{
    char a[64] = "", b[64] = "";

    engine_read_server_version(a, sizeof a, text, size);
    engine_read_version_words(b, sizeof b, text);
    if (strpbrk(a, "\n\r\033") || strpbrk(b, "\n\r\033"))
        fuzz_fail("a version with a control character");
}

static void read_output(const uint8_t *data, size_t size)
{
    const struct engine_requested asked = {.n_gen = 8, .n_threads = 2};
    struct err err = ERR_INIT;
    char *text = malloc(size + 1);

    if (!text || !size) {
        free(text);
        return;
    }
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    size--;
    switch (data[0] & 3) {
    case 0:
        use_text(text);
        break;
    case 1:
        check(engine_read_llama_bench(&figures, text, size, &asked, &err), &err);
        break;
    case 2:
        read_versions(text, size);
        check(engine_read_json(&figures, text, size, "results.0.tps", &err), &err);
        break;
    default:
        check(engine_read_regex(&figures, text, size, "([0-9.]+) *tok/s", &err), &err);
        break;
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_output, data, size < ENGINE_MAX_OUTPUT ? size : 0, FUZZ_BOUND);
}
