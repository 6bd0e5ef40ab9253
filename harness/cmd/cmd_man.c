/* SPDX-License-Identifier: MIT
 *
 * cmd_man.c - `bench man`, manual pages, and `bench complete`, completion: from the
 * tables that --help is made of
 *
 * The pages use the macros of man(7). The third argument of .TH, the date, is empty:
 * the same program writes the same pages.
 */
#include "harness/cmd/cmd.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/quantize/quantmix.h"
#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/program.h"
#include "harness/base/textfile.h"
#include "kernels/isa.h"

#define MAX_PATH_BYTES 4096

/* ==== bench man =================================================================== */

/* ---- texts as roff --------------------------------------------------------------- */

/* A line of the text, at most len bytes; what is between backticks is bold. */
static void put_line(FILE *f, const char *line, size_t len)
{
    bool bold = false;

    if (len && (*line == '.' || *line == '\''))
        fputs("\\&", f);
    for (size_t i = 0; i < len; i++) {
        switch (line[i]) {
        case '\\':
            fputs("\\e", f);
            break;
        case '-':
            fputs("\\-", f);
            break;
        case '\'':
            fputs("\\(aq", f);
            break;
        case '~':
            fputs("\\(ti", f);
            break;
        case '^':
            fputs("\\(ha", f);
            break;
        case '`':
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fR", f);
            break;
        default:
            fputc(line[i], f);
        }
    }
    fputs(bold ? "\\fR\n" : "\n", f);
}

/* Paragraphs as text_wrap() has them: an empty line ends one, and a line that begins
 * with a blank stays a line. */
static void put_text(FILE *f, const char *text)
{
    bool literal = false;

    while (*text) {
        const size_t len = strcspn(text, "\n");

        if (literal != (len && *text == ' ')) {
            literal = !literal;
            fputs(literal ? ".nf\n" : ".fi\n", f);
        }
        if (len)
            put_line(f, text, len);
        else
            fputs(".PP\n", f);
        text += len + (text[len] == '\n');
    }
    if (literal)
        fputs(".fi\n", f);
}

/* Each line as it is, indented. */
static void put_examples(FILE *f, const char *lines)
{
    fputs(".SH EXAMPLES\n.nf\n.RS 4\n", f);
    while (*lines) {
        lines += strspn(lines, " ");
        const size_t len = strcspn(lines, "\n");

        put_line(f, lines, len);
        lines += len + (lines[len] == '\n');
    }
    fputs(".RE\n.fi\n", f);
}

static void put_head(FILE *f, const char *name, const char *help)
{
    const char *version = build_version();

    fputs(".TH BENCH", f);
    for (const char *p = name; *p; p++)
        fprintf(f, "%s%c", p == name ? "\\-" : "", toupper((unsigned char)*p));
    fprintf(f, " 1 \"\" \"slmbench %.*s\" \"User Commands\"\n",
            (int)strcspn(version, " "), version);
    fputs(".nh\n.ad l\n", f); /* commands and options are not divided */
    fprintf(f, ".SH NAME\nbench%s%s \\- ", *name ? "\\-" : "", name);
    put_line(f, help, strlen(help));
}

/* ---- the page of a command ------------------------------------------------------- */

static void put_synopsis(FILE *f, const char *text)
{
    fputs("\\fBbench\\fR ", f);
    for (;;) {
        const size_t len = strcspn(text, "\n");

        put_line(f, text, len);
        if (!text[len])
            return;
        text += len + 1;
        text += strspn(text, " ");
        fputs(".br\n", f);
    }
}

static void put_options(FILE *f, const struct opt *opts)
{
    for (; opts->kind != OPT_KIND_END; opts++) {
        fputs(".TP\n", f);
        if (opts->letter)
            fprintf(f, "\\fB\\-%c\\fR, ", opts->letter);
        fputs("\\fB\\-\\-", f);
        for (const char *p = opts->name; *p; p++)
            fprintf(f, "%s%c", *p == '-' ? "\\" : "", *p);
        fprintf(f, "\\fR%s%s%s\n", opts->arg ? " \\fI" : "", opts->arg ? opts->arg : "",
                opts->arg ? "\\fR" : "");
        put_line(f, opts->help, strlen(opts->help));
    }
}

struct page {
    FILE *f;
    const char *name, *help;
};

/* A command of a command. An opt_show_fn: arg is the struct page. */
static void put_verb(void *arg, const struct opt *opts, const struct opt_usage *usage)
{
    FILE *f = ((struct page *)arg)->f;

    fputs(".SS ", f);
    put_synopsis(f, usage->synopsis);
    put_text(f, usage->about);
    put_options(f, opts);
}

/* An opt_show_fn: arg is the struct page. */
static void put_command(void *arg, const struct opt *opts,
                        const struct opt_usage *usage)
{
    const struct page *page = arg;
    FILE *f = page->f;

    put_head(f, page->name, page->help);
    fputs(".SH SYNOPSIS\n", f);
    put_synopsis(f, usage->synopsis);
    fputs(".SH DESCRIPTION\n", f);
    put_text(f, usage->about);
    if (!usage->verbs) {
        fputs(".SH OPTIONS\n", f);
        put_options(f, opts);
    }
    if (usage->example)
        put_examples(f, usage->example);
}

