/* SPDX-License-Identifier: MIT
 *
 * hf_tokenizer.c - tokenizer.json to the tokenizer.* pairs of a GGUF file
 *
 * model.vocab has the tokens and their ids, added_tokens the special ones, and
 * model.merges the merges. GGUF calls vocabularies with byte_fallback "llama",
 * byte-level ones "gpt2" and unigram models "t5"; hf_own.c has the others, and
 * hf_special.c finds the tokens that begin and end a text.
 */
#include "engine/hf/hf_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_impl.h"

#define MAX_TOKENS     (1 << 22)
#define MAX_HOLES      (1 << 16) /* ids without a token, beside one for each token */
#define MAX_MERGE_PART 4096
#define WORST          (-0x1p30F) /* the score of tokens that no merge makes */

/* The largest published ones have two million values in 35 MB. */
static const struct json_limit max_json = {(size_t)128 << 20, (size_t)1 << 22};

/* ---- the vocabulary -------------------------------------------------------------- */

static enum status name_token(struct hf_vocab *v, const char *text, int64_t id,
                              enum token_type type, struct err *err)
{
    struct hf_token *t;
    char shown[48];

    if (id < 0 || id >= v->max_tokens)
        return err_set(
            err, ST_INPUT,
            "%s: the token '%s' has the number %" PRId64 ", and 0 to %" PRId64
            " is possible in a vocabulary of that size",
            v->file.path, utf8_printable(shown, sizeof shown, text, strlen(text)), id,
            v->max_tokens - 1);
    if ((size_t)id >= v->cap) {
        const size_t cap = ((size_t)id + 1) * 2;
        struct hf_token *more = realloc(v->tokens, cap * sizeof *more);

        if (!more)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu tokens", cap);
        memset(more + v->cap, 0, (cap - v->cap) * sizeof *more);
        v->tokens = more;
        v->cap = cap;
    }
    t = &v->tokens[id];
    if (t->text && strcmp(t->text, text))
        return err_set(err, ST_INPUT, "%s: two tokens have the number %" PRId64,
                       v->file.path, id);
    t->text = text;
    t->type = type;
    if ((size_t)id >= v->n)
        v->n = (size_t)id + 1;
    return ST_OK;
}

/* A list of tokens with their scores. */
static enum status read_scored(struct hf_vocab *v, struct err *err)
{
    json_t *one;
    size_t i;

    json_array_foreach(json_member(v->model, "vocab"), i, one)
    {
        const char *text = json_text(json_array_get(one, 0));
        double score;

        if (!text || !json_finite(json_array_get(one, 1), &score))
            return err_set(err, ST_INPUT,
                           "%s: entry %zu of model.vocab is not a token and its score",
                           v->file.path, i);
        const enum status st = name_token(v, text, (int64_t)i, TOKEN_NORMAL, err);

        if (st)
            return st;
        v->tokens[i].score = score;
    }
    return v->n
               ? ST_OK
               : err_set(err, ST_INPUT, "%s has no model.vocab, the list of its tokens",
                         v->file.path);
}

static enum status read_vocab(struct hf_vocab *v, struct err *err)
{
    json_t *vocab = json_member(v->model, "vocab"), *id;
    const char *text;
    enum status st = ST_OK;

    if (v->kind == HF_UNIGRAM)
        return read_scored(v, err);
    if (!json_is_object(vocab) || !json_object_size(vocab))
        return err_set(err, ST_INPUT, "%s has no model.vocab, the list of its tokens",
                       v->file.path);
    json_object_foreach(vocab, text, id)
    {
        if (!json_is_integer(id))
            return err_set(err, ST_INPUT, "%s: a token's number is no whole number",
                           v->file.path);
        st = name_token(v, text, json_integer_value(id), TOKEN_NORMAL, err);
        if (st)
            return st;
    }
    return ST_OK;
}

/* Blanks are text, even where a newline is a token of no other vocabulary. */
static bool is_blank(const char *text)
{
    return !text[strspn(text, " \t\n\r")];
}

static uint8_t flags_of(const json_t *added)
{
    unsigned flags = 0;

    flags |= json_is_true(json_member(added, "rstrip")) ? TOKEN_RSTRIP : 0;
    flags |= json_is_true(json_member(added, "lstrip")) ? TOKEN_LSTRIP : 0;
    flags |= json_is_true(json_member(added, "single_word")) ? TOKEN_WORD : 0;
    flags |= json_is_true(json_member(added, "normalized")) ? TOKEN_NORMALIZED : 0;
    return (uint8_t)flags;
}

