/* SPDX-License-Identifier: MIT
 *
 * cmd_predict.c - `bench predict`: what models do on a machine before they run there
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/choice.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/parse.h"
#include "harness/base/program.h"
#include "harness/machine/measuring.h"
#include "harness/rows/result_set.h"
#include "harness/decide/predict/claim.h"
#include "harness/decide/predict/predict_check.h"

static const struct opt_usage usage = {
    .synopsis =
        "predict -m MODEL... [--machine FILE | --cpu NAME --mem LIMIT | --gbps X --mem "
        "LIMIT]",
    .about = "Predicts for each quantisation, KV cache and context depth whether a "
             "model fits, its largest context, and decode and prefill speed with the "
             "range of nine of ten launches. The machine is given by its read "
             "bandwidth, its machine.json or its data sheet (configs/cpus.yaml); "
             "without these, this machine is measured in seconds. Speeds are a "
             "machine's limits (roofs) times the share of them that launches reached "
             "on measured machines (configs/shares.yaml). --claim judges a published "
             "speed; --check DIR... checks predictions against the sweeps in DIR...\n"
             "\n"
             "Exit code 1: an impossible or implausible claim, or a check that fails.",
    .example = "bench predict -m qwen3-4b --gbps 38 --gops 700 --mem 8G\n"
               "bench predict --claim \"36.7 tok/s, llama-2-7b, 4.1 GB, ryzen 5900x\"",
};

struct settings {
    struct candidate_params machine;
    struct predict_params what;
    struct str_list models;
    const char *quants, *kv, *claim, *shares;
    struct int_list ctx;
    bool check, json, csv;
};

/* ---- options --------------------------------------------------------------------- */

#define MAX_QUANTS QUANTMIX_N

/* "Q4_0,Q8_0" into quants[MAX_QUANTS]. */
static enum status parse_quants(struct settings *s, const char **quants,
                                struct err *err)
{
    struct parse_list parts = {.what = "--quant", .text = s->quants};
    enum status st = ST_OK;

    while (parse_item(&parts, &st, err)) {
        enum quantmix mix;

        if (mix_parse(&mix, parts.item, err))
            return err->code;
        if (s->what.n_quants == MAX_QUANTS)
            return err_set(err, ST_USAGE, "--quant takes at most %d quantisations",
                           MAX_QUANTS);
        quants[s->what.n_quants++] = quantmix_name(mix);
    }
    s->what.quants = quants;
    return st;
}

static enum status parse_kv(struct predict_params *p, const char *text, struct err *err)
{
    const char *names[KERN_N_KV];
    uint64_t bits;

    for (int i = 0; i < KERN_N_KV; i++)
        names[i] = choices_kv.name(i);
    if (parse_words(text, "--kv-type", names, KERN_N_KV, &bits, err))
        return err->code;
    for (int i = 0; i < KERN_N_KV; i++)
        if (bits >> i & 1)
            p->kv[p->n_kv++] = (enum kern_kv)i;
    return ST_OK;
}

static enum status parse_ctx(struct predict_params *p, const struct int_list *list,
                             struct err *err)
{
    static const int usual[] = {0, 4096};
    const size_t n = list->n ? list->n : sizeof usual / sizeof usual[0];

    if (n > PREDICT_MAX_CTX)
        return err_set(err, ST_USAGE, "--ctx takes at most %d depths", PREDICT_MAX_CTX);
    for (size_t i = 0; i < n; i++)
        p->ctx[p->n_ctx++] = list->n ? list->v[i] : usual[i];
    return ST_OK;
}

static enum status parse(struct settings *s, int argc, char **argv,
                         struct opt_args *args, struct err *err)
{
    struct candidate_params *m = &s->machine;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STRS('m', "model", &s->models, "MODEL", "shape, SHAPE:QUANT, GGUF file or folder; may be repeated"),
        OPT_STR(0, "quant", &s->quants, "LIST", "quantisations (default: six usual ones, or the file's)"),
        OPT_FLAG(0, "all", &s->what.all, "all quantisations"),
        OPT_INTS(0, "ctx", &s->ctx, "LIST", "context depths (default 0,4096)", 0, SETTING_MAX(ctx)),
        OPT_STR(0, "kv-type", &s->kv, "LIST", "KV cache (default f16; with --all f16,q8_0)"),
        OPT_INT(0, "prompt", &s->what.n_prompt, "N", "length of the prompt (default 512)", 1, 1 << 24),
        OPT_BYTES(0, "mem", &m->mem_bytes, "LIMIT", "memory for everything, as 8G; --gbps and --cpu need it"),
        OPT_INT('t', "threads", &m->n_threads, "N", "threads (default: one per core)", 1, TOPO_MAX_CPUS),
        OPT_DOUBLE(0, "gbps", &m->gbps, "X", "read bandwidth, GB/s", 1e-3, 1e6),
        OPT_DOUBLE(0, "gops", &m->gops, "X", "int8 peak of all threads, GOPS", 1e-3, 1e9),
        OPT_DOUBLE(0, "disk-gbps", &m->disk_gbps, "X", "disk bandwidth for streamed weights, GB/s", 1e-3, 1e6),
        OPT_STR(0, "machine", &m->machine, "FILE", "machine.json of a sweep, or a probe's JSON"),
        OPT_STR(0, "cpu", &m->cpu, "NAME", "CPU in configs/cpus.yaml, as \"ryzen 5900x\""),
        OPT_STR(0, "claim", &s->claim, "TEXT", "speed, model, size and CPU, separated by commas"),
        OPT_FLAG(0, "check", &s->check, "check predictions against the sweeps in DIR..."),
        OPT_STR(0, "shares", &s->shares, "FILE", "shares of other sweeps (docs/deciding.md)"),
        OPT_STR(0, "cache-dir", &s->what.cache_dir, "DIR", "where synthetic models are kept"),
        OPT_FLAG(0, "csv", &s->csv, "print CSV"),
        OPT_FLAG(0, "json", &s->json, "print JSON"),
        OPT_END,
    };
    /* clang-format on */

    return opt_parse(args, argc, argv, opts, &usage, err);
}

