/* SPDX-License-Identifier: MIT
 *
 * options.h - options as a table: parsing and --help from one place
 *
 *     struct opt opts[] = {
 *         OPT_STR('m', "model", &model, "FILE", "the GGUF file"),
 *         OPT_INT('n', "tokens", &n, "N", "how many tokens", 1, INT_MAX),
 *         OPT_FLAG(0, "json", &json, "print JSON"),
 *         OPT_END
 *     };
 *     if (opt_parse(&args, argc, argv, opts, &usage, &err)) ...
 *
 * Every command has --help, and --isa-disable=LIST unless it runs no kernel. Options
 * and arguments may be mixed; "--" ends options. The last of two values of an option
 * counts, but two different ones of an OPT_STR with the argument MODEL are refused.
 * Help is wrapped at 80 columns.
 *
 * Threading: the main thread.
 */
#ifndef SLM_HARNESS_BASE_OPTIONS_H
#define SLM_HARNESS_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/base/choice.h"

enum opt_kind {
    OPT_KIND_END,
    OPT_KIND_FLAG,    /* bool */
    OPT_KIND_STR,     /* const char * */
    OPT_KIND_INT,     /* int, min..max */
    OPT_KIND_DOUBLE,  /* double, min..max */
    OPT_KIND_SECONDS, /* double, min..max: "90", "90s", "10m", "1h" */
    OPT_KIND_U64,     /* uint64_t */
    OPT_KIND_BYTES,   /* uint64_t: "6G", "512M", "1.5GiB"; "none" = 0 */
    OPT_KIND_INTS,    /* struct int_list: "1,2,4" and "1-4" */
    OPT_KIND_STRS,    /* struct str_list: may be repeated */
    OPT_KIND_CHOICE,  /* an enumeration, or an int that is negative for none */
    OPT_KIND_TAKE,    /* whatever a function reads */
};

struct int_list {
    int *v; /* malloc'ed, or NULL */
    size_t n;
};

struct str_list {
    const char **v; /* malloc'ed array of argv's strings */
    size_t n;
};

/* id is that of the option's row. Error: ST_USAGE. */
typedef enum status opt_take_fn(void *dst, int id, const char *text, const char *what,
                                struct err *err);

struct opt {
    enum opt_kind kind;
    char letter; /* 0: none */
    const char *name;
    void *dst; /* holds the default before parsing */
    const char *arg;
    const char *help;
    double min, max;
    opt_take_fn *take; /* OPT_KIND_TAKE */
    int id;
    const struct choices
        *choices; /* the values there are, also for completion; or NULL */
};

/* clang-format off */
#define OPT_FLAG(l, n, d, h)             {OPT_KIND_FLAG, l, n, d, NULL, h, 0, 0, NULL, 0, NULL}
#define OPT_STR(l, n, d, a, h)           {OPT_KIND_STR, l, n, d, a, h, 0, 0, NULL, 0, NULL}
#define OPT_INT(l, n, d, a, h, lo, hi)   {OPT_KIND_INT, l, n, d, a, h, lo, hi, NULL, 0, NULL}
#define OPT_DOUBLE(l, n, d, a, h, lo, hi) {OPT_KIND_DOUBLE, l, n, d, a, h, lo, hi, NULL, 0, NULL}
#define OPT_SECONDS(l, n, d, a, h, lo, hi) {OPT_KIND_SECONDS, l, n, d, a, h, lo, hi, NULL, 0, NULL}
#define OPT_U64(l, n, d, a, h)           {OPT_KIND_U64, l, n, d, a, h, 0, 0, NULL, 0, NULL}
#define OPT_BYTES(l, n, d, a, h)         {OPT_KIND_BYTES, l, n, d, a, h, 0, 0, NULL, 0, NULL}
#define OPT_INTS(l, n, d, a, h, lo, hi)  {OPT_KIND_INTS, l, n, d, a, h, lo, hi, NULL, 0, NULL}
#define OPT_STRS(l, n, d, a, h)          {OPT_KIND_STRS, l, n, d, a, h, 0, 0, NULL, 0, NULL}
#define OPT_CHOICE(l, n, d, a, h, c)     {OPT_KIND_CHOICE, l, n, d, a, h, 0, 0, NULL, 0, c}
#define OPT_TAKE(l, n, d, a, h, take, id) {OPT_KIND_TAKE, l, n, d, a, h, 0, 0, take, id, NULL}
#define OPT_END                          {OPT_KIND_END, 0, NULL, NULL, NULL, NULL, 0, 0, NULL, 0, NULL}
/* clang-format on */

struct opt_usage {
    const char *synopsis; /* "gguf FILE [--tensor NAME -o OUT]" */
    const char *about;    /* paragraphs; a line that begins with a blank stays a line */
    const char *example;  /* one or more lines "bench ...", or NULL */
    const char *program;  /* NULL: bench */
    bool no_kernels;      /* the command runs no kernel: no --isa-disable */
    /* The command takes no argument: what its refusal prints after "unexpected argument
     * '...'; ". NULL: it takes some, and checks them itself. */
    const char *no_arguments;
    const struct opt_verb *verbs; /* the command's own commands, or NULL; the last has
                                     no name */
};

struct opt_verb {
    const char *name, *help;
};

struct opt_args {
    char **v; /* the positional arguments, pointing into argv */
    int n;
    bool help; /* --help was given and has been printed: return 0 */
};

/* Errors: ST_USAGE, naming the argument or option and, for a near miss, the one
 * probably meant. On ST_OK with args->help set the caller returns 0 at once. Lists are
 * the caller's to free on success; otherwise they are empty. */
enum status opt_parse(struct opt_args *args, int argc, char **argv,
                      const struct opt *opts, const struct opt_usage *usage,
                      struct err *err);

/* For manual pages and completion: opt_parse() calls show with the table, --help and
 * the like included, parses nothing and sets args->help, so that the command ends at
 * once. show NULL: it parses again. */
typedef void opt_show_fn(void *arg, const struct opt *opts,
                         const struct opt_usage *usage);
void opt_show_tables(opt_show_fn *show, void *arg);

/* The parsers behind the kinds; what names the option or key in messages. */
enum status parse_bytes(const char *text, const char *what, uint64_t *out,
                        struct err *err);

#endif
