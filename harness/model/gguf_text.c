/* SPDX-License-Identifier: MIT
 *
 * gguf_text.c - a GGUF file described for people
 */
#include "harness/model/gguf_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/gguf/census.h"
#include "engine/gguf/gguf_panels.h"
#include "harness/base/format.h"

#define SHOWN_ELEMS 6

/* The shortest decimal that reads back as the same value. */
static void print_number(double v, bool is_float)
{
    char text[40];

    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        const double back = strtod(text, NULL);

        if (back == v || (is_float && (float)back == (float)v))
            break;
    }
    fputs(text, stdout);
}

/* With the quote before it, which is why no command can begin there. */
static const char *quoted(char *buf, size_t cap, const struct gguf_str *s)
{
    buf[0] = '"';
    utf8_printable(buf + 1, cap - 1, s->data, s->len);
    utf8_disarm(buf);
    return buf;
}

static void print_elem(const struct gguf *g, const struct gguf_kv *kv, uint64_t i)
{
    struct gguf_str s;
    char shown[72];
    uint64_t u;
    int64_t n;
    double d;

    if (gguf_elem_str(g, kv, i, &s))
        printf("%s\"", quoted(shown, sizeof shown, &s));
    else if (kv->elem_type == GGUF_BOOL)
        fputs(((const unsigned char *)kv->data)[i] ? "true" : "false", stdout);
    else if (gguf_elem_u64(kv, i, &u))
        printf("%" PRIu64, u);
    else if (gguf_elem_i64(kv, i, &n))
        printf("%" PRId64, n);
    else if (gguf_elem_f64(kv, i, &d))
        print_number(d, kv->elem_type == GGUF_F32);
}

static void print_kv(const struct gguf *g, const struct gguf_kv *kv)
{
    char key[96];

    utf8_harmless(key, sizeof key, kv->key.data, kv->key.len);
    if (kv->type != GGUF_ARRAY) {
        printf("  %-40s ", key);
        print_elem(g, kv, 0);
        putchar('\n');
        return;
    }
    printf("  %-40s %" PRIu64 " x %s: ", key, kv->n, gguf_type_name(kv->elem_type));
    for (uint64_t i = 0; i < kv->n && i < SHOWN_ELEMS; i++) {
        if (i)
            fputs(", ", stdout);
        print_elem(g, kv, i);
    }
    puts(kv->n > SHOWN_ELEMS ? ", ..." : "");
}

static const char *type_name(uint32_t id, char *buf, size_t cap)
{
    const char *name = gguf_ggml_name(id);

    if (name)
        return name;
    if (id == CENSUS_UNKNOWN_TYPES)
        snprintf(buf, cap, "unknown");
    else
        snprintf(buf, cap, "type %" PRIu32, id);
    return buf;
}

static const char *shape_text(const struct gguf_tensor *t, char *buf, size_t cap)
{
    buf[0] = '\0';
    for (int d = 0; d < t->n_dims; d++)
        text_append(buf, cap, "%s%" PRIu64, d ? " x " : "", t->ne[d]);
    return buf;
}

static void print_tensors(const struct gguf *g)
{
    size_t width = 4;

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const size_t n = strlen(gguf_tensor_at(g, i)->name);

        width = n > width ? n : width;
    }
    width = width < 40 ? width : 40;
    printf("\ntensors\n  %-*s  %-8s  %-20s  %12s\n", (int)width, "name", "type",
           "shape", "bytes");
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        char name[128], type[24], shape[96];

        printf("  %-*s  %-8s  %-20s  ", (int)width,
               text_harmless(name, sizeof name, t->name),
               type_name(t->ggml_id, type, sizeof type),
               shape_text(t, shape, sizeof shape));
        if (t->bytes)
            printf("%12" PRIu64, t->bytes);
        else
            printf("%12s", "?");
        puts(t->panel_rows ? "  in panels" : "");
    }
}

/* "8.83 B", "260.0 K". */
static const char *count_text(char *buf, size_t cap, uint64_t n)
{
    if (n >= 1000000000)
        snprintf(buf, cap, "%.2f B", (double)n / 1e9);
    else if (n >= 1000000)
        snprintf(buf, cap, "%.1f M", (double)n / 1e6);
    else if (n >= 1000)
        snprintf(buf, cap, "%.1f K", (double)n / 1e3);
    else
        snprintf(buf, cap, "%d", (int)n);
    return buf;
}

