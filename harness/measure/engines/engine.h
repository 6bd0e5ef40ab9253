/* SPDX-License-Identifier: MIT
 *
 * engine.h - another program that runs models, as a user names it
 *
 * NAME=COMMAND. A command with {model} in it is a template of any program; its figure,
 * in tokens per second, is what a regular expression or a path of members finds in its
 * output:
 *     mine=/opt/run -m {model} -t {threads} -d {ctx} -n {n} =~ speed: ([0-9.]+) tok/s
 *     mine=/opt/run --json {model} {threads} {n} => results.0.tok_per_s
 * A template with {port} in it is a server with OpenAI's interface, which is measured
 * over HTTP and has no figure; {window} is the context that it must hold:
 *     mine=/opt/serve {model} --port {port} --threads {threads} --context {window}
 * A command without {model} is llama-bench or llama-server, of llama.cpp or of
 * ik_llama.cpp, with more options if needed; its --help shows which one it is:
 *     llama.cpp=/opt/llama.cpp/build/bin/llama-bench
 *     ik=/opt/ik_llama.cpp/build/bin/llama-bench -rtr 1
 *     http=/opt/llama.cpp/build/bin/llama-server
 *
 * A command is divided at blanks; '..', ".." and \ keep them. No shell sees it, and
 * placeholders are filled in after it was divided, so that no name of a model adds a
 * word.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_ENGINE_H
#define SLM_HARNESS_MEASURE_ENGINES_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

#define ENGINE_MAX_TEXT  255
#define ENGINE_MAX_NAME  23
#define ENGINE_MAX_WORDS 40

enum engine_kind {
    ENGINE_LLAMA,        /* llama-bench or llama-server: not known before it is run */
    ENGINE_LLAMA_BENCH,  /* as its --help shows, */
    ENGINE_LLAMA_SERVER, /* as its --help shows */
    ENGINE_SERVER,       /* of any program */
    ENGINE_BY_REGEX,     /* of any program, each match being a figure */
    ENGINE_BY_JSON,      /* of any program, a number or a list of numbers */
};

struct engine {
    char name[ENGINE_MAX_NAME + 1]; /* letters, digits, . _ - */
    enum engine_kind kind;
    int n_words;
    size_t word_at[ENGINE_MAX_WORDS]; /* in words */
    char words[ENGINE_MAX_TEXT + 1];
    char figure[ENGINE_MAX_TEXT + 1]; /* the regular expression, or the path */
};

/* Whether it is measured over HTTP. */
static inline bool engine_is_server(const struct engine *e)
{
    return e->kind == ENGINE_LLAMA_SERVER || e->kind == ENGINE_SERVER;
}

/* Whether it is a template that prints its figure, which is of decoding alone. */
static inline bool engine_prints(const struct engine *e)
{
    return e->kind == ENGINE_BY_REGEX || e->kind == ENGINE_BY_JSON;
}

/* A word of its command; the first is the program. */
static inline const char *engine_word(const struct engine *e, int i)
{
    return e->words + e->word_at[i];
}

/* what names the option or key in messages. Errors: ST_USAGE (which part is wrong, and
 * how it is right). */
enum status engine_parse(struct engine *e, const char *text, const char *what,
                         struct err *err);

/* text with an absolute path where its program is a file that is named by a relative
 * one, so that it is the same from anywhere. Error: ST_USAGE (longer than
 * ENGINE_MAX_TEXT). */
enum status engine_absolute(const char *text, char *out, size_t cap, const char *what,
                            struct err *err);

/* The file of its program, found in $PATH where it has no '/'. Returns path. Error:
 * ST_INPUT (not found, or it cannot be run). */
enum status engine_find(const struct engine *e, char *path, size_t cap,
                        struct err *err);

#endif
