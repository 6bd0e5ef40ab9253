/* SPDX-License-Identifier: MIT
 *
 * cmd_chat.c - `bench chat`: chat with a model at the terminal or through a pipe
 */
#include "harness/base/format.h"
#include "harness/cmd/cmd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/speculate/speculate.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/base/suggest.h"
#include "harness/measure/session/conversation.h"
#include "harness/measure/session/generate.h"
#include "harness/measure/session/lineedit.h"

/* Positions, unless the user sets them or the model has fewer. */
#define DEFAULT_CTX 4096

static const struct opt_usage usage = {
    .synopsis = "chat -m MODEL [--system TEXT] [--chat-template NAME] [--temp T]",
    .about = "Answers questions, one per line, from the terminal or a pipe. The "
             "conversation stays in the KV cache, so a question costs only its own "
             "tokens. When the context is full, the oldest questions and answers are "
             "dropped. With --kv-window N the conversation has no end: the model keeps "
             "the first 4 and the last N positions and forgets what is between them, "
             "also a system message. Ctrl-C stops an answer, Ctrl-D or /quit ends the "
             "program, /help "
             "lists the commands. A line that ends in \\ continues on the next.",
    .example = "bench chat -m model.gguf --system \"Answer in one sentence.\"\n"
               "echo \"What is a cache line?\" | bench chat -m model.gguf --temp 0",
    .no_arguments = "questions come from the terminal or a pipe",
};

struct settings {
    struct session_params session;
    struct sampling sampling;
    const char *system, *chat_template;
    int n_max;
    bool show_prompt;
};

struct chat {
    struct textmodel model;
    struct conversation *talk;
    bool at_terminal;
    struct lineedit *lines;
};

/* ---- lines ----------------------------------------------------------------------- */

/* A question, of as many lines as end in a backslash; malloc'ed into *text. */
static enum status read_question(struct chat *c, char **text, bool *end,
                                 struct err *err)
{
    const char *line;
    size_t n = 0;
    enum status st;

    *text = NULL;
    while (!(st = lineedit_read(c->lines, n ? "  " : "> ", &line, end, err)) && !*end) {
        const size_t len = strlen(line);
        const bool goes_on = len && line[len - 1] == '\\';
        char *more = realloc(*text, n + len + 2);

        if (!more) {
            st = err_set(err, ST_NO_MEMORY, "no memory for a question");
            break;
        }
        *text = more;
        memcpy(more + n, line, len + 1);
        n += len;
        if (!goes_on)
            break;
        more[n - 1] = '\n';
    }
    if (n)
        *end = false; /* the file ended after a backslash: keep the text */
    return st;
}

/* The first Ctrl-C at the prompt prints how to leave; the second leaves. */
static enum status next_question(struct chat *c, char **text, bool *end,
                                 struct err *err)
{
    for (bool warned = false;; warned = true) {
        struct err why = ERR_INIT;
        const enum status st = read_question(c, text, end, &why);

        if (st != ST_INTERRUPTED || !c->at_terminal || !interrupted_by_user() || warned)
            return st ? err_set(err, st, "%s", why.msg) : ST_OK;
        free(*text);
        clearerr(stdin);
        interrupt_forget();
        fputs("\n(once more, or /quit, to leave)\n", stderr);
    }
}

/* ---- commands -------------------------------------------------------------------- */

static double per_second(size_t n, uint64_t ns)
{
    return ns ? (double)n * 1e9 / (double)ns : 0.0;
}

static void print_speculation(const char *what, const struct speculate_stats *s)
{
    fprintf(stderr,
            "speculation, %s: %" PRIu64 " token%s in %" PRIu64 " pass%s, %" PRIu64
            " of %" PRIu64 " drafted accepted\n",
            what, s->n_tokens, plural(s->n_tokens, "s"), s->n_passes,
            plural(s->n_passes, "es"), s->n_accepted, s->n_drafted);
}

