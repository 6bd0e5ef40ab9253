/* SPDX-License-Identifier: MIT
 *
 * cmd_serve.c - `bench serve`: a model for several users, by OpenAI's API
 */
#include "harness/cmd/cmd.h"

#include "harness/base/interrupt.h"
#include "harness/serve/http/serve.h"
#include "harness/measure/session/textmodel.h"

static const struct opt_usage usage = {
    .synopsis = "serve -m MODEL [--listen ADDRESS:PORT] [--sequences N] [--ctx N]",
    .about =
        "Serves OpenAI's API (/v1/chat/completions, /v1/responses, /v1/completions) "
        "and Anthropic's (/v1/messages), whole or as streams, to several users at "
        "once; /v1/embeddings for an embedding model. /v1/models, /health and /metrics "
        "report its state. Prints one line when it is ready. SIGINT and SIGTERM let "
        "running requests finish; a second signal ends them.",
    .example = "bench serve -m model.gguf --sequences 4 --ctx 4096\n"
               "curl -s http://127.0.0.1:8080/v1/models",
    .no_arguments = "the model follows -m",
};

int cmd_serve(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct serve_settings s = SERVE_DEFAULTS;
    struct opt_args args;
    bool cancelled = false;
    const struct opt opts[] = {
        SESSION_OPT_MODEL(s.session),
        OPT_STR(0, "chat-template", &s.chat_template, "NAME|FILE",
                "chat template (default: the model's own)"),
        OPT_STR(0, "name", &s.server.name, "NAME", "the model's name for clients"),
        OPT_FLAG(0, "any-model", &s.any_model,
                 "answer requests that name another model, too"),
        OPT_STR(0, "listen", &s.listen, "WHERE",
                "ADDRESS:PORT, * for all (default: 127.0.0.1:8080)"),
        OPT_INT(0, "port", &s.port, "N", "the port; 0: a free one", 0, 65535),
        OPT_INT(0, "sequences", &s.session.n_sequences, "N",
                "concurrent answers (default: 8)", 1, SLM_MAX_SEQUENCES),
        OPT_INT(0, "ctx", &s.session.n_ctx, "N",
                "positions of each answer with its prompt (default: the model's, at "
                "most 4096)",
                1, SLM_MAX_POSITIONS),
        OPT_BYTES(0, "kv-memory", &s.kv_bytes, "SIZE",
                  "memory limit of the KV cache (default: what fits)"),
        OPT_INT(0, "queue", &s.n_queue, "N", "requests that may wait (default: 64)", 0,
                1 << 20),
        OPT_DOUBLE(0, "max-itl", &s.max_itl_ms, "MS",
                   "longest step while answers are streamed; 0: any (default: 500)", 0,
                   1e6),
        OPT_FLAG(0, "no-prefixes", &s.no_prefixes,
                 "do not keep what prompts begin with"),
        SESSION_OPT_SPECULATE(s.session,
                              "drafts where they pay: lookup, mtp or off (default)"),
        OPT_STR(0, "draft", &s.draft, "MODEL", "drafts by this model, where they pay"),
        TEXTMODEL_OPTS(s.session),
        OPT_STR(0, "api-key-file", &s.key_file, "FILE", "API keys, one per line"),
        OPT_STR(0, "cors", &s.server.cors, "ORIGIN", "allowed browser origin, or *"),
        OPT_BYTES(0, "max-body", &s.server.max_body, "SIZE",
                  "largest request (default: 8M)"),
        OPT_INT(0, "connections", &s.server.n_connections, "N",
                "concurrent connections (default: 512)", 1, 1 << 16),
        OPT_SECONDS(0, "timeout", &s.server.timeout_s, "S",
                    "for receiving a request or sending its answer (default: 60)", 1,
                    86400),
        OPT_SECONDS(0, "grace", &s.server.grace_s, "S",
                    "for finishing running requests after a signal (default: 30)", 0,
                    86400),
        OPT_FLAG(0, "log", &s.server.log,
                 "print a line for each request on standard error"),
        OPT_END,
    };
    enum status st = opt_parse(&args, argc, argv, opts, &usage, &err);

    if (st == ST_OK && args.help)
        return 0;
    if (st == ST_OK && !s.session.model)
        st = err_set(&err, ST_USAGE, "name the model: -m FILE");
    if (st == ST_OK)
        st = session_take_draft(&s.session, s.draft, &err);
    if (st == ST_OK) {
        interrupt_catch();
        st = serve(&s, &cancelled, &err);
    }
    if (st == ST_OK && cancelled)
        st = err_set(&err, ST_INTERRUPTED, "interrupted");
    return st ? cmd_end(&err) : 0;
}
