/* SPDX-License-Identifier: MIT
 *
 * render_template.c - prompts by chat templates, for ci/real
 *
 *     render_template JOBS.json
 *
 * JOBS.json is a list of {"template": text, "input": variables}; a list of prompts is
 * printed, null where a template fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/jinja.h"

static json_t *render(const json_t *job)
{
    const char *text = json_string_value(json_object_get(job, "template"));
    struct err err = ERR_INIT;
    struct jinja *j = NULL;
    struct jinja_text out;
    json_t *prompt = NULL;

    if (text && !jinja_compile(&j, text, strlen(text), &err) &&
        !jinja_render(j, NULL, json_object_get(job, "input"), time(NULL), &out, &err)) {
        prompt = json_stringn(out.text, out.len);
        jinja_text_free(&out);
    }
    if (!prompt)
        fprintf(stderr, "render_template: %s\n", err.msg);
    jinja_free(j);
    return prompt ? prompt : json_null();
}

int main(int argc, char **argv)
{
    json_t *jobs = argc > 1 ? json_load_file(argv[1], 0, NULL) : NULL, *job;
    json_t *prompts = json_array();
    size_t i;

    if (!jobs || !prompts)
        return 2;
    json_array_foreach(jobs, i, job) json_array_append_new(prompts, render(job));
    json_dumpf(prompts, stdout, 0);
    json_decref(prompts);
    json_decref(jobs);
    return 0;
}
