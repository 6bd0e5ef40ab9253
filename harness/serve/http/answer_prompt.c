/* SPDX-License-Identifier: MIT
 *
 * answer_prompt.c - a request's prompts as tokens
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/http/answer_impl.h"

/* A text that is too long even if all its tokens were the longest is not even rendered.
 */
static bool check_bytes(const struct answer *a, size_t bytes, struct refusal *refusal)
{
    const struct answer_model *m = a->model;

    if (bytes <= (size_t)m->n_ctx * m->longest_token)
        return true;
    return refuse(refusal, 400, "context_length_exceeded",
                  a->request.kind == API_CHAT ? "messages" : "prompt",
                  "the prompt has %zu bytes; a context of %d positions has no room for "
                  "it",
                  bytes, m->n_ctx);
}

/* "developer" is the newer name of the system's role, which few templates know. */
static void rename_developers(const struct answer_model *m, json_t *conversation)
{
    json_t *message;
    size_t i;

    if (chat_template_mentions(m->chat, conversation, "developer"))
        return;
    json_array_foreach(json_object_get(conversation, "messages"), i, message)
    {
        const char *role = json_text(json_object_get(message, "role"));

        if (role && !strcmp(role, "developer"))
            json_object_set_new(message, "role", json_string("system"));
    }
}

static bool check_chat(const struct answer_model *m, struct refusal *refusal)
{
    return m->chat || refuse(refusal, 400, "unsupported", "messages",
                             "this server has no chats: %s", m->why_no_chat);
}

bool answer_check_model(const struct answer_model *m, const struct api_request *r,
                        struct refusal *refusal)
{
    return m->any_model || !r->model || !strcmp(r->model, m->name) ||
           refuse(refusal, 404, "model_not_found", "model",
                  "the model %.100s is not here; this server has %s", r->model,
                  m->name);
}

/* A variable that the template does not look at would be ignored without a word. */
static bool check_variables(const struct answer_model *m, const struct api_request *r,
                            struct refusal *refusal)
{
    static const char *const own[] = {"messages", "add_generation_prompt", "tools",
                                      "chat_template"};
    const char *name;
    json_t *value;

    json_object_foreach(r->conversation, name, value)
    {
        bool is_used = json_is_null(value);

        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            is_used |= !strcmp(name, own[i]);
        if (!is_used && !chat_template_uses(m->chat, r->conversation, name))
            return refuse(refusal, 400, "unsupported", name,
                          "%.80s is not supported: the model's chat template has no "
                          "such variable",
                          name);
    }
    return true;
}

static bool render_chat(const struct answer_model *m, const struct api_request *r,
                        struct jinja_text *prompt, struct refusal *refusal)
{
    struct err err = ERR_INIT;

    if (!check_variables(m, r, refusal))
        return false;
    rename_developers(m, r->conversation);
    chat_prepare_calls(m->chat, r->conversation);
    return !chat_render(m->chat, r->conversation, prompt, &err) ||
           refuse_err(refusal, &err, "messages");
}

/* Write the template's own text behind a prompt that the template has ended. */
static bool extend_prompt(struct jinja_text *prompt, const char *closing,
                          struct refusal *refusal)
{
    const size_t n = strlen(closing);
    char *more = realloc(prompt->text, prompt->len + n + 1);

    if (!more)
        return refuse(refusal, 503, NULL, NULL, "no memory for a prompt");
    memcpy(more + prompt->len, closing, n + 1);
    prompt->text = more;
    prompt->len += n;
    prompt->own[prompt->n_own - 1].end = prompt->len;
    return true;
}

/* Whether and how the model thinks. An answer that follows a schema has no thoughts
 * before it, unless it may be a call as well. */
static bool look_at_thinking(struct answer *a, struct jinja_text *prompt,
                             struct refusal *refusal)
{
    const struct api_request *r = &a->request;
    const struct chat_thinking *t = chat_template_thinking(a->model->chat);
    const bool may_think = r->format == API_TEXT || a->calls;

    if (!t && r->max_thought > 0)
        return refuse(refusal, 400, "unsupported",
                      api_member(r->root, "reasoning_budget") ? "reasoning_budget"
                                                              : "thinking_budget",
                      "a budget for thoughts is not supported: the model's chat "
                      "template has no markers of thoughts");
    a->thinks = t && chat_prompt_thinks(a->model->chat, prompt);
    if (a->thinks && (!may_think || r->max_thought == 0)) {
        a->thinks = false;
        return extend_prompt(prompt, a->calls ? a->calls->thinking.closing : t->closing,
                             refusal);
    }
    a->thinking = may_think ? t : NULL;
    return may_think || !t || !t->answer || !prompt->n_own ||
           prompt->own[prompt->n_own - 1].end != prompt->len ||
           extend_prompt(prompt, t->answer, refusal);
}

/* Whether the answer's calls can be held to their schemas. */
static bool check_tools(struct answer *a, struct refusal *refusal)
{
    const struct chat_calls *calls = chat_template_calls(a->model->chat);
    const struct api_tools *t = &a->request.tools;

    if (!t->n ||
        (t->choice == GRAMMAR_NONE && (calls->why || a->request.format != API_TEXT)))
        return true;
    if (calls->why)
        return refuse(refusal, 400, "unsupported", "tools",
                      "tools are not supported for this model's chat template: %s",
                      calls->why);
    if (a->request.format != API_TEXT && t->choice == GRAMMAR_AUTO &&
        !calls->form.anywhere)
        return refuse(refusal, 400, "unsupported", "response_format",
                      "tools and response_format together are not supported for this "
                      "model's chat template: its calls begin as JSON does");
    a->calls = calls;
    return true;
}

