/* SPDX-License-Identifier: MIT
 *
 * refusal.h - why a request is not answered, as HTTP and as OpenAI's JSON
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_SERVE_API_REFUSAL_H
#define SLM_HARNESS_SERVE_API_REFUSAL_H

#include <stdbool.h>

#include "engine/base/status.h"
#include "harness/serve/api/textbuf.h"

struct refusal {
    int http;         /* status; 0: not refused */
    const char *code; /* a word for programs, static; or NULL */
    char param[48];   /* the field of the request; "": none */
    char message[512];
    int retry_after_s; /* with 429 and 503; 0: unknown */
};

/* Fills *r, unless it is filled, and returns false. code and param may be NULL. What
 * the message quotes is made harmless. */
bool refuse(struct refusal *r, int http, const char *code, const char *param,
            const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Fills *r with an error of this program: 400 for ST_USAGE and ST_INPUT, 503 for
 * ST_NO_MEMORY, else 500. */
bool refuse_err(struct refusal *r, const struct err *err, const char *param);

/* {"error": {...}} */
void refusal_put(struct textbuf *out, const struct refusal *r);

/* {"type": "error", "error": {...}}, as Anthropic's clients read it; and the type of
 * the inner object. */
const char *refusal_type(int http);
void refusal_put_typed(struct textbuf *out, const struct refusal *r);

/* {"error": text}, as Ollama's clients read it */
void refusal_put_text(struct textbuf *out, const struct refusal *r);

#endif
