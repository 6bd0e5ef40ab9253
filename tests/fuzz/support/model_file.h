/* SPDX-License-Identifier: MIT
 *
 * model_file.h - a GGUF image read, and used as far as a reader of models uses it
 *
 * Threading: one input at a time.
 */
#ifndef SLM_TESTS_FUZZ_MODEL_FILE_H
#define SLM_TESTS_FUZZ_MODEL_FILE_H

#include <stdlib.h>
#include <string.h>

#include "engine/gguf/gguf.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/support/oracle.h"

/* A copy that begins at a multiple of 64, as gguf_parse() wants it, and ends with its
 * last byte; to be freed. */
static inline void *image_copy(const void *data, size_t size)
{
    void *image = NULL;

    if (!data || posix_memalign(&image, 64, size))
        fuzz_fail("no memory for an image of %zu bytes", size);
    memcpy(image, data, size);
    return image;
}

/* Every byte that the metadata promises. */
static inline uint64_t image_read_metadata(const struct gguf *g)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);

        for (uint64_t k = 0; k < kv->n; k++) {
            struct gguf_str s;
            int64_t v = 0;
            double d = 0;

            if (gguf_elem_str(g, kv, k, &s)) {
                for (size_t c = 0; c < s.len; c++)
                    sum += (unsigned char)s.data[c];
            }
            sum += gguf_elem_i64(kv, k, &v) + gguf_elem_f64(kv, k, &d);
        }
    }
    return sum;
}

/* Every row of a tensor in panels, by reading all, and some after the other. */
static inline uint64_t image_read_panels(const struct gguf *g,
                                         const struct gguf_tensor *t)
{
    const uint64_t n_rows = t->n_elems / t->ne[0], some = n_rows / 3 + 1;
    const uint64_t row_bytes = t->bytes / n_rows;
    unsigned char *rows = malloc((size_t)t->bytes + 1);
    unsigned char *all = malloc((size_t)t->bytes + 1);
    struct err err = ERR_INIT;
    uint64_t sum = 0;

    if (!rows || !all)
        fuzz_fail("no memory for a tensor of %zu bytes", (size_t)t->bytes);
    if (t->panel_rows > t->ne[1] || t->panel_rows % KERN_PANEL_ROWS)
        fuzz_fail("%d of %d rows in panels", (int)t->panel_rows, (int)t->ne[1]);
    if (fuzz_accepted(gguf_read_rows(g, t, 0, n_rows, false, all, &err), &err)) {
        for (uint64_t row = 0; row < n_rows; row += some) {
            const uint64_t n = n_rows - row < some ? n_rows - row : some;

            if (!fuzz_accepted(gguf_read_rows(g, t, row, n, false, rows, &err), &err) ||
                memcmp(rows, all + row * row_bytes, n * row_bytes) != 0)
                fuzz_fail("row %zu is another than among all", (size_t)row);
        }
        sum += all[0];
    }
    free(all);
    free(rows);
    return sum;
}

/* Every byte that the tensors promise. */
static inline uint64_t image_read_tensors(const struct gguf *g)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const unsigned char *p = gguf_tensor_data(g, t);

        if (gguf_tensor_find(g, t->name) != t)
            fuzz_fail("a tensor is not found by its name");
        for (uint64_t k = 0; k < t->bytes; k++)
            sum += p[k];
        if (t->panel_rows)
            sum += image_read_panels(g, t);
    }
    return sum;
}

/* The same text cut by other functions: within a number of tokens, and with all of it
 * a marker. */
static inline void image_cut_again(const struct tokenizer *t, const char *text,
                                   size_t len, bool special, const int32_t *ids,
                                   size_t n)
{
    const struct tokenizer_span span = {0, len};
    const struct tokenizer_markers all = {&span, 1, ""};
    struct err err = ERR_INIT;
    int32_t *again;
    size_t n_again = 0;

    if (n && (!fuzz_accepted(tokenizer_encode_up_to(t, text, len, true, special, n - 1,
                                                    &again, &n_again, &err),
                             &err) ||
              again || n_again < n))
        fuzz_fail("%zu tokens are %zu within %zu", n, n_again, n - 1);
    if (!special)
        return;
    if (!fuzz_accepted(tokenizer_encode_marked(t, text, len, true, &all, n, &again,
                                               &n_again, &err),
                       &err) ||
        n_again != n || (n && memcmp(ids, again, n * sizeof *ids) != 0))
        fuzz_fail("%zu tokens are others as a marker, %zu", n, n_again);
    free(again);
}

/* The vocabulary of g on a text, whole and back. */
static inline void image_use_tokenizer(const struct gguf *g, const char *text,
                                       size_t len)
{
    struct err err = ERR_INIT;
    struct tokenizer *t;
    int32_t *ids;
    size_t n;
    char piece[16];

    if (!fuzz_accepted(tokenizer_open(&t, g, &err), &err))
        return;
    for (int special = 0; special < 2; special++) {
        if (!fuzz_accepted(
                tokenizer_encode(t, text, len, true, special, &ids, &n, &err), &err))
            continue;
        for (size_t i = 0; i < n; i++) {
            if (ids[i] < 0 || ids[i] >= tokenizer_n_vocab(t))
                fuzz_fail("token %d of a vocabulary of %d", ids[i],
                          tokenizer_n_vocab(t));
            tokenizer_piece(t, ids[i], piece, sizeof piece);
        }
        if (len <= 4096)
            image_cut_again(t, text, len, special, ids, n);
        free(ids);
    }
    tokenizer_close(t);
}

#endif
