/* SPDX-License-Identifier: MIT
 *
 * cmd_embed.c - `bench embed`: vectors of texts
 */
#include "harness/cmd/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/base/newfile.h"
#include "harness/measure/session/embed.h"

static const struct opt_usage usage = {
    .synopsis = "embed -m MODEL [TEXT... | -f FILE | --tokens LIST] [-o OUT.f32]",
    .about =
        "Prints one vector per text as a line of JSON, or writes them to a file as raw "
        "little-endian float32, [n_texts x n_vector]. Vectors have the length 1 unless "
        "--no-normalize is given. The begin and end tokens of the vocabulary are added "
        "to each text. A prefix that the model's authors put before texts (\"query: "
        "\") is not: add it yourself. Texts per second are printed on stderr.",
    .example = "bench embed -m model.gguf 'first text' 'second text'\n"
               "bench embed -m model.gguf -f lines.txt -o vectors.f32",
};

struct request {
    struct session_params params;
    struct opt_args args;
    struct int_list tokens;
    const char *file, *path, *pooling;
    bool json, not_normalised, truncate;
};

struct writer {
    FILE *f;
    const char *path;
    const struct embed_texts *texts;
    bool json, each; /* a vector for each token */
};

/* {"index":0,"n_tokens":5,"vector":[0.5,-0.5]}, or "vectors", one for each token. */
static void write_json(const struct writer *w, size_t text, const float *vectors,
                       size_t n_vectors, size_t n)
{
    fprintf(w->f, "{\"index\":%zu,\"n_tokens\":%d,\"%s\":%s", text, w->texts->v[text].n,
            w->each ? "vectors" : "vector", w->each ? "[" : "");
    for (size_t k = 0; k < n_vectors; k++)
        for (size_t i = 0; i < n; i++)
            fprintf(w->f, "%s%.9g%s",
                    i   ? ","
                    : k ? ",["
                        : "[",
                    (double)vectors[k * n + i], i + 1 == n ? "]" : "");
    fprintf(w->f, "%s}\n", w->each ? "]" : "");
}

static enum status write_vectors(void *arg, size_t text, const float *vectors,
                                 size_t n_vectors, size_t n, struct err *err)
{
    struct writer *w = arg;

    if (w->json)
        write_json(w, text, vectors, n_vectors, n);
    else
        fwrite(vectors, sizeof *vectors, n_vectors * n, w->f);
    return ferror(w->f) ? err_set_errno(err, ST_IO, "cannot write %s", w->path) : ST_OK;
}

static enum status read_texts(struct embed_texts *t, const struct embed_model *e,
                              const struct request *r, struct err *err)
{
    char what[40];
    enum status st = ST_OK;

    if (r->file)
        st = embed_add_lines(t, e, r->file, r->truncate, err);
    else if (r->tokens.n)
        st = embed_add_tokens(t, e, r->tokens.v, r->tokens.n, r->truncate,
                              "the list of tokens", err);
    for (int i = 0; !st && i < r->args.n; i++) {
        snprintf(what, sizeof what, "text %d", i + 1);
        st =
            embed_add(t, e, r->args.v[i], strlen(r->args.v[i]), r->truncate, what, err);
    }
    if (!st && t->n == 0)
        st = err_set(err, ST_USAGE, "%s is empty: it has no text", r->file);
    return st;
}

static enum status write_all(struct slm *m, const struct request *r,
                             const struct embed_texts *t, enum slm_pooling pooling,
                             struct err *err)
{
    struct writer w = {stdout, "standard output", t, r->json,
                       pooling == SLM_POOLING_NONE};
    struct newfile n;
    enum status st = r->path ? newfile_open(&n, r->path, err) : ST_OK;

    if (st)
        return st;
    if (r->path) {
        w.f = n.f;
        w.path = r->path;
    }
    st = embed_run(m, t, pooling, !r->not_normalised, write_vectors, &w, err);
    if (!r->path)
        return st || !fflush(stdout)
                   ? st
                   : err_set_errno(err, ST_IO, "cannot write standard output");
    if (st)
        newfile_abort(&n);
    else
        st = newfile_commit(&n, r->path, err);
    return st;
}

