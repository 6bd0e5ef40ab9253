/* SPDX-License-Identifier: MIT
 *
 * tokenizer_bpe.c - byte-level byte-pair encoding as in GPT-2
 *
 * The text is cut into pieces (tokenizer_pre.h). Each byte of a piece starts as a
 * token; of all neighbours in the list of merges, the pair of lowest rank is joined,
 * the leftmost of equals first, until none are left. Tokens are spelled in a byte
 * alphabet: printable characters of Latin-1 stand for their own byte, the characters
 * from U+0100 on for the other 68 in order.
 *
 * Symbols form a doubly linked list over the piece, candidate pairs a heap, as in
 * tokenizer_spm.c, so the algorithm is O(n log n).
 *
 * Source: Radford et al., "Language models are unsupervised multitask learners",
 * 2019, and its public vocabulary.
 */
#include "engine/tokenizer/tokenizer_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_pre.h"

/* Two tokens that join to one; the rank is the index in the list. */
struct merge {
    int32_t left, right; /* the key in bpe.ranks: no padding between the two */
    int32_t whole;       /* -1: text does not become this token */
};

struct bpe {
    struct pre_tokenizer *pre;
    bool whole_words;
    struct merge *merges;
    struct strtab ranks; /* left and right of a merge -> its index */
    char *bytes;         /* of all tokens, one after another */
    size_t *at;          /* [n_vocab + 1] into bytes */
};

#define MERGE_KEY_BYTES (2 * sizeof(int32_t))

static const char *token_bytes(const struct tokenizer *t, int32_t id, size_t *len)
{
    *len = t->bpe->at[id + 1] - t->bpe->at[id];
    return t->bpe->bytes + t->bpe->at[id];
}

/* ---- the byte alphabet -------------------------------------------------- */

/* The byte of a character up to U+0143, or -1. */
static int alphabet_byte(unsigned c)
{
    if ((c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) ||
        (c >= 0xae && c <= 0xff))
        return (int)c;
    if (c >= 0x100 && c <= 0x120) /* 33: U+0000 to U+0020 */
        return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142) /* 34: U+007F to U+00A0 */
        return (int)(c - 0x121 + 0x7f);
    return c == 0x143 ? 0xad : -1;
}

/* The bytes of text[len], to out[len]; false where a character is not in the alphabet.
 */
static bool decode(const char *text, size_t len, char *out, size_t *n_out)
{
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        const unsigned char *b = (const unsigned char *)text + i;
        const int chars = utf8_char_len(text + i, len - i);
        const int byte = chars == 1 ? alphabet_byte(b[0])
                         : chars == 2
                             ? alphabet_byte((b[0] & 0x1fu) << 6 | (b[1] & 0x3fu))
                             : -1;

        if (byte < 0)
            return false;
        out[n++] = (char)byte;
        i += (size_t)chars;
    }
    *n_out = n;
    return true;
}

/* ---- loading ------------------------------------------------------------ */

static enum status no_memory(const struct tokenizer *t, struct err *err)
{
    return err_set(err, ST_NO_MEMORY,
                   "cannot allocate a byte-level vocabulary of %" PRId32 " tokens",
                   t->n_vocab);
}

static bool is_plain(const struct tokenizer *t, int32_t id)
{
    return t->type[id] == TOKEN_NORMAL || t->type[id] == TOKEN_UNDEFINED;
}

/* The bytes of each token. Tokens of other kinds are spelled as they are; so are plain
 * ones outside of the alphabet, which no text becomes. */
static enum status load_bytes(struct tokenizer *t, struct err *err)
{
    struct bpe *b = t->bpe;

    b->bytes = malloc(t->at[t->n_vocab] + 1);
    b->at = malloc(((size_t)t->n_vocab + 1) * sizeof *b->at);
    if (!b->bytes || !b->at)
        return no_memory(t, err);
    b->at[0] = 0;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        char *out = b->bytes + b->at[id];
        size_t len, n = 0;
        const char *text = token_text(t, id, &len);
        const bool spelt = is_plain(t, id) && decode(text, len, out, &n);