static void print_stats(const struct chat *c)
{
    struct conversation_stats s;

    conversation_read_stats(c->talk, &s);
    if (s.first_ns)
        fprintf(stderr, "last answer: first token after %.3f s\n",
                (double)s.first_ns * 1e-9);
    fprintf(stderr, "last answer: prefill %zu token%s at %.2f tok/s, ", s.n_prefill,
            plural(s.n_prefill, "s"), per_second(s.n_prefill, s.prefill_ns));
    fprintf(stderr, "decode %zu at %.2f tok/s\n", s.n_decode,
            per_second(s.n_decode, s.decode_ns));
    fprintf(stderr, "all answers: prefill %zu token%s at %.2f tok/s, ", s.all_prefill,
            plural(s.all_prefill, "s"), per_second(s.all_prefill, s.all_prefill_ns));
    fprintf(stderr, "decode %zu at %.2f tok/s\n", s.all_decode,
            per_second(s.all_decode, s.all_decode_ns));
    if (s.speculates) {
        print_speculation("last answer", &s.speculation);
        print_speculation("all answers", &s.all_speculation);
        speculation_print(&s.all_speculation);
    }
    fprintf(stderr, "context: %d ", s.n_past);
    if (s.n_seen)
        fprintf(stderr, "positions, %d of them visible,",
                s.n_past < s.n_seen ? s.n_past : s.n_seen);
    else
        fprintf(stderr, "of %d positions", s.n_ctx);
    fprintf(stderr, " used by %d message%s; %d thread%s\n", s.n_messages,
            plural(s.n_messages, "s"), c->model.n_threads,
            plural(c->model.n_threads, "s"));
}

static void print_help(void)
{
    fputs("/reset  forget the conversation, except the system message\n"
          "/stats  print speed, time to first token and the use of the context\n"
          "/help   this list\n"
          "/quit   leave, as Ctrl-D does\n"
          "Ctrl-C stops an answer; the arrow keys edit a line and bring earlier ones\n"
          "back. A line that ends in \\ continues on the next.\n",
          stderr);
}

/* *quit: the line was /quit. */
static void run_command(struct chat *c, const char *line, bool *quit)
{
    static const char *const names[] = {"reset", "stats", "help", "quit"};
    const char *near;
    char shown[48];

    if (!strcmp(line, "/reset")) {
        conversation_reset(c->talk);
        if (c->at_terminal)
            fputs("(forgotten)\n", stderr);
    } else if (!strcmp(line, "/stats")) {
        print_stats(c);
    } else if (!strcmp(line, "/help")) {
        print_help();
    } else if (!strcmp(line, "/quit") || !strcmp(line, "/exit")) {
        *quit = true;
    } else {
        near = suggest(line + 1, names, 4);
        fprintf(stderr, "bench: there is no command %s; %s%s\n",
                text_harmless(shown, sizeof shown, line),
                near ? "did you mean /" : "/help lists them", near ? near : "");
    }
}

/* ---- conversation ---------------------------------------------------------------- */

static void report_end(const struct chat *c, enum conversation_end end, int n_dropped)
{
    const int n_ctx = slm_info(c->model.m)->n_ctx;

    if (n_dropped)
        fprintf(stderr,
                "bench: the context of %d positions is full: the oldest %d messages "
                "were dropped; --ctx sets it\n",
                n_ctx, n_dropped);
    if (end == CONVERSATION_FULL && slm_info(c->model.m)->kv_window)
        fprintf(stderr, "bench: the answer was ended after %d tokens; -n sets this\n",
                n_ctx);
    else if (end == CONVERSATION_FULL)
        fprintf(stderr,
                "bench: the context of %d positions ended before the answer; --ctx "
                "sets it\n",
                n_ctx);
    if (end == CONVERSATION_TOO_LONG)
        fprintf(stderr,
                "bench: this question does not fit the context of %d positions; "
                "shorten it or set a larger one with --ctx\n",
                n_ctx);
    if (end == CONVERSATION_STOPPED && c->at_terminal)
        fputs("(stopped)\n", stderr);
}

static enum status talk(struct chat *c, struct err *err)
{
    enum status st = ST_OK;
    bool end = false;

    while (!st && !end) {
        enum conversation_end how = CONVERSATION_ANSWERED;
        int n_dropped = 0;
        char *text = NULL;

        st = next_question(c, &text, &end, err);
        if (!st && !end && text[0] == '/') {
            run_command(c, text, &end);
        } else if (!st && !end && text[strspn(text, " \t\n")]) {
            st = conversation_answer(c->talk, text, &how, &n_dropped, err);
            if (!st)
                report_end(c, how, n_dropped);
        }
        free(text);
        if (!st && interrupted()) {
            if (!c->at_terminal || !interrupted_by_user())
                st = err_set(err, ST_INTERRUPTED, "interrupted");
            else
                interrupt_forget();
        }
    }
    return st;
}

static void print_banner(const struct chat *c, const struct settings *s,
                         const char *family)
{
    const struct slm_info *info = slm_info(c->model.m);

    fprintf(stderr, "%s, chat template %s, ", s->session.model, family);
    if (info->kv_window)
        fprintf(
            stderr,
            "context without end: the first %d and the last %d positions are visible",
            info->n_sinks, info->kv_window);
    else
        fprintf(stderr, "context of %d positions", info->n_ctx);
    fputs("; /help lists the commands\n", stderr);
}

