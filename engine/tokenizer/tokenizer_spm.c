/* SPDX-License-Identifier: MIT
 *
 * tokenizer_spm.c - byte-pair encoding by score, as in SentencePiece
 *
 * Blanks become U+2581 and the text is cut into characters. Among all neighbours that
 * together are a token, the pair with the highest score is joined, the leftmost of
 * equals first, until none are left. Symbols that are no token become byte tokens. A
 * vocabulary with a list of merges joins the pairs of the list, lowest rank first.
 *
 * Where no token has two neighbouring characters next to each other, none is made of
 * both, whatever is joined first. So a text is cut there (before most words' blanks),
 * and its parts are encoded one by one.
 *
 * Characters ("symbols") form a doubly linked list over a part; joining leaves the
 * right one empty. Candidate pairs are in a heap; outdated ones are discarded when they
 * are popped, so the algorithm is O(n log n).
 *
 * Source: Kudo and Richardson, "SentencePiece", 2018; vocabulary and scores are those
 * of the model.
 */
#include "engine/tokenizer/tokenizer_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

static const char blank[] = "\xe2\x96\x81"; /* U+2581 in UTF-8 */
#define BLANK_BYTES 3
#define MAX_MERGES  (1 << 24) /* ranks are compared as floats */

struct symbol {
    uint32_t at, len;   /* in the part; len 0: joined to its left */
    int32_t prev, next; /* -1: none */
};

/* symbols[left] and the next one, as they were when the pair was found. */
struct pair {
    float score;
    int32_t left, right;
    uint32_t len; /* of both together */
};

struct spm {
    const struct tokenizer *t;
    const char *text;       /* the part, escaped */
    struct symbol *symbols; /* [cap] */
    int32_t n_symbols;
    struct pair *heap; /* [2 * cap], the best pair on top */
    size_t cap, n_pairs;
};

/* ---- heap ------------------------------------------------------------------------ */

