/* SPDX-License-Identifier: MIT
 *
 * fuzz_tokenizer_json.c - tokenizer.json with its regular expressions, and texts
 *
 * The input is a tokenizer.json, or an object with the members "tokenizer" and "text".
 * A vocabulary that is accepted is used, on the text and on many copies of it, as
 * matching an expression may take more than linear time.
 */
#include "engine/gguf/gguf_put.h"
#include "engine/hf/hf_impl.h"
#include "tests/fuzz/support/model_file.h"
#include "tests/fuzz/support/mutate.h"

#define LONG_BYTES 8192

/* Times that text stands after itself in long_text[LONG_BYTES]. */
static size_t repeat_text(char *long_text, const char *text, size_t len)
{
    size_t n = 0;

    while (len && n + len <= LONG_BYTES) {
        memcpy(long_text + n, text, len);
        n += len;
    }
    return n;
}

static void use_vocabulary(const struct gguf_kvs *k, const char *text, size_t len)
{
    struct gguf_bytes head = {.n = 0};
    struct err err = ERR_INIT;
    static char long_text[LONG_BYTES];
    struct gguf *g;
    void *image;

    gguf_put_head(&head, 0, k);
    gguf_put_padding(&head);
    if (head.failed)
        fuzz_fail("no memory for a file");
    image = image_copy(head.data, head.n);
    if (!fuzz_accepted(gguf_parse(&g, image, head.n, "fuzz", &err), &err))
        fuzz_fail("our own writing is refused");
    image_use_tokenizer(g, text, len);
    image_use_tokenizer(g, long_text, repeat_text(long_text, text, len));
    gguf_close(g);
    free(image);
    free(head.data);
}

static void read_tokenizer(const uint8_t *data, size_t size)
{
    static const char usual[] = " the <s> \xc3\xa9 \xff quick 123 \xe2\x96\x81";
    json_t *both = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    const json_t *inner = json_object_get(both, "tokenizer");
    const json_t *text = json_object_get(both, "text");
    char *dumped = inner ? json_dumps(inner, JSON_ENCODE_ANY) : NULL;
    struct gguf_kvs k = {.n = 0};
    struct err err = ERR_INIT;

    fuzz_input_grows(size + LONG_BYTES); /* the harness has it in memory, too */
    if (fuzz_accepted(hf_tokenizer_parse(&k, dumped ? dumped : (const char *)data,
                                         dumped ? strlen(dumped) : size, &err),
                      &err))
        use_vocabulary(&k, text ? json_string_value(text) : usual,
                       text ? json_string_length(text) : sizeof usual - 1);
    free(k.bytes.data);
    free(dumped);
    json_decref(both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_tokenizer, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        /* of regular expressions */
        "\\s+", "\\s+(?!\\S)", "\\p{L}+", "\\p{N}{1,3}", "[^\\s\\p{L}\\p{N}]+",
        "(?i:'s|'t)", "(a+)+$", "(a|a)*", "(?:", ")", "|", "*", "+?", "{1,65535}",
        "(?=", "(?<=a)", "(?<!\\s)", "\\b", "^", "$", ".*", "[a-z", "[\\p{L}&&[^a]]",
        "\\1", "(?R)", "(?1)", "(*LIMIT_MATCH=1)", "(*UTF)", "\\K", "\\C", "\\X", "\\R",
        "(?>a+)", "a++", "\\x{10ffff}", "\\u00e9", "(?#", "(?x)", "\\Q", "\\E", "\\G",
        "\\z", "(?(1)a)", "(?P<n>a)", "\\N{U+41}", "\\h",
        /* of the document */
        "Regex", "String", "Split", "Sequence", "ByteLevel", "Metaspace", "Digits",
        "Punctuation", "Whitespace", "Replace", "Prepend", "NFC", "Isolated", "Removed",
        "MergedWithPrevious", "MergedWithNext", "Contiguous", "behavior", "invert",
        "pattern", "pretokenizers", "pre_tokenizer", "normalizer", "normalizers",
        "individual_digits", "use_regex", "add_prefix_space", "prepend_scheme",
        "always", "first", "never", "replacement", "content", "BPE", "Unigram",
        "WordPiece", "vocab", "merges", "byte_fallback", "ignore_merges", "unk_token",
        "added_tokens", "special", "lstrip", "rstrip", "single_word", "normalized",
        "post_processor", "TemplateProcessing", "RobertaProcessing", "decoder", "text",
        "WordLevel", "BertPreTokenizer", "WhitespaceSplit", "CharDelimiterSplit",
        "UnicodeScripts", "FixedLength", "length", "delimiter", "BertNormalizer",
        "Precompiled", "precompiled_charsmap", "CAAAAAAEAAAAAAAAYQA=", "Nmt",
        "StripAccents", "BPEDecoder", "ByteFallback", "Fuse", "Strip", "suffix",
        "prefix", "decoders", "start", "stop", "cleanup", "continuing_subword_prefix",
        "end_of_word_suffix", "max_input_chars_per_word", "unk_id", "fuse_unk", "##a",
        "a</w>", "BertProcessing", "tokenizer", "<0x41>", "\xe2\x96\x81", "\xc4\xa0",
        "<s>", "a", "b", "ab", "a b", NULL};

    return mutate_json(data, size, max_size, seed, words);
}