        if (!spelt) {
            memcpy(out, text, len);
            n = len;
        }
        b->at[id + 1] = b->at[id] + n;
        if (spelt && n == 1)
            t->byte_id[(unsigned char)out[0]] = id;
        if (spelt && n && b->whole_words)
            strtab_put(&t->ids, out, (uint32_t)n, (uint32_t)id);
    }
    return ST_OK;
}

/* Every token's text -> its id. Where texts are equal the last one counts, and one that
 * is text before one that is not. */
static enum status index_names(struct strtab *names, const struct tokenizer *t,
                               struct err *err)
{
    const enum status st = strtab_init(names, (size_t)t->n_vocab, err);

    for (int plain = 1; plain >= 0; plain--)
        for (int32_t id = t->n_vocab - 1; !st && id >= 0; id--) {
            size_t len;
            const char *text = token_text(t, id, &len);

            if (len && is_plain(t, id) == plain)
                strtab_put(names, text, (uint32_t)len, (uint32_t)id);
        }
    return st;
}

/* The token of a part of merge i, or of the whole merge. */
static enum status find_part(int32_t *id, const struct strtab *names,
                             const struct gguf *g, uint64_t i, const char *part,
                             size_t len, struct err *err)
{
    const uint32_t found = strtab_find(names, part, len);
    char shown[48];

    if (found == STRTAB_NONE)
        return err_set(err, ST_INPUT,
                       "%s: merge %" PRIu64
                       " needs the token '%s', which is not in the vocabulary",
                       gguf_path(g), i, utf8_printable(shown, sizeof shown, part, len));
    *id = (int32_t)found;
    return ST_OK;
}

/* Read merge i, "left right". */
static enum status load_merge(const struct tokenizer *t, const struct strtab *names,
                              const struct gguf *g, uint64_t i, struct gguf_str s,
                              struct err *err)
{
    struct merge *m = &t->bpe->merges[i];
    char whole[2 * 65535];
    const char *gap = s.len > 2 ? memchr(s.data + 1, ' ', s.len - 2) : NULL;
    char shown[48];
    enum status st;

    if (!gap || s.len - 1 > sizeof whole)
        return err_set(
            err, ST_INPUT,
            "%s: merge %" PRIu64 " is '%s', not two tokens with a blank between them",
            gguf_path(g), i, utf8_printable(shown, sizeof shown, s.data, s.len));
    const size_t n_left = (size_t)(gap - s.data), n_right = s.len - n_left - 1;

    memcpy(whole, s.data, n_left);
    memcpy(whole + n_left, gap + 1, n_right);
    if ((st = find_part(&m->left, names, g, i, s.data, n_left, err)) ||
        (st = find_part(&m->right, names, g, i, gap + 1, n_right, err)) ||
        (st = find_part(&m->whole, names, g, i, whole, s.len - 1, err)))
        return st;
    if (t->type[m->whole] == TOKEN_CONTROL || t->type[m->whole] == TOKEN_UNKNOWN ||
        t->type[m->whole] == TOKEN_UNUSED)
        m->whole = -1;
    return ST_OK;
}

static enum status load_merges(struct tokenizer *t, const struct gguf *g,
                               struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, "tokenizer.ggml.merges");
    struct strtab names = {0};
    enum status st;

    if (!kv || kv->type != GGUF_ARRAY || kv->elem_type != GGUF_STRING)
        return err_set(
            err, ST_INPUT,
            "%s: tokenizer.ggml.merges, which the tokenizer 'gpt2' needs, is %s",
            gguf_path(g), kv ? "not a list of strings" : "missing");
    if (kv->n >= INT32_MAX)
        return err_set(err, ST_INPUT, "%s: %" PRIu64 " merges are too many",
                       gguf_path(g), kv->n);
    t->bpe->merges = malloc((kv->n + 1) * sizeof *t->bpe->merges);
    if (!t->bpe->merges)
        return no_memory(t, err);
    st = index_names(&names, t, err);
    if (!st)
        st = strtab_init(&t->bpe->ranks, kv->n, err);
    for (uint64_t i = 0; i < kv->n && !st; i++) {
        struct gguf_str s = {"", 0};

        gguf_elem_str(g, kv, i, &s);
        st = load_merge(t, &names, g, i, s, err);
        if (!st && t->bpe->merges[i].whole >= 0) /* of equal merges the first counts */
            strtab_put(&t->bpe->ranks, (const char *)&t->bpe->merges[i],
                       MERGE_KEY_BYTES, (uint32_t)i);
    }
    strtab_free(&names);
    return st;
}

