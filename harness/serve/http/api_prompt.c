/* SPDX-License-Identifier: MIT
 *
 * api_prompt.c - prompts of a request, and fields that are not supported
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/http/api_request.h"

/* ---- prompts --------------------------------------------------------------------- */

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
    const char *key = embeds ? "input" : "prompt";
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

/* ---- what is not supported ------------------------------------------------------- */

/* Whether a field's value changes nothing. */
static bool is_empty_value(const json_t *value)
{
    const char *text = json_text(value);

    if (json_is_object(value))
        return json_object_size(value) == 0;
    if (json_is_array(value))
        return json_array_size(value) == 0;
    return !value || json_is_false(value) ||
           (text && (!*text || !strcmp(text, "none") || !strcmp(text, "auto"))) ||
           (json_is_integer(value) && json_integer_value(value) == 0);
}

/* Penalties of 1 change nothing. */
static bool is_one(const json_t *value)
{
    return json_number_value(value) >= 1.0 && json_number_value(value) <= 1.0;
}

static bool check_modalities(const struct api_request *r, struct refusal *refusal)
{
    const json_t *list = api_member(r->root, "modalities");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_text(json_array_get(list, i));

        if (!name || strcmp(name, "text"))
            return refuse(refusal, 400, NULL, "modalities",
                          "modalities: this model writes text and nothing else");
    }
    return true;
}

static bool unsupported(const char *name, struct refusal *refusal)
{
    return refuse(refusal, 400, "unsupported", name,
                  "%s is not supported by this server", name);
}

bool api_check_unsupported(const struct api_request *r, struct refusal *refusal)
{
    static const struct {
        const char *name;
        bool one; /* 1 changes nothing, too */
    } fields[] = {
        {"tools", false},
        {"functions", false},
        {"tool_choice", false},
        {"function_call", false},
        {"audio", false},
        {"web_search_options", false},
        {"suffix", false},
        {"echo", false},
        {"grammar", false},
        {"json_schema", false},
        {"guided_json", false},
        {"guided_regex", false},
        {"guided_choice", false},
        {"guided_grammar", false},
        {"structured_outputs", false},
        {"regex", false},
        {"ebnf", false},
        {"min_tokens", false},
        {"stop_token_ids", false},
        {"allowed_token_ids", false},
        {"bad_words", false},
        {"repetition_penalty", true},
        {"repeat_penalty", true},
        {"prompt_logprobs", false},
        {"use_beam_search", false},
        {"continue_final_message", false},
    };
    static const char prompt_key[] = "add_generation_prompt";
    const json_t *generates = api_member(r->root, prompt_key);

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *value = api_member(r->root, fields[i].name);

        if (!is_empty_value(value) && !(fields[i].one && is_one(value)))
            return unsupported(fields[i].name, refusal);
    }
    if (generates && !json_is_true(generates))
        return unsupported(prompt_key, refusal);
    const json_t *several = api_member(r->root, "best_of");
    int64_t best_of = 0, n = 0;

    json_whole(api_member(r->root, "n"), &n);
    if (several && (!json_whole(several, &best_of) || (best_of > 1 && best_of != n)))
        return refuse(refusal, 400, "unsupported", "best_of",
                      "best_of is not supported by this server; n gives several");
    return check_modalities(r, refusal);
}
