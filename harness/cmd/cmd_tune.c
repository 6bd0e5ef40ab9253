/* SPDX-License-Identifier: MIT
 *
 * cmd_tune.c - `bench tune`: the fastest settings of a model on this machine
 *
 * Under a memory limit, a child inside the limit tunes, prints and writes the profile;
 * the parent waits, and reports if the child was killed.
 */
#include "harness/base/format.h"
#include "harness/cmd/cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/base/parse.h"
#include "harness/machine/cache.h"
#include "harness/machine/fence.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/measuring.h"
#include "harness/rows/settings/setting.h"
#include "harness/measure/tune/tune_model.h"
#include "harness/measure/tune/prefetch.h"
#include "harness/measure/tune/tuned.h"
#include "harness/measure/tune/tuned_kernels.h"

static const struct opt_usage usage = {
    .synopsis =
        "tune -m FILE|SHAPE:QUANT [--mem LIMIT] [--budget S] [-o FILE] [--explain]\n"
        "       bench tune --kernels [--formats LIST] [--budget S] [-o FILE]",
    .about =
        "Finds the fastest settings of this model on this machine within --budget "
        "seconds: packed or mapped weights, page size, threads and placement of decode "
        "and of prefill, kernel level and prefetch distance of each weight format, "
        "parts per thread, tokens per prefill pass. Runs of a candidate and of the "
        "default are interleaved; the candidate must be clearly faster, and again when "
        "all settings are confirmed. "
        "At the end all choices together must beat the default; choices are "
        "taken back one by one until they do (up to a quarter more than the budget). "
        "No choice changes the model's output. Ctrl-C ends it without a "
        "profile.\n\nThe result is a profile, a readable "
        "YAML file in the cache directory (or -o FILE), for --tuned auto of decode, "
        "generate and sweep.\n\n--kernels finds, without a model, how this CPU "
        "reads each weight format fastest; `bench tune` of any model starts from it."
        "\n\nExit code: 0, also where the default is best; 1 if "
        "--exhaustive finds something clearly more than 2 % faster; 2 for wrong input; "
        "3 where the machine does not allow it.",
    .example = "bench tune -m yi-1.5-9b:Q4_K_M --mem 6G --explain\n"
               "bench tune --kernels\n"
               "bench generate -m model.gguf --tuned auto -p \"Once\"",
    .no_arguments = "name the model with -m",
};

struct settings {
    struct tune_model_params model;
    double budget_s;
    const char *model_text, *cache_dir, *output, *formats;
    bool explain, exhaustive, json, kernels;
};

/* ---- tuning, in this process ----------------------------------------------------- */

/* Path of the profile; its errors are reported before the measurements. */
static enum status choose_place(const struct settings *s, const struct tuned_key *key,
                                char *path, size_t cap, struct err *err)
{
    enum status st = ST_OK;

    if (s->output)
        snprintf(path, cap, "%s", s->output);
    else
        st = tuned_path(path, cap, key, err);
    return st ? st : tuned_make_place(path, err);
}