static enum status read_added(struct hf_vocab *v, struct err *err)
{
    json_t *one;
    size_t i;

    json_array_foreach(json_member(v->file.root, "added_tokens"), i, one)
    {
        const char *text = json_text(json_member(one, "content"));
        const json_t *id = json_member(one, "id");
        const bool special = json_is_true(json_member(one, "special"));
        enum status st;

        if (!text || !json_is_integer(id))
            return err_set(err, ST_INPUT, "%s: entry %zu of added_tokens lacks %s",
                           v->file.path, i, text ? "its id" : "its content");
        st = name_token(v, text, json_integer_value(id),
                        special && !is_blank(text) ? TOKEN_CONTROL : TOKEN_USER, err);
        if (st)
            return st;
        v->tokens[json_integer_value(id)].flags = flags_of(one);
        v->n_flagged += flags_of(one) != 0;
    }
    return ST_OK;
}

/* A file of few tokens with a large number would take a table of that size. */
static int64_t max_tokens(const struct hf_vocab *v)
{
    const json_t *vocab = json_member(v->model, "vocab");
    const size_t n = json_object_size(vocab) + json_array_size(vocab) +
                     json_array_size(json_member(v->file.root, "added_tokens"));

    return n < (MAX_TOKENS - MAX_HOLES) / 2 ? 2 * (int64_t)n + MAX_HOLES : MAX_TOKENS;
}

/* Ids without a token, up to the rows of the embedding, get made-up names. */
static enum status fill_holes(struct hf_vocab *v, int64_t n_vocab, struct err *err)
{
    enum status st = ST_OK;

    if (n_vocab > v->max_tokens)
        return err_set(err, ST_INPUT,
                       "%s has %zu tokens, and the model's vocabulary %" PRId64
                       "; at most %" PRId64 " are possible",
                       v->file.path, v->n, n_vocab, v->max_tokens);
    if (n_vocab > (int64_t)v->n) {
        st = name_token(v, "", n_vocab - 1, TOKEN_UNUSED, err);
        if (!st)
            v->tokens[n_vocab - 1].text = NULL;
    }
    for (size_t i = 0; i < v->n && !st; i++)
        if (!v->tokens[i].text)
            v->tokens[i].type = TOKEN_UNUSED;
    return st;
}

/* Types of "<0x00>" to "<0xFF>" and of the unknown token. */
static void type_bytes(struct hf_vocab *v)
{
    const bool bytes = json_is_true(json_member(v->model, "byte_fallback"));
    const char *unknown = json_text(json_member(v->model, "unk_token"));
    int64_t id;

    if (v->kind == HF_UNIGRAM && json_whole(json_member(v->model, "unk_id"), &id) &&
        id >= 0 && id < (int64_t)v->n)
        unknown = v->tokens[id].text;

    for (size_t i = 0; i < v->n; i++) {
        struct hf_token *t = &v->tokens[i];
        unsigned byte;

        if (!t->text)
            continue;
        if (bytes && t->type == TOKEN_NORMAL && strlen(t->text) == 6 &&
            sscanf(t->text, "<0x%2X>", &byte) == 1)
            t->type = TOKEN_BYTE;
        if (unknown && !strcmp(t->text, unknown)) {
            v->unknown = (int64_t)i;
            if (!v->pre.byte_level)
                t->type = TOKEN_UNKNOWN;
        }
    }
}

/* GGUF marks tokens of BERT that begin a word, and not those that go on in one. */
static const char *bert_text(const struct hf_token *t, char *buf, size_t cap)
{
    const size_t n = strlen(t->text);

    if (t->type != TOKEN_NORMAL ||
        (n > 1 && t->text[0] == '[' && t->text[n - 1] == ']'))
        return t->text;
    if (n > 2 && !strncmp(t->text, "##", 2))
        return t->text + 2;
    snprintf(buf, cap, "\xe2\x96\x81%s", t->text);
    return buf;
}

