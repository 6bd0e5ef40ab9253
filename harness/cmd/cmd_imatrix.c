/* SPDX-License-Identifier: MIT
 *
 * cmd_imatrix.c - `bench imatrix`: importance matrices
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/base/textfile.h"
#include "harness/model/importance.h"
#include "harness/measure/session/session.h"

#define DEFAULT_CTX 512

struct job {
    struct session_params session;
    const char *text, *out;
    struct str_list in;
    int from_chunk, n_chunks; /* n_chunks 0: all */
};

static const struct opt_usage usage = {
    .synopsis = "imatrix -m MODEL --text FILE -o OUT.gguf [--ctx N] [--chunks N]",
    .about = "Evaluates the text with the model and writes the mean squares of the "
             "inputs of every matrix by column: an importance matrix, by which `bench "
             "quantize` weights errors. Use the F16 or Q8_0 model and a text of the "
             "intended kind; 100 chunks suffice. Ctrl-C writes what has been collected "
             "and prints how to continue.",
    .example = "bench imatrix -m model-f16.gguf --text some.txt -o im.gguf\n"
               "bench quantize model-f16.gguf model-iq2.gguf IQ2_XS --imatrix im.gguf",
    .no_arguments = "name the text with --text",
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* ---- input ----------------------------------------------------------------------- */

static enum status read_tokens(const struct job *job, struct slm *m, int32_t **ids,
                               size_t *n, struct err *err)
{
    struct tokenizer *t = NULL;
    char *text = NULL;
    size_t len = 0;
    enum status st = textfile_read(job->text, TEXTFILE_MAX_BYTES, &text, &len, err);

    if (!st)
        st = tokenizer_open(&t, slm_gguf(m), err);
    if (!st)
        st = tokenizer_encode(t, text, len, tokenizer_adds_bos(t), false, ids, n, err);
    tokenizer_close(t);
    free(text);
    return st;
}

/* Add one imatrix to another. */
static enum status merge(struct imatrix *to, const struct imatrix *from,
                         struct err *err)
{
    for (size_t i = 0; i < imatrix_n_entries(from); i++) {
        const struct imatrix_entry *f = imatrix_entry_at(from, i);
        struct imatrix_entry *t;

        if (imatrix_entry(to, &t, f->name, f->n_cols, f->n_slices, err))
            return err->code;
        for (uint64_t j = 0; j < f->n_cols * f->n_slices; j++)
            t->sum2[j] += f->sum2[j];
        for (uint64_t s = 0; s < f->n_slices; s++)
            t->counts[s] += f->counts[s];
    }
    for (size_t i = 0; i < imatrix_n_datasets(from); i++)
        if (imatrix_add_dataset(to, imatrix_dataset(from, i), err))
            return err->code;
    imatrix_add_chunks(to, imatrix_n_chunks(from));
    return ST_OK;
}

static enum status merge_files(struct imatrix *im, const struct job *job,
                               struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < job->in.n && !st; i++) {
        struct imatrix *one = NULL;

        st = imatrix_read(&one, job->in.v[i], err);
        if (!st)
            st = merge(im, one, err);
        imatrix_free(one);
    }
    return st;
}

static enum status choose_chunks(const struct job *job, struct importance_text *text,
                                 struct err *err)
{
    const size_t n = importance_n_chunks(text->n_ids, text->ctx);

    text->from_chunk = (size_t)job->from_chunk;
    if (text->from_chunk >= n)
        return err_set(err, ST_USAGE,
                       "%s has %zu tokens, which is %zu chunk%s of %zu, none from %zu "
                       "on; take a longer text or a smaller --ctx",
                       job->text, text->n_ids, n, n == 1 ? "" : "s", text->ctx,
                       text->from_chunk);
    text->n_chunks = n - text->from_chunk;
    if (job->n_chunks && (size_t)job->n_chunks < text->n_chunks)
        text->n_chunks = (size_t)job->n_chunks;
    return ST_OK;
}

/* ---- output ---------------------------------------------------------------------- */