static enum status save(const struct tuned_key *key, const struct tune_result *r,
                        const char *path, struct err *err)
{
    struct tuned t = {.key = *key, .setup = r->chosen};
    const time_t now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(t.made, sizeof t.made, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return tuned_save(path, &t, r, err);
}

/* The command line that runs the model with the profile. */
static void use_text(const struct settings *s, char *buf, size_t cap)
{
    char limit[32];

    snprintf(buf, cap, "bench decode -m");
    shell_word_append(buf, cap, s->model_text);
    if (s->cache_dir) {
        shell_word_append(buf, cap, "--cache-dir");
        shell_word_append(buf, cap, s->cache_dir);
    }
    if (s->model.setup.residency == WEIGHTS_MEMORY) {
        shell_word_append(buf, cap, "--weights");
        shell_word_append(buf, cap, "memory");
    }
    if (s->model.setup.mem_limit) {
        shell_word_append(buf, cap, "--mem");
        format_size(limit, sizeof limit, s->model.setup.mem_limit);
        shell_word_append(buf, cap, limit);
    }
    shell_word_append(buf, cap, "--tuned");
    shell_word_append(buf, cap, s->output ? s->output : "auto");
}

static enum status print(const struct settings *s, const struct tune_result *r,
                         const char *path, struct err *err)
{
    char use[8192];

    use_text(s, use, sizeof use);
    if (s->json) {
        json_t *object = tune_json(r);

        json_object_set_new(object, "profile", json_string(format_path(path).text));
        json_object_set_new(object, "use", json_string(use));
        return cmd_print_json(object, 9, err);
    }
    tune_print(stdout, r, s->explain);
    printf("profile: %s\nuse it: %s\n", format_path(path).text, use);
    return ST_OK;
}

static enum status tune(const struct settings *s, const struct topology *topo,
                        struct tune_result *r, struct err *err)
{
    struct tune_params p = {.budget_s = s->budget_s,
                            .seed = s->model.setup.seed,
                            .exhaustive = s->exhaustive};
    struct tune_model *model = NULL;
    struct tuned_key key;
    char path[4096] = "";
    enum status st;

    tuned_key_machine(&key, topo, s->model.setup.mem_limit);
    st = fence_enter_calls(err);
    if (st == ST_OK)
        st = tuned_key_model(&key, &s->model.setup.model,
                             s->model.setup.residency == WEIGHTS_MEMORY, err);
    if (st == ST_OK)
        st = choose_place(s, &key, path, sizeof path, err);
    if (st == ST_OK)
        st = tune_model_open(&model, &s->model, topo, &p.space, &p.base, err);
    if (st == ST_OK) {
        const struct tune_machine m = tune_model_machine(model);

        st = tune_run(r, &p, &m, err);
    }
    tune_model_close(model);
    if (st == ST_OK)
        st = save(&key, r, path, err);
    return st ? st : print(s, r, path, err);
}

static int tune_here(const struct settings *s, const struct topology *topo)
{
    struct tune_result *r = calloc(1, sizeof *r);
    struct err err = ERR_INIT;
    enum status st =
        r ? tune(s, topo, r, &err) : err_set(&err, ST_NO_MEMORY, "no memory to tune");
    int code = st ? cmd_end(&err) : 0;

    if (st == ST_INTERRUPTED)
        fprintf(stderr, "bench: no profile was written\n");
    if (st == ST_OK && r->exhaustive.n_combinations && r->exhaustive.ratio.lo > 1.02)
        code = status_exit_code(ST_CHECK);
    free(r);
    return code;
}

/* ---- tuning, inside a memory limit ----------------------------------------------- */

static _Noreturn void run_child(const struct settings *s, const struct topology *topo,
                                int go, pid_t parent)
{
    char byte;
    int code = 2;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && read(go, &byte, 1) == 1)
        code = tune_here(s, topo);
    fflush(stdout);
    _exit(code);
}

/* Ctrl-C reaches the child too; a signal to us alone is passed on. */
static int wait_for(pid_t pid)
{
    bool signalled = false;
    int wstatus = 0;

    for (;;) {
        const pid_t got = waitpid(pid, &wstatus, WNOHANG);

        if (got == pid || (got < 0 && errno != EINTR))
            return wstatus;
        if (interrupted() && !signalled) {
            kill(pid, SIGTERM);
            signalled = true;
        }
        usleep(20000);
    }
}

static enum status tune_inside(const struct settings *s, const struct topology *topo,
                               int *code, struct err *err)
{
    struct sandbox *box = NULL;
    struct sandbox_usage used = {0};
    const pid_t parent = getpid();
    int go[2] = {-1, -1}, wstatus = 0;
    enum status st = ST_OK;
    uint64_t stayed;
    pid_t pid = -1;

    if (s->model.setup.residency != WEIGHTS_MEMORY)
        modelref_evict(&s->model.setup.model, &stayed, NULL);
    st = sandbox_create(&box, "", s->model.setup.mem_limit, err);
    if (st)
        return st;
    fflush(stdout);
    if (pipe(go) || (pid = fork()) < 0)
        st = err_set_errno(err, ST_IO, "cannot start the tuning process");
    else if (!pid) {
        close(go[1]);
        run_child(s, topo, go[0], parent);
    }
    if (st == ST_OK)
        st = sandbox_add(box, pid, err);
    if (st == ST_OK && write(go[1], "g", 1) != 1)
        st = err_set_errno(err, ST_IO, "cannot start the tuning process");
    for (int i = 0; i < 2; i++)
        if (go[i] >= 0)
            close(go[i]);
    if (pid > 0)
        wstatus = wait_for(pid);
    sandbox_read(box, &used, NULL);
    sandbox_destroy(box);
    if (st)
        return st;
    if (WIFSIGNALED(wstatus))
        return used.n_oom_kills
                   ? err_set(err, ST_NO_MEMORY,
                             "the tuning process was killed for memory, at the limit "
                             "of --mem; give it more")
                   : err_set(err, ST_IO, "the tuning process died of signal %d",
                             WTERMSIG(wstatus));
    *code = WEXITSTATUS(wstatus);
    return ST_OK;
}

