/* SPDX-License-Identifier: MIT
 *
 * api_prompt.c - prompts and messages of a request, and what it may not ask for
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/http/api_request.h"

/* ---- prompts ----------------------------------------------------------------------
 */

static bool read_ids(struct api_prompt *p, const json_t *list, int n_vocab,
                     struct refusal *refusal)
{
    const size_t n = json_array_size(list);

    p->ids = malloc((n + 1) * sizeof *p->ids);
    if (!p->ids)
        return refuse(refusal, 503, NULL, NULL, "no memory for %zu tokens", n);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        const json_int_t v = json_integer_value(id);

        if (!json_is_integer(id) || v < 0 || v >= n_vocab)
            return refuse(refusal, 400, NULL, "prompt",
                          "prompt: element %zu is no token; they are 0 to %d", i,
                          n_vocab - 1);
        p->ids[p->n_ids++] = (int32_t)v;
    }
    return true;
}

/* A text, or tokens. */
static bool read_prompt(struct api_prompt *p, const json_t *value, int n_vocab,
                        struct refusal *refusal)
{
    if (json_is_string(value) && !json_no_number(value)) {
        p->text = json_string_value(value);
        p->len = json_string_length(value);
        return true;
    }
    if (json_is_array(value) && json_array_size(value))
        return read_ids(p, value, n_vocab, refusal);
    return refuse(refusal, 400, NULL, "prompt",
                  "prompt must be a text, an array of texts, an array of tokens, or an "
                  "array of such arrays");
}

bool api_read_prompts(struct api_request *r, int n_vocab, struct refusal *refusal)
{
    const json_t *prompt = api_member(r->root, "prompt");
    const json_t *first = json_array_get(prompt, 0);
    const bool several = json_is_string(first) || json_is_array(first);
    const size_t n = several ? json_array_size(prompt) : 1;

    if (!prompt)
        return refuse(refusal, 400, NULL, "prompt", "prompt is missing");
    if (n > API_MAX_CHOICES)
        return refuse(refusal, 400, NULL, "prompt",
                      "%zu prompts: at most %d are possible", n, API_MAX_CHOICES);
    r->prompts = calloc(n, sizeof *r->prompts);
    if (!r->prompts)
        return refuse(refusal, 503, NULL, NULL, "no memory for %zu prompts", n);
    r->n_prompts = n;
    for (size_t i = 0; i < n; i++)
        if (!read_prompt(&r->prompts[i], several ? json_array_get(prompt, i) : prompt,
                         n_vocab, refusal))
            return false;
    return true;
}

/* ---- messages ---------------------------------------------------------------------
 */

static bool read_role(const json_t *message, enum chat_role *role,
                      struct refusal *refusal)
{
    static const struct {
        const char *name;
        enum chat_role role;
    } roles[] = {{"system", CHAT_SYSTEM},
                 {"developer", CHAT_SYSTEM},
                 {"user", CHAT_USER},
                 {"assistant", CHAT_ASSISTANT}};
    const char *name = json_text(api_member(message, "role"));

    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(name, roles[i].name)) {
            *role = roles[i].role;
            return true;
        }
    return refuse(refusal, 400, NULL, "messages",
                  "a message's role must be system, developer, user or assistant%s",
                  name && !strcmp(name, "tool") ? "; tools are not supported" : "");
}

static bool put_text(struct textbuf *out, const json_t *text, struct refusal *refusal)
{
    const size_t len = json_string_length(text);

    if (!json_text(text))
        return refuse(refusal, 400, NULL, "messages",
                      "a message's content must be a text without zeros, or an array "
                      "of parts of type text");
    textbuf_put(out, json_string_value(text), len);
    return true;
}

static bool put_part(struct textbuf *out, const json_t *part, struct refusal *refusal)
{
    const char *type = json_text(api_member(part, "type"));

    if (!type || strcmp(type, "text"))
        return refuse(refusal, 400, NULL, "messages",
                      "content of type %.40s is not supported: this model reads text",
                      type ? type : "(none)");
    return put_text(out, api_member(part, "text"), refusal);
}

static bool read_content(struct textbuf *out, const json_t *message,
                         struct refusal *refusal)
{
    const json_t *content = api_member(message, "content");

