/* SPDX-License-Identifier: MIT
 *
 * quantize_report.c - plan and result of quantising as text
 */
#include "harness/model/filework.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/progress.h"

static const char *type_name(const struct gguf_tensor *t)
{
    return kern_format_info(t->fmt)->name;
}

static bool is_float(enum kern_format fmt)
{
    return kern_format_info(fmt)->block_elems == 1;
}

/* Whether the mix would give this matrix another format if its rows were longer. */
static bool is_fallback(const struct gguf *from, const struct gguf_tensor *t,
                        const struct requant_params *p)
{
    struct gguf_tensor longer = *t;

    if (t->ne[0] % 256 == 0)
        return false;
    longer.ne[0] = (t->ne[0] + 255) / 256 * 256;
    return requant_format(p, from, &longer) != requant_format(p, from, t);
}

/* Whether positions turn in a way that GGUF has no key for. */
static bool has_own_rope(const struct gguf *made)
{
    static const char own[] = ".rope.scaling.yarn_truncate";

    for (size_t i = 0; i < gguf_n_kvs(made); i++) {
        const struct gguf_str key = gguf_kv_at(made, i)->key;

        if (key.len >= sizeof own - 1 &&
            !memcmp(key.data + key.len - (sizeof own - 1), own, sizeof own - 1))
            return true;
    }
    return false;
}

/* What keeps other engines from the file, or gives them other tokens. */
static void remark_elsewhere(const struct gguf *made)
{
    static const char own[] = "slmbench.tokenizer.", patterns[] = "slmbench-patterns",
                      own_model[] = "slmbench-";
    struct gguf_str model, pre = {NULL, 0};
    char text[256];

    if (has_own_rope(made))
        message_print(
            "other engines will compute slightly different logits: they round "
            "the ends of YaRN's ramp, which the model's config.json forbids "
            "(truncate is false)");
    if (!gguf_get_str(made, "tokenizer.ggml.model", &model)) {
        message_print(
            "the file will have no vocabulary, so other engines will refuse it");
        return;
    }
    if (model.len >= sizeof own_model - 1 &&
        !memcmp(model.data, own_model, sizeof own_model - 1)) {
        snprintf(text, sizeof text,
                 "other engines will refuse the file: GGUF has no name for its kind of "
                 "tokenizer (tokenizer.ggml.model is %.*s)",
                 (int)(model.len < 64 ? model.len : 64), model.data);
        message_print(text);
        return;
    }
    gguf_get_str(made, "tokenizer.ggml.pre", &pre);
    if (pre.len == sizeof patterns - 1 && !memcmp(pre.data, patterns, pre.len)) {
        message_print(
            "other engines will refuse the file: its tokenizer splits texts by "
            "patterns that GGUF has no name for (tokenizer.ggml.pre is "
            "slmbench-patterns)");
        return;
    }
    for (size_t i = 0; i < gguf_n_kvs(made); i++) {
        const struct gguf_str key = gguf_kv_at(made, i)->key;

        if (key.len < sizeof own - 1 || memcmp(key.data, own, sizeof own - 1) != 0)
            continue;
        snprintf(
            text, sizeof text,
            "other engines may make other tokens of some texts: they do not read %.*s",
            (int)(key.len < 100 ? key.len : 100), key.data);
        message_print(text);
        return;
    }
}

