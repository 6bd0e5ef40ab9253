/* SPDX-License-Identifier: MIT
 *
 * cmd_logits.c - `bench logits`: raw logits of given tokens, to compare engines
 */
#include "harness/cmd/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/interrupt.h"
#include "harness/base/newfile.h"
#include "harness/measure/session/session.h"

static const struct opt_usage usage = {
    .synopsis = "logits -m MODEL --tokens 1,2,3 -o OUT.f32 [-t THREADS] [--batch N]",
    .about = "Evaluates the tokens as one sequence and writes the logits of every "
             "position as raw little-endian float32, [n_tokens x n_vocab]. No token is "
             "added: if the model needs the beginning-of-sequence token, give it.",
    .example = "bench logits -m model.gguf --tokens 1,15043,3186 -o logits.f32",
    .no_arguments = "tokens follow --tokens",
};

/* Evaluate ids[n] in batches and append each batch's logits to f. */
static enum status write_logits(struct slm *m, const int32_t *ids, size_t n, FILE *f,
                                const char *path, struct err *err)
{
    const size_t most = (size_t)slm_info(m)->n_batch;
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;

    for (size_t done = 0; done < n;) {
        const size_t batch = n - done < most ? n - done : most;
        const enum status st = slm_eval(m, ids + done, batch, SLM_LOGITS_ALL, err);

        if (st)
            return st;
        for (size_t i = 0; i < batch; i++)
            if (fwrite(slm_logits(m, i), sizeof(float), n_vocab, f) != n_vocab)
                return err_set_errno(err, ST_IO, "cannot write %s", path);
        if (interrupted())
            return err_set(err, ST_INTERRUPTED, "interrupted");
        done += batch;
    }
    return ST_OK;
}

/* Rejects unknown tokens before the output file is created. */
static enum status check_tokens(const struct slm *m, const struct int_list *tokens,
                                struct err *err)
{
    const int n_vocab = slm_info(m)->n_vocab;

    for (size_t i = 0; i < tokens->n; i++)
        if (tokens->v[i] >= n_vocab)
            return err_set(err, ST_USAGE,
                           "token %d is outside the vocabulary of %d tokens",
                           tokens->v[i], n_vocab);
    return ST_OK;
}

static enum status run(struct session_params *params, const struct int_list *tokens,
                       const char *path, struct err *err)
{
    struct slm *m = NULL;
    struct path_list inputs = {0};
    struct newfile n;
    enum status st = session_inputs(&inputs, params, err);

    if (!st)
        st = path_list_check_output(&inputs, path, err);
    path_list_free(&inputs);
    if (st == ST_OK && (session_open(&m, params, NULL, err) ||
                        check_tokens(m, tokens, err) || newfile_open(&n, path, err)))
        st = err->code;
    if (!st) {
        st = write_logits(m, tokens->v, tokens->n, n.f, path, err);
        if (st)
            newfile_abort(&n);
        else
            st = newfile_commit(&n, path, err);
    }
    slm_close(m);
    return st;
}

/* Checks that the table of options cannot express. */
static enum status check_options(const struct session_params *params,
                                 const struct int_list *tokens, const char *path,
                                 struct err *err)
{
    if (!params->model)
        return err_set(err, ST_USAGE, "name the model: -m FILE");
    if (!tokens->n)
        return err_set(err, ST_USAGE, "name the tokens: --tokens 1,2,3");
    if (!path)
        return err_set(err, ST_USAGE, "name the output file: -o FILE");
    return tokens->n > INT_MAX
               ? err_set(err, ST_USAGE, "%zu tokens are too many", tokens->n)
               : ST_OK;
}

int cmd_logits(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct session_params params = {.n_ctx = 0};
    struct int_list tokens = {0};
    struct opt_args args;
    const char *path = NULL;
    const struct opt opts[] = {
        SESSION_OPT_MODEL(params),
        OPT_INTS(0, "tokens", &tokens, "LIST", "token ids, \"1,2,3\" or \"5-9\"", 0,
                 INT_MAX),
        OPT_STR('o', "output", &path, "OUT.f32", "the file to write"),
        SESSION_OPT(params, threads),
        SESSION_OPT(params, batch),
        SESSION_OPT_HOLD(params),
        OPT_END,
    };

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    interrupt_catch();
    params.n_ctx = (int)tokens.n;
    if (check_options(&params, &tokens, path, &err) == ST_OK)
        run(&params, &tokens, path, &err);
    free(tokens.v);
    return cmd_end(&err);
}
