/* SPDX-License-Identifier: MIT
 *
 * cmd_quality.c - `bench quality`: quality loss of quantisations
 */
#include "harness/cmd/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/model/modelref.h"
#include "harness/measure/quality/quality.h"
#include "harness/rows/quality_rows.h"
#include "harness/rows/settings/setting.h"

static const struct opt_usage usage = {
    .synopsis =
        "quality -m MODEL... [--reference MODEL] [--text FILE] [--ctx N] [-o DIR]",
    .about =
        "Measures how well each model predicts a text: perplexity with its standard "
        "error. If there are several models, KV cache types, windows or sums, one is "
        "the reference: --reference, else the F32, F16 or BF16 model, else the "
        "largest, with F16 keys and values of all positions and exact sums. Against "
        "it, at every position: Kullback-Leibler divergence (mean, median, 99th "
        "percentile) and how often both rank the same token first. The text is cut "
        "into chunks of --ctx tokens; the second half of each is scored. Chunks longer "
        "than the context that a model was made for need a --kv-window, and have no "
        "reference.\n\nResults go to DIR/quality.csv. In the directory of a sweep, "
        "`bench plot DIR` draws speed against divergence from them, and `bench "
        "recommend DIR` uses them. The same command continues a stopped run. The "
        "reference's predictions, 2 bytes per token of the vocabulary and position, "
        "stay in the cache directory.",
    .no_arguments = "name each model with -m",
    .example =
        "bench quality -m model-f16.gguf -m model-q4_k_m.gguf -m model-q2_k.gguf\n"
        "bench quality -m model-f16.gguf:Q4_K_M,Q8_0 --reference model-f16.gguf\n"
        "bench quality -m model.gguf --kv-type f16,bf16,q8_0,q4_0\n"
        "bench quality -m model.gguf --ctx 4096 --kv-window 512,1024,2048\n"
        "bench quality -m model.gguf --prefill-sums exact,int8\n"
        "bench quality -m q4.gguf --reference f16.gguf --text book.txt --chunks 50",
};

struct request {
    struct quality_settings settings;
    struct str_list models;
    bool json;
};

/* What to do with the results: in the directory of a sweep they go into its charts;
 * elsewhere a sweep reads them with --quality. */
static void print_next(const struct request *q)
{
    char next[16384] = "bench plot", sweep[4200];

    snprintf(sweep, sizeof sweep, "%.4096s/sweep.csv", q->settings.out);
    if (access(sweep, F_OK)) {
        snprintf(next, sizeof next, "bench sweep");
        for (size_t i = 0; i < q->models.n; i++) {
            shell_word_append(next, sizeof next, "-m");
            shell_word_append(next, sizeof next, q->models.v[i]);
        }
        shell_word_append(next, sizeof next, "--quality");
    }
    shell_word_append(next, sizeof next, q->settings.out);
    printf("speed against quality: %s\n", next);
}

static void print_text(const struct request *q, const struct quality_report *r)
{
    printf("%s: %zu chunk%s of %d tokens, %zu positions scored%s%s\n\n",
           format_path(r->text).text, r->n_chunks, r->n_chunks == 1 ? "" : "s", r->ctx,
           r->n_scored, *r->rows[0].reference ? "; reference " : "",
           r->rows[0].reference);
    quality_rows_print(stdout, r->rows, r->n);
    printf("\nresults: %s/" QUALITY_CSV "\n", format_path(q->settings.out).text);
    if (*r->reference_path)
        printf("predictions of the reference: %s, kept in %s\n",
               bytes_text(r->reference_bytes).text,
               format_path(r->reference_path).text);
    print_next(q);
}

static enum status print_json(const struct quality_report *r, struct err *err)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(rows, row_json(&r->rows[i]));
    return cmd_print_json(rows, 9, err);
}

static int run(struct request *q)
{
    struct quality_report report;
    struct err err = ERR_INIT;
    enum status st = modelref_expand_list(&q->models, &err);

    q->settings.models = q->models.v;
    q->settings.n_models = q->models.n;
    if (st == ST_OK) {
        interrupt_catch();
        st = quality_run(&report, &q->settings, &err);
    }
    if (st) {
        const int code = cmd_end(&err);

        if (st == ST_INTERRUPTED)
            fprintf(
                stderr,
                "bench: finished chunks are kept in %s; the same command continues\n",
                q->settings.out);
        return code;
    }
    if (q->json)
        st = print_json(&report, &err);
    else
        print_text(q, &report);
    quality_report_free(&report);
    return st ? cmd_end(&err) : 0;
}

int cmd_quality(int argc, char **argv)
{
    char out[4096];
    struct request q = {.settings = {.out = out}};
    struct session_params *session = &q.settings.session;
    struct int_list *values = q.settings.values;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STRS('m', "model", &q.models, "MODEL", "GGUF file or Hugging Face folder, with :QUANT,... quantised while loading; may be repeated"),
        OPT_STR(0, "reference", &q.settings.reference, "MODEL", "the model to compare the others with"),
        OPT_STR(0, "text", &q.settings.text, "FILE", "the text, UTF-8 (default: a piece of Shakespeare)"),
        OPT_INT(0, "ctx", &q.settings.ctx, "N", "tokens of a chunk (default: 512, or the models' smallest context)", 1, INT_MAX),
        OPT_INT(0, "chunks", &q.settings.n_chunks, "N", "maximum number of chunks (default: all)", 1, INT_MAX),
        OPT_TAKE(0, "kv-type", &values[QUALITY_KV_TYPE], "LIST", "KV cache types: f16 (default), bf16, q8_0, q4_0", setting_take_list, SETTING_kv_type),
        OPT_TAKE(0, "kv-window", &values[QUALITY_KV_WINDOW], "LIST", "KV cache of the first 4 and last N positions; 0: all (default)", setting_take_list, SETTING_kv_window),
        OPT_TAKE(0, "prefill-sums", &values[QUALITY_PREFILL_SUMS], "LIST", "sums in prefill: exact (default), int8", setting_take_list, SETTING_prefill_sums),
        SESSION_OPT(*session, threads),
        SESSION_OPT_PLACE(*session),
        SESSION_OPT(*session, batch),
        SESSION_OPT(*session, weights),
        OPT_STR(0, "cache-dir", &q.settings.cache_dir, "DIR", "directory of the reference's predictions"),
        OPT_STR('o', "output", &q.settings.out, "DIR", "output directory (default: results/quality)"),
        OPT_FLAG(0, "json", &q.json, "print the rows as JSON"),
        OPT_END
    };
    /* clang-format on */
    struct opt_args args;
    struct err err = ERR_INIT;
    int code = 0;

    snprintf(out, sizeof out, "%.4000s/quality", dirs_results_root());
    if (opt_parse(&args, argc, argv, opts, &usage, &err) == ST_OK && !args.help) {
        if (q.models.n)
            code = run(&q);
        else
            err_set(&err, ST_USAGE, "name the models: -m MODEL, once for each");
    }
    for (int i = 0; i < QUALITY_N_SETTINGS; i++)
        free(values[i].v);
    free(q.models.v);
    return err.code ? cmd_end(&err) : code;
}
