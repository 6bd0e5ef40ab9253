/* SPDX-License-Identifier: MIT
 *
 * cmd_choose.c - `bench choose`: from a model file to the setting to deploy
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/apart.h"
#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/parse.h"
#include "harness/decide/choose/choose.h"
#include "harness/decide/choose/tasks.h"
#include "harness/judge/recommend/deploy.h"
#include "harness/machine/fence/fence.h"
#include "harness/rows/settings/setting.h"

#define DEFAULT_CTX    2048
#define DEFAULT_PROMPT 512

static const struct opt_usage usage = {
    .synopsis =
        "choose -m MODEL [--mem 6G] [--min-tps X] [--max-ttft S@TOKENS] [-o DIR]",
    .about =
        "Searches the types of a model's matrices that change its predictions least "
        "within a size, writes files of several sizes and measures their divergence "
        "next to the usual mixes, then sweeps their speed and decides which one to "
        "deploy. A command that was stopped continues when it is given again. Exit "
        "code 1: nothing reaches the limits.",
    .example =
        "bench choose -m model-f16.gguf --mem 6G --min-tps 8 --max-ttft 3s@1000\n"
        "bench choose -m model-f16.gguf --max-file 4G --files-only",
    .no_arguments = "the model is given by -m",
};

struct request {
    struct choose_settings files;
    struct choose_wish wish;
    const char *ttft;
    bool files_only;
};

/* "3s@1000": seconds, and tokens of the prompt. */
static enum status take_ttft(struct choose_wish *w, const char *text, struct err *err)
{
    const int len = (int)strcspn(text, "@");
    char seconds[40];
    long long n = w->n_prompt;
    enum status st = ST_OK;

    snprintf(seconds, sizeof seconds, "%.*s", len < 39 ? len : 39, text);
    if (text[len])
        st = parse_count(text + len + 1, "--max-ttft", "tokens", 1, 1 << 24, &n, err);
    if (!st)
        st = parse_duration(seconds, "--max-ttft", 1e-6, 86400, &w->max_ttft_s, err);
    w->n_prompt = (int)n;
    return st;
}

/* Before anything is measured. */
static enum status check_tasks(const char *path, struct err *err)
{
    struct tasks tasks;
    const enum status st = tasks_read(&tasks, path, err);

    tasks_free(&tasks);
    return st;
}

static enum status take_wishes(struct request *q, struct err *err)
{
    struct choose_wish *w = &q->wish;
    enum status st = ST_OK;

    if (!q->files.model)
        st = err_set(err, ST_USAGE, "name the model: -m FILE");
    if (!st && q->files.imatrix && q->files.calibration)
        st = err_set(err, ST_USAGE, "--imatrix and --calibration exclude each other");
    if (!st && q->ttft)
        st = take_ttft(w, q->ttft, err);
    if (!st && w->mem)
        st = setting_parse(SETTING_mem, w->mem, "--mem", &w->mem_limit,
                           sizeof w->mem_limit, err);
    if (!st && q->files.tasks)
        st = check_tasks(q->files.tasks, err);
    return st;
}

static enum status make_files(void *result, const void *arg, struct err *err)
{
    return choose_files(result, arg, err);
}

static enum status speed(const struct request *q, const struct choose_result *r,
                         struct err *err)
{
    char dir[4096];
    enum status st = choose_sweep(dir, sizeof dir, r, &q->wish, q->files.out, err);

    if (!st)
        choose_print_files(r);
    return st ? st : choose_decide(r, dir, &q->files, &q->wish, err);
}

