/* SPDX-License-Identifier: MIT
 *
 * cmd_generate.c - `bench generate`: text from a prompt
 */
#include "harness/cmd/cmd.h"

#include <limits.h>

#include "harness/base/interrupt.h"
#include "harness/measure/session/generate.h"
#include "harness/measure/session/textmodel.h"

static const struct opt_usage usage = {
    .synopsis = "generate -m MODEL [--quant QUANT] [-p PROMPT] [-n N] [--temp T] "
                "[--seed S] [-t N]",
    .about = "Continues the prompt (without one: begins a text) and prints each token "
             "to standard output, until N tokens are generated or the model ends its "
             "text. The prompt is not repeated; speed is printed to standard error.",
    .example =
        "bench generate -m model.gguf -p \"Once upon a time\" -n 64\n"
        "bench generate -m model.gguf -p \"Dear\" --temp 0.8 --min-p 0.05 --seed 7",
    .no_arguments = "the prompt follows -p",
};

int cmd_generate(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct generate_settings s = {
        .sampling = SAMPLING_DEFAULT, .prompt = "", .n_max = 128};
    struct opt_args args;
    const struct opt opts[] = {
        SESSION_OPT_MODEL(s.session),
        OPT_STR('p', "prompt", &s.prompt, "TEXT", "text to continue (default: none)"),
        OPT_INT('n', "tokens", &s.n_max, "N",
                "maximum tokens to generate (default: 128)", 1, INT_MAX),
        SAMPLING_OPTS(s.sampling, "temperature (default: 0, greedy)"),
        OPT_FLAG(0, "special", &s.special, "recognise control tokens in the prompt"),
        SESSION_OPT_SPECULATE(
            s.session,
            "speculative decoding: lookup, mtp (the model's own layer that predicts "
            "further tokens), or off (default)"),
        OPT_STR(0, "draft", &s.draft, "MODEL",
                "speculative decoding with this draft model"),
        TEXTMODEL_OPTS(s.session),
        OPT_INT(0, "ctx", &s.session.n_ctx, "N",
                "positions of the context (default: as needed)", 1, INT_MAX),
        OPT_END,
    };

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (!s.session.model)
        err_set(&err, ST_USAGE, "name the model: -m FILE");
    interrupt_catch();
    if (!err.code && session_take_draft(&s.session, s.draft, &err) == ST_OK)
        generate_run(&s, &err);
    return cmd_end(&err);
}
