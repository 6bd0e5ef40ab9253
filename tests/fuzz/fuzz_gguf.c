/* SPDX-License-Identifier: MIT
 *
 * fuzz_gguf.c - GGUF files: any bytes, and well-formed heads with odd values
 *
 * What begins with "GGUF" is the file as it is. All other inputs choose the pairs and
 * the tensors of a head, so that they get past the parser of the head; some of these
 * are packed files.
 */
#include "engine/gguf/census.h"
#include "engine/gguf/gguf_panels.h"
#include "engine/gguf/gguf_put.h"
#include "tests/fuzz/support/bytes.h"
#include "tests/fuzz/support/model_file.h"

static void use_image(const void *data, size_t size)
{
    static const char text[] = " the <s> \xc3\xa9 \xff quick";
    struct err err = ERR_INIT;
    struct census census;
    struct gguf *g;
    volatile uint64_t sum;
    void *image = image_copy(data, size);

    if (fuzz_accepted(gguf_parse(&g, image, size, "fuzz", &err), &err)) {
        sum = image_read_tensors(g) + image_read_metadata(g);
        (void)sum;
        census_take(&census, g);
        image_use_tokenizer(g, text, sizeof text - 1);
        gguf_close(g);
    }
    free(image);
}

/* ---- well-formed heads ----------------------------------------------------------- */

static const char *const keys[] = {"general.architecture",
                                   "general.alignment",
                                   "general.file_type",
                                   "llama.block_count",
                                   "llama.expert_count",
                                   "llama.expert_used_count",
                                   "llama.nextn_predict_layers",
                                   "split.no",
                                   "split.count",
                                   "tokenizer.ggml.model",
                                   "a"};
static const char *const names[] = {"token_embd.weight",
                                    "output.weight",
                                    "blk.0.attn_q.weight",
                                    "blk.4294967295.ffn_up_exps.weight",
                                    "blk.1.ffn_up_exps.weight",
                                    "position_embd.weight",
                                    "blk..x",
                                    "a"};

