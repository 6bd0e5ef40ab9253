/* SPDX-License-Identifier: MIT
 *
 * synth_vocab.c - a made-up SentencePiece vocabulary of any size
 *
 * Laid out as the vocabularies of the Llama 2 family are: <unk>, <s>, </s>, the
 * 256 byte tokens, then pieces in the order of their scores. The pieces are the
 * word-start sign and printable ASCII, so that plain text survives a round trip,
 * and words of two-letter syllables. A word of n syllables is a merge of one of
 * n - 1 and a syllable, so that a tokenizer can produce it.
 */
#include "engine/synth/synth_parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/gguf/gguf.h"

#define WORD_START "\xe2\x96\x81" /* U+2581, stands for a blank */

enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6 };

enum { ID_UNK, ID_BOS, ID_EOS, ID_FIRST_BYTE, ID_FIRST_PIECE = ID_FIRST_BYTE + 256 };

static const char consonants[] = "bdfghjklmnprstvwyz";
static const char vowels[] = "aeiou";
enum {
    N_VOWELS = sizeof vowels - 1,
    N_SYLLABLES = (sizeof consonants - 1) * N_VOWELS,
    N_ASCII = '~' - '!' + 1,
};

/* Word i of all words, shorter ones first; even ones begin a word. */
static void filler_piece(char *out, size_t cap, uint32_t i)
{
    const size_t start = i % 2 ? 0 : sizeof WORD_START - 1;
    uint64_t word = i / 2, n_words = N_SYLLABLES;
    size_t n = 1;

    while (word >= n_words) {
        word -= n_words;
        n_words *= N_SYLLABLES;
        n++;
    }
    assert(start + 2 * n < cap);
    memcpy(out, WORD_START, start);
    out[start + 2 * n] = '\0';
    for (char *at = out + start + 2 * n; n > 0; n--, word /= N_SYLLABLES) {
        const unsigned syllable = (unsigned)(word % N_SYLLABLES);

        *--at = vowels[syllable % N_VOWELS];
        *--at = consonants[syllable / N_VOWELS];
    }
}

static void piece(char *out, size_t cap, uint32_t id)
{
    static const char *const control[] = {"<unk>", "<s>", "</s>"};

    if (id < ID_FIRST_BYTE)
        snprintf(out, cap, "%s", control[id]);
    else if (id < ID_FIRST_PIECE)
        snprintf(out, cap, "<0x%02X>", (unsigned)(id - ID_FIRST_BYTE));
    else if (id == ID_FIRST_PIECE)
        snprintf(out, cap, WORD_START);
    else if (id <= ID_FIRST_PIECE + N_ASCII)
        snprintf(out, cap, "%c", (char)('!' + (id - ID_FIRST_PIECE - 1)));
    else
        filler_piece(out, cap, id - ID_FIRST_PIECE - 1 - N_ASCII);
}

static uint32_t token_type(uint32_t id)
{
    if (id == ID_UNK)
        return TOKEN_UNKNOWN;
    if (id < ID_FIRST_BYTE)
        return TOKEN_CONTROL;
    return id < ID_FIRST_PIECE ? TOKEN_BYTE : TOKEN_NORMAL;
}

void synth_put_vocab(struct gguf_kvs *k, uint32_t n)
{
    char text[32];

    gguf_kv_str(k, "tokenizer.ggml.model", "llama");
    gguf_kv_str(k, "tokenizer.ggml.pre", "default");
    gguf_kv_array(k, "tokenizer.ggml.tokens", GGUF_STRING, n);
    for (uint32_t id = 0; id < n; id++) {
        piece(text, sizeof text, id);
        gguf_put_str(&k->bytes, text);
    }
    gguf_kv_array(k, "tokenizer.ggml.scores", GGUF_F32, n);
    for (uint32_t id = 0; id < n; id++)
        gguf_put_f32(&k->bytes,
                     id < ID_FIRST_PIECE ? 0 : -(float)(id - ID_FIRST_PIECE));
    gguf_kv_array(k, "tokenizer.ggml.token_type", GGUF_I32, n);
    for (uint32_t id = 0; id < n; id++)
        gguf_put_u32(&k->bytes, token_type(id));
    gguf_kv_u32(k, "tokenizer.ggml.bos_token_id", ID_BOS);
    gguf_kv_u32(k, "tokenizer.ggml.eos_token_id", ID_EOS);
    gguf_kv_u32(k, "tokenizer.ggml.unknown_token_id", ID_UNK);
    gguf_kv_bool(k, "tokenizer.ggml.add_bos_token", true);
    gguf_kv_bool(k, "tokenizer.ggml.add_eos_token", false);
}
