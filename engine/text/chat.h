/* SPDX-License-Identifier: MIT
 *
 * chat.h - conversations as the tokens that a chat model was trained on
 *
 * A chat model expects every message between markers of its family. Model files carry a
 * program that writes them, the chat template (tokenizer.chat_template, in the language
 * Jinja); engine/jinja runs it. The template decides everything: a default system
 * message, thinking, how tools are listed. Models without a template can borrow one of
 * the few that this module has by name.
 *
 * What the template writes may become control tokens; text of a message never does, so
 * a message cannot end a turn or speak as the system.
 *
 * A conversation is a JSON object, the variables of the template: "messages" (objects
 * with "role" and "content"), "add_generation_prompt", and others such as "tools",
 * "documents", "enable_thinking". If a model has several templates, "tool_use" is run
 * where there are tools, else "default"; a member "chat_template" names another.
 *
 * Threading: an open template is immutable.
 */
#ifndef SLM_ENGINE_TEXT_CHAT_H
#define SLM_ENGINE_TEXT_CHAT_H

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/grammar/call_form.h"
#include "engine/jinja/jinja.h"
#include "engine/tokenizer/tokenizer.h"

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT };

struct chat_message {
    enum chat_role role;
    const char *text;
};

struct chat_template;

/* What a template can do, found by rendering with and without it. */
struct chat_abilities {
    bool system;          /* writes a system message */
    bool tools;           /* lists tools */
    bool thinking;        /* opens or closes a block of thinking before the answer */
    bool thinking_switch; /* enable_thinking changes the prompt */
};

/* Whether the model's file carries a template. */
bool chat_template_exists(const struct gguf *g);

/* Open the templates of the model's file g (name NULL), or that of a name ("chatml", or
 * one of the model's), or of a file with that path; then g may be NULL. tok is the
 * model's vocabulary, which stays open longer. Errors: ST_USAGE (no such name or file),
 * ST_INPUT (the file has no template, or one that does not compile), ST_NO_MEMORY. */
enum status chat_template_open(struct chat_template **c, const struct gguf *g,
                               const struct tokenizer *tok, const char *name,
                               struct err *err);
void chat_template_close(struct chat_template *c);

/* "chatml"; for a model's own: "of the model". */
const char *chat_template_name(const struct chat_template *c);

/* The names of templates for models without one, "chatml, gemma, ...". */
const char *chat_template_names(void);

/* The names of a model's templates where it has several, "default, tool_use"; else "".
 */
const char *chat_template_variants(const struct chat_template *c);

/* Whether the conversation's template has code for a role, such as "developer". */
bool chat_template_mentions(const struct chat_template *c, const json_t *conversation,
                            const char *word);

/* Whether the conversation's template has that name of a variable in its code. */
bool chat_template_uses(const struct chat_template *c, const json_t *conversation,
                        const char *name);

/* How a model writes its thoughts: begin, thoughts, end, answer, with blanks around.
 * Markers may be spelled by control tokens. */
struct chat_thinking {
    char *begin, *end;
    char *closing; /* what is written between thoughts and an answer, with blanks */
    char *answer;  /* before an answer; "" or NULL: nothing */
};

/* NULL: the template shows nothing of thoughts. It belongs to the template. */
const struct chat_thinking *chat_template_thinking(const struct chat_template *c);

/* Whether the template has opened a block of thoughts at the end of a prompt. */
bool chat_prompt_thinks(const struct chat_template *c, const struct jinja_text *prompt);

/* How a model calls tools, by what its template renders of calls. */
struct chat_calls {
    struct call_form form;
    struct chat_thinking thinking; /* begin and end as bytes of a form, without answer;
                                      closing up to where a call may begin; or NULL */
    const char *why; /* there is no form, static: "it has no marker before a call" */
};

/* It belongs to the template. */
const struct chat_calls *chat_template_calls(const struct chat_template *c);

/* Write earlier answers as the template expects them: thoughts by the names that it may
 * have for them; arguments of calls as an object or a text, and a content where there
 * is no text. */
void chat_prepare_calls(const struct chat_template *c, json_t *conversation);

struct chat_abilities chat_template_abilities(const struct chat_template *c);

/* Messages as a conversation that asks for an answer; the caller owns it. NULL: no
 * memory. */
json_t *chat_conversation(const struct chat_message *m, size_t n);

/* The prompt as text; jinja_text_free(). Errors: those of jinja_render(), ST_USAGE (no
 * template of the name that the conversation asks for). */
enum status chat_render(const struct chat_template *c, const json_t *conversation,
                        struct jinja_text *out, struct err *err);

/* A prompt's text from byte `from` on as tokens; from 0 with BOS, where the vocabulary
 * adds it and the template does not write it. max_ids, *ids and errors as in
 * tokenizer_encode_up_to(). */
enum status chat_tokens(const struct chat_template *c, const struct tokenizer *tok,
                        const struct jinja_text *prompt, size_t from, size_t max_ids,
                        int32_t **ids, size_t *n_ids, struct err *err);

/* chat_render() and chat_tokens() of the whole. */
enum status chat_encode(const struct chat_template *c, const struct tokenizer *tok,
                        const json_t *conversation, int32_t **ids, size_t *n_ids,
                        struct err *err);

/* Whether a token ends an answer: the vocabulary's own ends, and what the template
 * writes behind an answer. */
bool chat_is_end(const struct chat_template *c, const struct tokenizer *tok,
                 int32_t id);

#endif
