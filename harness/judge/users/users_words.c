/* SPDX-License-Identifier: MIT
 *
 * users_words.c - what was sent to all servers of a table or chart
 */
#include <string.h>

#include "harness/base/format.h"
#include "harness/judge/users/users.h"

#define TEXT_CHARACTERS 60 /* of a model */

/* What a server calls its model, without the folder and ".gguf": some name the file,
 * others what is in it. Returns the length; the text begins at *name. */
static size_t model_of(const struct row *r, const char **name)
{
    static const char end[] = ".gguf";
    const char *slash = strrchr(r->model, '/');
    size_t len;

    *name = slash ? slash + 1 : r->model;
    len = strlen(*name);
    if (len > strlen(end) && !strcmp(*name + len - strlen(end), end))
        len -= strlen(end);
    return len;
}

static bool same_model(const struct row *a, const struct row *b)
{
    const char *name_a, *name_b;
    const size_t len_a = model_of(a, &name_a), len_b = model_of(b, &name_b);

    return len_a == len_b && !memcmp(name_a, name_b, len_a);
}

void users_describe(const struct users *u, char *buf, size_t cap)
{
    const struct row *first = u->v[0].first;
    bool one_model = *first->model, same_lengths = true, same_sessions = true;
    char model[sizeof first->model], text[200];
    const char *name;
    const size_t len = model_of(first, &name);

    for (size_t i = 1; i < u->n; i++) {
        const struct row *r = u->v[i].first;

        same_sessions &= !strcmp(r->sessions, first->sessions);
        one_model &= same_model(r, first);
        same_lengths &= !strcmp(r->prompt_lengths, first->prompt_lengths) &&
                        !strcmp(r->output_lengths, first->output_lengths);
    }
    buf[0] = '\0';
    snprintf(model, sizeof model, "%.*s", (int)len, name);
    if (one_model)
        text_append(buf, cap, "%s",
                    text_shorten(text, sizeof text, model, TEXT_CHARACTERS));
    if (same_lengths)
        text_append(buf, cap, "%sprompts %s, answers %s tokens",
                    one_model ? USERS_DOT : "", first->prompt_lengths,
                    first->output_lengths);
    if (same_sessions && *first->sessions)
        text_append(buf, cap, USERS_DOT "conversations %s", first->sessions);
}