/* Patterns without a known name. */
static enum status open_patterns(struct pre_tokenizer **pre, const struct gguf *g,
                                 struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, TOKENIZER_KEY_PATTERNS);
    struct gguf_str patterns[PRE_MAX_PATTERNS];
    bool whole_words = false;

    if (kv->type != GGUF_ARRAY || kv->elem_type != GGUF_STRING ||
        kv->n > PRE_MAX_PATTERNS)
        return err_set(err, ST_INPUT, "%s: %s is not a list of at most %d strings",
                       gguf_path(g), TOKENIZER_KEY_PATTERNS, PRE_MAX_PATTERNS);
    for (uint64_t i = 0; i < kv->n; i++)
        gguf_elem_str(g, kv, i, &patterns[i]);
    gguf_get_bool(g, TOKENIZER_KEY_WHOLE_WORDS, &whole_words);
    return pre_tokenizer_open_patterns(pre, patterns, (size_t)kv->n, whole_words,
                                       gguf_path(g), err);
}

static enum status load(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    struct gguf_str pre = {"default", 7};
    enum status st;

    t->bpe = calloc(1, sizeof *t->bpe);
    if (!t->bpe)
        return no_memory(t, err);
    gguf_get_str(g, "tokenizer.ggml.pre", &pre);
    st = gguf_kv_find(g, TOKENIZER_KEY_PATTERNS)
             ? open_patterns(&t->bpe->pre, g, err)
             : pre_tokenizer_open(&t->bpe->pre, pre.data, pre.len, gguf_path(g), err);
    if (st)
        return st;
    t->bpe->whole_words = pre_tokenizer_rules(t->bpe->pre)->whole_words;
    t->adds_bos = pre_tokenizer_rules(t->bpe->pre)->adds_bos;
    gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &t->adds_bos);
    t->adds_space = false; /* a blank is a byte like any other; no engine adds one */
    if (t->bpe->whole_words)
        st = strtab_init(&t->ids, (size_t)t->n_vocab, err);
    if (st || (st = load_bytes(t, err)) || (st = load_merges(t, g, err)))
        return st;
    return ST_OK;
}

static void unload(struct tokenizer *t)
{
    if (!t->bpe)
        return;
    pre_tokenizer_close(t->bpe->pre);
    strtab_free(&t->bpe->ranks);
    free(t->bpe->merges);
    free(t->bpe->bytes);
    free(t->bpe->at);
    free(t->bpe);
}

/* ---- the algorithm ------------------------------------------------------ */

struct symbol {
    int32_t id;         /* -1: a byte without a token, or joined to its left */
    int32_t prev, next; /* -1: none */
};

/* symbols[left] and the next one, as they were when the pair was found. */
struct pair {
    uint32_t rank;
    int32_t left;
};

struct work {
    const struct tokenizer *t;
    struct id_list *ids;
    struct symbol *symbols; /* [cap] */
    struct pair *heap;      /* [2 * cap], the best pair on top */
    size_t cap, n_pairs;
};

static bool before(struct pair a, struct pair b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.left < b.left);
}

