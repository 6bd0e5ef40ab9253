/* SPDX-License-Identifier: MIT
 *
 * tokenizer_norm.c - steps of a normaliser, read from JSON, one after another
 */
#include "engine/tokenizer/tokenizer_norm.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/base/jsonfile.h"
#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_charsmap.h"
#include "engine/tokenizer/tokenizer_pieces.h"
#include "engine/tokenizer/tokenizer_regex.h"

#define MAX_STEPS 35
#define MAX_MADE  4 /* steps of one of the file's: BERT's */
#define MAX_DEPTH 8
#define MAX_PART  1024 /* bytes of a text that is looked for, or put in */

/* No normal form makes a text 16 times as long; short texts may be put in front. */
#define MAX_GROWTH 16
#define MAX_MORE   ((size_t)1 << 16)

static const struct json_limit max_json = {(size_t)8 << 20, (size_t)1 << 12};

struct text {
    char *v;
    size_t n, cap, most;
    enum status st; /* ST_INPUT: longer than most */
};

struct step {
    void (*run)(const struct step *s, const char *text, size_t len, struct text *out);
    bool normal; /* form is that of unicode_normalize(), instead of run */
    enum unicode_form form;
    struct regex *regex;                /* owned; what is replaced, instead of run */
    struct charsmap *charsmap;          /* owned */
    bool left, right;                   /* Strip */
    bool cleans, parts_han;             /* BertNormalizer */
    char find[MAX_PART], put[MAX_PART]; /* Replace, Prepend */
    size_t n_find, n_put;
};

struct normalizer {
    struct step steps[MAX_STEPS];
    int n_steps;
};

/* ---- texts ----------------------------------------------------------------------- */

static void put(struct text *t, const char *bytes, size_t n)
{
    if (t->n + n > t->cap && !t->st) {
        const size_t cap = (t->n + n) * 2 + 64;
        char *v = t->n + n <= t->most ? realloc(t->v, cap) : NULL;

        if (!v)
            t->st = t->n + n <= t->most ? ST_NO_MEMORY : ST_INPUT;
        t->v = v ? v : t->v;
        t->cap = v ? cap : t->cap;
    }
    if (t->st)
        return;
    if (n)
        memcpy(t->v + t->n, bytes, n);
    t->n += n;
}

static void put_code(struct text *t, uint32_t c)
{
    char bytes[4];

    put(t, bytes, unicode_put(c, bytes));
}

/* ---- steps ----------------------------------------------------------------------- */

static void put_lower(struct text *out, uint32_t c)
{
    uint32_t to[UNICODE_MAX_CASE];
    const size_t n = unicode_case(c, UNICODE_LOWER, to);

    for (size_t i = 0; i < n; i++)
        put_code(out, to[i]);
}

static void lower(const struct step *s, const char *text, size_t len, struct text *out)
{
    (void)s;
    for (size_t at = 0, n; at < len; at += n) {
        const uint32_t c = unicode_at(text + at, len - at, &n);

        if (n)
            put_lower(out, c);
        else
            put(out, text + at, n = 1);
    }
}

static void strip(const struct step *s, const char *text, size_t len, struct text *out)
{
    size_t begin = 0, end = 0, n;
    bool inside = !s->left;

    for (size_t at = 0; at < len; at += n ? n : 1) {
        const bool blank = unicode_is_blank(unicode_at(text + at, len - at, &n)) && n;

        if (!inside && blank)
            begin = at + n;
        inside |= !blank;
        if (!blank)
            end = at + (n ? n : 1);
    }
    if (!s->right)
        end = len;
    if (begin < end)
        put(out, text + begin, end - begin);
}

/* All marks, or with `cleans`, as BERT does, those without a width. */
static void strip_accents(const struct step *s, const char *text, size_t len,
                          struct text *out)
{
    for (size_t at = 0, n; at < len; at += n ? n : 1) {
        const uint32_t c = unicode_at(text + at, len - at, &n);
        const enum unicode_category is = n ? unicode_category(c) : UNICODE_Cn;

        if (s->cleans ? is != UNICODE_Mn : is < UNICODE_Mc || is > UNICODE_Mn)
            put(out, text + at, n ? n : 1);
    }
}

