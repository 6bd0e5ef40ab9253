/* SPDX-License-Identifier: MIT
 *
 * tokenizer_decode.c - the bytes of each token, by the "decoder" of a tokenizer.json
 *
 * Its steps work on one token after another, so the bytes of all are made once, when
 * the vocabulary is opened: ByteFallback, ByteLevel, BPEDecoder, Fuse, Metaspace,
 * Replace (of a text), Strip, WordPiece, and Sequences of them; without a decoder
 * tokens are words. What a decoder does to the first token alone is left to the caller:
 * where that drops a blank, tokenizer_adds_space() tells.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/base/jsonfile.h"
#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_impl.h"
#include "engine/tokenizer/tokenizer_pieces.h"

#define MAX_STEPS  8
#define MAX_GROWTH 4  /* of a token */
#define MAX_MORE   64 /* bytes, of a short one */

static const struct json_limit max_json = {(size_t)1 << 16, (size_t)1 << 10};

struct bytes {
    char *v;
    size_t n, cap;
};

/* A token on its way through the steps. */
struct spelt {
    struct bytes now, spare;
    size_t most; /* bytes that it may have */
    bool failed;
};

struct step {
    void (*run)(const struct step *s, struct spelt *t);
    const char *find, *put; /* in the JSON */
    bool cleans;
    size_t left, right;
};

struct decoder {
    struct step steps[MAX_STEPS];
    int n_steps;
    bool fused, drops_blank;
};

static bool put(struct bytes *b, const char *text, size_t n)
{
    if (b->n + n > b->cap) {
        const size_t cap = 2 * (b->n + n);
        char *v = realloc(b->v, cap);

        if (!v)
            return false;
        b->v = v;
        b->cap = cap;
    }
    if (n)
        memcpy(b->v + b->n, text, n);
    b->n += n;
    return true;
}

/* Append to what the token becomes. */
static void add_to(struct spelt *t, const char *text, size_t n)
{
    t->failed |= t->spare.n + n > t->most || !put(&t->spare, text, n);
}

static void become(struct spelt *t)
{
    const struct bytes made = t->spare;

    t->spare = t->now;
    t->spare.n = 0;
    t->now = made;
}

static bool has_at(const struct spelt *t, size_t at, const char *text, size_t n)
{
    return n <= t->now.n - at && !memcmp(t->now.v + at, text, n);
}

/* ---- steps ----------------------------------------------------------------------- */

static void replace(const struct step *s, struct spelt *t)
{
    const size_t n = strlen(s->find), len = strlen(s->put);
    size_t at = 0;

    while (at < t->now.n && !t->failed) {
        const char *found = memmem(t->now.v + at, t->now.n - at, s->find, n);
        const size_t end = found ? (size_t)(found - t->now.v) : t->now.n;

        add_to(t, t->now.v + at, end - at);
        if (found)
            add_to(t, s->put, len);
        at = end + (found ? n : 0);
    }
    become(t);
}

static void word_piece(const struct step *s, struct spelt *t)
{
    static const struct step clean[] = {
        {.find = " .", .put = "."},     {.find = " ?", .put = "?"},
        {.find = " !", .put = "!"},     {.find = " ,", .put = ","},
        {.find = " ' ", .put = "'"},    {.find = " n't", .put = "n't"},
        {.find = " 'm", .put = "'m"},   {.find = " do not", .put = " don't"},
        {.find = " 's", .put = "'s"},   {.find = " 've", .put = "'ve"},
        {.find = " 're", .put = "'re"},
    };
    const size_t n = strlen(s->find);
    const bool goes_on = n && has_at(t, 0, s->find, n);

    add_to(t, " ", !goes_on);
    add_to(t, t->now.v + (goes_on ? n : 0), t->now.n - (goes_on ? n : 0));
    become(t);
    for (size_t i = 0; s->cleans && i < sizeof clean / sizeof clean[0]; i++)
        replace(&clean[i], t);
}

static void strip(const struct step *s, struct spelt *t)
{
    const size_t n = strlen(s->find);
    size_t begin = 0, end;

    for (size_t i = 0; i < s->left && has_at(t, begin, s->find, n); i++)
        begin += n;
    end = t->now.n;
    for (size_t i = 0;
         i < s->right && end - begin >= n && has_at(t, end - n, s->find, n); i++)
        end -= n;
    add_to(t, t->now.v + begin, end - begin);
    become(t);
}

static void byte_fallback(const struct step *s, struct spelt *t)
{
    char text[3] = "";

    (void)s;
    if (t->now.n != 6 || memcmp(t->now.v, "<0x", 3) != 0 || t->now.v[5] != '>')
        return;
    memcpy(text, t->now.v + 3, 2);
    if (strspn(text, "0123456789ABCDEFabcdef") != 2)
        return;
    t->now.v[0] = (char)strtoul(text, NULL, 16);
    t->now.n = 1;
}

/* Tokens with another character in them stay as they are. */
static void byte_level(const struct step *s, struct spelt *t)
{
    size_t n_out = 0, n;

    (void)s;
    for (int pass = 0; pass < 2; pass++) { /* look, then change */
        for (size_t at = 0; at < t->now.n; at += n) {
            const uint32_t c = unicode_at(t->now.v + at, t->now.n - at, &n);
            const int byte = byte_alphabet_byte(c);

            if (byte < 0 || !n)
                return;
            if (pass)
                t->now.v[n_out++] = (char)byte;
        }
    }
    t->now.n = n_out;
}

/* ---- reading --------------------------------------------------------------------- */

