/* SPDX-License-Identifier: MIT
 *
 * dequant.c - stream a tensor through its format's dequantize kernel
 */
#include "engine/dequant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 65536 /* values; a multiple of every format's block */

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
        "the tensor has the type %s, which this program cannot dequantise (it "
        "can: %s)",
        type ? type : number, known);
}

enum status dequant_tensor(const struct gguf *g, const struct gguf_tensor *t,
                           uint32_t isa_mask, dequant_sink_fn *sink, void *arg,
                           struct err *err)
{
    const char *src = gguf_tensor_data(g, t);
    struct kern_set kern;
    enum status st = ST_OK;

    if (t->fmt == KERN_N_FMT)
        return unsupported(t, err);
    float *v = malloc(PIECE * sizeof *v);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "cannot allocate %zu bytes to dequantise in",
                       PIECE * sizeof *v);
    kern_select(&kern, isa_mask);
    for (uint64_t done = 0; done < t->n_elems && !st;) {
        const uint64_t left = t->n_elems - done;
        const size_t n = left < PIECE ? (size_t)left : PIECE;

        kern.dequantize[t->fmt](src, v, n);
        st = sink(arg, v, n, err);
        src += kern_format_bytes(t->fmt, n);
        done += n;
    }
    free(v);
    return st;
}
