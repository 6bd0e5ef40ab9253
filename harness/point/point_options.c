/* SPDX-License-Identifier: MIT
 *
 * point_options.c - the options of `bench decode`
 */
#include "harness/point/point_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/options.h"
#include "harness/base/parse.h"
#include "harness/settings/setting.h"
#include "kernels/isa.h"

static const struct opt_usage usage = {
    .synopsis =
        "decode -m FILE|FOLDER|SHAPE:QUANT [-t N] [--ctx D] [-n N] [--mem LIMIT]",
    .about =
        "Measures one point in a fresh child process: how many tokens per second this\n"
        "model decodes (or prefills) with these settings, and how close that is to "
        "the\n"
        "memory bandwidth probed in the same run. Prints the columns of a sweep's "
        "row,\n"
        "which `bench fields` explains. SHAPE:QUANT is a synthetic model, made on "
        "first\n"
        "use in the cache directory. FILE:QUANT and FOLDER:QUANT quantise a GGUF file "
        "or "
        "a\n"
        "Hugging Face folder of F32, F16 or BF16 weights while it is loaded.\n"
        "\n"
        "--speculate decodes a text with guesses (looked up in what the text said "
        "before)\n"
        "and without, in turns of some 16 tokens, and tells how many guesses were "
        "right\n"
        "and what that gains: columns spec_*. The answer is the one given in the text, "
        "as\n"
        "if the model had said it, so that acceptance is that of this text; all passes "
        "are\n"
        "real. A file without the line <answer> lets the model answer by itself.\n"
        "\n"
        "Exit code: 0 for a measured row, 1 where there is none (status no_fit, oom "
        "or\n"
        "error; the row is printed all the same), 2 for wrong input, 3 where the "
        "machine\n"
        "or its permissions do not allow it.",
    .example = "bench decode -m yi-1.5-9b:Q4_K_M -t 2 --ctx 1024 --mem 6G\n"
               "bench decode -m model.gguf --prefill 128 --json\n"
               "bench decode -m yi-1.5-9b:Q4_K_M --speculate copy --budget 60",
};

struct raw {
    const char *kv_type, *model, *quant, *placement, *cpus, *weights, *cache_dir,
        *tuned, *speculate;
    bool in_memory;
    int n_threads, n_threads_prefill, n_prompt, n_batch;
    uint64_t mem_limit;
};

/* A prefill point measures prefill, with its threads and no others; a decode point
 * does not tell equal counts apart. */
static void simplify_threads(struct point *p)
{
    if (p->kind == POINT_PREFILL && p->n_threads_prefill)
        p->n_threads = p->n_threads_prefill;
    if (p->n_threads_prefill == p->n_threads)
        p->n_threads_prefill = 0;
}

/* What options say stays as they say it, whatever a profile has chosen. */
static void ask(struct point *p, const struct raw *raw)
{
    if (raw->n_threads || raw->cpus)
        p->asked |= POINT_ASKED_THREADS;
    if (raw->n_threads_prefill || raw->cpus)
        p->asked |= POINT_ASKED_THREADS_PREFILL;
    if (raw->placement || raw->cpus)
        p->asked |= POINT_ASKED_PLACEMENT;
    if (raw->n_batch)
        p->asked |= POINT_ASKED_BATCH;
}

static enum status apply(struct point *p, const struct raw *raw,
                         const struct topology *topo, struct err *err)
{
    enum status status;

    if (!raw->model)
        return err_set(err, ST_USAGE,
                       "which model? -m FILE.gguf or -m SHAPE:QUANT, as in "
                       "`bench decode -m tinyllama-1.1b:Q4_K_M`");
    if (raw->weights && raw->in_memory)
        return err_set(err, ST_USAGE,
                       "--weights and --in-memory, its other name for memory, exclude "
                       "each other");
    if (raw->cpus && raw->placement)
        return err_set(err, ST_USAGE, "--cpus and --placement exclude each other");
    if (raw->tuned && (!*raw->tuned || strlen(raw->tuned) >= sizeof p->tuned))
        return err_set(err, ST_USAGE, "--tuned: a name of 1 to %zu characters, or auto",
                       sizeof p->tuned - 1);
    if (raw->tuned)
        snprintf(p->tuned, sizeof p->tuned, "%s",
                 strcmp(raw->tuned, "none") ? raw->tuned : "");
    if (raw->speculate && raw->n_prompt)
        return err_set(err, ST_USAGE,
                       "--speculate and --prefill exclude each other: one point is one "
                       "measurement");
    p->kind = raw->n_prompt    ? POINT_PREFILL
              : raw->speculate ? POINT_SPECULATE
                               : POINT_DECODE;
    if (raw->speculate && point_set_text(p, raw->speculate, err))
        return ST_USAGE;
    p->n_prompt = raw->n_prompt;
    p->mem_limit = raw->mem_limit;
    p->n_threads = raw->n_threads ? raw->n_threads : topo->threads_default;
    p->n_threads_prefill = raw->n_threads_prefill;
    if (raw->n_batch)
        p->n_batch = raw->n_batch;
    ask(p, raw);
    p->isa_disabled = isa_detected() & ~isa_usable();
    status = modelref_parse(&p->model, raw->model, raw->cache_dir, err);
    if (status == ST_OK)
        status = modelref_set_quant(&p->model, raw->quant, err);
    if (status == ST_OK && raw->placement)
        status = placement_parse(raw->placement, &p->placement, err);
    if (status == ST_OK && raw->cpus) {
        p->explicit_cpus = true;
        p->n_threads = raw->n_threads;
        status = placement_parse_cpus(raw->cpus, topo, &p->n_threads,
                                      raw->n_threads_prefill, p->cpus, err);
    }
    simplify_threads(p);
    if (status == ST_OK && raw->kv_type)
        status = kv_type_parse(raw->kv_type, "--kv-type", &p->kv_type, err);
    if (status == ST_OK && raw->weights)
        status = residency_parse(raw->weights, "--weights", &p->residency, err);
    if (status == ST_OK && raw->in_memory)
        p->residency = WEIGHTS_MEMORY;
    if (status == ST_OK && p->residency == WEIGHTS_MEMORY && !p->model.synthetic)
        status = err_set(err, ST_USAGE,
                         "--weights memory makes a synthetic model, but %s is a file; "
                         "name SHAPE:QUANT instead, or say --weights packed",
                         raw->model);
    return status;
}

