/* SPDX-License-Identifier: MIT
 *
 * tokenizer_pre.c - the regular expressions of known tokenizers, through PCRE2
 *
 * The patterns are those of the named models' published tokenizer.json, written
 * without \s, because PCRE2 counts U+180E as blank and Unicode does not.
 */
#include "engine/tokenizer/tokenizer_pre.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_regex.h"

#define MAX_PATTERNS PRE_MAX_PATTERNS

/* ---- patterns -------------------------------------------------------------------- */

#define WS       REGEX_WS
#define BLANK    "[" WS "]"
#define NO_BLANK "[^" WS "]"

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS      BLANK "*[\\r\\n]+|" BLANK "+(?!" NO_BLANK ")|" BLANK "+"
#define SYMBOLS     " ?[^" WS "\\p{L}\\p{N}]+"

/* openai-community/gpt2 */
#define GPT2                                                                         \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" SYMBOLS "|" BLANK "+(?!" NO_BLANK \
    ")|" BLANK "+"

/* meta-llama/Meta-Llama-3-8B; digits in threes */
#define LLAMA3                                                        \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" SYMBOLS \
                "[\\r\\n]*|" BLANKS

/* Qwen/Qwen2-7B; digits alone */
#define QWEN2 \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" SYMBOLS "[\\r\\n]*|" BLANKS

/* Qwen/Qwen3.5; marks belong to words */
#define QWEN35                                                          \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS \
                "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS

/* Words as capitals and then small letters: mistralai/Mistral-Nemo ("tekken") and
 * OpenAI's o200k, whose words may end in a contraction, with digits in threes. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(behind)                                   \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" behind \
    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" behind
#define TEKKEN CASED("") "|\\p{N}|" SYMBOLS "[\\r\\n/]*|" BLANKS
#define GPT4O  CASED(CONTRACTION "?") "|\\p{N}{1,3}|" SYMBOLS "[\\r\\n/]*|" BLANKS

/* inclusionAI/Ling; ByteDance-Seed/Seed-Coder-8B */
#define BAILING                                                                     \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^" WS           \
    "\\p{L}\\p{N}]++[\\r\\n]*|" BLANK "*[\\r\\n]|" BLANK "+(?!" NO_BLANK ")|" BLANK \
    "+"
#define SEED_CODER                                              \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^" WS \
                "\\p{L}\\p{N}\\r\\n]+|" BLANKS

/* deepseek-ai/deepseek-llm-7b-base: letters with case, as it lists them */
#define DEEPSEEK_LETTERS                                                           \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}" \
    "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}"          \
    "\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}"  \
    "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}"         \
    "\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}" \
    "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}" \
    "\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}" \
    "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}"            \
    "\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"           \
    "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}" \
    "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}"  \
    "\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}"   \
    "\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}"  \
    "\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}"  \
    "\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"  \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}" \
    "\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}"                    \
    "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}"              \
    "\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"              \
    "\\x{1e900}-\\x{1e943}"

/* \s+$; the lookbehind, which changes no match, avoids one attempt per blank in a long
 * run of them. */
#define BLANKS_AT_END "(?<!" BLANK ")" BLANK "+$"
#define DEEPSEEK_PUNCTUATION                               \
    BLANK "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}" \
          "\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+"
#define DEEPSEEK_CJK "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

/* deepseek-ai/DeepSeek-V3 */
#define DEEPSEEK3                                            \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" \
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS

/* bigscience/bloom */
#define BLOOM \
    " ?[^(" WS "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

struct family {
    const char *names; /* separated by blanks */
    struct pre_rules rules;
    const char *patterns[MAX_PATTERNS];
};