static void put_tokens(struct gguf_kvs *k, const struct hf_vocab *v)
{
    const bool is_bert = hf_own_is_bert(v);

    gguf_kv_array(k, "tokenizer.ggml.tokens", GGUF_STRING, v->n);
    for (size_t i = 0; i < v->n; i++) {
        const char *text = v->tokens[i].text;
        char name[32], marked[MAX_SPECIAL_BYTES];

        snprintf(name, sizeof name, "[PAD%zu]", i);
        if (is_bert && text && strlen(text) < sizeof marked - 3)
            text = bert_text(&v->tokens[i], marked, sizeof marked);
        gguf_put_str(&k->bytes, text ? text : name);
    }
    gguf_kv_array(k, "tokenizer.ggml.token_type", GGUF_I32, v->n);
    for (size_t i = 0; i < v->n; i++)
        gguf_put_u32(&k->bytes, v->tokens[i].type);
    if (v->n_flagged) {
        gguf_kv_array(k, TOKENIZER_KEY_FLAGS, GGUF_U8, v->n);
        for (size_t i = 0; i < v->n; i++)
            gguf_put(&k->bytes, &v->tokens[i].flags, 1);
    }
}

/* ---- merges ---------------------------------------------------------------------- */

/* A merge, "a b" or ["a", "b"], in the form "a b"; is_no_merge() has not found it. */
static bool spell_merge(const json_t *merge, char *out, size_t cap)
{
    const char *both = json_text(merge);
    const char *left = json_text(json_array_get(merge, 0));
    const char *right = json_text(json_array_get(merge, 1));
    int n;

    if (both)
        n = snprintf(out, cap, "%s", both);
    else if (left && right && json_array_size(merge) == 2)
        n = snprintf(out, cap, "%s %s", left, right);
    else
        return false;
    const char *gap = n > 2 && n < (int)cap ? strchr(out + 1, ' ') : NULL;

    return gap && gap[1] && !strchr(gap + 1, ' ');
}

bool hf_is_version(const json_t *merge)
{
    const char *both = json_text(merge);

    return both && !strncmp(both, "#version", 8);
}

/* Merges that no text reaches: the first line of a list that was a file, and pairs with
 * a blank in them, which is another character in all texts. */
static bool is_no_merge(const json_t *merge)
{
    const char *left = json_text(json_array_get(merge, 0));
    const char *right = json_text(json_array_get(merge, 1));

    return hf_is_version(merge) ||
           (left && right && (strchr(left, ' ') || strchr(right, ' ')));
}

static size_t count_merges(const json_t *merges)
{
    size_t n = 0, i;
    json_t *one;

    json_array_foreach(merges, i, one) n += !is_no_merge(one);
    return n;
}

/* Scores for engines that do not read merges: earlier ones are higher. */
static void put_scores(struct gguf_kvs *k, const struct hf_vocab *v, const float *score)
{
    gguf_kv_array(k, "tokenizer.ggml.scores", GGUF_F32, v->n);
    for (size_t i = 0; i < v->n; i++)
        gguf_put_f32(&k->bytes, score[i]);
}

/* Score a token by the first merge that makes it; false: no such token. */
static bool score_whole(const struct strtab *ids, char *spelt, size_t rank,
                        float *score)
{
    char *gap = strchr(spelt, ' ');
    uint32_t id;

    memmove(gap, gap + 1, strlen(gap));
    id = strtab_find(ids, spelt, strlen(spelt));
    if (id != STRTAB_NONE && score[id] == WORST)
        score[id] = -(float)rank;
    return id != STRTAB_NONE;
}

static enum status index_texts(struct strtab *ids, const struct hf_vocab *v,
                               struct err *err)
{
    const enum status st = strtab_init(ids, v->n, err);

    for (size_t i = 0; i < v->n && !st; i++)
        if (v->tokens[i].text && *v->tokens[i].text)
            strtab_put(ids, v->tokens[i].text, (uint32_t)strlen(v->tokens[i].text),
                       (uint32_t)i);
    return st;
}

/* Scores of a model that SentencePiece made are floats. */
static void put_token_scores(struct gguf_kvs *k, const struct hf_vocab *v)
{
    bool exact = true;

    gguf_kv_array(k, "tokenizer.ggml.scores", GGUF_F32, v->n);
    for (size_t i = 0; i < v->n; i++) {
        gguf_put_f32(&k->bytes, (float)v->tokens[i].score);
        exact &= (double)(float)v->tokens[i].score == v->tokens[i].score;
    }
    if (exact)
        return;
    gguf_kv_array(k, TOKENIZER_KEY_SCORES, GGUF_F64, v->n);
    for (size_t i = 0; i < v->n; i++)
        gguf_put(&k->bytes, &v->tokens[i].score, sizeof v->tokens[i].score);
}

