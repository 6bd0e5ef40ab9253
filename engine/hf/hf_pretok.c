/* SPDX-License-Identifier: MIT
 *
 * hf_pretok.c - normalizer and pre_tokenizer of a tokenizer.json
 *
 * Two kinds are supported: bytes in GPT-2's alphabet, cut by regular expressions, and
 * blanks that become U+2581, with or without one before the text. Other steps are
 * refused by name. The normalizer's steps but those that put U+2581 for blanks are run
 * by the tokenizer (tokenizer_norm.h).
 */
#include "engine/hf/hf_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

static const char blank[] = "\xe2\x96\x81"; /* U+2581 */

struct reading {
    struct hf_pretok *p;
    const struct jsonfile *f;
    struct err *err;
};

static const char *type_of(const json_t *step)
{
    const char *type = json_text(json_member(step, "type"));

    return type ? type : "(none)";
}

static bool is(const json_t *value, const char *text)
{
    const char *have = json_text(value);

    return have && !strcmp(have, text);
}

static enum status unknown(const struct reading *r, const char *what, const char *name)
{
    char shown[48];

    return err_set(r->err, ST_UNSUPPORTED,
                   "%s: the %s '%s', as it is set there, is not supported; the model's "
                   "GGUF file may be",
                   r->f->path, what,
                   utf8_printable(shown, sizeof shown, name, strlen(name)));
}

/* Call fn for a step, or for each of a sequence of them. */
static enum status each(struct reading *r, const json_t *step, const char *list,
                        enum status (*fn)(struct reading *r, const json_t *step))
{
    enum status st = ST_OK;
    json_t *one;
    size_t i;

    if (!step)
        return ST_OK;
    if (strcmp(type_of(step), "Sequence"))
        return fn(r, step);
    json_array_foreach(json_member(step, list), i, one)
    {
        if (!st)
            st = fn(r, one);
    }
    return st;
}

/* ---- patterns -------------------------------------------------------------------- */

static enum status add_spelt(struct reading *r, const char *pattern)
{
    if (r->p->n_patterns == PRE_MAX_PATTERNS)
        return unknown(r, "pre_tokenizer", "one of too many steps");
    r->p->patterns[r->p->n_patterns] = strdup(pattern);
    if (!r->p->patterns[r->p->n_patterns])
        return err_set(r->err, ST_NO_MEMORY, "no memory for a tokenizer's patterns");
    r->p->n_patterns++;
    return ST_OK;
}

static enum status add_regex(struct reading *r, const char *regex)
{
    char spelt[PRE_MAX_PATTERN_BYTES];

    if (!regex_spell(regex, spelt, sizeof spelt))
        return unknown(r, "regular expression", regex);
    return add_spelt(r, spelt);
}

/* A literal text. */
static enum status add_literal(struct reading *r, const char *text)
{
    char spelt[PRE_MAX_PATTERN_BYTES];

    if (strstr(text, "\\E") ||
        snprintf(spelt, sizeof spelt, "\\Q%s\\E", text) >= (int)sizeof spelt)
        return unknown(r, "pattern", text);
    return add_spelt(r, spelt);
}

/* Matches and the text between them are pieces. "Removed" with invert is the same where
 * matches leave no text between them, which is how tokenizers use it. */
static enum status add_split(struct reading *r, const json_t *step)
{
    const json_t *pattern = json_member(step, "pattern");
    const char *regex = json_text(json_member(pattern, "Regex"));
    const char *text = json_text(json_member(pattern, "String"));
    const bool invert = json_is_true(json_member(step, "invert"));
    const json_t *behavior = json_member(step, "behavior");

    if (!(is(behavior, "Isolated") && !invert) && !(is(behavior, "Removed") && invert))
        return unknown(r, "pre_tokenizer", "Split");
    if (regex)
        return add_regex(r, regex);
    return text ? add_literal(r, text) : unknown(r, "pre_tokenizer", "Split");
}