static const struct family families[] = {
    {"gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 "
     "mellum modern-bert jina-es jina-de jina-v2-es jina-v2-de",
     {false, false},
     {GPT2}},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2",
     {true, true},
     {LLAMA3}},
    {"dbrx smaug-bpe glm4 chatglm-bpe", {false, false}, {LLAMA3}},
    {"qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan grok-2 solar-open kormo",
     {false, false},
     {QWEN2}},
    {"qwen35", {false, false}, {QWEN35}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
     {false, false},
     {"\\p{N}", GPT2}},
    {"deepseek-llm",
     {false, false},
     {"[\\r\\n]", BLANK "?[" DEEPSEEK_LETTERS "]+", DEEPSEEK_PUNCTUATION, BLANKS_AT_END,
      DEEPSEEK_CJK, "\\p{N}+"}},
    {"deepseek-coder",
     {false, false},
     {"[\\r\\n]", BLANK "?\\p{L}+", BLANK "?\\p{P}+", DEEPSEEK_CJK, "\\p{N}"}},
    {"deepseek-v3 hunyuan-dense joyai-llm",
     {false, false},
     {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
      DEEPSEEK3}},
    {"falcon", {false, false}, {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {"tekken", {true, true}, {TEKKEN}},
    {"gpt-4o llama4 kanana2 minimax-m2", {false, false}, {GPT4O}},
    {"bailingmoe bailingmoe2 llada-moe", {false, false}, {BAILING}},
    {"seed-coder", {false, false}, {SEED_CODER}},
    {"bloom poro-chat gpt3-finnish", {false, false}, {BLOOM}},
    {"viking", {false, false}, {BLOOM, "\\p{N}"}},
    /* Files from before the key existed, as other GGUF engines read them. */
    {"default",
     {false, false},
     {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
};
#define N_FAMILIES (sizeof families / sizeof families[0])

/* ---- opening --------------------------------------------------------------------- */

struct pre_tokenizer {
    struct pre_rules rules;
    bool foreign; /* its patterns are a file's */
    struct regex *code[MAX_PATTERNS];
    int n_patterns;
};

static bool has_name(const char *names, const char *name, size_t len)
{
    for (const char *at = names; *at;) {
        const size_t n = strcspn(at, " ");

        if (n == len && !memcmp(at, name, len))
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

/* One name per family: all names are too many for a message. */
static enum status unknown(const char *name, size_t len, const char *path,
                           struct err *err)
{
    char shown[48], known[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < N_FAMILIES; i++) {
        const int n = (int)strcspn(families[i].names, " ");

        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s",
                                 i ? ", " : "", n, families[i].names);
        assert(used < sizeof known);
    }
    return err_set(err, ST_UNSUPPORTED,
                   "the pre-tokenizer '%s' is not supported (known: %s, and the names "
                   "of tokenizers that cut as they do): %s",
                   utf8_printable(shown, sizeof shown, name, len), known, path);
}

enum status pre_tokenizer_open(struct pre_tokenizer **out, const char *name, size_t len,
                               const char *path, struct err *err)
{
    const struct family *family = NULL;
    enum status st = ST_OK;

    for (size_t i = 0; i < N_FAMILIES && !family; i++)
        family = has_name(families[i].names, name, len) ? &families[i] : NULL;
    if (!family)
        return unknown(name, len, path, err);
    struct pre_tokenizer *p = calloc(1, sizeof *p);

    if (!p)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a pre-tokenizer");
    p->rules = family->rules;
    for (int i = 0; i < MAX_PATTERNS && family->patterns[i] && !st; i++)
        st = regex_open(&p->code[p->n_patterns++], family->patterns[i],
                        strlen(family->patterns[i]), false, path, err);
    if (st) {
        pre_tokenizer_close(p);
        return st;
    }
    *out = p;
    return ST_OK;
}

enum status pre_tokenizer_open_patterns(struct pre_tokenizer **out,
                                        const struct gguf_str *patterns, size_t n,
                                        bool whole_words, const char *path,
                                        struct err *err)
{
    struct pre_tokenizer *p;
    enum status st = ST_OK;

    for (size_t i = 0; i < n; i++)
        if (n > MAX_PATTERNS || patterns[i].len > PRE_MAX_PATTERN_BYTES)
            return err_set(err, ST_UNSUPPORTED,
                           "%s: the tokenizer cuts texts by %zu patterns, one of %zu "
                           "bytes; at most %d of %d bytes are possible",
                           path, n, patterns[i].len, MAX_PATTERNS,
                           PRE_MAX_PATTERN_BYTES);
    p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a pre-tokenizer");
    p->rules.whole_words = whole_words;
    p->foreign = true;
    for (size_t i = 0; i < n && !st; i++)
        st = regex_open(&p->code[p->n_patterns++], patterns[i].data, patterns[i].len,
                        true, path, err);
    if (st) {
        pre_tokenizer_close(p);
        return st;
    }
    *out = p;
    return ST_OK;
}

void pre_tokenizer_close(struct pre_tokenizer *p)
{
    if (!p)
        return;
    for (int i = 0; i < MAX_PATTERNS; i++)
        regex_close(p->code[i]);
    free(p);
}

const struct pre_rules *pre_tokenizer_rules(const struct pre_tokenizer *p)
{
    return &p->rules;
}

/* ---- patterns of a tokenizer.json ------------------------------------------------ */

const char *pre_tokenizer_gpt2(void)
{
    return GPT2;
}

bool pre_tokenizer_known(const char *const *patterns, size_t n, bool whole_words,
                         char *name, size_t cap)
{
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const struct family *f = &families[i];
        size_t same = 0;

        while (same < n && f->patterns[same] &&
               !strcmp(f->patterns[same], patterns[same]))
            same++;
        if (same < n || (n < MAX_PATTERNS && f->patterns[n]) ||
            f->rules.whole_words != whole_words)
            continue;
        snprintf(name, cap, "%.*s", (int)strcspn(f->names, " "), f->names);
        return true;
    }
    return false;
}

/* ---- cutting --------------------------------------------------------------------- */

struct cut {
    const struct pre_tokenizer *p;
    struct regex_search search;
    pre_piece_fn *fn;
    void *arg;
    struct err *err;
    const char *shown, *text; /* what is matched, and what it stands for */
};

/* Apply pattern k and the following ones to text[len], well-formed. */
static enum status cut_by(struct cut *c, int k, const char *text, size_t len)
{
    struct regex_place place = {0, 0, false};
    enum status st = ST_OK;

    if (k == c->p->n_patterns)
        return c->fn(c->arg, c->text + (text - c->shown), len, c->err);
    for (size_t at = 0; at < len && !st;) {
        size_t begin = at, end = len;

        st = regex_next(&c->search, c->p->code[k], text, len, &place, &begin, &end);
        if (!st && begin > at)
            st = cut_by(c, k + 1, text + at, begin - at);
        if (!st && end > begin)
            st = cut_by(c, k + 1, text + begin, end - begin);
        at = end;
    }
    return st;
}

/* Cut well-formed text. */
static enum status cut_text(struct cut *c, const char *text, size_t len)
{
    char *older = NULL;
    enum status st = unicode_stand_ins(text, len, &older, c->err);

    c->text = text;
    c->shown = older ? older : text;
    if (!st)
        st = cut_by(c, 0, c->shown, len);
    free(older);
    return st;
}

enum status pre_tokenizer_cut(const struct pre_tokenizer *p, const char *text,
                              size_t len, uint64_t *allowed_ns, pre_piece_fn *fn,
                              void *arg, struct err *err)
{
    struct cut c = {.p = p, .fn = fn, .arg = arg, .err = err};
    enum status st = regex_search_begin(&c.search, p->foreign, *allowed_ns, err);

    for (size_t at = 0; at < len && !st;) {
        bool well_formed;
        const size_t n = utf8_stretch(text + at, len - at, &well_formed);

        st = well_formed ? cut_text(&c, text + at, n) : fn(arg, text + at, n, err);
        at += n;
    }
    *allowed_ns = regex_search_end(&c.search);
    return st;
}