static void replace(const struct step *s, const char *text, size_t len,
                    struct text *out)
{
    const char *end = text + len, *found;

    while ((found = memmem(text, (size_t)(end - text), s->find, s->n_find))) {
        put(out, text, (size_t)(found - text));
        put(out, s->put, s->n_put);
        text = found + s->n_find;
    }
    put(out, text, (size_t)(end - text));
}

/* The matches in text[len], well-formed. */
static enum status replace_in(const struct step *s, struct regex_search *search,
                              const char *text, size_t len, struct text *out)
{
    struct regex_place place = {0, 0, false};
    char *older = NULL;
    enum status st = unicode_stand_ins(text, len, &older, search->err);

    for (size_t at = 0; at < len && !st && !out->st;) {
        size_t begin = at, end = len;

        st = regex_next(search, s->regex, older ? older : text, len, &place, &begin,
                        &end);
        put(out, text + at, begin - at);
        if (!st && begin < len)
            put(out, s->put, s->n_put);
        at = end;
    }
    free(older);
    return st;
}

static enum status replace_regex(const struct step *s, const char *text, size_t len,
                                 struct text *out, uint64_t *allowed_ns,
                                 struct err *err)
{
    struct regex_search search;
    enum status st = regex_search_begin(&search, true, *allowed_ns, err);

    for (size_t at = 0, n; at < len && !st && !out->st; at += n) {
        bool well_formed;

        n = utf8_stretch(text + at, len - at, &well_formed);
        if (well_formed)
            st = replace_in(s, &search, text + at, n, out);
        else
            put(out, text + at, n);
    }
    *allowed_ns = regex_search_end(&search);
    return st;
}

static void put_to(void *out, const char *text, size_t n)
{
    put(out, text, n);
}

static void precompiled(const struct step *s, const char *text, size_t len,
                        struct text *out)
{
    charsmap_apply(s->charsmap, text, len, put_to, out);
}

static void byte_level(const struct step *s, const char *text, size_t len,
                       struct text *out)
{
    (void)s;
    for (size_t i = 0; i < len; i++)
        put_code(out, byte_alphabet_char((unsigned char)text[i]));
}

/* Control characters and blanks, as SentencePiece's rules for translation list them. */
static void nmt(const struct step *s, const char *text, size_t len, struct text *out)
{
    (void)s;
    for (size_t at = 0, n; at < len; at += n ? n : 1) {
        const uint32_t c = unicode_at(text + at, len - at, &n);
        const bool blank = c == '\t' || c == '\n' || c == '\f' || c == '\r' ||
                           c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 ||
                           c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;

        if (blank && n)
            put(out, " ", 1);
        else if (!n || !((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) ||
                         c == 0x7f || c == 0x8f || c == 0x9f))
            put(out, text + at, n ? n : 1);
    }
}

static void prepend(const struct step *s, const char *text, size_t len,
                    struct text *out)
{
    put(out, s->put, len ? s->n_put : 0);
    put(out, text, len);
}

