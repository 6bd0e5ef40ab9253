/* SPDX-License-Identifier: MIT
 *
 * fuzz_gguf.c - libFuzzer target: GGUF reader, census and tokenizer on any bytes
 *
 *     CC=clang CXX=clang++ cmake -B build/fuzz -G Ninja -DSLM_FUZZ=ON \
 *         -DSLM_SANITIZE=address
 *     ninja -C build/fuzz fuzz_gguf
 *     mkdir -p /tmp/corpus && cp tests/fuzz/seeds/gguf/* /tmp/corpus
 *     build/fuzz/tests/fuzz_gguf -max_len=16384 /tmp/corpus
 */
#include <stdlib.h>
#include <string.h>

#include "engine/gguf/census.h"
#include "engine/gguf/gguf.h"
#include "engine/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read what the file promises; the sum keeps the reads alive. */
static uint64_t read_tensors(const struct gguf *g)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const unsigned char *p = gguf_tensor_data(g, t);

        if (gguf_tensor_find(g, t->name) != t)
            abort();
        for (uint64_t k = 0; k < t->bytes; k++)
            sum += p[k];
    }
    return sum;
}

static uint64_t read_metadata(const struct gguf *g)
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

static void use_tokenizer(const struct gguf *g)
{
    static const char text[] = " the <s> \xc3\xa9 \xff quick";
    struct err err = ERR_INIT;
    struct tokenizer *t;
    int32_t *ids;
    size_t n;
    char piece[16];

    if (tokenizer_open(&t, g, &err))
        return;
    for (int special = 0; special < 2; special++) {
        if (tokenizer_encode(t, text, sizeof text - 1, true, special, &ids, &n, &err))
            continue;
        for (size_t i = 0; i < n; i++)
            tokenizer_piece(t, ids[i], piece, sizeof piece);
        free(ids);
    }
    tokenizer_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct census census;
    struct gguf *g;
    volatile uint64_t sum;

    if (gguf_parse(&g, data, size, "fuzz", &err)) {
        if (err.code == ST_OK || !err.msg[0] || strchr(err.msg, '\n'))
            abort();
        return 0;
    }
    sum = read_tensors(g) + read_metadata(g);
    (void)sum;
    census_take(&census, g);
    use_tokenizer(g);
    gguf_close(g);
    return 0;
}
