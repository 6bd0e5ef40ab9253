/* SPDX-License-Identifier: MIT
 *
 * chat.c - a table of template families, and rendering by one
 */
#include "engine/text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stand for the BOS and EOS tokens of the vocabulary. */
#define BOS "<s>"
#define EOS "</s>"

struct around {
    const char *before, *after;
};

struct chat_template {
    const char *name;
    const char *prelude; /* before everything; NULL: nothing */
    struct around system, user, assistant;
    const char *stop;    /* token that ends an answer */
    const char *lead;    /* before an answer in the history */
    bool trims;          /* removes blanks around messages */
    bool system_in_user; /* the system message is part of the first user message */
    bool begins_with_bos;
    bool bos_each_turn; /* before every user message, not only the first */
};

static const struct chat_template families[] = {
    {.name = "chatml",
     .system = {"<|im_start|>system\n", "<|im_end|>\n"},
     .user = {"<|im_start|>user\n", "<|im_end|>\n"},
     .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
     .stop = "<|im_end|>"},
    {.name = "llama-2",
     .system = {"<<SYS>>\n", "\n<</SYS>>\n\n"},
     .user = {"[INST] ", " [/INST]"},
     .assistant = {"", EOS},
     .stop = EOS,
     .lead = " ",
     .trims = true,
     .system_in_user = true,
     .begins_with_bos = true,
     .bos_each_turn = true},
    {.name = "llama-3",
     .system = {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
     .user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
     .assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
     .stop = "<|eot_id|>",
     .trims = true,
     .begins_with_bos = true},
    {.name = "gemma",
     .system = {"", "\n\n"},
     .user = {"<start_of_turn>user\n", "<end_of_turn>\n"},
     .assistant = {"<start_of_turn>model\n", "<end_of_turn>\n"},
     .stop = "<end_of_turn>",
     .trims = true,
     .system_in_user = true,
     .begins_with_bos = true},
    {.name = "phi-3",
     .system = {"<|system|>\n", "<|end|>\n"},
     .user = {"<|user|>\n", "<|end|>\n"},
     .assistant = {"<|assistant|>\n", "<|end|>\n"},
     .stop = "<|end|>"},
    {.name = "phi-4-mini",
     .system = {"<|system|>", "<|end|>"},
     .user = {"<|user|>", "<|end|>"},
     .assistant = {"<|assistant|>", "<|end|>"},
     .stop = "<|end|>"},
    {.name = "mistral",
     .system = {"", "\n\n"},
     .user = {" [INST] ", " [/INST]"},
     .assistant = {"", EOS},
     .stop = EOS,
     .lead = " ",
     .system_in_user = true,
     .begins_with_bos = true},
    {.name = "mistral-v3",
     .system = {"", "\n\n"},
     .user = {"[INST] ", "[/INST]"},
     .assistant = {"", EOS},
     .stop = EOS,
     .lead = " ",
     .system_in_user = true,
     .begins_with_bos = true},
    {.name = "mistral-tekken",
     .system = {"", "\n\n"},
     .user = {"[INST]", "[/INST]"},
     .assistant = {"", EOS},
     .stop = EOS,
     .system_in_user = true,
     .begins_with_bos = true},
    {.name = "zephyr",
     .system = {"<|system|>\n", EOS "\n"},
     .user = {"<|user|>\n", EOS "\n"},
     .assistant = {"<|assistant|>\n", EOS "\n"},
     .stop = EOS},
    /* An answer ends where the user's next message begins. */
    {.name = "glm-4",
     .prelude = "[gMASK]<sop>",
     .system = {"<|system|>\n", ""},
     .user = {"<|user|>\n", ""},
     .assistant = {"<|assistant|>\n", ""},
     .stop = "<|user|>"},
};
#define N_FAMILIES (sizeof families / sizeof families[0])

/* Substrings of a family's template; the first row whose substrings all occur decides.
 */
static const struct {
    const char *name, *has[3], *lacks;
} signs[] = {
    {"chatml", {"<|im_start|>"}, "<|im_sep|>"},
    {"llama-3", {"<|start_header_id|>", "<|end_header_id|>"}, NULL},
    {"gemma", {"<start_of_turn>"}, NULL},
    {"phi-4-mini", {"'|>' + message['content'] + '<|end|>'", "<|assistant|>"}, NULL},
    {"phi-3", {"<|assistant|>", "<|end|>"}, "<|im_start|>"},
    {"llama-2", {"[INST]", "<<SYS>>"}, NULL},
    /* Mistral's later templates have tools, and differ in blanks around [INST]. */
    {"mistral", {"[AVAILABLE_TOOLS]", " [INST]"}, "[SYSTEM_PROMPT]"},
    {"mistral-tekken", {"[AVAILABLE_TOOLS]", "\"[INST]\""}, "[SYSTEM_PROMPT]"},
    {"mistral-v3", {"[AVAILABLE_TOOLS]", "[INST]"}, "[SYSTEM_PROMPT]"},
    {"mistral", {"[INST]"}, "[SYSTEM_PROMPT]"},
    {"glm-4", {"[gMASK]<sop>", "<|assistant|>"}, "<think>"},
    {"zephyr", {"<|user|>", "<|assistant|>"}, "[gMASK]"},
};

/* ---- which family ------------------------------------------------------------- */

const struct chat_template *chat_template_find(const char *name)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (!strcmp(families[i].name, name))
            return &families[i];
    return NULL;
}

