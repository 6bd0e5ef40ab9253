/* SPDX-License-Identifier: MIT
 *
 * tokenizer_pieces_read.c - steps from JSON
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/base/jsonfile.h"
#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_pieces_impl.h"

#define MAX_DEPTH 8
#define MAX_MADE  3 /* steps of one of the file's: Metaspace's */

/* Words, as Unicode's Annex 18 has them, and what is neither word nor blank; spelled
 * for PCRE2. */
#define WORD                                                                 \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}" \
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define WORDS "[" WORD "]+|[^" WORD REGEX_WS "]+"

static const struct json_limit max_json = {(size_t)1 << 20, (size_t)1 << 12};

struct reading {
    struct pieces *p;
    const char *path;
    struct err *err;
};

static enum status unsupported(const struct reading *r, const char *type)
{
    char shown[48];

    return err_set(r->err, ST_UNSUPPORTED,
                   "%s: the pre_tokenizer '%s', as it is set there, is not supported; "
                   "the model's GGUF file may be",
                   r->path, utf8_printable(shown, sizeof shown, type, strlen(type)));
}

static bool is(const json_t *value, const char *text)
{
    const char *have = json_text(value);

    return have && !strcmp(have, text);
}

/* ---- classes --------------------------------------------------------------------- */

static bool is_number(uint32_t c)
{
    const enum unicode_category is = unicode_category(c);

    return is >= UNICODE_Nd && is <= UNICODE_No;
}

static bool is_punctuation(uint32_t c)
{
    const enum unicode_category is = unicode_category(c);

    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') ||
               (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    return is >= UNICODE_Pc && is <= UNICODE_Ps;
}

/* ---- adding ---------------------------------------------------------------------- */

/* *s is copied; read_steps() has made sure that there is room. */
static struct piece_step *add(struct reading *r, const struct piece_step *s)
{
    assert(r->p->n_steps < PIECES_MAX_STEPS);
    r->p->steps[r->p->n_steps] = *s;
    return &r->p->steps[r->p->n_steps++];
}

/* A step with a text of one character, or a few. */
static bool add_text(struct reading *r, struct piece_step s, const char *text)
{
    s.n = text ? strlen(text) : 0;
    if (!s.n || s.n >= sizeof s.text)
        return false;
    memcpy(s.text, text, s.n);
    add(r, &s);
    return true;
}

static enum status add_class(struct reading *r, bool (*class)(uint32_t),
                             enum piece_behavior behavior)
{
    add(r, &(struct piece_step){
               .kind = PIECE_CUT_CLASS, .behavior = behavior, .class = class});
    return ST_OK;
}

/* A pattern as PCRE2 spells it. */
static enum status add_regex(struct reading *r, struct piece_step s, const char *regex,
                             bool foreign)
{
    s.kind = PIECE_CUT_REGEX;
    r->p->foreign |= foreign;
    return regex_open(&add(r, &s)->regex, regex, strlen(regex), foreign, r->path,
                      r->err);
}

/* ---- steps of the file ----------------------------------------------------------- */

static bool read_behavior(const json_t *value, enum piece_behavior *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is(value, names[i])) {
            *out = (enum piece_behavior)i;
            return true;
        }
    return !value;
}

static enum status split(struct reading *r, const char *type, const json_t *from)
{
    const json_t *pattern = json_member(from, "pattern");
    const char *text = json_text(json_member(pattern, "String"));
    const char *regex = json_text(json_member(pattern, "Regex"));
    char spelt[REGEX_MAX_BYTES];
    struct piece_step s = {.kind = PIECE_CUT_TEXT,
                           .invert = json_is_true(json_member(from, "invert"))};

    text = text ? text : json_text(pattern); /* of older files */
    if (!json_member(from, "behavior") ||
        !read_behavior(json_member(from, "behavior"), &s.behavior))
        return unsupported(r, type);
    if (regex)
        return regex_spell(regex, spelt, sizeof spelt) ? add_regex(r, s, spelt, true)
                                                       : unsupported(r, type);
    return add_text(r, s, text) ? ST_OK : unsupported(r, type);
}

static enum status char_delimiter(struct reading *r, const char *type,
                                  const json_t *from)
{
    const struct piece_step s = {.kind = PIECE_CUT_TEXT, .behavior = PIECE_REMOVED};

    return add_text(r, s, json_text(json_member(from, "delimiter")))
               ? ST_OK
               : unsupported(r, type);
}

static enum status metaspace(struct reading *r, const char *type, const json_t *from)
{
    const char *rep = json_text(json_member(from, "replacement"));
    const json_t *scheme = json_member(from, "prepend_scheme");
    const bool adds = scheme ? !is(scheme, "never")
                             : !json_is_false(json_member(from, "add_prefix_space"));
    const bool cuts = !json_is_false(json_member(from, "split"));
    const struct piece_step put = {.kind = PIECE_PREFIX,
                                   .first_only = is(scheme, "first")};
    const struct piece_step cut = {.kind = PIECE_CUT_TEXT, .behavior = PIECE_WITH_NEXT};

