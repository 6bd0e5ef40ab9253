/* SPDX-License-Identifier: MIT
 *
 * cmd_quantize.c - `bench quantize`: a model file in another quantisation
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>

#include "engine/base/thread_pool.h"
#include "harness/base/interrupt.h"
#include "harness/model/filework.h"

static const struct opt_usage usage = {
    .synopsis = "quantize IN OUT TYPE [--imatrix FILE] [--tensor-type PATTERN=TYPE]... "
                "| quantize IN TYPE --dry-run",
    .about =
        "Writes the model IN, a GGUF file or a Hugging Face folder, as OUT in another "
        "quantisation; F16 and BF16 convert a folder. TYPE is a mix as in published "
        "files (Q4_K_M, IQ4_XS, Q8_0, ...): most matrices in one format, the most "
        "sensitive ones in a finer one. Norms stay F32; rows that are no multiple of a "
        "format's block take the nearest format that fits. An importance matrix (from "
        "`bench imatrix`) weights errors by the size of the inputs, which formats of "
        "three bits and fewer need. OUT appears only when it is complete.",
    .example = "bench quantize model-f16.gguf model-q4.gguf Q4_K_M\n"
               "bench imatrix -m model-f16.gguf --text some.txt -o im.gguf\n"
               "bench quantize model-f16.gguf model-iq2.gguf IQ2_XS --imatrix im.gguf",
};

static enum status take_arguments(struct quantize_job *job, const struct opt_args *args,
                                  struct err *err)
{
    if (args->n != 3 && !(job->dry_run && args->n == 2))
        return err_set(
            err, ST_USAGE,
            "quantize needs a model, a file to write and a TYPE, %d argument%s given: "
            "bench quantize model-f16.gguf out.gguf Q4_K_M",
            args->n, args->n == 1 ? " was" : "s were");
    job->in = args->v[0];
    job->out = args->n == 3 ? args->v[1] : NULL;
    job->type = args->v[args->n - 1];
    return ST_OK;
}

int cmd_quantize(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct quantize_job job = {.n_threads = 0};
    struct str_list rules = {0};
    struct opt_args args;
    const struct opt opts[] = {
        OPT_STR(0, "imatrix", &job.imatrix, "FILE",
                "importance matrix: GGUF, or the older .dat"),
        OPT_STRS(
            0, "tensor-type", &rules, "PATTERN=TYPE",
            "format of matrices whose names contain or match PATTERN (ffn_down=q6_K, "
            "'blk.[0-3].*=q8_0'); may be repeated, the first match wins"),
        OPT_FLAG(0, "keep-output", &job.keep_output,
                 "do not quantise the output matrix"),
        OPT_FLAG(0, "pure", &job.pure,
                 "every matrix in the format TYPE (also q4_K, iq2_s)"),
        OPT_FLAG(0, "dry-run", &job.dry_run,
                 "print the format of each tensor, write nothing"),
        OPT_FLAG(0, "rmse", &job.rmse, "measure the error of every format"),
        OPT_INT('t', "threads", &job.n_threads, "N",
                "threads (default: what `bench topo` recommends)", 1, THREAD_POOL_MAX),
        OPT_END,
    };

    if (opt_parse(&args, argc, argv, opts, &usage, &err) == ST_OK && !args.help &&
        take_arguments(&job, &args, &err) == ST_OK) {
        job.rules = rules.v;
        job.n_rules = rules.n;
        interrupt_catch();
        quantize_run(&job, &err);
    }
    free(rules.v);
    return cmd_end(&err);
}
