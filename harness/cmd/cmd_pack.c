/* SPDX-License-Identifier: MIT
 *
 * cmd_pack.c - `bench pack`: a model in the order in which the kernels read it
 */
#include "harness/cmd/cmd.h"

#include "engine/base/thread_pool.h"
#include "harness/base/interrupt.h"
#include "harness/model/filework.h"

static const struct opt_usage usage = {
    .synopsis = "pack MODEL -o FILE [--verify]\n"
                "       bench pack --verify FILE",
    .about =
        "Writes MODEL, a GGUF file, a Hugging Face folder, either with :QUANT, or "
        "SHAPE:QUANT, as a packed file: the same weights in the order in which the "
        "kernels read them, with a checksum for every tensor. It has the same size, "
        "and every command takes it as a model; loading it needs no packing, and it "
        "can be mapped or streamed as it is. Other programs refuse it. A version of "
        "bench whose kernels read another order refuses it, too: keep MODEL. FILE "
        "appears only when it is complete.\n\n--verify reads FILE and compares all "
        "checksums; it ends with 1 and the name of the tensor if one does not match.",
    .example =
        "bench pack model-q6_k.gguf -o model-q6_k.packed.gguf\n"
        "bench pack models/phi-3-mini:Q4_K_M -o phi-3-mini.packed.gguf --verify\n"
        "bench pack --verify phi-3-mini.packed.gguf",
};

int cmd_pack(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct packing_job job = {.n_threads = 0};
    struct opt_args args;
    const struct opt opts[] = {
        OPT_STR('o', "output", &job.out, "FILE", "the file to write"),
        OPT_FLAG(0, "verify", &job.verify, "read the file and compare all checksums"),
        OPT_INT('t', "threads", &job.n_threads, "N",
                "threads (default: what `bench topo` recommends)", 1, THREAD_POOL_MAX),
        OPT_STR(0, "cache-dir", &job.cache_dir, "DIR",
                "where synthetic models are kept"),
        OPT_END,
    };

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n != 1)
        err_set(&err, ST_USAGE,
                "name one model, as in: bench pack model.gguf -o model.packed.gguf");
    else if (!job.out && !job.verify)
        err_set(&err, ST_USAGE,
                "pack needs -o FILE, the file to write, or --verify, to check one");
    if (err.code)
        return cmd_end(&err);
    job.model = args.v[0];
    interrupt_catch();
    packing_run(&job, &err);
    return cmd_end(&err);
}