    if (!add_text(r, (struct piece_step){.kind = PIECE_REPLACE}, rep))
        return unsupported(r, type);
    if (adds)
        add_text(r, put, rep);
    if (cuts)
        add_text(r, cut, rep);
    return ST_OK;
}

/* Each makes a piece up to twice as long, so there is one. */
static enum status byte_level(struct reading *r, const char *type, const json_t *from)
{
    enum status st = ST_OK;

    for (int i = 0; i < r->p->n_steps; i++)
        if (r->p->steps[i].kind == PIECE_BYTES)
            return unsupported(r, type);
    if (!json_is_false(json_member(from, "add_prefix_space")))
        add_text(r, (struct piece_step){.kind = PIECE_PREFIX}, " ");
    if (!json_is_false(json_member(from, "use_regex")))
        st = add_regex(r, (struct piece_step){.behavior = PIECE_ISOLATED},
                       pre_tokenizer_gpt2(), false);
    add(r, &(struct piece_step){.kind = PIECE_BYTES});
    return st;
}

static enum status bert(struct reading *r, const char *type, const json_t *from)
{
    (void)type, (void)from;
    add_class(r, unicode_is_blank, PIECE_REMOVED);
    return add_class(r, is_punctuation, PIECE_ISOLATED);
}

static enum status whitespace(struct reading *r, const char *type, const json_t *from)
{
    const struct piece_step s = {.behavior = PIECE_REMOVED, .invert = true};

    (void)type, (void)from;
    return add_regex(r, s, WORDS, false);
}

static enum status whitespace_split(struct reading *r, const char *type,
                                    const json_t *from)
{
    (void)type, (void)from;
    return add_class(r, unicode_is_blank, PIECE_REMOVED);
}

static enum status punctuation(struct reading *r, const char *type, const json_t *from)
{
    enum piece_behavior behavior = PIECE_ISOLATED;

    return read_behavior(json_member(from, "behavior"), &behavior)
               ? add_class(r, is_punctuation, behavior)
               : unsupported(r, type);
}

static enum status digits(struct reading *r, const char *type, const json_t *from)
{
    (void)type;
    return add_class(r, is_number,
                     json_is_true(json_member(from, "individual_digits"))
                         ? PIECE_ISOLATED
                         : PIECE_CONTIGUOUS);
}

static enum status scripts(struct reading *r, const char *type, const json_t *from)
{
    (void)type, (void)from;
    add(r, &(struct piece_step){.kind = PIECE_CUT_SCRIPT, .behavior = PIECE_ISOLATED});
    return ST_OK;
}

static enum status fixed_length(struct reading *r, const char *type, const json_t *from)
{
    int64_t length = 5; /* the default */

    if (json_member(from, "length") &&
        (!json_whole(json_member(from, "length"), &length) || length < 1))
        return unsupported(r, type);
    add(r, &(struct piece_step){.kind = PIECE_CUT_LENGTH,
                                .behavior = PIECE_ISOLATED,
                                .length = (size_t)length});
    return ST_OK;
}

static const struct {
    const char *type;
    enum status (*read)(struct reading *r, const char *type, const json_t *from);
} kinds[] = {
    {"BertPreTokenizer", bert},
    {"ByteLevel", byte_level},
    {"CharDelimiterSplit", char_delimiter},
    {"Digits", digits},
    {"FixedLength", fixed_length},
    {"Metaspace", metaspace},
    {"Punctuation", punctuation},
    {"Split", split},
    {"UnicodeScripts", scripts},
    {"Whitespace", whitespace},
    {"WhitespaceSplit", whitespace_split},
};

static enum status read_steps(struct reading *r, const json_t *from, int depth)
{
    const char *type = json_text(json_member(from, "type"));
    enum status st = ST_OK;
    json_t *one;
    size_t i;

    if (!type || depth > MAX_DEPTH || r->p->n_steps > PIECES_MAX_STEPS - MAX_MADE)
        return unsupported(r, type ? type : "(none)");
    if (!strcmp(type, "Sequence")) {
        json_array_foreach(json_member(from, "pretokenizers"), i, one)
        {
            if (!st)
                st = read_steps(r, one, depth + 1);
        }
        return st;
    }
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(type, kinds[i].type))
            return kinds[i].read(r, type, from);
    return unsupported(r, type);
}

enum status pieces_open(struct pieces **out, const char *json, size_t len,
                        const char *path, struct err *err)
{
    struct pieces *p = calloc(1, sizeof *p);
    struct reading r = {.p = p, .path = path, .err = err};
    json_t *root = NULL;
    enum status st = p ? json_read(&root, path, json, len, max_json, 0, err)
                       : err_set(err, ST_NO_MEMORY, "no memory to cut texts");

    if (!st)
        st = read_steps(&r, root, 0);
    json_decref(root);
    if (st) {
        pieces_close(p);
        return st;
    }
    *out = p;
    return ST_OK;
}

void pieces_close(struct pieces *p)
{
    for (int i = 0; p && i < p->n_steps; i++)
        regex_close(p->steps[i].regex);
    free(p);
}
