/* SPDX-License-Identifier: MIT
 *
 * jinja_check.h - templates and the texts that they give
 */
#ifndef SLM_TESTS_ENGINE_JINJA_JINJA_CHECK_H
#define SLM_TESTS_ENGINE_JINJA_JINJA_CHECK_H

#include <jansson.h>
#include <string.h>

#include "engine/base/status.h"
#include "engine/jinja/jinja.h"
#include "tests/support/test.h"

/* Takes both objects. */
static inline enum status jinja_run(const char *template, json_t *own, json_t *input,
                                    struct jinja_text *out, struct err *err)
{
    struct jinja *j = NULL;
    enum status st = jinja_compile(&j, template, strlen(template), err);

    if (!st)
        st = jinja_render(j, own, input, 0, out, err);
    jinja_free(j);
    json_decref(own);
    json_decref(input);
    return st;
}

struct gives {
    const char *template, *text;
};

static inline void jinja_expect(enum status (*run)(const char *, struct jinja_text *,
                                                   struct err *),
                                const struct gives *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        struct jinja_text out;

        if (run(cases[i].template, &out, &err))
            fail_msg("%s: %s", cases[i].template, err.msg);
        if (strcmp(out.text, cases[i].text))
            fail_msg("%s: \"%s\", expected \"%s\"", cases[i].template, out.text,
                     cases[i].text);
        jinja_text_free(&out);
    }
}

#endif