static enum status check_usage(const struct settings *s, const struct opt_args *args,
                               struct err *err)
{
    const int n_machines =
        (s->machine.gbps > 0) + (s->machine.machine != NULL) + (s->machine.cpu != NULL);
    const int n_wanted = s->check + (s->claim != NULL) + (s->models.n > 0);

    if (n_wanted > 1)
        return err_set(err, ST_USAGE, "give one of --model, --claim and --check");
    if (!n_wanted)
        return err_set(err, ST_USAGE,
                       "name a model, as in `bench predict -m qwen3-4b --mem 8G`, or "
                       "see `bench predict --help`");
    if (n_machines > 1)
        return err_set(err, ST_USAGE,
                       "--gbps, --machine and --cpu each name a machine; give one");
    if (s->check && !args->n)
        return err_set(err, ST_USAGE, "name directories with a sweep.csv");
    if (!s->check && args->n)
        return err_set(err, ST_USAGE,
                       "unexpected argument '%.60s'; models are given by -m",
                       args->v[0]);
    return ST_OK;
}

/* ---- the request ----------------------------------------------------------------- */

static enum status load_shares(struct shares *shares, const char *path, struct err *err)
{
    char buf[4096];

    data_file_find(buf, sizeof buf, "machines", "shares.yaml");
    return shares_load(shares, path ? path : buf, err);
}

/* p[n], of one machine. */
static enum status print_all(const struct settings *s, const struct predictions *p,
                             const struct candidate *c, struct err *err)
{
    json_t *list = s->json ? json_array() : NULL;

    if (s->csv)
        predict_print_csv_header(stdout);
    for (size_t i = 0; i < s->models.n; i++)
        if (s->json) {
            json_array_append_new(list, predict_json(&p[i], c));
        } else if (s->csv) {
            predict_print_csv(stdout, &p[i]);
        } else {
            if (i)
                putchar('\n');
            predict_print(stdout, &p[i], c);
        }
    if (!s->json)
        return ST_OK;
    if (s->models.n > 1)
        return cmd_print_json(json_pack("{s:o}", "models", list), 6, err);
    json_t *only = json_incref(json_array_get(list, 0));
    json_decref(list);
    return cmd_print_json(only, 6, err);
}

/* What all of them need of this machine is measured once. */
static enum status measure_here(struct candidate *c, const struct predictions *p,
                                size_t n, struct err *err)
{
    bool wanted[KERN_N_FMT] = {false}, streams = false;
    const enum status st = measuring_begin(err);

    for (size_t i = 0; i < n; i++) {
        predict_formats(wanted, &p[i]);
        streams |= predict_streams(&p[i]);
    }
    return st ? st : candidate_measure(c, streams, wanted, err);
}

static enum status run_grid(struct settings *s, const struct shares *shares,
                            struct err *err)
{
    const size_t n = s->models.n;
    struct candidate *c = calloc(1, sizeof *c);
    struct predictions *p = calloc(n, sizeof *p);
    enum status st = c && p ? candidate_open(c, &s->machine, err)
                            : err_set(err, ST_NO_MEMORY, "no memory for a machine");

    for (size_t i = 0; i < n && st == ST_OK; i++) {
        s->what.model = s->models.v[i];
        st = predict_plan(&p[i], &s->what, c, err);
    }
    if (st == ST_OK && c->is_here)
        st = measure_here(c, p, n, err);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        predict_speeds(&p[i], c, shares);
    if (st == ST_OK)
        st = print_all(s, p, c, err);
    for (size_t i = 0; p && i < n; i++)
        predictions_free(&p[i]);
    free(p);
    if (c)
        candidate_free(c);
    free(c);
    return st;
}

