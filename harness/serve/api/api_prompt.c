/* SPDX-License-Identifier: MIT
 *
 * api_prompt.c - prompts of a request: texts or tokens
 */
#include <stdlib.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"

static bool read_ids(struct api_prompt *p, const json_t *list, int n_vocab,
                     const char *key, struct refusal *refusal)
{
    const size_t n = json_array_size(list);

    p->ids = malloc((n + 1) * sizeof *p->ids);
    if (!p->ids)
        return refuse(refusal, 503, NULL, NULL, "no memory for %zu tokens", n);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        const json_int_t v = json_integer_value(id);

        if (!json_is_integer(id) || v < 0 || v >= n_vocab)
            return refuse(refusal, 400, NULL, key,
                          "%s: element %zu is no token; they are 0 to %d", key, i,
                          n_vocab - 1);
        p->ids[p->n_ids++] = (int32_t)v;
    }
    return true;
}

/* A text, or tokens. */
static bool read_prompt(struct api_prompt *p, const json_t *value, int n_vocab,
                        const char *key, struct refusal *refusal)
{
    if (json_is_string(value) && !json_no_number(value)) {
        p->text = json_string_value(value);
        p->len = json_string_length(value);
        return true;
    }
    if (json_is_array(value) && json_array_size(value))
        return read_ids(p, value, n_vocab, key, refusal);
    return refuse(refusal, 400, NULL, key,
                  "%s must be a text, an array of texts, an array of tokens, or an "
                  "array of such arrays",
                  key);
}

bool api_read_prompts(struct api_request *r, int n_vocab, struct refusal *refusal)
{
    const bool embeds = r->kind == API_EMBEDDING;
    const char *key = embeds                      ? "input"
                      : r->kind == API_TOKENIZE   ? "content"
                      : r->kind == API_DETOKENIZE ? "tokens"
                                                  : "prompt";
    const size_t most = embeds ? API_MAX_INPUTS : API_MAX_CHOICES;
    const json_t *prompt = api_member(r->root, key);
    const json_t *first = json_array_get(prompt, 0);
    const bool several = json_is_string(first) || json_is_array(first);
    const size_t n = several ? json_array_size(prompt) : 1;

    if (!prompt)
        return refuse(refusal, 400, NULL, key, "%s is missing", key);
    if (n > most)
        return refuse(refusal, 400, NULL, key, "%zu %ss: at most %zu are possible", n,
                      key, most);
    r->prompts = calloc(n, sizeof *r->prompts);
    if (!r->prompts)
        return refuse(refusal, 503, NULL, NULL, "no memory for %zu %ss", n, key);
    r->n_prompts = n;
    for (size_t i = 0; i < n; i++)
        if (!read_prompt(&r->prompts[i], several ? json_array_get(prompt, i) : prompt,
                         n_vocab, key, refusal))
            return false;
    return true;
}