/* Blocks of ideographs, as BERT's tokenizer lists them. */
static bool is_han(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b820 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_control(uint32_t c)
{
    const enum unicode_category is = unicode_category(c);

    return c != '\t' && c != '\n' && c != '\r' && is >= UNICODE_Cc && is <= UNICODE_Cs;
}

static void clean(const struct step *s, const char *text, size_t len, struct text *out)
{
    for (size_t at = 0, n; at < len; at += n ? n : 1) {
        const uint32_t c = unicode_at(text + at, len - at, &n);
        const bool han = n && s->parts_han && is_han(c);

        if (!n) {
            put(out, text + at, 1);
        } else if (s->cleans && (c == 0 || c == 0xfffd || is_control(c))) {
            continue;
        } else if (s->cleans && unicode_is_blank(c)) {
            put(out, " ", 1);
        } else {
            put(out, " ", han);
            put(out, text + at, n);
            put(out, " ", han);
        }
    }
}

/* ---- reading --------------------------------------------------------------------- */

struct reading {
    struct normalizer *z;
    const char *path;
    struct err *err;
};

static enum status unsupported(const struct reading *r, const char *type)
{
    char shown[48];

    return err_set(r->err, ST_UNSUPPORTED,
                   "%s: the normalizer '%s', as it is set there, is not supported; the "
                   "model's GGUF file may be",
                   r->path, utf8_printable(shown, sizeof shown, type, strlen(type)));
}

static bool take_text(const json_t *value, char *to, size_t *n)
{
    const char *text = json_text(value);

    *n = text ? strlen(text) : 0;
    if (!text || *n >= MAX_PART)
        return false;
    memcpy(to, text, *n + 1);
    return true;
}

/* read_steps() has made sure that there is room. */
static struct step *add(struct reading *r)
{
    assert(r->z->n_steps < MAX_STEPS);
    return &r->z->steps[r->z->n_steps++];
}

static bool set_form(struct step *s, const char *type)
{
    static const char *const names[] = {"NFC", "NFD", "NFKC", "NFKD"};

    for (int i = 0; i < 4; i++)
        if (!strcmp(type, names[i])) {
            s->normal = true;
            s->form = (enum unicode_form)i;
            return true;
        }
    return false;
}

/* Its parts, one after another; accents are marks once a text is decomposed. */
static void add_bert(struct reading *r, const json_t *from)
{
    const json_t *accents = json_member(from, "strip_accents");
    const bool lowers = !json_is_false(json_member(from, "lowercase"));
    const bool bares = accents ? json_is_true(accents) : lowers;
    const struct step steps[] = {
        {.run = clean,
         .cleans = !json_is_false(json_member(from, "clean_text")),
         .parts_han = !json_is_false(json_member(from, "handle_chinese_chars"))},
        {.normal = bares, .form = UNICODE_NFD},
        {.run = bares ? strip_accents : NULL, .cleans = true},
        {.run = lowers ? lower : NULL},
    };

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i].run || steps[i].normal)
            *add(r) = steps[i];
}

static enum status set_charsmap(const struct reading *r, struct step *s,
                                const json_t *from)
{
    const char *text = json_text(json_member(from, "precompiled_charsmap"));

    if (!text)
        return unsupported(r, "Precompiled");
    s->run = precompiled;
    return charsmap_open_base64(&s->charsmap, text, r->path, r->err);
}

static enum status set_regex(const struct reading *r, struct step *s,
                             const json_t *from)
{
    const char *regex = json_text(json_member(json_member(from, "pattern"), "Regex"));
    char spelt[REGEX_MAX_BYTES];

    if (!regex_spell(regex, spelt, sizeof spelt) ||
        !take_text(json_member(from, "content"), s->put, &s->n_put))
        return unsupported(r, "Replace");
    return regex_open(&s->regex, spelt, strlen(spelt), true, r->path, r->err);
}

static bool set_step(struct step *s, const char *type, const json_t *from)
{
    const json_t *pattern = json_member(from, "pattern");

    if (set_form(s, type))
        return true;
    if (!strcmp(type, "ByteLevel")) {
        s->run = byte_level;
    } else if (!strcmp(type, "Nmt")) {
        s->run = nmt;
    } else if (!strcmp(type, "Lowercase")) {
        s->run = lower;
    } else if (!strcmp(type, "StripAccents")) {
        s->run = strip_accents;
    } else if (!strcmp(type, "Strip")) {
        s->run = strip;
        s->left = !json_is_false(json_member(from, "strip_left"));
        s->right = !json_is_false(json_member(from, "strip_right"));
    } else if (!strcmp(type, "Prepend")) {
        s->run = prepend;
        return take_text(json_member(from, "prepend"), s->put, &s->n_put);
    } else if (!strcmp(type, "Replace")) {
        s->run = replace;
        return take_text(json_member(pattern, "String"), s->find, &s->n_find) &&
               s->n_find && take_text(json_member(from, "content"), s->put, &s->n_put);
    }
    return s->run != NULL;
}

static enum status read_steps(struct reading *r, const json_t *from, int depth)
{
    const char *type = json_text(json_member(from, "type"));
    enum status st = ST_OK;
    struct step *s;
    json_t *one;
    size_t i;