static void heap_push(struct work *w, struct pair p)
{
    size_t i = w->n_pairs++;

    for (; i > 0 && before(p, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = p;
}

static struct pair heap_pop(struct work *w)
{
    const struct pair top = w->heap[0];
    const struct pair last = w->heap[--w->n_pairs];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < w->n_pairs; i = child) {
        if (child + 1 < w->n_pairs && before(w->heap[child + 1], w->heap[child]))
            child++;
        if (!before(w->heap[child], last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

/* Push a symbol and its right neighbour onto the heap if they merge. */
static void propose(struct work *w, int32_t left)
{
    if (left < 0 || w->symbols[left].next < 0)
        return;
    const int32_t key[2] = {w->symbols[left].id, w->symbols[w->symbols[left].next].id};
    const uint32_t rank =
        strtab_find(&w->t->bpe->ranks, (const char *)key, MERGE_KEY_BYTES);

    if (rank != STRTAB_NONE)
        heap_push(w, (struct pair){rank, left});
}

static void join_all(struct work *w, int32_t n)
{
    w->n_pairs = 0;
    for (int32_t i = 0; i + 1 < n; i++)
        propose(w, i);
    while (w->n_pairs) {
        const struct pair p = heap_pop(w);
        const struct merge *m = &w->t->bpe->merges[p.rank];
        struct symbol *a = &w->symbols[p.left];
        struct symbol *b = a->next < 0 ? NULL : &w->symbols[a->next];

        /* Outdated: one of them has been joined to another symbol. */
        if (!b || a->id != m->left || b->id != m->right)
            continue;
        a->id = m->whole;
        b->id = -1;
        a->next = b->next;
        if (b->next >= 0)
            w->symbols[b->next].prev = p.left;
        propose(w, a->prev);
        propose(w, p.left);
    }
}

static enum status reserve(struct work *w, size_t n, struct err *err)
{
    if (n <= w->cap)
        return ST_OK;
    /* n symbols have n - 1 pairs; each of the at most n - 1 joins takes one out and
     * adds two. */
    free(w->symbols);
    free(w->heap);
    w->cap = n < SIZE_MAX / 4 ? 2 * n : n;
    w->symbols = malloc(w->cap * sizeof *w->symbols);
    w->heap = malloc(2 * w->cap * sizeof *w->heap);
    if (w->symbols && w->heap)
        return ST_OK;
    return err_set(err, ST_NO_MEMORY,
                   "cannot allocate memory to tokenise a word of %zu bytes", n);
}

static enum status encode_piece(void *arg, const char *piece, size_t len,
                                struct err *err)
{
    struct work *w = arg;
    enum status st;

    if (w->t->bpe->whole_words) {
        const uint32_t id = strtab_find(&w->t->ids, piece, len);

        if (id != STRTAB_NONE)
            return id_list_add(w->ids, (int32_t)id, err);
    }
    st = reserve(w, len, err);
    if (st)
        return st;
    for (size_t i = 0; i < len; i++)
        w->symbols[i] = (struct symbol){.id = w->t->byte_id[(unsigned char)piece[i]],
                                        .prev = (int32_t)i - 1,
                                        .next = i + 1 < len ? (int32_t)i + 1 : -1};
    join_all(w, (int32_t)len);
    for (int32_t i = 0; i >= 0 && !st; i = w->symbols[i].next) {
        if (w->symbols[i].id >= 0)
            st = id_list_add(w->ids, w->symbols[i].id, err);
        else
            st = tokenizer_emit_bytes(w->t, piece + i, 1, w->ids, err);
    }
    return st;
}

static enum status encode(const struct tokenizer *t, const char *text, size_t len,
                          bool first, struct id_list *ids, struct err *err)
{
    struct work w = {.t = t, .ids = ids};

    (void)first;
    const enum status st = pre_tokenizer_cut(t->bpe->pre, text, len, &ids->allowed_ns,
                                             encode_piece, &w, err);

    free(w.symbols);
    free(w.heap);
    return st;
}

static size_t piece(const struct tokenizer *t, int32_t id, char *buf, size_t cap)
{
    size_t len;
    const char *bytes = token_bytes(t, id, &len);

    if (len <= cap)
        memcpy(buf, bytes, len);
    return len;
}

const struct tokenizer_algo tokenizer_bpe = {
    .name = "gpt2",
    .default_bos = -1,
    .default_eos = -1,
    .default_unknown = -1,
    .load = load,
    .unload = unload,
    .encode = encode,
    .piece = piece,
};
