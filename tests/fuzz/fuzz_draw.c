/* SPDX-License-Identifier: MIT
 *
 * fuzz_draw.c - scripts of charts and their data, drawn without gnuplot
 */
#include <stdlib.h>
#include <string.h>

#include "harness/chart/draw.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

/* Scripts have loops: what bounds them is a number of steps, and 64 MiB of texts. */
static const struct fuzz_bound bound = {
    .cpu_s = 10, .cpu_s_per_byte = 4e-6, .bytes = 256u << 20, .bytes_per_byte = 2000};

/* A script, and behind a 0 its data. */
static void draw(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 2), *svg = NULL;
    size_t len = 0;
    struct err err = ERR_INIT;

    if (!text)
        return;
    memcpy(text, data, size);
    FILE *f = open_memstream(&svg, &len);

    if (f) {
        fuzz_accepted(draw_svg(text, text + strlen(text) + 1, f, &err), &err);
        fclose(f);
    }
    free(svg);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(draw, data, size, &bound);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "set ",        "unset ",  "label",  "arrow",      "plot ",
        "data using ", "with ",   "points", "boxxyerror", "labels",
        "for ",        "do for ", "eval ",  "array ",     "sprintf(",
        "column(",     "screen ", "[i=1:",  "rgb ",       NULL};

    return mutate_text(data, size, max_size, seed, words);
}
