/* SPDX-License-Identifier: MIT
 *
 * fuzz_vocabulary.c - the vocabulary of a GGUF file, and texts cut with it
 *
 * The input chooses algorithm, pre-tokenizer, tokens, types, scores, merges and special
 * ids; what is left of it is the text.
 */
#include "engine/gguf/gguf_put.h"
#include "engine/tokenizer/tokenizer_impl.h"
#include "tests/fuzz/support/bytes.h"
#include "tests/fuzz/support/model_file.h"

#define KEY "tokenizer.ggml."

static const char *const pieces[] = {"a",
                                     "b",
                                     "ab",
                                     "aa",
                                     "aaaa",
                                     "\xe2\x96\x81",
                                     "\xe2\x96\x81\x61",
                                     "\xc4\xa0",
                                     "\xc4\x8a",
                                     "<0x41>",
                                     "<0xFF>",
                                     "<s>",
                                     "</s>",
                                     "<unk>",
                                     "<|im_end|>",
                                     "1",
                                     "\xf0\x9f\x98\x80",
                                     "",
                                     "\n",
                                     "x y"};
static const char *const models[] = {"llama", "gpt2", "gpt2", "bert", ""};
static const char *const pres[] = {"default", "llama-bpe", "qwen2",        "gpt-2",
                                   "falcon",  "qwen35",    "deepseek-llm", "tekken",
                                   "gpt-4o",  "?"};
static const char *const ids[] = {KEY "bos_token_id", KEY "eos_token_id",
                                  KEY "eot_token_id", KEY "unknown_token_id",
                                  KEY "padding_token_id"};
static const char *const flags[] = {KEY "add_bos_token", KEY "add_space_prefix",
                                    KEY "add_eos_token"};

static const char *token(struct bytes *b, char *buf, size_t cap)
{
    const uint8_t how = bytes_u8(b);

    if (how < 0x80)
        return pieces[how % (sizeof pieces / sizeof *pieces)];
    if (how < 0xc0)
        snprintf(buf, cap, "%s%s", bytes_of(b, pieces, 20), bytes_of(b, pieces, 20));
    else
        bytes_word(b, buf, 12);
    return buf;
}

static void put_tokens(struct gguf_kvs *k, struct bytes *b, uint32_t n)
{
    const uint32_t n_types = bytes_u8(b) < 240 ? n : bytes_below(b, 300);
    const uint32_t n_scores = bytes_u8(b) < 240 ? n : bytes_below(b, 300);
    char buf[64];

    gguf_kv_array(k, KEY "tokens", GGUF_STRING, n);
    for (uint32_t i = 0; i < n; i++)
        gguf_put_str(&k->bytes, token(b, buf, sizeof buf));
    gguf_kv_array(k, KEY "token_type", GGUF_I32, n_types);
    for (uint32_t i = 0; i < n_types; i++)
        gguf_put_u32(&k->bytes, bytes_below(b, 8));
    gguf_kv_array(k, KEY "scores", GGUF_F32, n_scores);
    for (uint32_t i = 0; i < n_scores; i++)
        gguf_put_f32(&k->bytes, bytes_float(b));
}

static void put_merges(struct gguf_kvs *k, struct bytes *b)
{
    const uint32_t n = bytes_below(b, 200);
    char left[64], right[64], merge[140];

    gguf_kv_array(k, KEY "merges", GGUF_STRING, n);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(merge, sizeof merge, "%s%s%s", token(b, left, sizeof left),
                 bytes_u8(b) < 250 ? " " : "", token(b, right, sizeof right));
        gguf_put_str(&k->bytes, merge);
    }
}

/* The text: what is left of the input, and that many times over. */
static char *make_text(struct bytes *b, size_t *len)
{
    const size_t times = (size_t)1 << bytes_below(b, 11);
    const size_t n = b->n < 4096 ? b->n : 4096;
    char *text = malloc(n * times + 1);

    if (!text)
        fuzz_fail("no memory for a text");
    bytes_take(b, text, n);
    for (size_t i = 1; i < times; i++)
        memcpy(text + i * n, text, n);
    *len = n * times;
    if (*len > 65536)
        *len = 65536;
    return text;
}

static void read_vocabulary(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes head = {.n = 0};
    struct err err = ERR_INIT;
    struct gguf *g;
    size_t len;

    gguf_kv_str(&k, KEY "model", bytes_of(&b, models, 5));
    gguf_kv_str(&k, KEY "pre", bytes_of(&b, pres, 10));
    for (size_t i = 0; i < 5; i++)
        if (bytes_u8(&b) & 1)
            gguf_kv_u32(&k, ids[i], (uint32_t)bytes_number(&b));
    for (size_t i = 0; i < 3; i++)
        if (bytes_u8(&b) & 1)
            gguf_kv_bool(&k, flags[i], bytes_u8(&b) & 1);
    put_tokens(&k, &b, bytes_below(&b, 300));
    put_merges(&k, &b);
    gguf_put_head(&head, 0, &k);
    gguf_put_padding(&head);
    char *text = make_text(&b, &len);

    fuzz_input_grows(head.n + len);
    void *image = image_copy(head.data, head.n);

    if (!fuzz_accepted(gguf_parse(&g, image, head.n, "fuzz", &err), &err))
        fuzz_fail("our own writing is refused");
    image_use_tokenizer(g, text, len);
    gguf_close(g);
    free(image);
    free(text);
    free(head.data);
    free(k.bytes.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_vocabulary, data, size, FUZZ_BOUND);
}