/* ---- steps ----------------------------------------------------------------------- */

static enum status byte_level_step(struct reading *r, const json_t *step)
{
    const char *type = type_of(step);

    if (!strcmp(type, "Split"))
        return add_split(r, step);
    if (!strcmp(type, "Digits"))
        return add_spelt(r, json_is_true(json_member(step, "individual_digits"))
                                ? "\\p{N}"
                                : "\\p{N}+");
    if (strcmp(type, "ByteLevel"))
        return unknown(r, "pre_tokenizer", type);
    if (json_is_true(json_member(step, "add_prefix_space")))
        return unknown(r, "pre_tokenizer", "ByteLevel with add_prefix_space");
    /* The default of use_regex is true. */
    return json_is_false(json_member(step, "use_regex"))
               ? ST_OK
               : add_spelt(r, pre_tokenizer_gpt2());
}

static enum status metaspace(struct reading *r, const json_t *step)
{
    const json_t *scheme = json_member(step, "prepend_scheme");

    if (!is(json_member(step, "replacement"), blank))
        return unknown(r, "pre_tokenizer", "Metaspace with another replacement");
    r->p->add_space = scheme ? !is(scheme, "never")
                             : !json_is_false(json_member(step, "add_prefix_space"));
    r->p->space_first = is(scheme, "first");
    r->p->space_once = true;
    r->p->puts_blanks = true;
    r->p->cuts_at_blanks = !json_is_false(json_member(step, "split"));
    return ST_OK;
}

/* A step after a normalizer that has replaced blanks. */
static enum status blank_step(struct reading *r, const json_t *step)
{
    const char *type = type_of(step);

    if (!strcmp(type, "Metaspace"))
        return metaspace(r, step);
    /* Gemma cuts at blanks, and its normalizer leaves none. */
    if (!strcmp(type, "Split") && r->p->puts_blanks &&
        is(json_member(json_member(step, "pattern"), "String"), " "))
        return ST_OK;
    return unknown(r, "pre_tokenizer", type);
}

static enum status normalize(struct reading *r, const json_t *step)
{
    const char *type = type_of(step);

    if (!r->p->byte_level && !strcmp(type, "Prepend") &&
        is(json_member(step, "prepend"), blank)) {
        r->p->add_space = true;
        return ST_OK;
    }
    if (!r->p->byte_level && !strcmp(type, "Replace") &&
        is(json_member(step, "content"), blank) &&
        is(json_member(json_member(step, "pattern"), "String"), " ")) {
        r->p->puts_blanks = true;
        return ST_OK;
    }
    if (!r->p->steps)
        r->p->steps = json_array();
    return json_array_append(r->p->steps, (json_t *)step)
               ? err_set(r->err, ST_NO_MEMORY, "no memory for a normaliser")
               : ST_OK;
}

static enum status find_byte_level(struct reading *r, const json_t *step)
{
    r->p->byte_level |= !strcmp(type_of(step), "ByteLevel");
    return ST_OK;
}

enum status hf_pretok_read(struct hf_pretok *p, const struct jsonfile *f,
                           struct err *err)
{
    struct reading r = {.p = p, .f = f, .err = err};
    const json_t *pre = json_member(f->root, "pre_tokenizer");
    enum status st;

    *p = (struct hf_pretok){.n_patterns = 0};
    each(&r, pre, "pretokenizers", find_byte_level);
    st = each(&r, json_member(f->root, "normalizer"), "normalizers", normalize);
    return st ? st
              : each(&r, pre, "pretokenizers",
                     p->byte_level ? byte_level_step : blank_step);
}

void hf_pretok_free(struct hf_pretok *p)
{
    for (size_t i = 0; i < p->n_patterns; i++)
        free(p->patterns[i]);
    p->n_patterns = 0;
    json_decref(p->steps);
    p->steps = NULL;
}