/* ---- kernels, without a model ---------------------------------------------------- */

static json_t *choices_json(const struct kernel_choices *c, const char *path)
{
    json_t *list = json_array(), *object = json_object();
    char text[32];

    for (int i = 0; i < c->n; i++) {
        const struct kernel_choice *v = &c->v[i];

        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:i, s:f, s:f}", "format",
                            kern_format_info(v->fmt)->name, "level", isa_name(v->isa),
                            "prefetch", prefetch_text(v->prefetch, text, sizeof text),
                            "panels", (int)kern_panels_interleaved(v->prefetch), "gbps",
                            v->gbps, "default_gbps", v->default_gbps));
    }
    json_object_set_new(object, "n_threads", json_integer(c->n_threads));
    json_object_set_new(object, "roof_gbps", json_real(c->read_gbps));
    json_object_set_new(object, "formats", list);
    json_object_set_new(object, "profile", json_string(format_path(path).text));
    return object;
}

static void print_choices(const struct kernel_choices *c, const char *path)
{
    char text[32];

    printf("%d thread%s, weights from memory; roof %.1f GB/s\n\n", c->n_threads,
           c->n_threads == 1 ? "" : "s", c->read_gbps);
    printf("  format   level       prefetch  panels   GB/s  of roof  default  gain\n");
    for (int i = 0; i < c->n; i++) {
        const struct kernel_choice *v = &c->v[i];

        printf("  %-8s %-11s %-9s %6u  %5.1f  %5.0f %%  %7.1f",
               kern_format_info(v->fmt)->name, isa_name(v->isa),
               prefetch_text(v->prefetch, text, sizeof text),
               (unsigned)kern_panels_interleaved(v->prefetch), v->gbps,
               100 * v->gbps / c->read_gbps, v->default_gbps);
        if (v->is_default)
            printf("     -\n");
        else
            printf("  %.2f\n", v->gbps / v->default_gbps);
    }
    printf("\nprofile: %s\n`bench tune -m MODEL` starts from it.\n",
           format_path(path).text);
}

static enum status tune_kernels(const struct settings *s, const struct topology *topo,
                                struct err *err)
{
    const char *names[KERN_N_FMT];
    static struct kernel_choices choices;
    char path[4096] = "";
    uint64_t formats;
    enum status st;

    for (int i = 0; i < KERN_N_FMT; i++)
        names[i] = kern_format_info((enum kern_format)i)->name;
    st = parse_words(s->formats, "--formats", names, KERN_N_FMT, &formats, err);
    if (st == ST_OK && s->output)
        snprintf(path, sizeof path, "%s", s->output);
    else if (st == ST_OK)
        st = tuned_kernels_path(path, sizeof path, topo, err);
    if (st == ST_OK)
        st = tuned_make_place(path, err);
    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK)
        st = kernel_tune(&choices, topo, formats, topo->threads_default, s->budget_s,
                         err);
    if (st == ST_OK)
        st = tuned_kernels_save(path, topo, &choices, err);
    if (st)
        return st;
    if (s->json)
        return cmd_print_json(choices_json(&choices, path), 9, err);
    print_choices(&choices, path);
    return ST_OK;
}

/* What belongs to the other way of calling. */
static enum status check_kernels(const struct settings *s, struct err *err)
{
    if (!s->kernels)
        return s->formats ? err_set(err, ST_USAGE, "--formats requires --kernels")
                          : ST_OK;
    if (s->model_text)
        return err_set(err, ST_USAGE,
                       "--kernels tunes without a model: leave out -m, or --kernels");
    if (s->explain || s->exhaustive || s->model.setup.mem_limit)
        return err_set(err, ST_USAGE,
                       "--kernels takes none of --explain, --exhaustive and --mem, "
                       "which are for a model");
    return ST_OK;
}

/* ---- the command ----------------------------------------------------------------- */

static enum status prepare(struct settings *s, struct err *err)
{
    enum status st;
    bool made;