static bool contains(const struct gguf_str *s, const char *part)
{
    return memmem(s->data, s->len, part, strlen(part)) != NULL;
}

const struct chat_template *chat_template_detect(const struct gguf *g)
{
    struct gguf_str s;

    if (!gguf_get_str(g, "tokenizer.chat_template", &s))
        return NULL;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        bool all = !signs[i].lacks || !contains(&s, signs[i].lacks);

        for (size_t k = 0; k < 3 && signs[i].has[k]; k++)
            all = all && contains(&s, signs[i].has[k]);
        if (all)
            return chat_template_find(signs[i].name);
    }
    return NULL;
}

const char *chat_template_name(const struct chat_template *c)
{
    return c->name;
}

const char *chat_template_names(char *buf, size_t cap)
{
    size_t n = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < N_FAMILIES && n < cap; i++)
        n +=
            (size_t)snprintf(buf + n, cap - n, "%s%s", i ? ", " : "", families[i].name);
    return buf;
}

/* ---- rendering ---------------------------------------------------------------- */

/* A growing text, and the spans of it that are markers. */
struct rendering {
    const struct tokenizer *tok;
    char *text;
    size_t len, cap;
    struct tokenizer_span *markers;
    size_t n_markers;
    bool failed; /* out of memory */
};

static void put(struct rendering *r, const char *bytes, size_t n)
{
    if (r->failed)
        return;
    if (r->cap - r->len <= n) {
        const size_t cap = (r->len + n) * 2 + 256;
        char *text = realloc(r->text, cap);

        if (!text) {
            r->failed = true;
            return;
        }
        r->text = text;
        r->cap = cap;
    }
    memcpy(r->text + r->len, bytes, n);
    r->len += n;
    r->text[r->len] = '\0';
}

/* The spelling of the vocabulary's BOS or EOS. */
static void put_own(struct rendering *r, int32_t id, const char *otherwise)
{
    size_t n = strlen(otherwise);
    const char *text = id >= 0 ? tokenizer_text(r->tok, id, &n) : otherwise;

    put(r, text, n);
}