/* A prompt leaves room for a token of the answer. A longer one is not encoded further.
 */
static size_t max_tokens(const struct answer_model *m)
{
    return (size_t)m->n_ctx - 1;
}

static bool encode_chat(struct answer *a, struct api_prompt *p, struct refusal *refusal)
{
    const struct answer_model *m = a->model;
    struct err err = ERR_INIT;
    struct jinja_text prompt;
    bool ok;

    if (!check_chat(m, refusal) || !check_bytes(a, a->request.content_bytes, refusal) ||
        !check_tools(a, refusal) || !render_chat(m, &a->request, &prompt, refusal))
        return false;
    ok = look_at_thinking(a, &prompt, refusal) &&
         (!chat_tokens(m->chat, m->tok, &prompt, 0, max_tokens(m), &p->ids, &p->n_ids,
                       &err) ||
          refuse_err(refusal, &err, "messages"));
    jinja_text_free(&prompt);
    return ok;
}

/* Control tokens that are spelled in a prompt are recognised: who writes a prompt
 * writes the model's own markers. */
static bool encode_text(const struct answer *a, struct api_prompt *p,
                        struct refusal *refusal)
{
    const struct tokenizer *tok = a->model->tok;
    const bool with_bos = tokenizer_adds_bos(tok) || p->len == 0;
    struct err err = ERR_INIT;

    if (p->ids)
        return true;
    if (!check_bytes(a, p->len, refusal))
        return false;
    if (tokenizer_encode_up_to(tok, p->text, p->len, with_bos, true,
                               max_tokens(a->model), &p->ids, &p->n_ids, &err))
        return refuse_err(refusal, &err, "prompt");
    return true;
}

static bool check_length(const struct answer *a, const struct api_prompt *p,
                         struct refusal *refusal)
{
    if (!p->n_ids)
        return refuse(refusal, 400, NULL, "prompt", "the prompt has no token");
    if (p->n_ids > max_tokens(a->model))
        return refuse(
            refusal, 400, "context_length_exceeded",
            a->request.kind == API_CHAT ? "messages" : "prompt",
            "the prompt has %s%zu tokens; a context of %d positions has no room "
            "for it and an answer",
            p->ids ? "" : "at least ", p->n_ids, a->model->n_ctx);
    return true;
}

bool answer_encode(struct answer *a, struct refusal *refusal)
{
    struct api_request *r = &a->request;

    if (r->kind == API_CHAT) {
        r->prompts = calloc(1, sizeof *r->prompts);
        if (!r->prompts)
            return refuse(refusal, 503, NULL, NULL, "no memory for a prompt");
        r->n_prompts = 1;
        if (!encode_chat(a, r->prompts, refusal))
            return false;
    }
    for (size_t i = 0; i < r->n_prompts; i++)
        if ((r->kind == API_COMPLETION && !encode_text(a, &r->prompts[i], refusal)) ||
            !check_length(a, &r->prompts[i], refusal))
            return false;
    return true;
}

/* ---- without a completion -------------------------------------------------------- */

static bool put_prompt(const struct answer_model *m, const struct api_request *r,
                       struct textbuf *out, struct refusal *refusal)
{
    struct jinja_text prompt;

    if (!render_chat(m, r, &prompt, refusal))
        return false;
    textbuf_puts(out, "{\"prompt\":");
    textbuf_put_json(out, prompt.text, prompt.len);
    textbuf_puts(out, "}\n");
    jinja_text_free(&prompt);
    return true;
}

static bool put_text(struct answer *a, struct refusal *refusal)
{
    switch (a->request.kind) {
    case API_TEMPLATE:
        return put_prompt(a->model, &a->request, &a->text, refusal);
    case API_TOKENIZE:
        return answer_put_tokens(a->model, &a->request, &a->text, refusal);
    case API_DETOKENIZE:
        return answer_put_content(a->model, &a->request, &a->text, refusal);
    default: /* API_COUNT, which was read as a chat */
        if (!answer_encode(a, refusal))
            return false;
        textbuf_printf(&a->text, "{\"input_tokens\":%zu}\n", a->request.prompts->n_ids);
        return true;
    }
}

bool answer_is_text(enum api_kind kind)
{
    return kind == API_TEMPLATE || kind == API_TOKENIZE || kind == API_DETOKENIZE ||
           kind == API_COUNT;
}

bool answer_make_text(struct answer *a, const struct answer_request *req,
                      struct refusal *refusal)
{
    const struct answer_model *m = a->model;
    bool ok;

    if (req->kind == API_COUNT && m->embeds)
        return refuse(refusal, 404, "unsupported", NULL, "%s has no chats", m->name);
    if (req->kind == API_TEMPLATE && !check_chat(m, refusal))
        return false;
    ok = api_request_read(&a->request, req->kind, req->body, req->len, m->n_vocab,
                          refusal) &&
         answer_check_model(m, &a->request, refusal) && put_text(a, refusal);
    api_request_free(&a->request);
    if (ok && a->text.failed)
        return refuse(refusal, 503, NULL, NULL, "no memory for an answer");
    return ok && answer_fits(m, a->text.len, refusal);
}
