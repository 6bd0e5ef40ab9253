/* SPDX-License-Identifier: MIT
 *
 * fuzz_imatrix.c - importance matrices: the older binary form, and GGUF
 *
 * A first byte of 'G' or 0: the file as it is, without a first 0. All other inputs
 * choose the entries of a file of either form. What is read is written and read again.
 */
#include "engine/gguf/gguf_put.h"
#include "engine/quantize/imatrix.h"
#include "tests/fuzz/support/bytes.h"
#include "tests/fuzz/support/model_file.h"

static const char *const names[] = {"blk.0.attn_q.weight", "blk.0.ffn_down.weight", "a",
                                    "output.weight", ""};

static void write_again(const struct imatrix *im)
{
    const char *path = fuzz_path("again.gguf");
    struct err err = ERR_INIT;
    struct imatrix *again;

    if (!fuzz_accepted(imatrix_write(im, path, &err), &err) ||
        !fuzz_accepted(imatrix_read(&again, path, &err), &err))
        fuzz_fail("our own writing is refused");
    if (imatrix_n_entries(again) != imatrix_n_entries(im) ||
        imatrix_n_datasets(again) != imatrix_n_datasets(im) ||
        imatrix_n_chunks(again) != imatrix_n_chunks(im))
        fuzz_fail("%zu entries are written, %zu read", imatrix_n_entries(im),
                  imatrix_n_entries(again));
    for (size_t i = 0; i < imatrix_n_entries(im); i++) {
        const struct imatrix_entry *e = imatrix_entry_at(im, i);
        const struct imatrix_entry *a = imatrix_find(again, e->name);

        if (!a || a->n_cols != e->n_cols || a->n_slices != e->n_slices)
            fuzz_fail("the entry %s is not the same", e->name);
    }
    imatrix_free(again);
}

static void use_matrix(const char *path)
{
    struct err err = ERR_INIT;
    struct imatrix *im;

    if (!fuzz_accepted(imatrix_read(&im, path, &err), &err))
        return;
    for (size_t i = 0; i < imatrix_n_entries(im); i++) {
        const struct imatrix_entry *e = imatrix_entry_at(im, i);
        float *w = e->n_cols <= 65536 ? malloc(e->n_cols * sizeof *w) : NULL;

        if (imatrix_find(im, e->name) != e)
            fuzz_fail("an entry is not found by its name");
        for (uint64_t s = 0; w && s < e->n_slices && s < 4; s++) {
            imatrix_weights(e, e->n_cols, s, w);
            for (uint64_t c = 0; c < e->n_cols; c++)
                if (!(w[c] > 0 && w[c] < 1e30f))
                    fuzz_fail("a weight of %g", (double)w[c]);
        }
        free(w);
    }
    for (size_t i = 0; i < imatrix_n_datasets(im); i++)
        if (!imatrix_dataset(im, i))
            fuzz_fail("a text without a name");
    write_again(im);
    imatrix_free(im);
}

/* ---- files made ------------------------------------------------------------------ */

static void put_values(struct gguf_bytes *out, struct bytes *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        gguf_put_f32(out, bytes_float(b));
}

static void make_binary(struct gguf_bytes *out, struct bytes *b)
{
    const uint32_t n = bytes_below(b, 6);
    char name[32];

    gguf_put_u32(out, bytes_u8(b) < 240 ? n : (uint32_t)bytes_number(b));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t n_values = bytes_below(b, 70);

        snprintf(name, sizeof name, "%s%u", bytes_of(b, names, 5), bytes_below(b, 3));
        gguf_put_u32(out, bytes_u8(b) < 250 ? (uint32_t)strlen(name)
                                            : (uint32_t)bytes_number(b));
        gguf_put(out, name, strlen(name));
        gguf_put_u32(out, (uint32_t)bytes_number(b));
        gguf_put_u32(out, bytes_u8(b) < 250 ? n_values : (uint32_t)bytes_number(b));
        put_values(out, b, n_values);
    }
}

static void make_gguf(struct gguf_bytes *out, struct bytes *b)
{
    const uint32_t n = bytes_below(b, 12), n_texts = bytes_below(b, 30);
    struct gguf_kvs k = {.n = 0};
    uint64_t at = 0;
    char name[64];

    gguf_kv_str(&k, "general.type", "imatrix");
    gguf_kv_u32(&k, "imatrix.chunk_count", (uint32_t)bytes_number(b));
    gguf_kv_u32(&k, "imatrix.chunk_size", (uint32_t)bytes_number(b));
    gguf_kv_array(&k, "imatrix.datasets", GGUF_STRING, n_texts);
    for (uint32_t i = 0; i < n_texts; i++)
        gguf_put_str(&k.bytes, bytes_word(b, name, 8));
    gguf_put_head(out, n, &k);
    for (uint32_t i = 0; i < n; i++) {
        const bool sums = i % 2 == 0;
        const uint64_t ne[2] = {sums ? 8 : 1, bytes_u8(b) < 240 ? 2 : bytes_number(b)};

        snprintf(name, sizeof name, "%s%u%s", bytes_of(b, names, 5), i / 2,
                 sums ? ".in_sum2" : ".counts");
        gguf_put_tensor(out, name, 2, ne, bytes_u8(b) < 250 ? 0 : bytes_below(b, 30),
                        at);
        at += 64;
    }
    gguf_put_padding(out);
    put_values(out, b, (uint32_t)at / 4);
    free(k.bytes.data);
}

static void read_matrix(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    struct gguf_bytes out = {.n = 0};

    if (size && (data[0] == 'G' || data[0] == 0)) {
        use_matrix(fuzz_file("m.dat", data + !data[0], size - !data[0]));
        return;
    }
    if (bytes_u8(&b) & 1)
        make_binary(&out, &b);
    else
        make_gguf(&out, &b);
    if (out.n > size)
        fuzz_input_grows(out.n - size);
    use_matrix(fuzz_file("m.dat", out.data, out.n));
    free(out.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_matrix, data, size, FUZZ_BOUND);
}
