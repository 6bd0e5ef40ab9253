/* SPDX-License-Identifier: MIT
 *
 * fuzz_split.c - a model in several GGUF files
 *
 * The input chooses the number of parts, and of each its pairs and tensors; a few bytes
 * of the files are changed at the end. Any part may be named.
 */
#include "engine/gguf/gguf_put.h"
#include "engine/gguf/gguf_split.h"
#include "tests/fuzz/support/bytes.h"
#include "tests/fuzz/support/model_file.h"

#define MAX_PARTS 4

static const char *const names[] = {"a", "b", "c", "d", "token_embd.weight",
                                    "",  "e", "f"};

static void put_pairs(struct gguf_kvs *k, struct bytes *b, uint32_t part, uint32_t n)
{
    const uint8_t odd = bytes_u8(b);

    gguf_kv_str(k, "general.architecture", "llama");
    if (odd & 1 && odd & 2)
        gguf_kv_u32(k, "general.alignment", (uint32_t)bytes_number(b));
    if (odd < 250)
        gguf_kv_u32(k, "split.no", odd < 240 ? part : (uint32_t)bytes_number(b));
    if (odd != 230)
        gguf_kv_u64(k, "split.count", odd != 231 ? n : bytes_number(b));
    if (odd & 4)
        gguf_kv_u64(k, "split.tensors.count", bytes_number(b));
}

/* A part's image, to be freed. */
static struct gguf_bytes make_part(struct bytes *b, uint32_t part, uint32_t n_parts)
{
    const uint32_t n = bytes_below(b, 9);
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes out = {.n = 0};
    uint64_t at = 0;
    char name[40];

    put_pairs(&k, b, part, n_parts);
    gguf_put_head(&out, n, &k);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t ne[2] = {bytes_u8(b) < 240 ? 32 : bytes_number(b),
                                bytes_u8(b) < 240 ? 2 : bytes_number(b)};

        snprintf(name, sizeof name, "%s%u", bytes_of(b, names, 8),
                 bytes_u8(b) < 200 ? 8 * part + i : bytes_below(b, 4));
        gguf_put_tensor(&out, name, 2, ne, bytes_u8(b) % 4 ? 0 : bytes_below(b, 40),
                        at);
        at += 256;
    }
    gguf_put_padding(&out);
    for (uint64_t i = 0; i < at; i++)
        gguf_put(&out, &(uint8_t){(uint8_t)i}, 1);
    for (uint32_t i = bytes_below(b, 4); i && out.n; i--)
        out.data[bytes_below(b, out.n < 65536 ? (uint32_t)out.n : 65536)] = bytes_u8(b);
    free(k.bytes.data);
    return out;
}

static void read_rows(const struct gguf *g)
{
    struct err err = ERR_INIT;
    uint8_t *row;

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (!t->bytes || t->bytes > 65536)
            continue;
        row = malloc(t->bytes);
        if (row)
            fuzz_accepted(
                gguf_read_rows(g, t, 0, t->n_elems / t->ne[0], false, row, &err), &err);
        free(row);
    }
}

static void open_part(const char *path)
{
    struct err err = ERR_INIT;
    struct gguf *g, *whole;

    if (!fuzz_accepted(gguf_open(&g, path, &err), &err))
        return;
    if (!gguf_split_is(g)) {
        gguf_close(g);
        return;
    }
    if (!fuzz_accepted(gguf_split_join(&whole, g, &err), &err))
        return;
    image_read_metadata(whole);
    read_rows(whole);
    gguf_close(whole);
}

static void read_split(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    const uint32_t n = 1 + bytes_below(&b, MAX_PARTS), wanted = bytes_below(&b, n);
    const char *path = NULL;

    for (uint32_t i = 0; i < n; i++) {
        struct gguf_bytes part = make_part(&b, i, n);
        char name[64];

        snprintf(name, sizeof name, "m-%05u-of-%05u.gguf", i + 1, n);
        fuzz_input_grows(part.n);
        const char *written = fuzz_file(name, part.data, part.n);

        if (i == wanted)
            path = written;
        free(part.data);
    }
    open_part(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_split, data, size, FUZZ_BOUND);
}
