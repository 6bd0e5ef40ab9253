/* SPDX-License-Identifier: MIT
 *
 * chat_impl.h - an open template, and the templates that a model may have, for chat*.c
 */
#ifndef SLM_ENGINE_TEXT_CHAT_IMPL_H
#define SLM_ENGINE_TEXT_CHAT_IMPL_H

#include "engine/text/chat.h"

/* One program of a model. */
struct chat_variant {
    char *name; /* "default", "tool_use", ... */
    char *source;
    struct jinja *program; /* NULL: it does not compile */
    struct err why;        /* which it says when it is asked for */
};

struct chat_template {
    char *name;
    struct chat_variant *variants; /* [n_variants]; the first is "default" */
    size_t n_variants;
    char *names;     /* chat_template_variants() */
    char *markers;   /* all sources: what user-defined tokens are guarded by */
    json_t *own;     /* bos_token, eos_token, ... */
    const char *bos; /* in own, "" if there is none */
    struct chat_thinking thinking; /* all NULL: none */
    int32_t end; /* what the template writes behind an answer; -1: no token */

    struct chat_calls calls;
    bool text_arguments; /* of calls, for the template */
    int calls_content;   /* next to calls: see struct style */
};

/* Find and compile the programs of chat_template_open(): variants, names, markers. */
enum status chat_load_variants(struct chat_template *c, const struct gguf *g,
                               const char *name, struct err *err);
void chat_free_variants(struct chat_template *c);

/* The program of a conversation: the one that it names, else "tool_use" where it has
 * tools, else the default. Errors: ST_USAGE (no such name), those of jinja_compile().
 */
enum status chat_pick(const struct chat_variant **v, const struct chat_template *c,
                      const json_t *conversation, struct err *err);

/* Fill c->thinking; and empty one. */
void chat_find_thinking(struct chat_template *c);
void chat_free_thinking(struct chat_thinking *t);

/* Give thoughts to an assistant's message, by each name that templates have for them.
 */
void chat_put_thoughts(json_t *message, const char *thought);

/* Fill c->calls; and empty it. */
void chat_find_calls(struct chat_template *c, const struct tokenizer *tok);
void chat_free_calls(struct chat_template *c);

struct chat_named {
    const char *name, *text;
};

extern const struct chat_named chat_named[];
extern const size_t chat_n_named;

#endif
