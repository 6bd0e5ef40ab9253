/* SPDX-License-Identifier: MIT
 *
 * engine_command.h - the words of a command that measures a point with another program
 *
 * llama-bench has no budget of time, only numbers of tokens and repetitions, so these
 * are chosen beforehand: by what the bandwidth ceiling lets a token take. Its programs
 * differ in options; its --help shows which one this is:
 *
 *     depth of the context   llama.cpp since 2025: -d; ik_llama.cpp: -gp DEPTH,N; older
 *                            ones have no such option
 *     keys and values        -ctk and -ctv; a quantised V needs -fa 1
 *
 * A depth is reached by prefill, by -gp before each repetition; for a server by the
 * prompt.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_ENGINE_COMMAND_H
#define SLM_HARNESS_MEASURE_ENGINES_ENGINE_COMMAND_H

#include "harness/measure/engines/engine.h"
#include "harness/measure/engines/engine_output.h"
#include "harness/rows/point/point.h"

/* How a program is given the depth of the context. */
enum engine_depth { ENGINE_DEPTH_NONE, ENGINE_DEPTH_D, ENGINE_DEPTH_GP };

/* From what llama-bench prints for --help; ST_INPUT: it is no llama-bench. */
enum status engine_read_help(enum engine_depth *depth, const struct engine *e,
                             const char *text, size_t len, struct err *err);

/* What a server is started with. */
struct engine_serving {
    int port;             /* of 127.0.0.1 */
    int n_window;         /* positions that its context must hold */
    bool flash_has_value; /* -fa of this llama-server is followed by a word */
    bool
        has_prompt_cache; /* it has --cache-ram: memory for prompts of other requests */
};

/* Whether that is what llama-server prints for --help, and then the last two. */
bool engine_read_server_help(struct engine_serving *s, const char *text, size_t len);

struct engine_effort {
    int n_tokens; /* per repetition: decoded, or of the prompt; for a server's decoding
                     1, as its samples are tokens */
    int n_reps;
};

/* As many tokens as the budget holds at the ceiling (tok/s, 0: not known; for a model
 * that pages, a few), and as p wants. */
struct engine_effort engine_effort(const struct engine *e, const struct point *p,
                                   enum engine_depth depth, double roof_tok_per_s,
                                   bool fits);

#define ENGINE_MAX_ARGS (ENGINE_MAX_WORDS + 32)

struct engine_command {
    char *argv[ENGINE_MAX_ARGS + 1]; /* into text, ends with NULL */
    char text[8192];
    struct engine_requested requested;
};

/* Fill *c, to measure p with the model at path. Errors: ST_INPUT (the program cannot
 * measure such a point, or cannot be given such a path). */
enum status engine_make_command(struct engine_command *c, const struct engine *e,
                                const struct point *p, enum engine_depth depth,
                                const struct engine_effort *effort, struct err *err);

/* The command of a server; otherwise as above. */
enum status engine_make_server(struct engine_command *c, const struct engine *e,
                               const struct point *p,
                               const struct engine_effort *effort,
                               const struct engine_serving *serving, struct err *err);

#endif