enum status point_options_parse(struct point_options *o, int argc, char **argv,
                                const struct topology *topo, struct err *err)
{
    struct raw raw = {.mem_limit = 0};
    struct point *p = &o->point;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('m', "model", &raw.model, "MODEL", "GGUF file, Hugging Face folder, or SHAPE:QUANT"),
        OPT_STR(0, "quant", &raw.quant, "QUANT", "quantise an F32, F16 or BF16 model to this while loading it (as MODEL:QUANT does)"),
        OPT_INT('t', "threads", &raw.n_threads, "N", "threads (default: what `bench topo` recommends)", SETTING_MIN(threads), SETTING_MAX(threads)),
        OPT_INT(0, "threads-prefill", &raw.n_threads_prefill, "N", "threads of prefill passes, where another number is wanted; both counts use the first of the same CPUs", SETTING_MIN(threads_prefill), SETTING_MAX(threads_prefill)),
        OPT_STR(0, "placement", &raw.placement, "P", "spread (default), compact, smt or none"),
        OPT_STR(0, "cpus", &raw.cpus, "LIST", "pin the threads to these CPUs, one each, in this order"),
        OPT_INT(0, "ctx", &p->ctx, "D", "context depth: tokens already in the KV cache (default 0; with --speculate: the prompt's)", SETTING_MIN(ctx), SETTING_MAX(ctx)),
        OPT_FLAG(0, "ctx-prefill", &p->ctx_prefill, "reach the depth by real prefill, not by synthetic values"),
        OPT_INT(0, "prefill", &raw.n_prompt, "N", "measure prefill of N tokens instead of decode", SETTING_MIN(prefill), SETTING_MAX(prefill)),
        OPT_STR(0, "speculate", &raw.speculate, "TEXT", "measure speculative decoding against plain decoding on a text: copy, free, or a file of a prompt, a line <answer> and the answer"),
        OPT_INT(0, "batch", &raw.n_batch, "N", "most tokens in one pass of prefill (default 512)", SETTING_MIN(batch), SETTING_MAX(batch)),
        OPT_INT('n', "tokens", &p->n_tokens, "N", "most samples: tokens, passes of prefill, or runs over the text (default 64)", SETTING_MIN(tokens), SETTING_MAX(tokens)),
        OPT_BYTES(0, "mem", &raw.mem_limit, "LIMIT", "memory limit of the process, as 6G (default: none)"),
        OPT_STR(0, "kv-type", &raw.kv_type, "TYPE", "what the KV cache holds: f16 (default), q8_0 or q4_0"),
        OPT_STR(0, "weights", &raw.weights, "W", "auto: packed where it fits, else mmap (default); packed: rows interleaved, in 2 MiB pages; mmap: the file as it is; memory: synthetic, packed, no file"),
        OPT_FLAG(0, "in-memory", &raw.in_memory, "the same as --weights memory"),
        OPT_DOUBLE(0, "budget", &p->budget_s, "S", "measure for at most S seconds (default 10)", setting_row(SETTING_budget)->min, setting_row(SETTING_budget)->max),
        OPT_U64(0, "seed", &p->seed, "N", "of the tokens and the synthetic context (default 1)"),
        OPT_STR(0, "cache-dir", &raw.cache_dir, "DIR", "where synthetic models are kept"),
        OPT_STR(0, "tuned", &raw.tuned, "auto|FILE", "run it with a profile of `bench tune`, where it still fits: auto looks in the cache directory; other options win over it"),
        OPT_FLAG(0, "force", &p->force, "try it although the plan says it cannot fit"),
        OPT_FLAG(0, "profile", &p->profile, "account for the time: a table of operations that adds up to the token"),
        OPT_STR('o', "output", &o->chart_dir, "DIR", "draw the profile there: profile.csv, .svg and .png"),
        OPT_FLAG(0, "json", &o->json, "print JSON"),
        OPT_END
    };
    /* clang-format on */
    struct opt_args args;
    enum status status;

    memset(o, 0, sizeof *o);
    point_init(p);
    status = opt_parse(&args, argc, argv, opts, &usage, err);
    o->help = status == ST_OK && args.help;
    if (status || o->help)
        return status;
    if (args.n)
        return err_set(err, ST_USAGE, "what is '%s'? Models are given by -m",
                       args.v[0]);
    if (o->chart_dir && !p->profile)
        return err_set(err, ST_USAGE,
                       "-o %s: there is a chart to draw only with --profile",
                       o->chart_dir);
    return apply(p, &raw, topo, err);
}