static void print_result(const struct job *job, const struct imatrix *im,
                         const struct importance_text *text, size_t done,
                         double seconds)
{
    size_t unseen = 0;
    char took[32];

    for (size_t i = 0; i < imatrix_n_entries(im); i++)
        for (uint64_t s = 0; s < imatrix_entry_at(im, i)->n_slices; s++)
            unseen += !(imatrix_entry_at(im, i)->counts[s] > 0);
    printf("%s: %zu matrices, %zu chunk%s of %zu tokens in %s",
           format_path(job->out).text, imatrix_n_entries(im), done,
           done == 1 ? "" : "s", text->ctx,
           format_duration(took, sizeof took, seconds));
    if (imatrix_n_chunks(im) > done)
        printf(", %u with those of --in", imatrix_n_chunks(im));
    printf("\n");
    if (unseen)
        fprintf(stderr,
                "bench: %zu matrices of experts had no input; a longer text reaches "
                "more of them\n",
                unseen);
    if (done < text->n_chunks) {
        char in[4 * 4096 + 8] = "--in";

        shell_word_append(in, sizeof in, job->out);
        fprintf(stderr,
                "bench: stopped; continue with %s --from-chunk %zu, with another -o\n",
                in, text->from_chunk + done);
    } else {
        char use[8 * 4096 + 64] = "bench quantize --imatrix";

        shell_word_append(use, sizeof use, job->out);
        shell_word_append(use, sizeof use, job->session.model);
        printf("use it: %s OUT.gguf Q4_K_M\n", use);
    }
}

static enum status collect(const struct job *job, struct slm *m, struct imatrix *im,
                           struct err *err)
{
    const uint64_t begin = clock_ns();
    struct importance_text text = {.ctx = (size_t)job->session.n_ctx};
    int32_t *ids = NULL;
    size_t done = 0;
    enum status st = read_tokens(job, m, &ids, &text.n_ids, err);

    text.ids = ids;
    if (!st)
        st = choose_chunks(job, &text, err);
    if (!st)
        st = importance_collect(im, m, &text, &done, err);
    free(ids);
    if (!st && done == 0)
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    if (!st)
        st = imatrix_add_dataset(im, base_name(job->text), err);
    if (st)
        return st;
    imatrix_add_chunks(im, (uint32_t)done);
    st = imatrix_write(im, job->out, err);
    if (st)
        return st;
    print_result(job, im, &text, done, (double)(clock_ns() - begin) * 1e-9);
    return done < text.n_chunks ? err_set(err, ST_INTERRUPTED, "interrupted") : ST_OK;
}

static enum status check_output(struct job *job, struct err *err)
{
    struct path_list inputs = {0};
    enum status st = session_inputs(&inputs, &job->session, err);

    if (!st)
        st = path_list_add(&inputs, job->text, err);
    for (size_t i = 0; i < job->in.n && !st; i++)
        st = path_list_add(&inputs, job->in.v[i], err);
    if (!st)
        st = path_list_check_output(&inputs, job->out, err);
    path_list_free(&inputs);
    return st;
}

static enum status run(struct job *job, struct err *err)
{
    struct imatrix *im = NULL;
    struct slm *m = NULL;
    enum status st = check_output(job, err);

    if (!st)
        st = imatrix_new(&im, (uint32_t)job->session.n_ctx, err);

    if (!st)
        st = merge_files(im, job, err);
    if (!st)
        st = session_open(&m, &job->session, NULL, err);
    if (!st)
        st = collect(job, m, im, err);
    slm_close(m);
    imatrix_free(im);
    return st;
}

static enum status check_options(const struct job *job, struct err *err)
{
    if (!job->session.model)
        return err_set(err, ST_USAGE, "name the model: -m FILE");
    if (!job->text)
        return err_set(err, ST_USAGE, "name the text: --text FILE");
    if (!job->out)
        return err_set(err, ST_USAGE, "name the output file: -o FILE");
    return ST_OK;
}

int cmd_imatrix(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct job job = {.session = {.n_ctx = DEFAULT_CTX, .n_logits = 1}};
    struct opt_args args;
    const struct opt opts[] = {
        OPT_STR('m', "model", &job.session.model, "FILE", "the GGUF file"),
        OPT_STR(0, "text", &job.text, "FILE", "the text, UTF-8; - is standard input"),
        OPT_STR('o', "output", &job.out, "OUT.gguf", "the importance matrix to write"),
        OPT_INT(0, "ctx", &job.session.n_ctx, "N", "tokens of a chunk (default: 512)",
                8, 1 << 20),
        OPT_INT(0, "chunks", &job.n_chunks, "N",
                "maximum number of chunks (default: all)", 1, 1 << 30),
        OPT_INT(0, "from-chunk", &job.from_chunk, "N", "skip the first N chunks", 0,
                1 << 30),
        OPT_STRS(0, "in", &job.in, "FILE",
                 "add this importance matrix; may be repeated"),
        SESSION_OPT(job.session, threads),
        SESSION_OPT(job.session, weights),
        OPT_END,
    };
    enum status st = opt_parse(&args, argc, argv, opts, &usage, &err);

    if (st == ST_OK && !args.help) {
        st = check_options(&job, &err);
        interrupt_catch();
        if (st == ST_OK)
            st = run(&job, &err);
    }
    free(job.in.v);
    return st ? cmd_end(&err) : 0;
}
