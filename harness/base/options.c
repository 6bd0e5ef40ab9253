/* SPDX-License-Identifier: MIT
 *
 * options.c - the option table: getopt_long() for the syntax, this for the types
 */
#include "harness/base/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/suggest.h"
#include "kernels/isa.h"

#define MAX_OPTS  48
#define LONG_BASE 1000 /* getopt values of options, beyond any letter */

/* Help is printed for a terminal of 80 columns. */
#define LINE_WIDTH 79
#define MAX_LEFT_WIDTH \
    24 /* of an option's name and argument; a longer one stands out */

static const char *isa_disable_list;
static bool want_help;
static opt_show_fn *show_table;
static void *show_arg;

/* clang-format off */
static const struct opt isa_opts[] = {
    OPT_STR(0, "isa-disable", &isa_disable_list, "LIST",
            "do not use these ISA levels (amx, avx512, ...)"),
    OPT_END
};
static const struct opt help_opts[] = {
    OPT_FLAG('h', "help", &want_help, "print this text"),
    OPT_END
};
/* clang-format on */

static int count(const struct opt *opts)
{
    int n = 0;

    while (opts[n].kind != OPT_KIND_END)
        n++;
    return n;
}

/* ---- --help ---------------------------------------------------------------------- */

/* "-m, --model FILE"; returns its length. */
static int left_of(char *buf, size_t cap, const struct opt *o)
{
    return snprintf(buf, cap, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
                    o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
                    o->arg ? " " : "", o->arg ? o->arg : "");
}

static int widest_left(const struct opt *opts, int widest)
{
    char left[80];

    for (; opts->kind != OPT_KIND_END; opts++) {
        const int n = left_of(left, sizeof left, opts);

        if (n <= MAX_LEFT_WIDTH && n > widest)
            widest = n;
    }
    return widest;
}

static void print_options(FILE *f, const struct opt *opts, int width)
{
    char left[80];

    for (; opts->kind != OPT_KIND_END; opts++) {
        const int n = left_of(left, sizeof left, opts);

        fprintf(f, "  %-*s  ", width, left);
        text_wrap(f, opts->help, 4 + (n > width ? n : width), 4 + width, LINE_WIDTH,
                  false);
    }
}

static void print_examples(FILE *f, const char *lines)
{
    fputs("\nexamples:\n", f);
    while (*lines) {
        lines += strspn(lines, " ");
        const size_t len = strcspn(lines, "\n");

        fprintf(f, "  %.*s\n", (int)len, lines);
        lines += len + (lines[len] == '\n');
    }
}

static const char *program_of(const struct opt_usage *u)
{
    return u->program ? u->program : "bench";
}

static void print_verbs(FILE *f, const struct opt_verb *verbs)
{
    int width = 0;

    for (const struct opt_verb *v = verbs; v->name; v++)
        width = (int)strlen(v->name) > width ? (int)strlen(v->name) : width;
    fputs("\ncommands:\n", f);
    for (const struct opt_verb *v = verbs; v->name; v++)
        fprintf(f, "  %-*s  %s\n", width, v->name, v->help);
}

static void print_help(FILE *f, const struct opt *opts, const struct opt_usage *u)
{
    int width = widest_left(opts, widest_left(help_opts, 0));

    if (!u->no_kernels)
        width = widest_left(isa_opts, width);
    fprintf(f, "usage: %s ", program_of(u));
    text_wrap(f, u->synopsis, (int)strlen(program_of(u)) + 8, 15, LINE_WIDTH, true);
    fputc('\n', f);
    text_wrap(f, u->about, 0, 0, LINE_WIDTH, false);
    if (u->verbs)
        print_verbs(f, u->verbs);
    fputs("\noptions:\n", f);
    print_options(f, opts, width);
    if (!u->no_kernels)
        print_options(f, isa_opts, width);
    print_options(f, help_opts, width);
    if (u->example)
        print_examples(f, u->example);
}

/* ---- parsing --------------------------------------------------------------------- */

static enum status append_string(struct str_list *list, const char *text,
                                 struct err *err)
{
    const char **v = realloc(list->v, (list->n + 1) * sizeof *v);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "out of memory reading options");
    list->v = v;
    v[list->n++] = text;
    return ST_OK;
}

