/* SPDX-License-Identifier: MIT
 *
 * chat.h - conversations as the tokens that a chat model was trained on
 *
 * A chat model expects every message between markers of its family. GGUF files have a
 * program that writes them (tokenizer.chat_template, in the language Jinja); this
 * module does not run programs of files, but recognises the family by its markers.
 *
 * Markers become control tokens; text of a message never does, so a message cannot end
 * a turn or speak as the system.
 *
 * Threading: pure functions of immutable data.
 * Sources: the templates that the models' publishers put into tokenizer_config.json.
 */
#ifndef SLM_ENGINE_TEXT_CHAT_H
#define SLM_ENGINE_TEXT_CHAT_H

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/tokenizer/tokenizer.h"

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT };

struct chat_message {
    enum chat_role role;
    const char *text;
};

struct chat_template; /* one family; static */

/* By name ("chatml"); NULL: unknown. */
const struct chat_template *chat_template_find(const char *name);

/* The family whose markers are in the file's template; NULL: no template, or an unknown
 * one. */
const struct chat_template *chat_template_detect(const struct gguf *g);

const char *chat_template_name(const struct chat_template *c);

/* "chatml, llama-2, ..." into buf, which is returned. */
const char *chat_template_names(char *buf, size_t cap);

/* Tokens of m[n_done .. n), and of the markers that precede an answer if the last
 * message is not an assistant's. Messages before n_done are in the context: the last of
 * them is an assistant's, as the model generated it, without its end marker. A system
 * message comes first. tok is the vocabulary. *ids is malloc'ed, the caller frees it.
 * Errors: those of tokenizer_encode(). */
enum status chat_encode(const struct chat_template *c, const struct tokenizer *tok,
                        const struct chat_message *m, size_t n, size_t n_done,
                        int32_t **ids, size_t *n_ids, struct err *err);

/* The same as text; malloc'ed. For tests. Error: ST_NO_MEMORY. */
enum status chat_render(const struct chat_template *c, const struct tokenizer *tok,
                        const struct chat_message *m, size_t n, size_t n_done,
                        char **text, struct err *err);

/* Whether a token ends an answer. */
bool chat_is_end(const struct chat_template *c, const struct tokenizer *tok,
                 int32_t id);

#endif