    textbuf_put(out, "", 0);
    if (!json_is_array(content))
        return put_text(out, content, refusal);
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!put_part(out, json_array_get(content, i), refusal))
            return false;
    return true;
}

static void put_message(struct api_request *r, enum chat_role role, char *text)
{
    r->texts[r->n_messages] = text;
    r->messages[r->n_messages++] = (struct chat_message){role, text};
}

/* Several system messages at the beginning are one: templates have room for one. It
 * grows in *system, whose text is the request's. */
static bool add_system(struct api_request *r, struct textbuf *system,
                       const struct textbuf *text, struct refusal *refusal)
{
    if (r->n_messages > 1 || (r->n_messages && r->messages[0].role != CHAT_SYSTEM))
        return refuse(refusal, 400, NULL, "messages",
                      "a system message comes before all others");
    textbuf_puts(system, r->n_messages ? "\n\n" : "");
    textbuf_put(system, text->text, text->len);
    r->n_messages = 0;
    put_message(r, CHAT_SYSTEM, system->text);
    return !system->failed ||
           refuse(refusal, 503, NULL, NULL, "no memory for the messages");
}

static bool read_message(struct api_request *r, const json_t *message,
                         struct textbuf *system, struct refusal *refusal)
{
    struct textbuf text = {.text = NULL};
    enum chat_role role = CHAT_USER;
    bool ok;

    if (!json_is_object(message))
        return refuse(refusal, 400, NULL, "messages", "a message must be an object");
    if (json_array_size(api_member(message, "tool_calls")))
        return refuse(refusal, 400, NULL, "messages", "tools are not supported");
    ok = read_role(message, &role, refusal) && read_content(&text, message, refusal);
    if (ok && text.failed)
        ok = refuse(refusal, 503, NULL, NULL, "no memory for the messages");
    if (ok && role == CHAT_SYSTEM)
        ok = add_system(r, system, &text, refusal);
    else if (ok)
        put_message(r, role, text.text);
    if (!ok || role == CHAT_SYSTEM)
        textbuf_free(&text);
    return ok;
}

bool api_read_messages(struct api_request *r, struct refusal *refusal)
{
    const json_t *list = api_member(r->root, "messages");
    const size_t n = json_array_size(list);
    struct textbuf system = {.text = NULL};

    if (!json_is_array(list) || n == 0 || n > API_MAX_MESSAGES)
        return refuse(refusal, 400, NULL, "messages",
                      "messages must be an array of 1 to %d messages",
                      API_MAX_MESSAGES);
    r->messages = calloc(n, sizeof *r->messages);
    r->texts = calloc(n, sizeof *r->texts);
    if (!r->messages || !r->texts)
        return refuse(refusal, 503, NULL, NULL, "no memory for %zu messages", n);
    for (size_t i = 0; i < n; i++)
        if (!read_message(r, json_array_get(list, i), &system, refusal))
            return false;
    if (r->messages[r->n_messages - 1].role != CHAT_USER)
        return refuse(refusal, 400, NULL, "messages",
                      "the last message must be a user's: it is what is answered");
    return true;
}

/* ---- what is not supported ----------------------------------------------------------
 */

/* Whether a field's value asks for nothing. */
static bool asks_nothing(const json_t *value)
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

/* The same of penalties that 1 leaves out. */
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
        bool one; /* 1 asks for nothing, too */
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
    static const char asks_answer[] = "add_generation_prompt";
    const json_t *asks = api_member(r->root, asks_answer);

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *value = api_member(r->root, fields[i].name);

        if (!asks_nothing(value) && !(fields[i].one && is_one(value)))
            return unsupported(fields[i].name, refusal);
    }
    if (asks && !json_is_true(asks))
        return unsupported(asks_answer, refusal);
    const json_t *several = api_member(r->root, "best_of");
    int64_t best_of = 0, n = 0;

    json_whole(api_member(r->root, "n"), &n);
    if (several && (!json_whole(several, &best_of) || (best_of > 1 && best_of != n)))
        return refuse(refusal, 400, "unsupported", "best_of",
                      "best_of is not supported by this server; n gives several");
    return check_modalities(r, refusal);
}