void quantize_remark(const struct gguf *from, const struct gguf *made,
                     const struct requant_params *p)
{
    const struct gguf_tensor *again = NULL, *fallback = NULL;
    size_t n_fallback = 0, n_alike = 0;

    for (size_t i = 0; i < gguf_n_tensors(from); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(from, i);
        const struct gguf_tensor *to = gguf_tensor_find(made, t->name);

        if (!to) /* a scale that is in the weights now */
            continue;
        if (t->fmt != to->fmt && !is_float(t->fmt))
            again = t;
        if (is_fallback(from, t, p)) {
            fallback = fallback ? fallback : to;
            n_fallback++;
        }
        n_alike += p->imatrix && !is_float(to->fmt) && to->fmt != t->fmt &&
                   strcmp(t->name, "output.weight") != 0 &&
                   strcmp(t->name, "token_embd.weight") != 0 &&
                   !imatrix_find(p->imatrix, t->name);
    }
    if (again)
        fprintf(stderr,
                "bench: weights that are quantised already are quantised again (%s is "
                "%s); from the F32, F16 or BF16 model the result would be better\n",
                again->name, type_name(again));
    if (!p->imatrix && quantmix_wants_importance(p->mix))
        fprintf(stderr,
                "bench: %s without an importance matrix costs much quality; make one "
                "with `bench imatrix` and give it with --imatrix\n",
                quantmix_name(p->mix));
    if (n_alike)
        fprintf(stderr,
                "bench: the importance matrix lacks %zu matrices; all their columns "
                "count alike\n",
                n_alike);
    if (n_fallback)
        fprintf(stderr,
                "bench: rows of %zu tensors are no multiple of the block of their "
                "format; they take another one (%s: %s)\n",
                n_fallback, format_path(fallback->name).text, type_name(fallback));
    remark_elsewhere(made);
}

void quantize_print_plan(const struct gguf *from, const struct gguf *made)
{
    printf("%-36s %-22s %-8s %-8s %14s\n", "tensor", "shape", "from", "to", "bytes");
    for (size_t i = 0; i < gguf_n_tensors(made); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(made, i);
        const struct gguf_tensor *of = gguf_tensor_find(from, t->name);
        char shape[96] = "", name[96];

        for (int d = 0; d < t->n_dims; d++)
            text_append(shape, sizeof shape, "%s%" PRIu64, d ? " x " : "", t->ne[d]);
        printf("%-36s %-22s %-8s %-8s %14" PRIu64 "\n",
               text_harmless(name, sizeof name, t->name), shape,
               of ? type_name(of) : "none", type_name(t), t->bytes);
    }
}

static uint64_t total_elems(const struct gguf *g)
{
    uint64_t n = 0;

    for (size_t i = 0; i < gguf_n_tensors(g); i++)
        n += gguf_tensor_at(g, i)->n_elems;
    return n;
}

static void print_measure(const struct requant_measure *m, bool weighed)
{
    if (!m->n || !(m->square2 > 0)) {
        printf("   as it was\n");
        return;
    }
    printf("   RMSE %.4g, %.3f %% of the weights'", sqrt(m->error2 / (double)m->n),
           100 * sqrt(m->error2 / m->square2));
    if (weighed)
        printf(", %.3f %% weighed", 100 * sqrt(m->weighed_error2 / m->weighed_square2));
    printf("\n");
}

static void print_formats(const struct gguf *made, const struct requant_params *p)
{
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        uint64_t bytes = 0;
        size_t n = 0;

        for (size_t i = 0; i < gguf_n_tensors(made); i++) {
            const struct gguf_tensor *t = gguf_tensor_at(made, i);

            n += (int)t->fmt == fmt;
            bytes += (int)t->fmt == fmt ? t->bytes : 0;
        }
        if (!n)
            continue;
        printf("  %-8s %4zu tensor%s %10s",
               kern_format_info((enum kern_format)fmt)->name, n, n == 1 ? " " : "s",
               bytes_text(bytes).text);
        if (p->measures)
            print_measure(&p->measures[fmt], p->imatrix != NULL);
        else
            printf("\n");
    }
}

void quantize_print_result(const char *out, const struct gguf *from,
                           const struct gguf *made, const struct requant_params *p,
                           double seconds)
{
    const double elems = (double)total_elems(made);
    const uint64_t bytes = gguf_image_bytes(made);

    printf("%s: %s%s, %s from %s, %.2f bits per weight",
           out ? format_path(out).text : "would be", quantmix_name(p->mix),
           p->pure ? " (one format)" : "", bytes_text(bytes).text,
           bytes_text(gguf_image_bytes(from)).text, 8.0 * (double)bytes / elems);
    if (out)
        printf(", in %s (%.1f M weights/s)", duration_text(seconds).text,
               elems / seconds * 1e-6);
    printf("\n");
    print_formats(made, p);
}