static bool before(const struct pair *a, const struct pair *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void heap_push(struct spm *s, struct pair p)
{
    size_t i = s->n_pairs++;

    for (; i > 0 && before(&p, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = p;
}

static struct pair heap_pop(struct spm *s)
{
    const struct pair top = s->heap[0];
    const struct pair last = s->heap[--s->n_pairs];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < s->n_pairs; i = child) {
        if (child + 1 < s->n_pairs && before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return top;
}

/* ---- the algorithm --------------------------------------------------------------- */

/* Replace the blanks of the text and put one before it if the vocabulary has
 * adds_space. Returns the length. */
static size_t escape(const struct tokenizer *t, const char *text, size_t len,
                     bool first, char *out)
{
    const bool there =
        text[0] == ' ' || (len >= BLANK_BYTES && !memcmp(text, blank, BLANK_BYTES));
    size_t n = 0;

    if (t->adds_space && (first || !t->space_first) && !(there && t->space_once)) {
        memcpy(out, blank, BLANK_BYTES);
        n = BLANK_BYTES;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ' ') {
            memcpy(out + n, blank, BLANK_BYTES);
            n += BLANK_BYTES;
        } else {
            out[n++] = text[i];
        }
    }
    return n;
}

/* Bytes of the character, or of the malformed byte, that text[len] begins with. */
static uint32_t char_bytes(const char *text, size_t len)
{
    const int chars = utf8_char_len(text, len);

    return chars > 0 ? (uint32_t)chars : 1;
}

/* The bit of two characters that stand next to each other. */
static size_t neighbour_bit(const struct tokenizer *t, const char *a, uint32_t a_bytes,
                            const char *b, uint32_t b_bytes)
{
    uint32_t both[2] = {0, 0};
    uint64_t key;

    memcpy(&both[0], a, a_bytes);
    memcpy(&both[1], b, b_bytes);
    key = (uint64_t)both[0] << 32 | both[1];
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - t->neighbour_bits));
}

/* Where the part of text[len] ends that begins at `at`. */
static size_t part_end(const struct tokenizer *t, const char *text, size_t len,
                       size_t at)
{
    uint32_t bytes = char_bytes(text + at, len - at);

    for (size_t next = at + bytes; next < len;) {
        const uint32_t more = char_bytes(text + next, len - next);
        const size_t bit = neighbour_bit(t, text + at, bytes, text + next, more);

        if (!(t->neighbours[bit / 64] >> bit % 64 & 1))
            return next;
        at = next;
        next += more;
        bytes = more;
    }
    return len;
}

/* One symbol per character. */
static void split(struct spm *s, size_t len)
{
    int32_t n = 0;

    for (size_t i = 0; i < len; n++) {
        const uint32_t bytes = char_bytes(s->text + i, len - i);

        s->symbols[n] = (struct symbol){
            .at = (uint32_t)i, .len = bytes, .prev = n - 1, .next = n + 1};
        i += bytes;
    }
    s->symbols[n - 1].next = -1;
    s->n_symbols = n;
}

/* The score of joining to token id, whose left part has `left` bytes; false: the two do
 * not join. */
static bool join_score(const struct tokenizer *t, uint32_t id, uint32_t left,
                       float *score)
{
    const uint32_t key[2] = {id, left};

    if (!t->merges.slots) {
        *score = t->score[id];
        return true;
    }
    const uint32_t rank = strtab_find(&t->merges, (const char *)key, sizeof key);

    *score = -(float)rank;
    return rank != STRTAB_NONE;
}

/* Push two neighbours onto the heap if together they are a token. */
static void propose(struct spm *s, int32_t left, int32_t right)
{
    if (left < 0 || right < 0)
        return;
    const struct symbol *a = &s->symbols[left];
    const uint32_t len = a->len + s->symbols[right].len;
    const uint32_t id = strtab_find(&s->t->ids, s->text + a->at, len);
    float score;

    if (id != STRTAB_NONE && join_score(s->t, id, a->len, &score))
        heap_push(
            s, (struct pair){.score = score, .left = left, .right = right, .len = len});
}

static void join_all(struct spm *s)
{
    for (int32_t i = 1; i < s->n_symbols; i++)
        propose(s, i - 1, i);
    while (s->n_pairs) {
        const struct pair p = heap_pop(s);
        struct symbol *a = &s->symbols[p.left], *b = &s->symbols[p.right];

        /* Outdated: one of them has been joined to another symbol. */
        if (a->len == 0 || b->len == 0 || a->len + b->len != p.len)
            continue;
        a->len = p.len;
        b->len = 0;
        a->next = b->next;
        if (b->next >= 0)
            s->symbols[b->next].prev = p.left;
        propose(s, a->prev, p.left);
        propose(s, p.left, a->next);
    }
}

static enum status emit(const struct spm *s, struct id_list *ids, struct err *err)
{
    enum status st = ST_OK;

    for (int32_t i = 0; i >= 0 && !st; i = s->symbols[i].next) {
        const struct symbol *sym = &s->symbols[i];
        const char *text = s->text + sym->at;
        const uint32_t id = strtab_find(&s->t->ids, text, sym->len);

        if (id != STRTAB_NONE)
            st = id_list_add(ids, (int32_t)id, err);
        else
            st = tokenizer_emit_bytes(s->t, text, sym->len, ids, err);
    }
    return st;
}

static enum status reserve(struct spm *s, size_t n, struct err *err)
{
    if (n <= s->cap)
        return ST_OK;
    /* n symbols have n - 1 pairs; each of the at most n - 1 joins takes one out and
     * adds two. */
    free(s->symbols);
    free(s->heap);
    s->cap = 2 * n;
    s->symbols = malloc(s->cap * sizeof *s->symbols);
    s->heap = malloc(2 * s->cap * sizeof *s->heap);
    if (s->symbols && s->heap)
        return ST_OK;
    return err_set(err, ST_NO_MEMORY, "cannot allocate memory to tokenise %zu bytes",
                   n);
}

static enum status encode_part(struct spm *s, const char *text, size_t len,
                               struct id_list *ids, struct err *err)
{
    enum status st = id_list_check(ids, tokenizer_min_tokens(s->t, len));

    if (!st)
        st = reserve(s, len, err);
    if (st)
        return st;
    s->text = text;
    split(s, len);
    join_all(s);
    return emit(s, ids, err);
}

static enum status encode(const struct tokenizer *t, const char *text, size_t len,
                          bool first, struct id_list *ids, struct err *err)
{
    struct spm s = {.t = t};
    char *escaped = NULL;
    size_t n = 0;
    enum status st = tokenizer_escape(t, text, len, first, &escaped, &n, err);

    for (size_t at = 0, end; at < n && !st; at = end) {
        end = part_end(t, escaped, n, at);
        st = encode_part(&s, escaped + at, end - at, ids, err);
    }
    free(escaped);
    free(s.symbols);
    free(s.heap);
    return st;
}

enum status tokenizer_escape(const struct tokenizer *t, const char *text, size_t len,
                             bool first, char **out, size_t *n_out, struct err *err)
{
    size_t n_blanks = 1;

    for (size_t i = 0; i < len; i++)
        n_blanks += text[i] == ' ';
    char *made = malloc(len + n_blanks * BLANK_BYTES);

    if (!made)
        return err_set(err, ST_NO_MEMORY,
                       "cannot allocate memory to tokenise %zu bytes", len);
    *n_out = escape(t, text, len, first, made);
    *out = made;
    return ST_OK;
}

size_t tokenizer_blank_piece(const struct tokenizer *t, int32_t id, char *buf,
                             size_t cap)
{
    size_t len, n = 0;
    const char *text = token_text(t, id, &len);

    for (int pass = 0; pass < 2; pass++) { /* count, then write */
        n = 0;
        for (size_t i = 0; i < len; n++) {
            const bool is_blank =
                len - i >= BLANK_BYTES && !memcmp(text + i, blank, BLANK_BYTES);

            if (pass)
                buf[n] = is_blank ? ' ' : text[i];
            i += is_blank ? BLANK_BYTES : 1;
        }
        if (n > cap)
            break;
    }
    return n;
}

/* ---- loading --------------------------------------------------------------------- */

/* User-defined tokens are recognised in the text before; only U+2581, which texts do
 * not contain, may still complete such a token. */
static bool is_cut_out(const struct tokenizer *t, int32_t id, const char *text,
                       size_t len)
{
    return t->type[id] == TOKEN_USER && !memmem(text, len, "\xe2\x96\x81", 3);
}

/* Room for the neighbours of all tokens, so that few bits are set by others. */
static enum status open_neighbours(struct tokenizer *t, struct err *err)
{
    for (t->neighbour_bits = 10;
         t->neighbour_bits < 24 && (1 << t->neighbour_bits) / 32 < t->n_vocab;)
        t->neighbour_bits++;
    t->neighbours = calloc((size_t)1 << (t->neighbour_bits - 6), sizeof *t->neighbours);
    return t->neighbours ? ST_OK
                         : err_set(err, ST_NO_MEMORY, "cannot allocate a vocabulary");
}

static void add_neighbours(struct tokenizer *t, const char *text, size_t len)
{
    uint32_t bytes = char_bytes(text, len);

    for (size_t at = 0, next = bytes; next < len;) {
        const uint32_t more = char_bytes(text + next, len - next);
        const size_t bit = neighbour_bit(t, text + at, bytes, text + next, more);

        t->neighbours[bit / 64] |= UINT64_C(1) << bit % 64;
        at = next;
        next += more;
        bytes = more;
    }
}

/* Index the tokens that plain text may become. Control, unknown and byte tokens are not
 * text: a prompt that contains "</s>" must not end the conversation. Among equal texts
 * the last counts. */
static enum status index_texts(struct tokenizer *t, struct err *err)
{
    enum status st = strtab_init(&t->ids, (size_t)t->n_vocab, err);

    if (!st)
        st = open_neighbours(t, err);

    for (int32_t id = t->n_vocab - 1; !st && id >= 0; id--) {
        size_t len;
        const char *text = token_text(t, id, &len);

        if (len && t->type[id] != TOKEN_CONTROL && t->type[id] != TOKEN_UNKNOWN &&
            t->type[id] != TOKEN_BYTE && t->type[id] != TOKEN_UNUSED &&
            !is_cut_out(t, id, text, len)) {
            strtab_put(&t->ids, text, (uint32_t)len, (uint32_t)id);
            add_neighbours(t, text, len);
        }
    }
    return st;
}

/* Read merge i, "left right", and index it by the token it makes. */
static enum status load_merge(struct tokenizer *t, const struct gguf *g, uint64_t i,
                              struct gguf_str s, struct err *err)
{
    const char *gap = s.len > 2 ? memchr(s.data + 1, ' ', s.len - 2) : NULL;
    char whole[8192], shown[48];
    uint32_t *key = t->merge_keys[i];

    if (!gap || s.len - 1 > sizeof whole)
        return err_set(err, ST_INPUT,
                       "%s: merge %" PRIu64
                       ", '%s', is not two parts of a token with a blank between them",
                       gguf_path(g), i,
                       utf8_printable(shown, sizeof shown, s.data, s.len));
    key[1] = (uint32_t)(gap - s.data);
    memcpy(whole, s.data, key[1]);
    memcpy(whole + key[1], gap + 1, s.len - key[1] - 1);
    key[0] = strtab_find(&t->ids, whole, s.len - 1);
    /* Among equal merges the first counts; text does not become a control token. */
    if (key[0] != STRTAB_NONE)
        strtab_put(&t->merges, (const char *)key, sizeof t->merge_keys[i], (uint32_t)i);
    return ST_OK;
}

/* Read ranks, which replace scores in files that have them. */
static enum status load_merges(struct tokenizer *t, const struct gguf *g,
                               struct err *err)
{
    const bool must = t->algo == &tokenizer_spm_merges;
    const char *key = must ? "tokenizer.ggml.merges" : TOKENIZER_KEY_MERGES;
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    enum status st = ST_OK;

    if (!kv && must)
        return err_set(err, ST_INPUT, "%s has no %s, which the tokenizer '%s' needs",
                       gguf_path(g), key, t->algo->name);
    if (!kv)
        return ST_OK;
    if (kv->type != GGUF_ARRAY || kv->elem_type != GGUF_STRING || kv->n > MAX_MERGES)
        return err_set(err, ST_INPUT, "%s: %s is not a list of at most %d strings",
                       gguf_path(g), key, MAX_MERGES);
    t->merge_keys = malloc(((size_t)kv->n + 1) * sizeof *t->merge_keys);
    if (!t->merge_keys)
        return err_set(err, ST_NO_MEMORY, "cannot allocate %" PRIu64 " merges", kv->n);
    st = strtab_init(&t->merges, (size_t)kv->n + 1, err);
    for (uint64_t i = 0; i < kv->n && !st; i++) {
        struct gguf_str s = {"", 0};

        gguf_elem_str(g, kv, i, &s);
        st = load_merge(t, g, i, s, err);
    }
    return st;
}

/* Phi-3's special tokens remove the blanks after them, all but three: rstrip in its
 * tokenizer_config.json, which GGUF does not carry. */
static enum status find_strips(struct tokenizer *t, const struct gguf *g,
                               struct err *err)
{
    static const char *const kept[] = {"<unk>", "<s>", "<|endoftext|>"};
    struct gguf_str arch = {"", 0};

    gguf_get_str(g, "general.architecture", &arch);
    if (t->flags || arch.len != 4 || memcmp(arch.data, "phi3", 4))
        return ST_OK;
    t->flags = calloc((size_t)t->n_vocab, sizeof *t->flags);
    if (!t->flags)
        return err_set(err, ST_NO_MEMORY,
                       "cannot allocate the rules of %" PRId32 " tokens", t->n_vocab);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);

        t->flags[id] = TOKEN_RSTRIP;
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
            if (len == strlen(kept[i]) && !memcmp(text, kept[i], len))
                t->flags[id] = 0;
        }
    }
    return ST_OK;
}

static enum status load(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    enum status st = index_texts(t, err);

    if (!st)
        st = load_merges(t, g, err);
    return st ? st : find_strips(t, g, err);
}

const struct tokenizer_algo tokenizer_spm = {
    .name = "llama",
    .default_bos = 1,
    .default_eos = 2,
    .default_unknown = 0,
    .needs_scores = true,
    .spells_bytes = true,
    .adds_bos = true,
    .adds_space = true,
    .load = load,
    .encode = encode,
    .piece = tokenizer_blank_piece,
};

/* Gemma 4: merges in the order of their list, as files of byte-level BPE have it.
 * Scores are there, too, but say nothing. */
const struct tokenizer_algo tokenizer_spm_merges = {
    .name = "gemma4",
    .default_bos = 2,
    .default_eos = 1,
    .default_unknown = 3,
    .spells_bytes = true,
    .adds_bos = true,
    .load = load,
    .encode = encode,
    .piece = tokenizer_blank_piece,
};