/* Whoever names two models means both. Other values may replace those of a script. */
static enum status check_again(const struct opt *o, const char *before,
                               const char *text, const char *command, struct err *err)
{
    const bool is_model = o->kind == OPT_KIND_STR && !strcmp(o->arg, "MODEL");

    if (!is_model || !before || !strcmp(before, text))
        return ST_OK;
    return err_set(
        err, ST_USAGE,
        "--%s is given twice, as %.100s and %.100s, and %s takes one; run it "
        "once for each",
        o->name, before, text, command);
}

static enum status store(const struct opt *o, const char *text, struct err *err)
{
    char what[64];
    long long integer;

    snprintf(what, sizeof what, "--%s", o->name);
    switch (o->kind) {
    case OPT_KIND_FLAG:
        *(bool *)o->dst = true;
        return ST_OK;
    case OPT_KIND_STR:
        *(const char **)o->dst = text;
        return ST_OK;
    case OPT_KIND_INT:
        if (parse_count(text, what, "", (long long)o->min, (long long)o->max, &integer,
                        err))
            return ST_USAGE;
        *(int *)o->dst = (int)integer;
        return ST_OK;
    case OPT_KIND_DOUBLE:
        return parse_double(text, what, o->min, o->max, o->dst, err);
    case OPT_KIND_SECONDS:
        return parse_duration(text, what, o->min, o->max, o->dst, err);
    case OPT_KIND_U64:
        return parse_u64(text, what, o->dst, err);
    case OPT_KIND_BYTES:
        return parse_bytes(text, what, o->dst, err);
    case OPT_KIND_INTS: {
        struct int_list list = {NULL, 0};

        if (parse_counts(text, what, "", (int)o->min, (int)o->max, &list, err))
            return ST_USAGE;
        free(((struct int_list *)o->dst)->v);
        *(struct int_list *)o->dst = list;
        return ST_OK;
    }
    case OPT_KIND_STRS:
        return append_string(o->dst, text, err);
    case OPT_KIND_CHOICE:
        return choice_parse(o->choices, text, what, o->dst, err);
    case OPT_KIND_TAKE:
        return o->take(o->dst, o->id, text, what, err);
    case OPT_KIND_END:
        break;
    }
    return ST_OK;
}

/* The table for getopt_long(): the command's options, then the common ones. */
struct getopt_table {
    struct option longs[MAX_OPTS + 1];
    char letters[2 * MAX_OPTS + 3];
    const struct opt *opt[MAX_OPTS];
    const char *given[MAX_OPTS]; /* the value so far; NULL: none */
    int n;
};

static void table_add(struct getopt_table *t, const struct opt *opts)
{
    const int n = count(opts);

    for (int i = 0; i < n && t->n < MAX_OPTS; i++) {
        const bool has_arg = opts[i].kind != OPT_KIND_FLAG;
        char *end = t->letters + strlen(t->letters);

        t->opt[t->n] = &opts[i];
        t->longs[t->n] = (struct option){opts[i].name, has_arg, NULL, LONG_BASE + t->n};
        if (opts[i].letter) {
            *end++ = opts[i].letter;
            if (has_arg)
                *end++ = ':';
            *end = '\0';
        }
        t->n++;
    }
}

/* The index of the option; -1: none. */
static int table_find(const struct getopt_table *t, int value)
{
    if (value >= LONG_BASE)
        return value - LONG_BASE;
    for (int i = 0; i < t->n; i++)
        if (t->opt[i]->letter == value)
            return i;
    return -1;
}

static enum status bad_option(const struct getopt_table *t, const struct opt_usage *u,
                              const char *command, const char *word, struct err *err)
{
    const char *names[MAX_OPTS];
    char given[64];

    snprintf(given, sizeof given, "%.*s", (int)strcspn(word, "="), word);
    for (int i = 0; i < t->n; i++)
        names[i] = t->opt[i]->name;
    const char *near = strncmp(given, "--", 2) ? NULL : suggest(given + 2, names, t->n);
    if (near)
        return err_set(err, ST_USAGE, "%s has no option %s; did you mean --%s?",
                       command, given, near);
    return err_set(err, ST_USAGE, "%s has no option %s; `%s %s --help` lists them",
                   command, given, program_of(u), command);
}

