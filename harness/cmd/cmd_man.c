/* SPDX-License-Identifier: MIT
 *
 * cmd_man.c - `bench man`: manual pages, from the tables that --help is made of
 *
 * The pages use the macros of man(7). The third argument of .TH, the date, is empty:
 * the same program writes the same pages.
 */
#include "harness/cmd/cmd.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/dirs.h"
#include "harness/base/program.h"
#include "harness/base/textfile.h"

#define MAX_PATH_BYTES 4096

/* ---- texts as roff --------------------------------------------------------------- */

/* A line of the text, at most len bytes; what is between backticks is bold. */
static void put_line(FILE *f, const char *line, size_t len)
{
    static const char *const escapes['~' + 1] = {['\\'] = "\\e",
                                                 ['-'] = "\\-",
                                                 ['\''] = "\\(aq",
                                                 ['~'] = "\\(ti",
                                                 ['^'] = "\\(ha"};
    bool bold = false;

    if (len && (*line == '.' || *line == '\''))
        fputs("\\&", f);
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)line[i];

        if (c == '`') {
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fR", f);
        } else if (c <= '~' && escapes[c]) {
            fputs(escapes[c], f);
        } else {
            fputc(c, f);
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
             "to the machine's limits. Begin with `bench doctor` and `bench quick`.\n");
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
