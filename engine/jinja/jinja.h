/* SPDX-License-Identifier: MIT
 *
 * jinja.h - chat templates as models carry them: a bounded interpreter of Jinja
 *
 * A model's chat template is a program in the template language Jinja that writes a
 * conversation as the text its model was trained on. Templates are untrusted: an
 * interpreter run has limits for steps, memory, output and depth, has no access to
 * files, clocks or processes, and ends in one sentence when it exceeds a limit.
 *
 * The language is what the tools that publish models run: Jinja 2 with trim_blocks,
 * lstrip_blocks and loop controls, immutable values, `raise_exception`, `strftime_now`,
 * `tojson` that keeps Unicode as it is, and `{% generation %}`. Templates that include
 * or extend other templates are refused.
 *
 * Every byte of the output is known to come from the template (and from what the caller
 * declares its own, such as the spelling of the BOS token) or from the input: messages,
 * tools, documents. Only the template's bytes may become control tokens. (A role, a
 * word of lowercase letters, counts as the template's: many write it into their
 * markers.)
 *
 * Threading: a compiled template is immutable; renderings are independent.
 * Source: Jinja documentation, "Template Designer Documentation", 3.1; Python's str and
 * json for methods and `tojson`.
 */
#ifndef SLM_ENGINE_JINJA_JINJA_H
#define SLM_ENGINE_JINJA_JINJA_H

#include <jansson.h>
#include <stddef.h>
#include <time.h>

#include "engine/base/status.h"

struct jinja;

/* Bytes of the output that the template itself wrote: [begin, end). */
struct jinja_span {
    size_t begin, end;
};

struct jinja_text {
    char *text; /* UTF-8, zero-terminated; may hold U+0000 before len */
    size_t len;
    struct jinja_span *own; /* ascending, not adjacent */
    size_t n_own;
};

/* Compile text[len]. Errors: ST_INPUT (not UTF-8, a syntax error, a tag, filter or test
 * that does not exist; the message has the line), ST_UNSUPPORTED (include, extends,
 * import, block), ST_NO_MEMORY (system memory). */
enum status jinja_compile(struct jinja **j, const char *text, size_t len,
                          struct err *err);
void jinja_free(struct jinja *j);

/* Render with two objects of variables: own, whose strings are as trustworthy as the
 * template (NULL: none), and input. For a name in both, input counts. now: the time of
 * `strftime_now`, in local time. *out is malloc'ed: jinja_text_free(). Errors: ST_INPUT
 * (the template raised an exception, whose message is quoted; an operation that the
 * language forbids; a limit), ST_NO_MEMORY. Messages have the template's line. */
enum status jinja_render(const struct jinja *j, const json_t *own, const json_t *input,
                         time_t now, struct jinja_text *out, struct err *err);
void jinja_text_free(struct jinja_text *t);

#endif
