/* SPDX-License-Identifier: MIT
 *
 * fuzz_hf.c - libFuzzer target: a safetensors header, or a tokenizer.json, of any bytes
 *
 *     CC=clang CXX=clang++ cmake -B build/fuzz -G Ninja -DSLM_FUZZ=ON \
 *         -DSLM_SANITIZE=address
 *     ninja -C build/fuzz fuzz_hf
 *     cp -r tests/fuzz/seeds/hf /tmp/corpus
 *     build/fuzz/tests/fuzz_hf -max_len=4096 /tmp/corpus
 *
 * What begins with '{' is a tokenizer.json, all else a safetensors file. A vocabulary
 * that is accepted is used.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/gguf/gguf_put.h"
#include "engine/hf/hf_impl.h"
#include "engine/hf/safetensors.h"
#include "engine/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A refusal is one sentence. */
static void check_refusal(const struct err *err)
{
    if (err->code == ST_OK || !err->msg[0] || strchr(err->msg, '\n'))
        abort();
}

static void use_tokenizer(const struct gguf *g)
{
    static const char text[] = " the <s> \xc3\xa9 \xff quick 123 \xe2\x96\x81";
    struct err err = ERR_INIT;
    struct tokenizer *t;
    int32_t *ids;
    size_t n;
    char piece[16];

    if (tokenizer_open(&t, g, &err)) {
        check_refusal(&err);
        return;
    }
    for (int special = 0; special < 2; special++) {
        if (tokenizer_encode(t, text, sizeof text - 1, true, special, &ids, &n, &err))
            continue;
        for (size_t i = 0; i < n; i++)
            tokenizer_piece(t, ids[i], piece, sizeof piece);
        free(ids);
    }
    tokenizer_close(t);
}

static void read_tokenizer(const uint8_t *data, size_t size)
{
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes head = {.n = 0};
    struct err err = ERR_INIT;
    struct gguf *g;

    if (hf_tokenizer_parse(&k, (const char *)data, size, &err)) {
        check_refusal(&err);
    } else {
        gguf_put_head(&head, 0, &k);
        gguf_put_padding(&head);
        void *image = aligned_alloc(64, (head.n + 63) / 64 * 64);

        if (image) {
            memcpy(image, head.data, head.n);
            if (gguf_parse(&g, image, head.n, "fuzz", &err))
                abort(); /* our own writing */
            use_tokenizer(g);
            gguf_close(g);
        }
        free(image);
    }
    free(head.data);
    free(k.bytes.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct safetensors *s;

    if (size && data[0] == '{') {
        read_tokenizer(data, size);
        return 0;
    }
    if (safetensors_parse(&s, data, size, "fuzz", &err)) {
        check_refusal(&err);
        return 0;
    }
    for (size_t i = 0; i < safetensors_count(s); i++) {
        const struct safetensor *t = safetensors_at(s, i);

        if (t->offset > size || t->bytes > size - t->offset)
            abort();
    }
    safetensors_close(s);
    return 0;
}