static enum status apply_isa_disable(struct err *err)
{
    const char *bad;
    uint32_t mask;
    int bad_len;

    if (!isa_disable_list)
        return ST_OK;
    if (isa_parse_list(isa_disable_list, &mask, &bad, &bad_len)) {
        char known[160] = "";

        for (int i = KERN_ISA_scalar + 1; i < KERN_N_ISA; i++)
            text_append(known, sizeof known, "%s%s", known[0] ? ", " : "",
                        isa_name((enum kern_isa)i));
        text_append(known, sizeof known, ", amx (amx_int8 and amx_bf16)");
        return err_set(err, ST_USAGE,
                       "--isa-disable: there is no ISA level '%.*s'; known: %s",
                       bad_len, bad, known);
    }
    isa_disable(mask);
    return ST_OK;
}

static enum status parse(struct opt_args *args, int argc, char **argv,
                         const struct opt *opts, const struct opt_usage *usage,
                         struct err *err)
{
    struct getopt_table t = {.n = 0, .letters = ":"};
    int value;

    table_add(&t, opts);
    if (!usage->no_kernels)
        table_add(&t, isa_opts);
    table_add(&t, help_opts);
    want_help = false;
    isa_disable_list = NULL;
    optind = 0; /* GNU: start afresh, permuting arguments to the end */
    opterr = 0;
    while ((value = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1) {
        if (value == ':')
            return err_set(err, ST_USAGE, "%s: %s needs a value", argv[0],
                           argv[optind - 1]);
        const int at = value == '?' ? -1 : table_find(&t, value);
        if (at < 0) {
            char letter[3] = {'-', (char)optopt, '\0'};

            /* A bad letter inside "-xyz" leaves optind on the word itself. */
            if (value == '?' && optopt && optopt < LONG_BASE)
                return bad_option(&t, usage, argv[0], letter, err);
            if (value == '?' && optopt >= LONG_BASE)
                return err_set(err, ST_USAGE, "%s: --%s takes no value", argv[0],
                               t.opt[optopt - LONG_BASE]->name);
            return bad_option(&t, usage, argv[0], argv[optind - 1], err);
        }
        enum status s = check_again(t.opt[at], t.given[at], optarg, argv[0], err);
        if (s == ST_OK)
            s = store(t.opt[at], optarg, err);
        if (s != ST_OK)
            return s;
        t.given[at] = optarg;
    }
    args->v = argv + optind;
    args->n = argc - optind;
    args->help = want_help;
    if (want_help) {
        print_help(stdout, opts, usage);
        return ST_OK;
    }
    if (args->n && usage->no_arguments)
        return err_set(err, ST_USAGE, "unexpected argument '%.60s'; %s", args->v[0],
                       usage->no_arguments);
    return apply_isa_disable(err);
}

static void free_lists(const struct opt *opts)
{
    for (const struct opt *o = opts; o->kind != OPT_KIND_END; o++) {
        if (o->kind == OPT_KIND_INTS) {
            free(((struct int_list *)o->dst)->v);
            *(struct int_list *)o->dst = (struct int_list){NULL, 0};
        } else if (o->kind == OPT_KIND_STRS) {
            free(((struct str_list *)o->dst)->v);
            *(struct str_list *)o->dst = (struct str_list){NULL, 0};
        }
    }
}

void opt_show_tables(opt_show_fn *show, void *arg)
{
    show_table = show;
    show_arg = arg;
}

static void show(const struct opt *opts, const struct opt_usage *usage)
{
    const struct opt *tables[] = {opts, isa_opts, help_opts};
    struct opt all[MAX_OPTS + 1];
    int n = 0;

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct opt *o = tables[i]; o->kind != OPT_KIND_END; o++)
            if (n < MAX_OPTS && (o != isa_opts || !usage->no_kernels))
                all[n++] = *o;
    all[n] = (struct opt)OPT_END;
    show_table(show_arg, all, usage);
}

enum status opt_parse(struct opt_args *args, int argc, char **argv,
                      const struct opt *opts, const struct opt_usage *usage,
                      struct err *err)
{
    if (show_table) {
        *args = (struct opt_args){.help = true};
        show(opts, usage);
        return ST_OK;
    }

    const enum status st = parse(args, argc, argv, opts, usage, err);

    if (st || args->help)
        free_lists(opts);
    return st;
}