static enum status embed(struct request *r, const struct embed_texts *t,
                         enum slm_pooling pooling, struct err *err)
{
    struct slm *m = NULL;
    int n_threads;
    uint64_t begin;
    enum status st;

    embed_sizes(&r->params, t,
                r->params.setup.n_batch ? r->params.setup.n_batch : SLM_DEFAULT_BATCH);
    st = session_open(&m, &r->params, &n_threads, err);
    begin = clock_ns();
    if (!st)
        st = write_all(m, r, t, pooling, err);
    if (!st) {
        const double s = (double)(clock_ns() - begin) / 1e9;

        fprintf(stderr,
                "bench: %zu text%s of %lld tokens in %.3f s: %.1f texts/s, %.1f "
                "tokens/s (%d threads, passes of up to %d tokens)\n",
                t->n, t->n == 1 ? "" : "s", (long long)t->n_tokens, s, (double)t->n / s,
                (double)t->n_tokens / s, n_threads, slm_info(m)->n_batch);
        if (t->n_cut)
            fprintf(stderr,
                    "bench: %zu text%s longer than the context of %d tokens and %s "
                    "cut\n",
                    t->n_cut, t->n_cut == 1 ? " was" : "s were",
                    slm_info(m)->n_ctx_train, t->n_cut == 1 ? "was" : "were");
    }
    slm_close(m);
    return st;
}

static enum status run(struct request *r, struct err *err)
{
    struct embed_model e = {.tok = NULL};
    struct embed_texts texts = {0};
    struct path_list inputs = {0};
    enum slm_pooling pooling = SLM_POOLING_NONE;
    enum status st = session_inputs(&inputs, &r->params, err);

    if (!st && r->file && strcmp(r->file, "-"))
        st = path_list_add(&inputs, r->file, err);
    if (!st && r->path)
        st = path_list_check_output(&inputs, r->path, err);
    path_list_free(&inputs);
    if (st == ST_OK &&
        (embed_look(&e, &r->params, err) ||
         embed_pooling(&pooling, &e.planned, e.name, r->pooling, err) ||
         read_texts(&texts, &e, r, err) || embed(r, &texts, pooling, err)))
        st = err->code;
    embed_texts_free(&texts);
    embed_close(&e);
    return st;
}

/* Checks that the table of options cannot express. */
static enum status check_options(struct request *r, struct err *err)
{
    const int n_sources = (r->args.n > 0) + (r->file != NULL) + (r->tokens.n > 0);

    if (!r->params.model)
        return err_set(err, ST_USAGE, "name the model: -m MODEL");
    if (n_sources != 1)
        return err_set(
            err, ST_USAGE,
            "give texts as arguments, one per line of a file with -f FILE (-f - reads "
            "standard input), or token ids with --tokens: one of these");
    if (!r->path)
        r->json = true;
    return ST_OK;
}

int cmd_embed(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct request r = {.params = {.n_ctx = 0}};
    const struct opt opts[] = {
        SESSION_OPT_MODEL(r.params),
        OPT_STR('f', "file", &r.file, "FILE", "texts, one per line; -: standard input"),
        OPT_INTS(0, "tokens", &r.tokens, "LIST",
                 "one text as token ids, \"1,2,3\": none is added", 0, INT_MAX),
        OPT_STR('o', "output", &r.path, "OUT.f32",
                "write raw float32 to a file; -: standard output"),
        OPT_FLAG(0, "json", &r.json, "with -o: write JSON"),
        OPT_STR(0, "pooling", &r.pooling, "NAME",
                "mean, cls, last or none (default: the file's)"),
        OPT_FLAG(0, "no-normalize", &r.not_normalised,
                 "leave vectors as the model makes them"),
        OPT_FLAG(0, "truncate", &r.truncate,
                 "cut texts that are longer than the context"),
        SESSION_OPT(r.params, threads),
        SESSION_OPT(r.params, batch),
        SESSION_OPT_PLACE(r.params),
        SESSION_OPT_HOLD(r.params),
        OPT_END,
    };

    if (opt_parse(&r.args, argc, argv, opts, &usage, &err) || r.args.help)
        return cmd_end(&err);
    interrupt_catch();
    if (check_options(&r, &err) == ST_OK)
        run(&r, &err);
    free(r.tokens.v);
    return cmd_end(&err);
}
