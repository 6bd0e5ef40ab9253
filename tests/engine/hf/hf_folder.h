/* SPDX-License-Identifier: MIT
 *
 * hf_folder.h - model folders of Hugging Face made for a test, and a model's pairs as
 * texts
 *
 * JSON is written with ' for ". A folder is a tree (tree.h).
 */
#ifndef SLM_TESTS_ENGINE_HF_HF_FOLDER_H
#define SLM_TESTS_ENGINE_HF_HF_FOLDER_H

#include "tests/support/hf_vocab.h"
#include "tests/support/tree.h"

static inline void folder_put(const char *root, const char *path, const char *quoted)
{
    char *text = strdup(quoted);

    assert_non_null(text);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    tree_put(root, path, text);
    free(text);
}

/* A file of tensors whose elements are 0, 1, 2, ...; shape: "[2,3]" of F32, or "U8[2]".
 */
struct folder_tensor {
    const char *name, *shape;
};

static inline void folder_put_tensors(const char *root, const char *path,
                                      const struct folder_tensor *t, size_t n_tensors)
{
    char head[4096] = "{", full[256];
    size_t used = 1, end = 0, n[16], size[16];

    assert_true(n_tensors <= 16);
    for (size_t i = 0; i < n_tensors; i++) {
        const char *dims = strchr(t[i].shape, '[');
        const size_t begin = end;
        const bool bytes = !strncmp(t[i].shape, "U8", 2);

        n[i] = 1;
        size[i] = bytes ? 1 : sizeof(float);
        for (const char *at = dims; at && at[1] != ']'; at = strchr(at + 1, ','))
            n[i] *= strtoul(at + 1, NULL, 10);
        end += n[i] * size[i];
        used += (size_t)snprintf(head + used, sizeof head - used,
                                 "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,"
                                 "\"data_offsets\":[%zu,%zu]}",
                                 i ? "," : "", t[i].name, bytes ? "U8" : "F32", dims,
                                 begin, end);
        assert_true(used < sizeof head - 1);
    }
    head[used++] = '}';
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *f = fopen(full, "wb");

    assert_non_null(f);
    for (int i = 0; i < 8; i++)
        fputc((int)((uint64_t)used >> 8 * i & 0xff), f);
    fwrite(head, 1, used, f);
    for (size_t i = 0; i < n_tensors; i++)
        for (size_t k = 0; k < n[i]; k++) {
            const float v = (float)k;
            const unsigned char byte = (unsigned char)k;

            fwrite(size[i] == 1 ? (const void *)&byte : &v, size[i], 1, f);
        }
    fclose(f);
}

/* The value of a pair as a text, elements with blanks between them. */
static inline const char *pair_text(const struct gguf *g, const char *key, char *buf,
                                    size_t cap)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    size_t used = 0;

    buf[0] = '\0';
    for (uint64_t i = 0; kv && i < kv->n && used < cap; i++) {
        const char *gap = i ? " " : "";
        struct gguf_str s;
        int64_t whole;
        double real;
        bool flag;

        if (gguf_elem_str(g, kv, i, &s))
            used += (size_t)snprintf(buf + used, cap - used, "%s%.*s", gap, (int)s.len,
                                     s.data);
        else if (gguf_elem_bool(kv, i, &flag))
            used += (size_t)snprintf(buf + used, cap - used, "%s%s", gap,
                                     flag ? "true" : "false");
        else if (gguf_elem_i64(kv, i, &whole))
            used += (size_t)snprintf(buf + used, cap - used, "%s%lld", gap,
                                     (long long)whole);
        else if (gguf_elem_f64(kv, i, &real))
            used += (size_t)snprintf(buf + used, cap - used, "%s%.6g", gap, real);
    }
    return kv ? buf : "(none)";
}

static inline void assert_pair(const struct gguf *g, const char *key, const char *want,
                               const char *what)
{
    char buf[1024];
    const char *have = pair_text(g, key, buf, sizeof buf);

    if (strcmp(have, want) != 0)
        fail_msg("%s: %s is '%s', not '%s'", what, key, have, want);
}

/* A refusal: its status, a part of its one sentence. */
static inline void assert_refused(enum status st, const struct err *err,
                                  enum status want, const char *message,
                                  const char *what)
{
    if (st != want || !strstr(err->msg, message))
        fail_msg("%s: %d '%s', not %d '%s'", what, (int)st, err->msg, (int)want,
                 message);
    assert_null(strchr(err->msg, '\n'));
}

#endif
