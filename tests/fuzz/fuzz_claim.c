/* SPDX-License-Identifier: MIT
 *
 * fuzz_claim.c - published speeds, read and judged
 *
 * What is read is a number that can be, and it is the same in whatever order its parts
 * are, so nothing that was given is replaced by another part.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/decide/predict/claim.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

#define MAX_TEXT 600 /* longer ones are refused as a whole */

/* The parts between ", ", from the last to the first. */
static void turn_round(char *out, const char *text)
{
    size_t end = strlen(text);

    *out = '\0';
    for (size_t at = end + 1; at-- > 0;) {
        if (at && (at < 2 || text[at - 2] != ',' || text[at - 1] != ' '))
            continue;
        strncat(out, text + at, end - at);
        if (at)
            strcat(out, ", ");
        end = at ? at - 2 : 0;
    }
}

static bool is_figure(double v)
{
    return isfinite(v) && v >= 0;
}

static void check_claim(const struct claim *c)
{
    if (!is_figure(c->tok_per_s) || !is_figure(c->bytes) || !is_figure(c->gbps) ||
        c->n_threads < 0 || c->ctx < 0 || !(c->tok_per_s > 0))
        fuzz_fail("%g tok/s, %g bytes, %g GB/s, %d threads, context %d", c->tok_per_s,
                  c->bytes, c->gbps, c->n_threads, c->ctx);
}

/* A shape without a size is for the planner, which starts processes. */
static void judge(const struct claim *claim)
{
    static struct candidate c;
    const struct share_band share = {.lo = 0.8, .mid = 0.9, .hi = 1};
    struct claim_answer answer;

    if (!(claim->bytes > 0))
        return;
    memset(&c, 0, sizeof c);
    memcpy(c.name, "a CPU", 6);
    memcpy(c.from, "a sheet", 8);
    c.roofs.read_gbps = 40;
    c.roof_lo = c.roof_hi = 1;
    c.max_gbps = 50;
    claim_judge(&answer, claim, 1, &c, &share);
    if (!answer.sentence[0] || !is_figure(answer.need_gbps))
        fuzz_fail("%g GB/s: '%s'", answer.need_gbps, answer.sentence);
    json_decref(claim_json(claim, &answer, &c));
}

static void read_claim(const uint8_t *data, size_t size)
{
    char text[MAX_TEXT], turned[2 * MAX_TEXT] = "";
    struct claim claim, other;
    struct err err = ERR_INIT;
    bool same;

    snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text ? size : MAX_TEXT - 1),
             size ? (const char *)data : "");
    turn_round(turned, text);
    same = fuzz_accepted(claim_parse(&claim, text, &err), &err) ==
           fuzz_accepted(claim_parse(&other, turned, &err), &err);
    if (!claim_parse(&claim, text, &err)) {
        check_claim(&claim);
        if (!same || memcmp(&claim.tok_per_s, &other.tok_per_s, sizeof(double)) != 0 ||
            claim.n_threads != other.n_threads || claim.ctx != other.ctx ||
            strcmp(claim.model, other.model) || strcmp(claim.quant, other.quant) ||
            strcmp(claim.cpu, other.cpu))
            fuzz_fail("in another order it is another claim: '%s'", turned);
        judge(&claim);
    }
    err_clear(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_claim, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"tok/s",      "TPS",      "tokens per second",
                                        "GB",         "Gb",       "gib",
                                        "GB/s",       "Gbit/s",   "threads",
                                        "cores",      "ctx",      "llama-2-7b",
                                        "Llama 2 7B", "qwen3-4b", ":Q4_0",
                                        "Q8_0",       "1,5",      "1.5",
                                        "0.5",        "1e9",      "1,234",
                                        "ryzen",      ", ",       ",",
                                        ".",          "5 tok/s",  "4 GB",
                                        "51 GB/s",    NULL};

    return mutate_text(data, size, max_size, seed, words);
}