/* Its verbs cannot be shown while it is shown itself. */
static void note_verbs(void *arg, const struct opt *opts, const struct opt_usage *usage)
{
    const struct opt_verb **verbs = arg;

    (void)opts;
    *verbs = usage->verbs;
}

static void write_command(FILE *f, const void *arg)
{
    const struct command *c = arg;
    struct page page = {.f = f, .name = c->name, .help = c->help};
    const struct opt_verb *verbs = NULL;

    cmd_show(c->name, NULL, put_command, &page);
    cmd_show(c->name, NULL, note_verbs, &verbs);
    if (verbs)
        fputs(".SH COMMANDS\n", f);
    for (; verbs && verbs->name; verbs++)
        cmd_show(c->name, verbs->name, put_verb, &page);
    fputs(".SH SEE ALSO\n.BR bench (1)\n", f);
}

/* ---- bench(1) -------------------------------------------------------------------- */

static void write_main(FILE *f, const void *arg)
{
    (void)arg;
    put_head(f, "", "benchmarks of small language models on CPUs");
    fputs(".SH SYNOPSIS\n\\fBbench\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n"
          ".SH DESCRIPTION\n",
          f);
    put_text(f,
             "Finds the quantisation, threads and context that run a small language "
             "model best on this CPU, within a memory limit: how fast, and how close "
             "to the machine's limits. Begin with `bench doctor` and `bench "
             "quick`.\n");
    fputs(".SH COMMANDS\n", f);
    for (const struct command *c = commands; c->name; c++) {
        if (!c->help)
            continue;
        fprintf(f, ".TP\n\\fBbench\\-%s\\fR(1)\n", c->name);
        put_line(f, c->help, strlen(c->help));
    }
    fputs(".SH EXIT STATUS\n", f);
    put_text(f, exit_codes_help + strlen("exit codes: "));
    fputs(".SH ENVIRONMENT\n", f);
    fputs(".TP\n\\fBSLMBENCH_CACHE\\fR\n"
          "folder of synthetic models (default: ~/.cache/slmbench)\n"
          ".TP\n\\fBSLMBENCH_RESULTS\\fR\n"
          "folder of results where no \\fB\\-o\\fR is given (default: results)\n"
          ".TP\n\\fBSLMBENCH_LOCK\\fR\n"
          "file that lets one program measure at a time, or none\n"
          ".SH FILES\n"
          ".TP\n\\fI~/.config/slmbench/\\fR\n"
          "models, sweeps, gates, texts and plots of yours, which come before those "
          "that\n\\fBbench files\\fR lists\n",
          f);
    put_examples(f, "bench doctor\nbench quick\n"
                    "bench sweep -m yi-1.5-9b:Q4_K_M --mem 6G\nbench recommend");
}

/* ---- pages ----------------------------------------------------------------------- */

static enum status write_all(const char *dir, struct err *err)
{
    char path[MAX_PATH_BYTES];
    enum status st = dirs_make(dir, err);

    for (const struct command *c = commands; st == ST_OK && c->name; c++) {
        if (!c->help)
            continue;
        snprintf(path, sizeof path, "%.4000s/bench-%s.1", dir, c->name);
        st = textfile_write(path, write_command, c, err);
    }
    if (st == ST_OK) {
        snprintf(path, sizeof path, "%.4000s/bench.1", dir);
        st = textfile_write(path, write_main, NULL, err);
    }
    return st;
}

static enum status print_page(const char *name, struct err *err)
{
    if (!name)
        return textfile_write("-", write_main, NULL, err);
    for (const struct command *c = commands; c->name; c++)
        if (c->help && !strcmp(c->name, name))
            return textfile_write("-", write_command, c, err);
    return err_set(err, ST_USAGE,
                   "there is no command '%.40s'; `bench --help` lists them", name);
}

int cmd_man(int argc, char **argv)
{
    const char *dir = NULL;
    const struct opt opts[] = {
        OPT_STR('o', "output", &dir, "DIR", "write the pages of all commands there"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "man [COMMAND] [-o DIR]",
        .about = "Prints the manual page of a command, or of bench, for man: `cmake "
                 "--install` and the package install all of them. The static program "
                 "brings them along. So it does completion for bash, zsh and fish: "
                 "`bench files shell/bench.bash` prints the script.",
        .example = "bench man sweep | man -l -\n"
                   "bench man -o ~/.local/share/man/man1\n"
                   "source <(bench files shell/bench.bash)",
        .no_kernels = true,
    };
    struct opt_args args;
    struct err err = ERR_INIT;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n > (dir ? 0 : 1))
        err_set(&err, ST_USAGE, "unexpected argument '%.60s'; see `bench man --help`",
                args.v[dir ? 0 : 1]);
    else if (dir)
        write_all(dir, &err);
    else
        print_page(args.n ? args.v[0] : NULL, &err);
    return cmd_end(&err);
}

/* ==== bench complete ============================================================== */

/* configs/shell/ has scripts that call `bench complete WORD...` for bash, zsh and fish with
 * the words after `bench`; the last one is to be completed. The first line is what the
 * shell adds of its own: words (nothing), files, folders, or model (files; ":QUANT" may
 * follow). Each further line is a word, a tabulator and what it means. It never fails: a
 * word that nothing is known of gets files. */

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