    if (!s->model_text)
        return err_set(err, ST_USAGE,
                       "name the model: -m FILE.gguf or -m SHAPE:QUANT, as in `bench "
                       "tune -m tinyllama-1.1b:Q4_K_M`");
    st = modelref_parse(&s->model.setup.model, s->model_text, s->cache_dir, err);
    if (st == ST_OK && s->output)
        st = tuned_make_place(s->output, err);
    if (st == ST_OK)
        st = modelref_check_output(&s->model.setup.model, s->output, err);
    if (st == ST_OK && s->model.setup.residency == WEIGHTS_MEMORY &&
        !s->model.setup.model.synthetic)
        return err_set(err, ST_USAGE,
                       "--weights memory makes a synthetic model, but %s is a file; "
                       "name SHAPE:QUANT instead",
                       s->model_text);
    if (st == ST_OK && s->model.setup.residency == WEIGHTS_STREAM)
        return err_set(err, ST_USAGE,
                       "--weights stream: a model that is streamed runs at the disk's "
                       "speed, however it is tuned; tune it where it fits (a profile "
                       "for packed weights holds for streamed ones, too)");
    if (st == ST_OK && s->model.setup.mem_limit)
        st = sandbox_check("", s->model.setup.mem_limit, err);
    if (st == ST_OK && s->model.setup.model.synthetic &&
        s->model.setup.residency != WEIGHTS_MEMORY)
        st = modelref_make_file(&s->model.setup.model, &made, err);
    return st ? st : measuring_begin(err);
}

/* Whether the cache holds the model decides how it is read without a profile. */
static enum status find_cache(const struct settings *s, struct topology *topo,
                              struct err *err)
{
    uint64_t bytes;

    return modelref_bytes(&s->model.setup.model, &bytes, err)
               ? err->code
               : cache_find_for(topo, bytes, err);
}

static enum status take_depth(void *dst, int id, const char *text, const char *what,
                              struct err *err)
{
    return setting_parse((enum setting_id)id, text, what, dst, sizeof(int), err);
}

/* An option of bench decode, with what it means here as its help. */
static struct opt as_here(struct opt o, const char *help)
{
    o.help = help;
    return o;
}

int cmd_tune(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct settings s = {.budget_s = 0};
    struct topology *topo = calloc(1, sizeof *topo);
    struct opt_args args;
    int code = 0;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('m', "model", &s.model_text, "MODEL", "GGUF file, Hugging Face folder, or SHAPE:QUANT"),
        as_here(model_setup_option(SETTING_mem, &s.model.setup), "memory limit, as 6G (default: none)"),
        OPT_FLAG(0, "kernels", &s.kernels, "tune reading of each weight format, without a model"),
        OPT_STR(0, "formats", &s.formats, "LIST", "with --kernels: formats, as q4_K,q8_0 (default: all)"),
        OPT_DOUBLE(0, "budget", &s.budget_s, "S", "seconds, loading included (default 180; --kernels 30)", 1, 86400),
        as_here(model_setup_option(SETTING_weights, &s.model.setup), "auto: packed or mmap, tuned (default); packed; mmap; memory: synthetic, no file"),
        as_here(setting_option(SETTING_ctx, take_depth, &s.model.depth), "context depth of decoding (default 0)"),
        OPT_STR('o', "output", &s.output, "FILE", "the profile (default: in the cache directory)"),
        OPT_FLAG(0, "explain", &s.explain, "print a table of the gain of every candidate"),
        OPT_FLAG(0, "exhaustive", &s.exhaustive, "then try all combinations, without a time limit"),
        as_here(model_setup_option(SETTING_seed, &s.model.setup), "seed for tokens and the order of runs (default 1)"),
        OPT_STR(0, "cache-dir", &s.cache_dir, "DIR", "directory of synthetic models"),
        OPT_FLAG(0, "json", &s.json, "print JSON"),
        OPT_END
    };
    /* clang-format on */
    model_setup_init(&s.model.setup);
    enum status st = topo ? opt_parse(&args, argc, argv, opts, &usage, &err)
                          : err_set(&err, ST_NO_MEMORY, "no memory");

    if (st || args.help) {
        free(topo);
        return st ? cmd_end(&err) : 0;
    }
    interrupt_catch();
    if (s.budget_s == 0)
        s.budget_s = s.kernels ? 30 : 180;
    st = check_kernels(&s, &err);
    if (st == ST_OK)
        st = topology_read(topo, "", &err);
    if (st == ST_OK && s.kernels) {
        st = tune_kernels(&s, topo, &err);
        free(topo);
        return st ? cmd_end(&err) : 0;
    }
    if (st == ST_OK)
        st = prepare(&s, &err);
    if (st == ST_OK)
        st = find_cache(&s, topo, &err);
    if (st == ST_OK && s.model.setup.mem_limit)
        st = tune_inside(&s, topo, &code, &err);
    else if (st == ST_OK)
        code = tune_here(&s, topo);
    free(topo);
    return st ? cmd_end(&err) : code;
}