static enum status run(struct request *q, struct err *err)
{
    struct choose_result *r = calloc(1, sizeof *r);
    struct topology *topo = NULL;
    enum status st = r ? topology_open(&topo, "", err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a choice");

    if (!st && !q->files_only) {
        const int n = q->files.session.setup.n_threads;

        q->wish.n_threads = n ? n : topo->threads_default;
        st = choose_room(&q->files.room, &q->files.others, &q->wish, q->files.model,
                         topo, err);
    }
    fence_note_missing(); /* once, for all processes that are made here */
    if (!st)
        st = apart_run(make_files, r, sizeof *r, &q->files, err);
    if (!st && q->files_only)
        choose_print_files(r);
    else if (!st)
        st = speed(q, r, err);
    free(topo);
    free(r);
    return st;
}

int cmd_choose(int argc, char **argv)
{
    char out[4096] = "";
    struct request q = {.files = {.n_sense_chunks = 8, .n_groups = 64, .n_mixes = 8},
                        .wish = {.ctx = DEFAULT_CTX,
                                 .n_prompt = DEFAULT_PROMPT,
                                 .argc = argc,
                                 .argv = argv}};
    struct choose_settings *s = &q.files;
    struct opt_args args;
    struct err err = ERR_INIT;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('m', "model", &s->model, "MODEL", "F32, F16, BF16 or Q8_0: a GGUF file or Hugging Face folder"),
        OPT_STR(0, "mem", &q.wish.mem, "LIMIT", "memory limit, as 6G, or container (default: what there is)"),
        OPT_DOUBLE(0, "min-tps", &q.wish.min_tps, "X", "minimum tokens per second", 0, 1e9),
        OPT_STR(0, "max-ttft", &q.ttft, "S@N", "maximum time to the first token of a prompt of N tokens, as 3s@1000"),
        OPT_INT(0, "ctx", &q.wish.ctx, "N", "context depth that is served (default: 2048)", 0, SETTING_MAX(ctx)),
        OPT_STR(0, "tasks", &s->tasks, "FILE", "questions with accepted answers, one JSON object a line"),
        OPT_DOUBLE(0, "price", &q.wish.price, "X", "price of this machine an hour", 0, 1e9),
        OPT_CHOICE(0, "for", &q.wish.target, "TARGET", "deploy with slmbench (default), llama.cpp, ollama, docker or k8s", &choices_deploy),
        OPT_FLAG(0, "files-only", &q.files_only, "write and measure the files, measure no speed"),
        OPT_BYTES(0, "max-file", &s->max_file, "SIZE", "largest file (default: what memory holds)"),
        OPT_STR(0, "imatrix", &s->imatrix, "FILE", "importance matrix of `bench imatrix`"),
        OPT_STR(0, "calibration", &s->calibration, "FILE", "a text to make one of"),
        OPT_STR(0, "text", &s->text, "FILE", "text for the divergence, UTF-8 (default: a piece of Shakespeare)"),
        OPT_INT(0, "chunk-tokens", &s->ctx, "N", "tokens of a chunk of it (default: 512, or the model's context)", 1, 1 << 20),
        OPT_INT(0, "chunks", &s->n_chunks, "N", "maximum number of chunks (default: all)", 1, 1 << 30),
        OPT_INT(0, "sense-chunks", &s->n_sense_chunks, "N", "chunks of the pass over the groups (default: 8)", 1, 1 << 30),
        OPT_STR(0, "types", &s->types, "LIST", "types to mix (default: q8_0 to q2_K)"),
        OPT_INT(0, "groups", &s->n_groups, "N", "maximum number of groups (default: 64)", 1, CHOOSE_MAX_GROUPS),
        OPT_INT(0, "mixes", &s->n_mixes, "N", "maximum number of files (default: 8)", 1, CHOOSE_MAX_MIXES),
        OPT_STR(0, "budget", &q.wish.budget, "S", "measure each launch for at most S seconds"),
        OPT_STR(0, "launches", &q.wish.launches, "N", "launches of each point (default: 3)"),
        OPT_FLAG(0, "no-probe", &q.wish.no_probe, "skip the bandwidth, cache and SMT probes"),
        SESSION_OPT(s->session, threads),
        OPT_STR('o', "output", &s->out, "DIR", "output directory (default: results/choose)"),
        OPT_END
    };
    /* clang-format on */

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    snprintf(out, sizeof out, "%.4000s/choose", dirs_results_root());
    s->out = s->out ? s->out : out;
    if (take_wishes(&q, &err) == ST_OK) {
        interrupt_catch();
        run(&q, &err);
    }
    if (err.code == ST_INTERRUPTED)
        fprintf(stderr,
                "bench: finished steps are kept in %s; the same command continues\n",
                format_path(s->out).text);
    return cmd_end(&err);
}