    if (!type || depth > MAX_DEPTH || r->z->n_steps > MAX_STEPS - MAX_MADE)
        return unsupported(r, type ? type : "(none)");
    if (!strcmp(type, "Sequence")) {
        json_array_foreach(json_member(from, "normalizers"), i, one)
        {
            if (!st)
                st = read_steps(r, one, depth + 1);
        }
        return st;
    }
    if (!strcmp(type, "BertNormalizer")) {
        add_bert(r, from);
        return ST_OK;
    }
    s = add(r);
    if (!strcmp(type, "Precompiled"))
        return set_charsmap(r, s, from);
    if (!strcmp(type, "Replace") && json_member(json_member(from, "pattern"), "Regex"))
        return set_regex(r, s, from);
    return set_step(s, type, from) ? ST_OK : unsupported(r, type);
}

enum status normalizer_open(struct normalizer **out, const char *json, size_t len,
                            const char *path, struct err *err)
{
    struct normalizer *z = calloc(1, sizeof *z);
    struct reading r = {.z = z, .path = path, .err = err};
    json_t *root = NULL;
    enum status st = z ? json_read(&root, path, json, len, max_json, 0, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a normaliser");

    if (!st)
        st = read_steps(&r, root, 0);
    json_decref(root);
    if (st) {
        normalizer_close(z);
        return st;
    }
    *out = z;
    return ST_OK;
}

/* As SentencePiece does it: the table, and one blank for several. */
enum status normalizer_open_charsmap(struct normalizer **out, const void *bytes,
                                     size_t n, bool strips, const char *path,
                                     struct err *err)
{
    struct normalizer *z = calloc(1, sizeof *z);
    enum status st = ST_OK;

    if (!z)
        return err_set(err, ST_NO_MEMORY, "no memory for a normaliser");
    if (n) {
        z->steps[z->n_steps++].run = precompiled;
        st = charsmap_open(&z->steps[0].charsmap, bytes, n, path, err);
    }
    if (!st && strips) {
        z->steps[z->n_steps++] =
            (struct step){.run = strip, .left = true, .right = true};
        z->steps[z->n_steps] = (struct step){.put = " ", .n_put = 1};
        st = regex_open(&z->steps[z->n_steps++].regex, " {2,}", 5, true, path, err);
    }
    if (st) {
        normalizer_close(z);
        return st;
    }
    *out = z;
    return ST_OK;
}

void normalizer_close(struct normalizer *z)
{
    for (int i = 0; z && i < z->n_steps; i++) {
        regex_close(z->steps[i].regex);
        charsmap_close(z->steps[i].charsmap);
    }
    free(z);
}

/* ---- applying -------------------------------------------------------------------- */

bool normalizer_keeps(const struct normalizer *z, const char *text, size_t len)
{
    for (int i = 0; i < z->n_steps; i++)
        if (!z->steps[i].normal || !unicode_is_normal(z->steps[i].form, text, len))
            return false;
    return true;
}

enum status normalizer_apply(const struct normalizer *z, const char *text, size_t len,
                             uint64_t *allowed_ns, char **out, size_t *n_out,
                             struct err *err)
{
    char *now = malloc(len + 1);
    enum status st = now ? ST_OK : ST_NO_MEMORY, told = ST_OK;
    size_t n = len;

    if (now)
        memcpy(now, text, len);
    for (int i = 0; i < z->n_steps && !st; i++) {
        const struct step *s = &z->steps[i];
        struct text to = {.most = MAX_GROWTH * len + MAX_MORE};

        if (s->normal) {
            st = unicode_normalize(s->form, now, n, &to.v, &to.n, err);
        } else {
            put(&to, "", 0);
            if (s->regex)
                told = st = replace_regex(s, now, n, &to, allowed_ns, err);
            else
                s->run(s, now, n, &to);
            st = st ? st : to.st;
        }
        if (!st && to.n > to.most)
            st = ST_INPUT;
        free(now);
        now = to.v;
        n = to.n;
    }
    if (!st && !now) /* a step left nothing */
        st = (now = malloc(1)) ? ST_OK : ST_NO_MEMORY;
    if (st) {
        free(now);
        if (told)
            return told;
        return err_set(err, st,
                       st == ST_INPUT
                           ? "the normaliser of the model's tokenizer makes a "
                             "text of %zu bytes many times as long; the model "
                             "is broken or hostile"
                           : "no memory to normalise a text of %zu bytes",
                       len);
    }
    *out = now;
    *n_out = n;
    return ST_OK;
}
