/* SPDX-License-Identifier: MIT
 *
 * cmd_choose.c - `bench choose`: from a model file to the setting to deploy
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/decide/choose/choose.h"

static const struct opt_usage usage = {
    .synopsis = "choose -m MODEL [--max-file SIZE] [-o DIR]",
    .about =
        "Searches, for each size, the types of all matrices that diverge least from "
        "the "
        "model: measures what each group of matrices costs alone, quantises mixes, and "
        "measures these next to the usual ones.",
    .example = "bench choose -m model-f16.gguf --max-file 4G",
    .no_arguments = "the model is given by -m",
};

static enum status run(const struct choose_settings *s, struct err *err)
{
    struct choose_result *r = calloc(1, sizeof *r);
    enum status st = r ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a choice");

    if (!st)
        st = choose_files(r, s, err);
    if (!st)
        choose_print_files(r);
    free(r);
    return st;
}

int cmd_choose(int argc, char **argv)
{
    char out[4096] = "";
    struct choose_settings s = {.n_sense_chunks = 8, .n_groups = 64, .n_mixes = 8};
    struct opt_args args;
    struct err err = ERR_INIT;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('m', "model", &s.model, "MODEL", "F32, F16, BF16 or Q8_0: a GGUF file or Hugging Face folder"),
        OPT_BYTES(0, "max-file", &s.max_file, "SIZE", "largest file (default: the model's own size)"),
        OPT_STR(0, "imatrix", &s.imatrix, "FILE", "importance matrix of `bench imatrix`"),
        OPT_STR(0, "text", &s.text, "FILE", "the text that divergence is measured with, UTF-8 (default: a piece of Shakespeare)"),
        OPT_INT(0, "ctx", &s.ctx, "N", "tokens of a chunk of it (default: 512, or the model's context)", 1, 1 << 20),
        OPT_INT(0, "chunks", &s.n_chunks, "N", "maximum number of chunks (default: all)", 1, 1 << 30),
        OPT_INT(0, "sense-chunks", &s.n_sense_chunks, "N", "chunks of the pass over the groups (default: 8)", 1, 1 << 30),
        OPT_STR(0, "types", &s.types, "LIST", "types to mix (default: q8_0 to q2_K)"),
        OPT_INT(0, "groups", &s.n_groups, "N", "maximum number of groups (default: 64)", 1, CHOOSE_MAX_GROUPS),
        OPT_INT(0, "mixes", &s.n_mixes, "N", "maximum number of mixes that are made (default: 8)", 1, CHOOSE_MAX_MIXES),
        SESSION_OPT(s.session, threads),
        OPT_STR('o', "output", &s.out, "DIR", "output directory (default: results/choose)"),
        OPT_END
    };
    /* clang-format on */

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    snprintf(out, sizeof out, "%.4000s/choose", dirs_results_root());
    s.out = s.out ? s.out : out;
    if (!s.model)
        err_set(&err, ST_USAGE, "name the model: -m FILE");
    if (!err.code) {
        interrupt_catch();
        run(&s, &err);
    }
    if (err.code == ST_INTERRUPTED)
        fprintf(stderr,
                "bench: finished steps are kept in %s; the same command continues\n",
                format_path(s.out).text);
    return cmd_end(&err);
}
