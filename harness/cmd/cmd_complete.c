/* SPDX-License-Identifier: MIT
 *
 * cmd_complete.c - `bench complete`: completion, from the tables that --help is made of
 *
 * configs/shell/ has scripts that call `bench complete WORD...` for bash, zsh and fish
 * with the words after `bench`; the last one is to be completed. The first line is
 * what the shell adds of its own: words (nothing), files, folders, or model (files;
 * ":QUANT" may follow). Each further line is a word, a tabulator and what it means. It
 * never fails: a word that nothing is known of gets files.
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "engine/quantize/quantmix.h"
#include "harness/base/format.h"
#include "harness/base/program.h"
#include "kernels/isa.h"

struct completing {
    char **words; /* of the command, the last one is to be completed */
    int n;
};

/* ---- candidates ------------------------------------------------------------------ */

static void offer(const char *typed, const char *word, const char *meaning)
{
    if (!strncmp(word, typed, strlen(typed)))
        printf("%s\t%s\n", word, meaning);
}

static void offer_files_inside(const char *typed, const char *kind, const char *ending,
                               const char *before, const char *meaning)
{
    struct path_list names = {0};
    struct err err = ERR_INIT;
    char word[256];

    if (data_names(&names, kind, ending, &err) == ST_OK)
        for (size_t i = 0; i < names.n; i++) {
            snprintf(word, sizeof word, "%s%.200s", before,
                     format_path(names.path[i]).text);
            offer(typed, word, meaning);
        }
    path_list_free(&names);
}

/* before: what the quantisation follows, "tinyllama-1.1b:". */
static void offer_quants(const char *typed, const char *before)
{
    char word[256];

    for (int i = 0; i < QUANTMIX_N; i++) {
        snprintf(word, sizeof word, "%s%s", before, quantmix_name((enum quantmix)i));
        offer(typed, word, "quantisation");
    }
}

/* Shapes; after a colon the quantisations, also as a list. */
static void offer_models(const char *typed)
{
    const char *colon = strrchr(typed, ':'), *comma = strrchr(typed, ',');
    const char *last = comma > colon ? comma : colon;
    char before[200];

    puts("model");
    if (!last) {
        offer_files_inside(typed, "models", ".yaml", "", "shape");
        return;
    }
    snprintf(before, sizeof before, "%.*s", (int)(last - typed) + 1, typed);
    offer_quants(typed, before);
}

static void offer_choices(const char *typed, const struct choices *choices,
                          const char *before)
{
    char word[256];

    puts("words");
    for (int i = 0; i < choices->n; i++) {
        snprintf(word, sizeof word, "%s%s", before, choices->name(i));
        offer(typed, word, "");
    }
}

/* Is it one of these words, separated by blanks? */
static bool is_any(const char *word, const char *words)
{
    const size_t len = strlen(word);

    for (const char *p = words; len && (p = strstr(p, word)) != NULL; p += len)
        if ((p == words || p[-1] == ' ') && (p[len] == ' ' || !p[len]))
            return true;
    return false;
}

/* A value that the table or the synopsis calls arg. */
static void offer_value(const char *typed, const char *arg, const char *command)
{
    if (is_any(arg, "MODEL IN SHAPE:QUANT")) {
        offer_models(typed);
    } else if (is_any(arg, "QUANT TYPE")) {
        puts("words");
        offer_quants(typed, "");
    } else if (!strcmp(arg, "CONFIG")) {
        puts("files");
        offer_files_inside(typed, strcmp(command, "sweep") ? "gates" : "sweeps",
                           ".yaml", "", "configuration");
    } else if (!strcmp(arg, "KIND/NAME")) {
        puts("words");
        for (size_t i = 0; data_kind(i); i++) {
            char before[64];

            snprintf(before, sizeof before, "%s/", data_kind(i));
            offer_files_inside(typed, data_kind(i), "", before, "");
        }
    } else if (!strncmp(arg, "DIR", 3)) {
        puts("folders");
    } else if (is_any(arg, "FILE FILE|DIR NAME|FILE DB PATH ROWS RESULTS OUT OUT.f32 "
                           "OUT.gguf OLD NEW REF PROGRAM")) {
        puts("files");
    } else {
        puts("words"); /* a number, a name */
    }
}

/* ---- the options of the command -------------------------------------------------- */

static const struct opt *find_option(const struct opt *opts, const char *word)
{
    for (; opts->kind != OPT_KIND_END; opts++)
        if (!strncmp(word, "--", 2)
                ? !strncmp(word + 2, opts->name, strlen(opts->name)) &&
                      (!word[2 + strlen(opts->name)] ||
                       word[2 + strlen(opts->name)] == '=')
                : opts->letter && word[1] == opts->letter && !word[2])
            return opts;
    return NULL;
}

