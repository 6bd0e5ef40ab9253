/* SPDX-License-Identifier: MIT
 *
 * hf_match.c - which row of lists of names a tensor of a folder is
 */
#include "engine/hf/hf_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* A number of at most 5 digits without leading zeros, so that a name has one spelling.
 */
static bool take_number(const char **at, unsigned *out)
{
    unsigned n = 0;
    int digits = 0;

    for (; isdigit((unsigned char)**at); (*at)++, digits++) {
        if (digits == 5 || (digits == 1 && n == 0))
            return false;
        n = n * 10 + (unsigned)(**at - '0');
    }
    *out = n;
    return digits > 0;
}

static bool matches(const char *pattern, const char *name, unsigned *layer,
                    unsigned *part)
{
    for (; *pattern; pattern++) {
        if (*pattern == '*')
            return true;
        if (*pattern == '#' || *pattern == '@') {
            if (!take_number(&name, *pattern == '#' ? layer : part))
                return false;
        } else if (*name++ != *pattern) {
            return false;
        }
    }
    return !*name;
}

/* Text models inside of others have a prefix; without an output matrix they may lack
 * their own. */
const char *hf_plain_name(const char *name, char *buf, size_t cap)
{
    static const char *const prefixes[] = {"language_model.model.",
                                           "model.language_model."};
    static const char *const bare[] = {"layers.", "embed_tokens.", "norm."};

    if (!strncmp(name, "bert.", 5))
        return name + 5;
    if (!strncmp(name, "roberta.", 8))
        return name + 8;
    for (size_t i = 0; i < 3; i++)
        if (!strncmp(name, bare[i], strlen(bare[i]))) {
            snprintf(buf, cap, "model.%s", name);
            return buf;
        }

    for (size_t i = 0; i < 2; i++) {
        const size_t n = strlen(prefixes[i]);

        if (!strncmp(name, prefixes[i], n)) {
            snprintf(buf, cap, "model.%s", name + n);
            return buf;
        }
    }
    if (!strncmp(name, "transformer.h.", 14) || !strncmp(name, "transformer.w", 13) ||
        !strncmp(name, "transformer.ln_f.", 17))
        return name + 12;
    return strncmp(name, "language_model.lm_head.", 23) ? name : name + 15;
}

/* The nth of the consecutive rows for one tensor. */
static const struct hf_name *nth_row(const struct hf_name *n, int nth)
{
    for (int i = 1; i <= nth; i++)
        if (!n[i].hf || strcmp(n[i].hf, n->hf) != 0)
            return NULL;
    return n + nth;
}

/* The second part of MXFP4. */
static bool is_scales(const struct hf_name *n)
{
    const size_t len = strlen(n->hf);

    return (n->how == HF_MX || n->how == HF_MX_EVEN || n->how == HF_MX_ODD) &&
           !strcmp(n->hf + len - strlen("_scales"), "_scales");
}

/* Insert the layer's number. */
static void spell(char *out, size_t cap, const char *gguf, unsigned layer)
{
    const char *hash = gguf ? strchr(gguf, '#') : NULL;

    if (hash)
        snprintf(out, cap, "%.*s%u%s", (int)(hash - gguf), gguf, layer, hash + 1);
    else
        snprintf(out, cap, "%s", gguf ? gguf : "");
}

const struct hf_name *hf_name_find(const struct hf_name *const *lists, const char *name,
                                   int nth, char *out, size_t cap, unsigned *part)
{
    char buf[128];
    unsigned layer = 0;

    name = hf_plain_name(name, buf, sizeof buf);
    *part = 0;
    for (; *lists; lists++) {
        for (const struct hf_name *n = *lists; n->hf; n++) {
            if (!matches(n->hf, name, &layer, part))
                continue;
            n = nth_row(n, nth);
            if (n)
                spell(out, cap, n->gguf, layer);
            if (n && is_scales(n))
                *part = 1;
            return n;
        }
    }
    return NULL;
}
