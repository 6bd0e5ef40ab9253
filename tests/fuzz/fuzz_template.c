/* SPDX-License-Identifier: MIT
 *
 * fuzz_template.c - chat templates: compiled and run on a conversation with tools
 */
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/jinja.h"
#include "tests/fuzz/support/oracle.h"

static json_t *conversation(void)
{
    static json_t *c;

    if (!c)
        c = json_loads(
            "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"},"
            " {\"role\": \"user\", \"content\": \" a<b \\u00e9\\n\"},"
            " {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\":"
            " [{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": 1.5}}}]},"
            " {\"role\": \"tool\", \"content\": \"3\"}],"
            " \"tools\": [{\"function\": {\"name\": \"f\", \"parameters\": {}}}],"
            " \"add_generation_prompt\": true, \"n\": -1, \"s\": \"ab\"}",
            0, NULL);
    return c;
}

static json_t *own(void)
{
    static json_t *o;

    if (!o)
        o = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");
    return o;
}

/* What a rendering says of itself holds: text of the template's own lies in the output,
 * in order. */
static void check(const struct jinja_text *t)
{
    size_t end = 0;

    for (size_t i = 0; i < t->n_own; i++) {
        if (t->own[i].begin >= t->own[i].end || t->own[i].end > t->len ||
            (i && t->own[i].begin <= end))
            abort();
        end = t->own[i].end;
    }
    if (t->text[t->len])
        abort();
}

static void read_template(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct jinja_text out;
    struct jinja *j = NULL;

    if (fuzz_accepted(jinja_compile(&j, (const char *)data, size, &err), &err)) {
        err_clear(&err);
        if (fuzz_accepted(jinja_render(j, own(), conversation(), 0, &out, &err),
                          &err)) {
            check(&out);
            jinja_text_free(&out);
        }
    }
    jinja_free(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* made once, outside what is counted */
    conversation();
    own();
    return fuzz_run(read_template, data, size, FUZZ_BOUND);
}
