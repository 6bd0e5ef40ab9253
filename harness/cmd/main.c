/* SPDX-License-Identifier: MIT
 *
 * main.c - find the subcommand and run it
 */
#include "engine/gguf/mapguard.h"
#include "harness/base/format.h"
#include "harness/base/inherited.h"
#include "harness/base/progress.h"
#include "harness/base/program.h"
#include "harness/base/suggest.h"
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#define MAX_COMMANDS 64

static void print_help(FILE *f)
{
    fputs(
        "bench - find the quantisation, threads and context that run a small language\n"
        "model best on this CPU, how fast, and how close to the machine's limits\n"
        "\n"
        "usage: bench COMMAND [options]\n"
        "\n"
        "commands:\n",
        f);
    for (const struct command *c = commands; c->name; c++)
        if (c->help)
            fprintf(f, "  %-10s %s\n", c->name, c->help);
    fputs("\n"
          "`bench help COMMAND` explains a command; `bench --version` prints the\n"
          "version. Begin with:\n"
          "  bench quick\n"
          "  bench sweep -m yi-1.5-9b:Q4_K_M\n"
          "\n",
          f);
    fputs(exit_codes_help, f);
}

static int unknown_command(const char *name)
{
    const struct shown_path shown = format_path(name);
    const char *names[MAX_COMMANDS];
    int n = 0;

    for (const struct command *c = commands; c->name; c++)
        if (c->help && n < MAX_COMMANDS)
            names[n++] = c->name;
    const char *near = suggest(name, names, n);
    if (near)
        fprintf(stderr, "bench: there is no command '%s'; did you mean '%s'?\n",
                shown.text, near);
    else
        fprintf(stderr, "bench: there is no command '%s'; `bench --help` lists them.\n",
                shown.text);
    return 2;
}

static int run_command(int argc, char **argv)
{
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(argv[0], c->name))
            return c->run(argc, argv);
    return unknown_command(argv[0]);
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return !strcmp(word, a) || !strcmp(word, b) || !strcmp(word, c);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "help") && argc > 2) {
        char option[] = "--help", *words[] = {argv[2], option, NULL};

        return run_command(2, words);
    }
    if (is_one_of(argv[1], "--help", "-h", "help")) {
        print_help(stdout);
        return 0;
    }
    if (is_one_of(argv[1], "--version", "-V", "version")) {
        printf("bench %s, %s\n", build_version(), build_compiler());
        return 0;
    }
    return run_command(argc - 1, argv + 1);
}

/* What runs before the constructors of all libraries, preloaded ones included. */
static void (*const before_libraries)(int, char **)
    __attribute__((section(".preinit_array"), used)) = inherited_close_others;

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;

    if (inherited_settle(&err))
        return cmd_end(&err);
    const int code = run(argc, argv);

    /* A failed command has already printed its reason. */
    if (code == 0 && mapguard_check_all(&err)) {
        message_print(err.msg);
        return 2;
    }
    if ((fflush(stdout) || ferror(stdout)) && code == 0) {
        fprintf(stderr, "bench: cannot write to standard output\n");
        return 2;
    }
    return code;
}
