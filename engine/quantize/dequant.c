/* SPDX-License-Identifier: MIT
 *
 * dequant.c - pass a tensor in pieces through its format's dequantize kernel
 */
#include "engine/quantize/dequant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 65536 /* values in whole rows, or one longer row */

static enum status unsupported(const struct gguf_tensor *t, struct err *err)
{
    const char *type = gguf_ggml_name(t->ggml_id);
    char known[200] = "", number[32];

    for (int f = 0; f < KERN_N_FMT; f++) {
        const size_t n = strlen(known);

        snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "",
                 kern_format_info((enum kern_format)f)->name);
    }
    snprintf(number, sizeof number, "number %u", t->ggml_id);
    return err_set(
        err, ST_UNSUPPORTED,
        "the tensor has the type %s, which this program cannot dequantise (it can: %s)",
        type ? type : number, known);
}

enum status dequant_tensor(const struct gguf *g, const struct gguf_tensor *t,
                           uint32_t isa_mask, dequant_sink_fn *sink, void *arg,
                           struct err *err)
{
    struct kern_set kern;
    enum status st = ST_OK;

    if (t->fmt == KERN_N_FMT)
        return unsupported(t, err);
    const uint64_t n_rows = t->n_elems / t->ne[0];
    const uint64_t most = t->ne[0] < PIECE ? PIECE / t->ne[0] : 1;
    const size_t n_max = (size_t)((most < n_rows ? most : n_rows) * t->ne[0]);
    float *v = malloc(n_max * sizeof *v);
    void *raw = malloc(kern_format_bytes(t->fmt, n_max));

    if (!v || !raw)
        st = err_set(err, ST_NO_MEMORY, "cannot allocate %zu bytes for dequantising",
                     2 * n_max * sizeof *v);
    kern_select(&kern, isa_mask);
    for (uint64_t row = 0; row < n_rows && !st; row += most) {
        const uint64_t n = n_rows - row < most ? n_rows - row : most;

        st = gguf_read_rows(g, t, row, n, false, raw, err);
        if (st)
            break;
        kern.dequantize[t->fmt](raw, v, (size_t)(n * t->ne[0]));
        st = sink(arg, v, (size_t)(n * t->ne[0]), err);
    }
    free(raw);
    free(v);
    return st;
}
