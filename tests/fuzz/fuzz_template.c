/* SPDX-License-Identifier: MIT
 *
 * fuzz_template.c - chat templates: compiled and run twice on a conversation with tools
 */
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/jinja.h"
#include "tests/fuzz/support/mutate.h"
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

/* Rendered once more, it is the same. */
static void render_again(const struct jinja *j, const struct jinja_text *first)
{
    struct err err = ERR_INIT;
    struct jinja_text again;

    if (!fuzz_accepted(jinja_render(j, own(), conversation(), 0, &again, &err), &err) ||
        again.len != first->len || again.n_own != first->n_own ||
        memcmp(again.text, first->text, first->len) != 0)
        fuzz_fail("a second rendering is another");
    jinja_text_free(&again);
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
            render_again(j, &out);
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

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    /* clang-format off */
    static const char *const words[] = {
        "{%- for x in messages %}", "{% endfor %}", "{% if ", "{% elif ", "{% else %}",
        "{% endif %}", "{% set x = ", "{% set x %}", "{% endset %}", "{% set ns.x = ",
        "namespace(x=1)", "{% macro f(x, y=1) %}", "{% endmacro %}",
        "{% call(x) f(1) %}", "{% endcall %}", "caller(1)", "{% filter upper %}",
        "{% endfilter %}", "{% with x = 1 %}", "{% endwith %}", "{% break %}",
        "{% continue %}", "{% raw %}", "{% endraw %}", "{% generation %}",
        "{% endgeneration %}", "{#", "#}", "{{", "}}", "{%-", "-%}", "{%+",
        " recursive", "loop(x)", "loop.index", "loop.cycle(1, 2)", "loop.changed(x)",
        "loop.nextitem", "range(9)", "range(1, 99999999)", "dict(x=1)", "joiner(', ')",
        "cycler(1, 2)", "raise_exception('x')", "strftime_now('%Y')", " if x else ",
        "[::-1]", "[-1]", "['role']", ".content", ".items()", ".get('x')", ".keys()",
        ".split('a')", ".strip()", ".replace('a', 'bb')", ".startswith('a')",
        ".format(x, y=1)", ".join(messages)", ".rsplit(None, 1)", ".splitlines()",
        ".partition('a')", ".zfill(99)", ".center(99)", ".title()", ".find('')",
        " and ", " or ", "not ", " in ", " is ", "is not defined", "is string",
        "is mapping", "is sameas none", "is divisibleby 0", "is test", " ~ ", " // ",
        " % ", "** ", " * ", " - ", " == ", "|length", "|tojson(indent=2)",
        "|map(attribute='role')", "|map('upper')", "|selectattr('role', 'eq', 'user')",
        "|reject('odd')", "|groupby('role')", "|dictsort", "|sort(attribute='role')",
        "|unique", "|batch(2, 0)", "|slice(3)", "|join(x)", "|sum", "|min", "|first",
        "|last", "|reverse", "|list", "|items", "|int(0, 16)", "|float",
        "|round(2, 'ceil')", "|indent(4, true)", "|truncate(5)", "|format(1, 2)",
        "|urlencode", "|escape", "|attr('x')", "|from_json", "|default('x', true)",
        "|wordcount", "|replace('', 'x')", "messages", "tools", "s", "n", "'x'",
        "(1, 2)", "{'a': 1}", "9223372036854775807", "1e308", "\"", NULL
    };
    /* clang-format on */

    return mutate_text(data, size, max_size, seed, words);
}