static void print_types(const struct census *c)
{
    char a[32], type[24];

    printf("\n  %-10s  %8s  %10s  %10s\n", "type", "tensors", "weights", "bytes");
    for (int i = 0; i < c->n_types; i++) {
        const struct census_type *t = &c->types[i];

        printf("  %-10s  %8" PRIu64 "  %10s  %10s\n",
               type_name(t->ggml_id, type, sizeof type), t->n_tensors,
               count_text(a, sizeof a, t->n_elems),
               t->bytes ? bytes_text(t->bytes).text : "?");
    }
}

static void print_older_layout(const struct census *c)
{
    for (int i = 0; i < c->n_types; i++)
        if (c->types[i].ggml_id == GGUF_Q2_0_128)
            puts(
                "\n  q2_0_128 is the older layout of type 42 (q2_0): 128 weights in 34 "
                "bytes, not 64\n  in 18. The tensors' places in the file show which "
                "one it is.");
}

static void print_str_line(const struct gguf *g, const char *label, const char *key)
{
    struct gguf_str s;
    char shown[72];

    if (gguf_get_str(g, key, &s))
        printf("  %-20s %s\n", label,
               utf8_harmless(shown, sizeof shown, s.data, s.len));
}

/* Weights of the types whose bytes are counted. */
static double n_sized(const struct census *c)
{
    double n = 0;

    for (int i = 0; i < c->n_types; i++)
        n += c->types[i].bytes ? (double)c->types[i].n_elems : 0;
    return n;
}

static void print_packed(const struct gguf *g)
{
    size_t n = 0;

    if (!gguf_is_packed(g))
        return;
    for (size_t i = 0; i < gguf_n_tensors(g); i++)
        n += gguf_tensor_at(g, i)->panel_rows > 0;
    printf("  %-20s layout %u, %zu tensor%s in panels\n", "packed file",
           GGUF_LAYOUT_VERSION, n, plural(n, "s"));
}

static void print_summary(const struct gguf *g)
{
    struct census c;
    char text[256];

    census_take(&c, g);
    printf("%s\n", format_path(gguf_path(g)).text);
    printf("  %-20s GGUF version %" PRIu32 ", %s, alignment %" PRIu32 "\n", "format",
           gguf_version(g), bytes_text(gguf_image_bytes(g)).text, gguf_alignment(g));
    print_packed(g);
    print_str_line(g, "architecture", "general.architecture");
    print_str_line(g, "name", "general.name");
    printf("  %-20s %zu metadata entr%s, %zu tensor%s\n", "contents", gguf_n_kvs(g),
           gguf_n_kvs(g) == 1 ? "y" : "ies", gguf_n_tensors(g),
           plural(gguf_n_tensors(g), "s"));
    if (gguf_n_tensors(g) == 0)
        return;
    printf("  %-20s %s", "weights", count_text(text, sizeof text, c.n_params));
    printf(" in %s", bytes_text(c.bytes).text);
    if (c.bytes)
        printf(", %.2f bits each", 8.0 * (double)c.bytes / n_sized(&c));
    printf("\n  %-20s %s (%" PRIu64 " bytes)", "read per token",
           bytes_text(c.token_bytes).text, c.token_bytes);
    if (c.n_experts)
        printf(", with %" PRIu64 " of %" PRIu64 " experts", c.n_experts_used,
               c.n_experts);
    else if (c.tied_output)
        fputs(", the embedding serving as the output matrix", stdout);
    else if (c.is_encoder)
        fputs(", an encoder without an output matrix (`bench embed`)", stdout);
    if (c.unread_bytes)
        printf("\n  %-20s %s of layers that %s", "not read",
               bytes_text(c.unread_bytes).text,
               c.n_layers_own_kv == UINT64_MAX ? "predict further tokens"
                                               : "share keys and values of others");
    putchar('\n');
    print_types(&c);
    print_older_layout(&c);
    if (gguf_ggml_name(c.types[c.n_types - 1].ggml_id) == NULL)
        puts("\n  Types unknown to this program have no size; their bytes are not "
             "counted.");
}

void gguf_report_text(const struct gguf *g, struct gguf_report_parts parts)
{
    print_summary(g);
    if (parts.metadata && gguf_n_kvs(g)) {
        puts("\nmetadata");
        for (size_t i = 0; i < gguf_n_kvs(g); i++)
            print_kv(g, gguf_kv_at(g, i));
    }
    if (parts.tensors && gguf_n_tensors(g))
        print_tensors(g);
}