/* typed: all of the word, with "--option=" where it is written so. */
static void offer_option_value(const char *typed, const struct opt *o,
                               const char *command)
{
    const char *equals = !strncmp(typed, "--", 2) ? strchr(typed, '=') : NULL;
    char before[80] = "";

    if (equals)
        snprintf(before, sizeof before, "%.*s", (int)(equals - typed) + 1, typed);
    if (o->choices)
        offer_choices(typed, o->choices, before);
    else if (equals)
        puts("files");
    else if (!strcmp(o->name, "isa-disable")) {
        puts("words");
        for (int i = KERN_ISA_scalar + 1; i < KERN_N_ISA; i++)
            offer(typed, isa_name((enum kern_isa)i), "");
        offer(typed, "amx", "");
    } else
        offer_value(typed, o->letter == 'm' ? "MODEL" : o->arg, command);
}

static void offer_options(const char *typed, const struct opt *opts)
{
    char word[80];

    puts("words");
    for (; opts->kind != OPT_KIND_END; opts++) {
        snprintf(word, sizeof word, "--%s", opts->name);
        offer(typed, word, opts->help);
    }
}

/* The index-th argument that the synopsis names first, "IN OUT TYPE [--imatrix ...":
 * words in capitals; a last one that is repeated, "ROWS...", stands for all after it.
 */
static void find_argument(const char *synopsis, int n_words, int index, char *arg,
                          size_t cap)
{
    const char *p = synopsis;

    arg[0] = '\0';
    for (int i = -n_words;; i++) {
        const char *word = p + (*p == '[');
        const size_t len = strcspn(word, " \n.]");

        if (i >= 0 && !(*word >= 'A' && *word <= 'Z'))
            return;
        if (i >= 0 && (i == index || !strncmp(word + len, "...", 3))) {
            snprintf(arg, cap, "%.*s", (int)len, word);
            return;
        }
        p += strcspn(p, " \n");
        p += strspn(p, " \n");
    }
}

static void offer_argument(const struct completing *c, const struct opt_usage *usage,
                           int index, int n_words)
{
    const char *typed = c->words[c->n - 1];
    char arg[40];

    if (usage->verbs && index == 0) {
        puts("words");
        for (const struct opt_verb *v = usage->verbs; v->name; v++)
            offer(typed, v->name, v->help);
        return;
    }
    find_argument(usage->synopsis, n_words, index, arg, sizeof arg);
    offer_value(typed, arg, c->words[0]);
}

/* An opt_show_fn: arg is the struct completing. */
static void complete(void *arg, const struct opt *opts, const struct opt_usage *usage)
{
    const struct completing *c = arg;
    const char *typed = c->words[c->n - 1];
    const struct opt *value_of = NULL; /* the option that the next word is a value of */
    char name[64];
    int index = 0, n_words = 1;
    bool only_arguments = false;

    /* "history add" is one command, and its arguments begin after it. */
    if (c->n > 2) {
        snprintf(name, sizeof name, "%s %s", c->words[0], c->words[1]);
        n_words += !strncmp(usage->synopsis, name, strlen(name));
    }
    for (int i = n_words; i < c->n - 1; i++) {
        const char *word = c->words[i];
        const struct opt *o = NULL;

        if (value_of) {
            value_of = NULL;
            continue;
        }
        if (!only_arguments && word[0] == '-' && word[1])
            o = find_option(opts, word);
        else
            index++;
        only_arguments |= !strcmp(word, "--");
        if (o && o->kind != OPT_KIND_FLAG && !strchr(word, '='))
            value_of = o;
    }
    if (!value_of && !only_arguments && !strncmp(typed, "--", 2) && strchr(typed, '='))
        value_of = find_option(opts, typed);
    if (value_of)
        offer_option_value(typed, value_of, c->words[0]);
    else if (typed[0] == '-' && !only_arguments)
        offer_options(typed, opts);
    else
        offer_argument(c, usage, index, n_words);
}

static void offer_commands(const char *typed)
{
    puts("words");
    for (const struct command *c = commands; c->name; c++)
        if (c->help)
            offer(typed, c->name, c->help);
    if (*typed == '-') {
        offer(typed, "--help", "list the commands");
        offer(typed, "--version", "print the version");
    }
}

/* "bench", "bench help" and "bench man" are followed by a command. */
static bool wants_command(const struct completing *c)
{
    return c->n < 2 || (c->n == 2 && c->words[1][0] != '-' &&
                        (!strcmp(c->words[0], "help") || !strcmp(c->words[0], "man")));
}

int cmd_complete(int argc, char **argv)
{
    struct completing c = {.words = argv + 1, .n = argc - 1};
    const char *verb =
        c.n > 2 && c.words[1][0] && c.words[1][0] != '-' ? c.words[1] : NULL;

    if (wants_command(&c))
        offer_commands(c.n ? c.words[c.n - 1] : "");
    else if (!cmd_show(c.words[0], verb, complete, &c))
        puts("files");
    return 0;
}
