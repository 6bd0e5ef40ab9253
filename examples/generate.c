/* SPDX-License-Identifier: MIT
 *
 * generate.c - continue a text: generate MODEL.gguf "Once upon" 50
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct slm_params params = slm_params_default();
    struct slm *m = NULL;
    struct tokenizer *tok = NULL;
    int32_t *ids = NULL, id;
    size_t n;
    char text[4096], out[sizeof text + 4];
    struct utf8_stream utf8 = {.n_pending = 0};

    params.path = argc == 4 ? argv[1] : "";
    if (slm_open(&m, &params, &err) ||
        slm_measure_prefetch(m, SLM_PREFETCH_BUDGET_S, 0, &err) ||
        tokenizer_open(&tok, slm_gguf(m), &err) ||
        tokenizer_encode(tok, argv[2], strlen(argv[2]), true, false, &ids, &n, &err) ||
        slm_eval(m, ids, n, SLM_LOGITS_LAST, &err)) {
        fprintf(stderr, "%s\nusage: %s MODEL.gguf TEXT TOKENS\n", err.msg, argv[0]);
        return status_exit_code(err.code);
    }
    struct sampler_params greedy = sampler_params_default();
    struct sampler *sampler = NULL;
    enum status st = sampler_open(&sampler, &greedy, tokenizer_n_vocab(tok), &err);

    for (int left = atoi(argv[3]); !st && left > 0; left--) {
        id = sampler_next(sampler, slm_logits(m, 0));
        if (tokenizer_is_end(tok, id))
            break;
        n = tokenizer_piece(tok, id, text, sizeof text);
        n = utf8_stream_push(&utf8, text, n <= sizeof text ? n : 0, out);
        fwrite(out, 1, n, stdout);
        st = slm_eval(m, &id, 1, SLM_LOGITS_LAST, &err);
    }
    puts(st ? err.msg : "");
    sampler_close(sampler);
    free(ids);
    tokenizer_close(tok);
    slm_close(m);
    return status_exit_code(err.code);
}