static enum status look(struct chat *c, const struct settings *s, struct err *err)
{
    enum status st = textmodel_look(&c->model, &s->session, s->chat_template, err);

    if (!st && !c->model.chat)
        st = err_set(err, c->model.why_no_chat.code, "%s", c->model.why_no_chat.msg);
    return st;
}

/* Each question is printed as the prompt that would begin a conversation with it. */
static enum status show_prompts(struct chat *c, const struct settings *s,
                                struct err *err)
{
    enum status st = look(c, s, err);
    bool end = false;

    if (!st)
        st = lineedit_open(&c->lines, err);
    while (!st && !end) {
        struct chat_message m[2] = {{CHAT_SYSTEM, s->system}};
        struct jinja_text prompt = {.text = NULL};
        json_t *conversation;
        char *text = NULL;

        st = next_question(c, &text, &end, err);
        m[1] = (struct chat_message){CHAT_USER, text};
        if (!st && !end) {
            conversation = chat_conversation(m + !s->system, 2 - (size_t)!s->system);
            st = conversation ? chat_render(c->model.chat, conversation, &prompt, err)
                              : err_set(err, ST_NO_MEMORY, "no memory for a question");
            json_decref(conversation);
        }
        if (!st && !end)
            printf("%s\n", prompt.text);
        jinja_text_free(&prompt);
        free(text);
    }
    return st;
}

static enum status open_talk(struct chat *c, const struct settings *s, struct err *err)
{
    struct conversation_params params = {.system = s->system,
                                         .n_max = s->n_max,
                                         .drafts = s->session.drafts,
                                         .sampling = sampling_params(&s->sampling)};
    struct session_params session = s->session;
    enum status st = look(c, s, err);

    if (st)
        return st;
    params.chat = c->model.chat;
    session.n_logits = session.drafts ? SPECULATE_MAX + 1 : 1;
    if (!session.n_ctx)
        session.n_ctx = c->model.planned.n_ctx_train < DEFAULT_CTX
                            ? c->model.planned.n_ctx_train
                            : DEFAULT_CTX;
    st = textmodel_open(&c->model, &session, err);
    if (!st)
        st = conversation_open(&c->talk, &c->model, &params, err);
    if (!st && c->at_terminal)
        print_banner(c, s, chat_template_name(params.chat));
    return st;
}

static enum status run(const struct settings *s, struct err *err)
{
    struct chat c = {.at_terminal = isatty(STDIN_FILENO)};
    enum status st = s->show_prompt ? show_prompts(&c, s, err) : open_talk(&c, s, err);

    if (!st && !s->show_prompt)
        st = lineedit_open(&c.lines, err);
    if (!st && !s->show_prompt)
        st = talk(&c, err);
    if (!st && !s->show_prompt && c.at_terminal)
        print_stats(&c);
    conversation_close(c.talk);
    textmodel_close(&c.model);
    lineedit_close(c.lines);
    return st;
}

int cmd_chat(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct settings s = {.sampling = SAMPLING_DEFAULT};
    struct opt_args args;
    const struct opt opts[] = {
        SESSION_OPT_MODEL(s.session),
        OPT_STR(0, "system", &s.system, "TEXT", "system message"),
        OPT_STR(0, "chat-template", &s.chat_template, "NAME|FILE",
                "chat template (default: the model's own)"),
        OPT_FLAG(0, "show-prompt", &s.show_prompt,
                 "print the prompt of each question instead of an answer"),
        OPT_INT('n', "tokens", &s.n_max, "N",
                "maximum tokens of an answer (default: the context)", 1, INT_MAX),
        SAMPLING_OPTS(s.sampling, "temperature (default: 0.7; 0: greedy)"),
        SESSION_OPT_SPECULATE(
            s.session,
            "speculative decoding: lookup, mtp (the model's own layer that predicts "
            "further tokens), or off (default)"),
        TEXTMODEL_OPTS(s.session),
        OPT_INT(0, "ctx", &s.session.n_ctx, "N",
                "context (default: the model's, at most 4096)", 1, INT_MAX),
        OPT_END,
    };

    s.sampling.temperature = 0.7;
    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (!s.session.model)
        err_set(&err, ST_USAGE, "name the model: -m FILE");
    interrupt_catch();
    if (!err.code)
        run(&s, &err);
    return cmd_end(&err);
}