static bool add(struct decoder *d, struct step s)
{
    if (d->n_steps == MAX_STEPS || !s.run)
        return false;
    d->steps[d->n_steps++] = s;
    return true;
}

static const char *text_or(const json_t *from, const char *key, const char *other)
{
    const char *text = json_text(json_member(from, key));

    return text ? text : other;
}

/* Behind Fuse the text is one token. */
static bool add_strip(struct decoder *d, const json_t *from)
{
    struct step s = {.run = strip, .find = text_or(from, "content", "")};
    int64_t left = 0, right = 0;

    json_whole(json_member(from, "start"), &left);
    json_whole(json_member(from, "stop"), &right);
    if (!*s.find || left < 0 || right < 0)
        return false;
    s.left = (size_t)left;
    s.right = (size_t)right;
    if (!d->fused)
        return add(d, s);
    d->drops_blank |= left && !strcmp(s.find, " ");
    return true;
}

static bool add_metaspace(struct decoder *d, const json_t *from)
{
    const char *scheme = json_text(json_member(from, "prepend_scheme"));
    const struct step s = {
        .run = replace, .find = text_or(from, "replacement", ""), .put = " "};

    d->drops_blank |= scheme ? strcmp(scheme, "never") != 0
                             : !json_is_false(json_member(from, "add_prefix_space"));
    return *s.find && add(d, s);
}

static bool add_step(struct decoder *d, const char *type, const json_t *from)
{
    struct step s = {.find = "", .put = ""};

    if (!strcmp(type, "Fuse"))
        return d->fused = true;
    if (!strcmp(type, "Strip"))
        return add_strip(d, from);
    if (!strcmp(type, "Metaspace"))
        return add_metaspace(d, from);
    if (!strcmp(type, "ByteLevel")) {
        s.run = byte_level;
    } else if (!strcmp(type, "ByteFallback")) {
        s.run = byte_fallback;
    } else if (!strcmp(type, "BPEDecoder")) {
        s = (struct step){
            .run = replace, .find = text_or(from, "suffix", "</w>"), .put = " "};
    } else if (!strcmp(type, "WordPiece")) {
        s = (struct step){.run = word_piece,
                          .find = text_or(from, "prefix", "##"),
                          .cleans = !json_is_false(json_member(from, "cleanup"))};
        d->drops_blank = true;
    } else if (!strcmp(type, "Replace")) {
        s = (struct step){.run = replace,
                          .find = text_or(json_member(from, "pattern"), "String", ""),
                          .put = text_or(from, "content", "")};
        return *s.find && add(d, s);
    }
    return add(d, s);
}

static enum status read_steps(struct decoder *d, const json_t *from, const char *path,
                              struct err *err)
{
    const char *type = text_or(from, "type", "(none)");
    const json_t *list = json_member(from, "decoders");
    const size_t n = list ? json_array_size(list) : 1;
    char shown[48];

    for (size_t i = 0; i < n; i++) {
        const json_t *one = list ? json_array_get(list, i) : from;

        type = text_or(one, "type", "(none)");
        if (!add_step(d, type, one))
            return err_set(err, ST_UNSUPPORTED,
                           "%s: the decoder '%s', as it is set there, is not "
                           "supported; the model's GGUF file may be",
                           path,
                           utf8_printable(shown, sizeof shown, type, strlen(type)));
    }
    return ST_OK;
}

static enum status no_memory(const struct tokenizer *t, struct err *err)
{
    return err_set(err, ST_NO_MEMORY, "no memory for the bytes of %d tokens",
                   (int)t->n_vocab);
}

static enum status decode_all(struct tokenizer *t, const struct decoder *d,
                              struct err *err)
{
    struct spelt one = {.failed = false};
    struct bytes all = {.n = 0};
    bool ok = put(&one.now, "", 0) && put(&all, "", 0);

    t->decoded_at = malloc(((size_t)t->n_vocab + 1) * sizeof *t->decoded_at);
    ok &= t->decoded_at != NULL;
    for (int32_t id = 0; ok && id < t->n_vocab; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);

        one.now.n = one.spare.n = 0;
        one.most = MAX_GROWTH * len + MAX_MORE;
        ok = put(&one.now, text, len);
        for (int i = 0; i < d->n_steps && ok && !one.failed; i++)
            d->steps[i].run(&d->steps[i], &one);
        t->decoded_at[id] = all.n;
        ok = ok && !one.failed && put(&all, one.now.v, one.now.n);
    }
    free(one.now.v);
    free(one.spare.v);
    t->decoded = all.v;
    if (one.failed)
        return err_set(err, ST_INPUT,
                       "the decoder of the model's tokenizer makes a token many times "
                       "as long; the model is broken or hostile");
    if (!ok)
        return no_memory(t, err);
    t->decoded_at[t->n_vocab] = all.n;
    return ST_OK;
}

enum status tokenizer_load_decoder(struct tokenizer *t, const char *json, size_t len,
                                   const char *path, struct err *err)
{
    struct decoder d = {.n_steps = 0};
    json_t *root = NULL;
    enum status st = json_read(&root, path, json, len, max_json, 0, err);

    if (!st)
        st = read_steps(&d, root, path, err);
    if (!st)
        st = decode_all(t, &d, err);
    if (!st)
        t->adds_space = d.drops_blank;
    json_decref(root);
    return st;
}

size_t tokenizer_decoded_piece(const struct tokenizer *t, int32_t id, char *buf,
                               size_t cap)
{
    const size_t len = t->decoded_at[id + 1] - t->decoded_at[id];

    if (len && len <= cap)
        memcpy(buf, t->decoded + t->decoded_at[id], len);
    return len;
}