static void put_marker(struct rendering *r, const char *text)
{
    const size_t begin = r->len;
    struct tokenizer_span *more;

    if (!text || !*text)
        return;
    more = realloc(r->markers, (r->n_markers + 1) * sizeof *more);
    if (!more) {
        r->failed = true;
        return;
    }
    r->markers = more;
    if (!strcmp(text, BOS)) {
        put_own(r, tokenizer_bos(r->tok), BOS);
    } else if (!strncmp(text, EOS, strlen(EOS))) {
        put_own(r, tokenizer_eos(r->tok), EOS);
        put(r, text + strlen(EOS), strlen(text + strlen(EOS)));
    } else {
        put(r, text, strlen(text));
    }
    more[r->n_markers++] = (struct tokenizer_span){begin, r->len};
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void put_message(struct rendering *r, const struct chat_template *c,
                        const char *text)
{
    size_t n = strlen(text);

    if (c->trims) {
        for (; n && is_blank(*text); n--)
            text++;
        while (n && is_blank(text[n - 1]))
            n--;
    }
    put(r, text, n);
}

static void put_around(struct rendering *r, const struct chat_template *c,
                       const struct around *a, const char *text)
{
    put_marker(r, a->before);
    put_message(r, c, text);
    put_marker(r, a->after);
}

/* A user message, after the system message in families that have it there. */
static void put_user(struct rendering *r, const struct chat_template *c,
                     const char *system, const char *text, bool first)
{
    if (c->bos_each_turn && !first && tokenizer_bos(r->tok) >= 0)
        put_marker(r, BOS);
    put_marker(r, c->user.before);
    if (system)
        put_around(r, c, &c->system, system);
    put_message(r, c, text);
    put_marker(r, c->user.after);
}

/* The whole conversation without a leading BOS. */
static enum status render(struct rendering *r, const struct chat_template *c,
                          const struct chat_message *m, size_t n, size_t n_done,
                          struct err *err)
{
    const char *system = NULL;

    put_marker(r, n_done ? c->assistant.after : c->prelude);
    for (size_t i = n_done; i < n; i++) {
        if (m[i].role == CHAT_SYSTEM && c->system_in_user) {
            system = m[i].text;
        } else if (m[i].role == CHAT_SYSTEM) {
            put_around(r, c, &c->system, m[i].text);
        } else if (m[i].role == CHAT_USER) {
            put_user(r, c, system, m[i].text, i == 0 || (i == 1 && system));
            system = NULL;
        } else {
            put_marker(r, c->assistant.before);
            put_marker(r, c->lead);
            put_message(r, c, m[i].text);
            put_marker(r, c->assistant.after);
        }
    }
    if (n == 0 || m[n - 1].role != CHAT_ASSISTANT)
        put_marker(r, c->assistant.before);
    put(r, "", 0);
    if (!r->failed)
        return ST_OK;
    return err_set(err, ST_NO_MEMORY, "no memory to write a conversation of %zu bytes",
                   r->len);
}

enum status chat_render(const struct chat_template *c, const struct tokenizer *tok,
                        const struct chat_message *m, size_t n, size_t n_done,
                        char **text, struct err *err)
{
    struct rendering r = {.tok = tok};
    const enum status st = render(&r, c, m, n, n_done, err);

    free(r.markers);
    if (st)
        free(r.text);
    else
        *text = r.text;
    return st;
}

/* ---- tokens ------------------------------------------------------------------- */

/* All markers of a family in one string. */
static void all_markers(const struct chat_template *c, char *buf, size_t cap)
{
    snprintf(buf, cap, "%s%s%s%s%s%s%s%s", c->prelude ? c->prelude : "",
             c->system.before, c->system.after, c->user.before, c->user.after,
             c->assistant.before, c->assistant.after, c->stop);
}

enum status chat_encode(const struct chat_template *c, const struct tokenizer *tok,
                        const struct chat_message *m, size_t n, size_t n_done,
                        int32_t **ids, size_t *n_ids, struct err *err)
{
    const bool with_bos =
        n_done == 0 && (c->begins_with_bos || tokenizer_adds_bos(tok));
    struct rendering r = {.tok = tok};
    char guard[512];
    enum status st = render(&r, c, m, n, n_done, err);

    all_markers(c, guard, sizeof guard);
    if (!st) {
        const struct tokenizer_markers markers = {r.markers, r.n_markers, guard};

        st = tokenizer_encode_marked(tok, r.text, r.len, with_bos, &markers, ids, n_ids,
                                     err);
    }
    free(r.markers);
    free(r.text);
    return st;
}

bool chat_is_end(const struct chat_template *c, const struct tokenizer *tok, int32_t id)
{
    size_t n;
    const char *text = tokenizer_text(tok, id, &n);

    return tokenizer_is_end(tok, id) ||
           (n == strlen(c->stop) && !memcmp(text, c->stop, n));
}