static enum status put_merges(struct gguf_kvs *k, const struct hf_vocab *v,
                              struct err *err)
{
    json_t *merges = json_member(v->model, "merges"), *one;
    char spelt[2 * MAX_MERGE_PART];
    struct strtab ids = {0};
    float *score = NULL;
    size_t i;
    enum status st;

    if (!json_is_array(merges))
        return err_set(err, ST_INPUT, "%s has no model.merges", v->file.path);
    st = index_texts(&ids, v, err);
    if (!st && v->own) {
        st = hf_own_put_merges(k, v, &ids, err);
        strtab_free(&ids);
        return st;
    }
    if (!st && !(score = malloc(v->n * sizeof *score)))
        st = err_set(err, ST_NO_MEMORY, "no memory for %zu scores", v->n);
    for (size_t t = 0; t < v->n && !st; t++)
        score[t] = WORST;
    gguf_kv_array(k, v->pre.byte_level ? "tokenizer.ggml.merges" : TOKENIZER_KEY_MERGES,
                  GGUF_STRING, count_merges(merges));
    json_array_foreach(merges, i, one)
    {
        if (st)
            break;
        if (is_no_merge(one))
            continue;
        if (!spell_merge(one, spelt, sizeof spelt)) {
            st = err_set(err, ST_INPUT,
                         "%s: merge %zu is not two tokens without blanks in them",
                         v->file.path, i);
        } else {
            gguf_put_str(&k->bytes, spelt);
            if (!score_whole(&ids, spelt, i, score))
                st =
                    err_set(err, ST_INPUT,
                            "%s: merge %zu makes a token that is not in the vocabulary",
                            v->file.path, i);
        }
    }
    if (!st && !v->pre.byte_level)
        put_scores(k, v, score);
    free(score);
    strtab_free(&ids);
    return st;
}

/* ---- the kind of tokenizer ------------------------------------------------------- */

/* Whether a merge makes a token with U+2581 behind its first character. */
static bool merges_cross_blanks(const struct hf_vocab *v)
{
    char spelt[2 * MAX_MERGE_PART];
    json_t *one;
    size_t i;

    json_array_foreach(json_member(v->model, "merges"), i, one)
    {
        if (!is_no_merge(one) && spell_merge(one, spelt, sizeof spelt) &&
            strstr(spelt + 1, "\xe2\x96\x81"))
            return true;
    }
    return false;
}

static bool has_text(const struct hf_vocab *v, const char *key)
{
    const char *text = json_text(json_member(v->model, key));

    return text && *text;
}

/* Whether a model of GGUF does what this one does. */
static bool has_usual_kind(struct hf_vocab *v)
{
    const char *type = json_text(json_member(v->model, "type"));

    if (json_is_array(json_member(v->model, "vocab"))) {
        v->kind = HF_UNIGRAM;
        return !v->pre.byte_level && v->pre.puts_blanks;
    }
    /* Files older than the member have merges. */
    if (type ? strcmp(type, "BPE") != 0 : !json_member(v->model, "merges"))
        return false;
    v->kind = HF_BPE;
    if (has_text(v, "continuing_subword_prefix") || has_text(v, "end_of_word_suffix"))
        return false;
    if (v->pre.byte_level)
        return true;
    /* Where pieces begin at blanks, no merge may cross one. */
    return v->pre.puts_blanks && json_is_true(json_member(v->model, "byte_fallback")) &&
           !json_is_true(json_member(v->model, "ignore_merges")) &&
           !(v->pre.cuts_at_blanks && merges_cross_blanks(v));
}

/* The steps as a model of GGUF has them, or else as they are. */
static enum status find_kind(struct hf_vocab *v, struct err *err)
{
    struct err why = ERR_INIT;
    const enum status st = hf_pretok_read(&v->pre, &v->file, &why);

    if (st && st != ST_UNSUPPORTED)
        return err_set(err, st, "%s", why.msg);
    if (!st && has_usual_kind(v))
        return ST_OK;
    hf_pretok_free(&v->pre);
    v->pre = (struct hf_pretok){.n_patterns = 0};
    return hf_own_kind(v, err);
}