static void put_scalar(struct gguf_bytes *out, struct bytes *b, uint32_t type)
{
    static const uint8_t size_of[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    uint64_t v = bytes_number(b);

    if (type == GGUF_STRING)
        gguf_put_str(out, bytes_of(b, keys, sizeof keys / sizeof *keys));
    else
        gguf_put(out, &v, type < 13 ? size_of[type] : 4);
}

static void put_pair(struct gguf_kvs *k, struct bytes *b)
{
    const char *key = bytes_of(b, keys, sizeof keys / sizeof *keys);
    const uint32_t type = bytes_below(b, 14);

    if (type == GGUF_ARRAY) {
        const uint32_t elem = bytes_below(b, 14), n = bytes_below(b, 2000);

        gguf_kv_array(k, key, elem, bytes_u8(b) ? n : bytes_number(b));
        for (uint32_t i = 0; i < n; i++)
            put_scalar(&k->bytes, b, elem);
        return;
    }
    gguf_put_str(&k->bytes, key);
    gguf_put_u32(&k->bytes, type);
    put_scalar(&k->bytes, b, type);
    k->n++;
}

static void put_tensor(struct gguf_bytes *out, struct bytes *b, uint64_t *at)
{
    char name[40];
    uint64_t ne[4];
    const int n_dims = 1 + (int)bytes_below(b, 4);
    const uint32_t type = bytes_below(b, 42);

    snprintf(name, sizeof name, "%s%.0u", bytes_of(b, names, 8), bytes_below(b, 4));
    for (int i = 0; i < n_dims; i++)
        ne[i] = bytes_number(b);
    if (bytes_u8(b) < 200)
        ne[0] = 256;
    gguf_put_tensor(out, name, n_dims, ne, type,
                    bytes_u8(b) < 200 ? *at : bytes_number(b));
    *at += gguf_put_aligned(bytes_below(b, 4096));
}

/* ---- packed files ---------------------------------------------------------------- */

static void put_zeros(struct gguf_bytes *out, uint64_t end)
{
    static const uint8_t zeros[GGUF_PANEL_ALIGN];

    while (out->n < end && !out->failed)
        gguf_put(out, zeros,
                 end - out->n < sizeof zeros ? (size_t)(end - out->n) : sizeof zeros);
}

static uint64_t on_page(uint64_t bytes)
{
    return (bytes + GGUF_PANEL_ALIGN - 1) / GGUF_PANEL_ALIGN * GGUF_PANEL_ALIGN;
}

/* Mostly what it must be, and now and then any number. */
static uint64_t mostly(struct bytes *b, uint64_t right)
{
    return bytes_u8(b) < 250 ? right : bytes_number(b);
}

static void put_layout(struct gguf_kvs *k, struct bytes *b, uint32_t n_tensors)
{
    const uint32_t n_sums = (uint32_t)mostly(b, n_tensors) % 64;

    gguf_kv_u32(k, "general.alignment", (uint32_t)mostly(b, GGUF_PANEL_ALIGN));
    gguf_kv_u32(k, GGUF_KEY_LAYOUT, (uint32_t)mostly(b, GGUF_LAYOUT_VERSION));
    if (mostly(b, 1))
        gguf_kv_u64(k, GGUF_KEY_HEAD, bytes_number(b));
    gguf_kv_array(k, GGUF_KEY_CHECKSUMS, GGUF_U64, n_sums);
    for (uint32_t i = 0; i < n_sums; i++)
        put_scalar(&k->bytes, b, GGUF_U64);
}

static void put_panels(struct gguf_bytes *out, struct bytes *b, uint32_t i,
                       uint64_t *at)
{
    char name[16];
    uint32_t elems, bytes;
    const uint32_t type = bytes_below(b, 42);
    const uint32_t in_panels = bytes_u8(b) < 200 ? GGUF_PANEL_TYPE : 0;
    const uint64_t ne[3] = {mostly(b, 256), mostly(b, 1 + bytes_below(b, 40)),
                            mostly(b, 1 + bytes_below(b, 3))};

    snprintf(name, sizeof name, "%u", i);
    gguf_put_tensor(out, name, 3, ne, type + in_panels, mostly(b, *at));
    if (gguf_ggml_block(type, &elems, &bytes))
        *at = on_page(*at + 256 / elems * bytes * ne[1] * ne[2]);
}

static void make_packed_and_use(struct bytes *b, size_t given)
{
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes out = {.n = 0};
    const uint32_t n_tensors = bytes_below(b, 4);
    uint64_t at = 0;

    put_layout(&k, b, n_tensors);
    gguf_put_head(&out, n_tensors, &k);
    for (uint32_t i = 0; i < n_tensors; i++)
        put_panels(&out, b, i, &at);
    if (at < (uint64_t)1 << 20) {
        const size_t begin = (size_t)on_page(out.n);

        put_zeros(&out, begin + mostly(b, at) % ((uint64_t)1 << 20));
        for (size_t i = begin; i < out.n; i++) /* no row is like the one before */
            out.data[i] = (uint8_t)(i * 167 >> 5);
    }
    if (out.n > given)
        fuzz_input_grows(out.n - given);
    use_image(out.data, out.n);
    free(out.data);
    free(k.bytes.data);
}

static void make_and_use(struct bytes *b, size_t given)
{
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes out = {.n = 0};
    const uint32_t n_pairs = bytes_below(b, 12), n_tensors = bytes_below(b, 24);
    uint64_t at = 0;

    for (uint32_t i = 0; i < n_pairs; i++)
        put_pair(&k, b);
    gguf_put_head(&out, n_tensors, &k);
    for (uint32_t i = 0; i < n_tensors; i++)
        put_tensor(&out, b, &at);
    gguf_put_padding(&out);
    for (size_t n = bytes_below(b, 8192); n; n--)
        gguf_put(&out, &(uint8_t){(uint8_t)n}, 1);
    if (out.n > given)
        fuzz_input_grows(out.n - given);
    use_image(out.data, out.n);
    free(out.data);
    free(k.bytes.data);
}

static void read_gguf(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};

    if (size >= 4 && !memcmp(data, "GGUF", 4))
        use_image(data, size);
    else if (bytes_u8(&b) % 4 == 0)
        make_packed_and_use(&b, size);
    else
        make_and_use(&b, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_gguf, data, size, FUZZ_BOUND);
}