/* The machine that the claim names, or else the options. */
static enum status find_machine(struct candidate *c, const struct settings *s,
                                const struct claim *claim, struct err *err)
{
    struct candidate_params m = s->machine;
    enum status st = ST_OK;

    if (claim->gbps > 0)
        m.gbps = claim->gbps;
    if (claim->cpu[0] && (m.gbps > 0 || m.machine)) { /* which only has to be one */
        const struct candidate_params named = {.cpu = claim->cpu,
                                               .mem_bytes = UINT64_C(1) << 50};

        st = candidate_open(c, &named, err);
        candidate_free(c);
        if (st)
            return st;
    }
    if (claim->cpu[0] && !(m.gbps > 0) && !m.machine)
        m.cpu = claim->cpu;
    if (!m.mem_bytes)
        m.mem_bytes = UINT64_C(1) << 50; /* a claim implies that it fits */
    if (m.cpu)
        m.n_threads = 0; /* the memory's limit is that of the whole CPU */
    else if (claim->n_threads)
        m.n_threads = claim->n_threads;
    st = candidate_open(c, &m, err);
    if (st == ST_OK && c->is_here) {
        st = measuring_begin(err);
        if (st == ST_OK)
            st = candidate_measure(c, false, NULL, err);
    }
    return st;
}

static enum status judge_claim(struct claim *claim, const struct candidate *c,
                               const struct shares *shares, bool json, int *code,
                               struct err *err)
{
    const struct share_want want = {.kind = SHARE_DECODE,
                                    .format = quantmix_base_named(claim->quant),
                                    .n_threads = c->n_threads,
                                    .machine = c->machine};
    struct share_band band;
    struct claim_answer answer;
    double min_share;

    if (claim_size(claim, &min_share, err))
        return err->code;
    if (!shares_expect(shares, &want, &band))
        return err_set(err, ST_INPUT, "there are no shares of decode rows");
    claim_judge(&answer, claim, min_share, c, &band);
    *code = answer.verdict <= CLAIM_IMPLAUSIBLE;
    if (json)
        return cmd_print_json(claim_json(claim, &answer, c), 6, err);
    text_wrap(stdout, answer.sentence, 0, 0, 79, false);
    return ST_OK;
}

static enum status run_claim(const struct settings *s, const struct shares *shares,
                             int *code, struct err *err)
{
    struct candidate *c = calloc(1, sizeof *c);
    struct claim claim;
    enum status st = ST_OK;

    if (!c)
        return err_set(err, ST_NO_MEMORY, "no memory for a machine");
    if (claim_parse(&claim, s->claim, err) || find_machine(c, s, &claim, err) ||
        judge_claim(&claim, c, shares, s->json, code, err))
        st = err->code;
    candidate_free(c);
    free(c);
    return st;
}

static enum status run_check(const struct settings *s, const struct shares *shares,
                             const struct opt_args *args, int *code, struct err *err)
{
    const char *const *dirs = (const char *const *)args->v;
    const size_t n = result_paths_keep(args->v, (size_t)args->n);
    struct check check;
    enum status st = check_rows(&check, dirs, n, shares, err);

    if (st == ST_OK) {
        *code = !check_holds(&check);
        if (s->json)
            st = cmd_print_json(check_json(&check, dirs, n), 6, err);
        else if (s->csv)
            check_print_csv(stdout, &check);
        else
            check_print(stdout, &check, dirs, n);
    }
    check_free(&check);
    return st;
}

static enum status run(struct settings *s, const struct opt_args *args, int *code,
                       struct err *err)
{
    const char *quants[MAX_QUANTS];
    struct shares shares = {NULL, 0};
    enum status st = check_usage(s, args, err);

    s->what.mem_limit = s->machine.mem_bytes;
    if (st == ST_OK)
        st = parse_quants(s, quants, err);
    if (st == ST_OK)
        st = parse_kv(&s->what, s->kv ? s->kv : s->what.all ? "f16,q8_0" : "f16", err);
    if (st == ST_OK)
        st = parse_ctx(&s->what, &s->ctx, err);
    if (st == ST_OK)
        st = load_shares(&shares, s->shares, err);
    if (st == ST_OK)
        st = s->check   ? run_check(s, &shares, args, code, err)
             : s->claim ? run_claim(s, &shares, code, err)
                        : run_grid(s, &shares, err);
    shares_free(&shares);
    return st;
}

int cmd_predict(int argc, char **argv)
{
    struct settings s = {.what = {.n_prompt = 512}};
    struct err err = ERR_INIT;
    struct opt_args args = {.help = false};
    int code = 0;

    interrupt_catch();
    if (parse(&s, argc, argv, &args, &err) == ST_OK && !args.help)
        run(&s, &args, &code, &err);
    free(s.models.v);
    free(s.ctx.v);
    return err.code ? cmd_end(&err) : code;
}