/* A name that other engines know too, else the patterns. */
static void put_patterns(struct gguf_kvs *k, const struct hf_vocab *v)
{
    const bool whole = json_is_true(json_member(v->model, "ignore_merges"));
    char name[32];

    if (pre_tokenizer_known((const char *const *)v->pre.patterns, v->pre.n_patterns,
                            whole, name, sizeof name)) {
        gguf_kv_str(k, "tokenizer.ggml.pre", name);
        return;
    }
    gguf_kv_str(k, "tokenizer.ggml.pre", "slmbench-patterns");
    gguf_kv_bool(k, TOKENIZER_KEY_WHOLE_WORDS, whole);
    gguf_kv_array(k, TOKENIZER_KEY_PATTERNS, GGUF_STRING, v->pre.n_patterns);
    for (size_t i = 0; i < v->pre.n_patterns; i++)
        gguf_put_str(&k->bytes, v->pre.patterns[i]);
}

static void put_kind(struct gguf_kvs *k, const struct hf_vocab *v)
{
    const bool unigram = v->kind == HF_UNIGRAM;

    gguf_kv_str(k, "tokenizer.ggml.model",
                unigram             ? "t5"
                : v->pre.byte_level ? "gpt2"
                                    : "llama");
    if (unigram)
        gguf_kv_bool(k, TOKENIZER_KEY_CUTS, v->pre.cuts_at_blanks);
    if (v->pre.byte_level) {
        put_patterns(k, v);
        return;
    }
    gguf_kv_bool(k, "tokenizer.ggml.add_space_prefix", v->pre.add_space);
    if (v->pre.space_first)
        gguf_kv_bool(k, TOKENIZER_KEY_SPACE_FIRST, true);
    if (v->pre.space_once)
        gguf_kv_bool(k, TOKENIZER_KEY_SPACE_ONCE, true);
}

static enum status put_normalizer(struct gguf_kvs *k, const struct hf_vocab *v,
                                  struct err *err)
{
    json_t *all = v->pre.steps ? json_pack("{s:s, s:O}", "type", "Sequence",
                                           "normalizers", v->pre.steps)
                               : NULL;
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;

    json_decref(all);
    if (v->pre.steps && !text)
        return err_set(err, ST_NO_MEMORY, "no memory for a normaliser");
    if (text)
        gguf_kv_str(k, TOKENIZER_KEY_NORMALIZER, text);
    free(text);
    return ST_OK;
}

static enum status put_all(struct gguf_kvs *k, struct hf_vocab *v, const char *dir,
                           int64_t n_vocab, struct err *err)
{
    enum status st;

    v->model = json_member(v->file.root, "model");
    v->max_tokens = max_tokens(v);
    if ((st = find_kind(v, err)) || (st = read_vocab(v, err)) ||
        (st = read_added(v, err)))
        return st;
    type_bytes(v);
    if ((st = fill_holes(v, n_vocab, err)))
        return st;
    if (!v->own)
        put_kind(k, v);
    st = v->own ? hf_own_put_kind(k, v, err) : put_normalizer(k, v, err);
    if (st)
        return st;
    put_tokens(k, v);
    if (v->kind == HF_UNIGRAM)
        put_token_scores(k, v);
    else if (v->kind == HF_BPE)
        st = put_merges(k, v, err);
    return st ? st : hf_special_put(k, v, dir, err);
}

static void free_vocab(struct hf_vocab *v)
{
    hf_pretok_free(&v->pre);
    jsonfile_free(&v->file);
    free(v->tokens);
}

enum status hf_tokenizer_put(struct gguf_kvs *k, const char *dir, int64_t n_vocab,
                             struct err *err)
{
    struct hf_vocab v = {.unknown = -1};
    bool exists;
    enum status st = jsonfile_find(&exists, dir, "tokenizer.json", err);

    if (st || !exists)
        return st;
    st = jsonfile_load(&v.file, dir, "tokenizer.json", max_json, err);
    if (!st)
        st = put_all(k, &v, dir, n_vocab, err);
    free_vocab(&v);
    return st;
}

enum status hf_tokenizer_parse(struct gguf_kvs *k, const char *text, size_t len,
                               struct err *err)
{
    struct hf_vocab v = {.unknown = -1};
    enum status st =
        jsonfile_parse(&v.file, "tokenizer.json", text, len, max_json, 0, err);

    if (!st)
        st = put_all(k, &v, NULL, 0, err);
    free_vocab(&v);
    return st;
}
