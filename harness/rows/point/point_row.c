/* SPDX-License-Identifier: MIT
 *
 * point_row.c - a point from the columns of a stored row
 */
#include "harness/rows/point/point_row.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/base/format.h"

#define MAX_SAMPLES  1000
#define MIN_BUDGET_S 0.01
#define MAX_BUDGET_S 600

static bool has_setting(const struct point *p, const struct setting *s)
{
    return !s->kinds || s->kinds >> p->kind & 1;
}

/* A column into the setting whose value it is. An empty cell leaves the default of a
 * setting that is not printed then; others must be there. */
static enum status set_setting(struct point *p, const struct row *r,
                               const struct field *f, struct err *err)
{
    const struct setting *s = setting_row(f->setting);
    char text[ROW_CELL_MAX], what[80];
    size_t size;
    void *field;

    row_cell(r, f, text, sizeof text);
    if (!has_setting(p, s) || (!*text && s->shown == SETTING_SHOWN_IF_SET))
        return ST_OK;
    snprintf(what, sizeof what, "a stored row's %s is %.20s", f->name,
             *text ? text : "empty");
    field = point_field(p, f->setting, &size);
    return setting_parse(f->setting, text, what, field, size, err)
               ? err->code = ST_INPUT
               : ST_OK;
}

/* The CPUs of the machine that it was measured on: as many as threads. */
static enum status take_cpus(struct point *p, const struct row *r, struct err *err)
{
    struct int_list list = {NULL, 0};
    const size_t wanted = (size_t)model_setup_threads(&p->setup);
    enum status st =
        parse_counts(r->cpus, "a stored row's cpus", "", 0, INT_MAX - 1, &list, err);

    if (st == ST_OK && (list.n != wanted || wanted > TOPO_MAX_CPUS))
        st = err_set(err, ST_INPUT, "a stored row has %zu CPU%s for %zu thread%s",
                     list.n, plural(list.n, "s"), wanted, plural(wanted, "s"));
    for (size_t i = 0; i < list.n && st == ST_OK; i++)
        p->setup.cpus[i] = list.v[i];
    free(list.v);
    return st;
}

static enum status set_settings(struct point *p, const struct row *r, struct err *err)
{
    enum status st = ST_OK;

    p->setup.explicit_cpus = r->placement == ROW_PLACEMENT_LIST;
    for (const struct field *f = row_fields(NULL); f->name && st == ST_OK; f++)
        if (f->is_set && !(f->setting == SETTING_placement && p->setup.explicit_cpus))
            st = set_setting(p, r, f, err);
    return st || !p->setup.explicit_cpus ? st : take_cpus(p, r, err);
}

/* Rows of versions without n_wanted, n_batch and budget_s: what the command that
 * reproduces the point has of them, and the number of samples. */
static void fill_older(struct row *r)
{
    const char *batch = strstr(r->command, " --batch ");
    const char *budget = strstr(r->command, " --budget ");

    if (r->n_wanted == FIELD_NO_INT)
        r->n_wanted = r->n_samples;
    if (r->n_batch == FIELD_NO_INT && batch)
        r->n_batch = strtol(batch + strlen(" --batch "), NULL, 10);
    if (isnan(r->budget_s) && budget)
        r->budget_s = strtod(budget + strlen(" --budget "), NULL);
}

/* What is out of range is left at the default: it changes how a point is measured, not
 * which one it is. */
static void set_effort(struct point *p, const struct row *r)
{
    if (r->n_wanted >= 1 && r->n_wanted <= MAX_SAMPLES)
        p->n_tokens = (int)r->n_wanted;
    if (r->n_batch >= 1 && r->n_batch <= SETTING_MAX(batch))
        p->setup.n_batch = (int)r->n_batch;
    if (r->budget_s >= MIN_BUDGET_S && r->budget_s <= MAX_BUDGET_S)
        p->budget_s = r->budget_s;
}

enum status point_from_row(struct point *p, const struct row *r,
                           const struct modelref *model, struct err *err)
{
    struct row effort = *r;

    if (r->kind == POINT_SPECULATE)
        return err_set(err, ST_INPUT,
                       "a stored row of %.60s is of speculative decoding on the text "
                       "%.40s, and no column says where that text is; `bench decode "
                       "--speculate` measures it",
                       r->model, r->spec_text);
    if (*r->engine)
        return err_set(err, ST_INPUT,
                       "a stored row of %.60s is of the program %.23s, and no column "
                       "says where that is; `bench decode --engine %.23s=PATH` "
                       "measures it",
                       r->model, r->engine, r->engine);
    if (r->tuning == TUNED_USED)
        return err_set(err, ST_INPUT,
                       "a stored row of %.60s used a profile of `bench tune`, which "
                       "this version does not have",
                       r->model);
    point_init(p);
    p->setup.model = *model;
    p->setup.isa_disabled = isa_detected() & ~isa_usable();
    fill_older(&effort);
    set_effort(p, &effort);
    p->setup.mem_limit = r->mem_limit_bytes > 0 ? (uint64_t)r->mem_limit_bytes : 0;
    p->kind = r->kind == POINT_PREFILL ? POINT_PREFILL : POINT_DECODE;
    return set_settings(p, r, err);
}

/* ---- its command ----------------------------------------------------------------- */

/* The character that \xNN stands for; 0: none. */
static char escaped_char(const char *text)
{
    if (text[1] != 'x' || !isxdigit((unsigned char)text[2]) ||
        !isxdigit((unsigned char)text[3]))
        return '\0';
    return (char)strtoul((char[]){text[2], text[3], '\0'}, NULL, 16);
}

/* The word at text of a command, as shell_word_append() writes it, into word[cap]. */
static bool read_word(const char *text, char *word, size_t cap)
{
    const bool escaped = text[0] == '$' && text[1] == '\'';
    const bool quoted = escaped || *text == '\'';
    size_t n = 0;

    for (text += quoted + escaped; *text && *text != (quoted ? '\'' : ' '); n++) {
        if (n + 1 >= cap)
            return false;
        if (escaped && *text == '\\') {
            word[n] = escaped_char(text);
            if (!word[n])
                return false;
            text += 4;
            continue;
        }
        word[n] = *text++;
        if (quoted && !escaped && !strncmp(text, "'\\''", 4)) {
            if (n + 2 >= cap)
                return false;
            word[++n] = '\'';
            text += 4;
        }
    }
    word[n] = '\0';
    return n > 0 && (!quoted || *text == '\'');
}

/* Where the last n parts of a path[len] begin. */
static size_t last_parts(const char *path, size_t len, size_t n)
{
    size_t begin = len;

    for (; n > 0 && begin > 0; n--) {
        while (begin > 0 && path[begin - 1] == '/')
            begin--;
        while (begin > 0 && path[begin - 1] != '/')
            begin--;
    }
    return begin;
}

/* Whether a model is called so: "SHAPE:QUANT", or a path with or without ".gguf" and
 * ":QUANT" after it, of which the model's name may have several parts. */
static bool names_model(const char *word, const struct row *r)
{
    const size_t n = strlen(r->model);
    size_t end = strlen(word), n_parts = 1;

    while (end > 1 && word[end - 1] == '/')
        end--;
    for (const char *p = r->model; *p; p++)
        n_parts += *p == '/';
    const struct shown_path name = format_path(word + last_parts(word, end, n_parts));
    const char *rest = name.text + n;

    if (!n || strncmp(name.text, r->model, n) != 0)
        return false;
    if (!strncasecmp(rest, ".gguf", 5))
        rest += 5;
    return rest[strspn(rest, "/")] == '\0' ||
           (*rest == ':' && r->quant[0] && !strcasecmp(rest + 1, r->quant));
}

/* Takes what no column has: the seed, and the levels of instructions left out. */
static void take_unshown(struct point *p, const struct row *r)
{
    static const struct {
        const char *option;
        enum setting_id id;
    } unshown[] = {{" --seed ", SETTING_seed},
                   {" --isa-disable=", SETTING_isa_disabled}};
    struct err ignored = ERR_INIT;

    p->setup.isa_disabled = 0;
    for (size_t i = 0; i < sizeof unshown / sizeof unshown[0]; i++) {
        const char *at = strstr(r->command, unshown[i].option);
        char word[80];
        size_t size;
        void *field = point_field(p, unshown[i].id, &size);

        if (at && read_word(at + strlen(unshown[i].option), word, sizeof word))
            (void)setting_parse(unshown[i].id, word, unshown[i].option, field, size,
                                &ignored);
    }
}

static const char lead[] = "bench decode -m ";

bool point_row_model(const struct row *r, char *word, size_t cap)
{
    return !strncmp(r->command, lead, strlen(lead)) &&
           read_word(r->command + strlen(lead), word, cap) && word[0] != '-' &&
           names_model(word, r);
}

bool point_row_is_synthetic(const struct row *r)
{
    char word[sizeof((struct modelref *)0)->text];
    const size_t n = strlen(r->model);
    struct synth_shape shape;
    struct err ignored = ERR_INIT;

    return n && !strncmp(r->command, lead, strlen(lead)) &&
           read_word(r->command + strlen(lead), word, sizeof word) &&
           !strncmp(word, r->model, n) && word[n] == ':' &&
           !strcasecmp(word + n + 1, r->quant) && !strchr(r->model, '/') &&
           !shape_load(&shape, r->model, &ignored);
}

enum status point_row_command(const struct row *r, char *buf, size_t cap,
                              struct err *err)
{
    struct modelref model = {.mix = QUANTMIX_N};
    struct point p;

    if (r->kind != POINT_DECODE && r->kind != POINT_PREFILL)
        return err_set(err, ST_INPUT, "the row is of no decode or prefill point");
    if (!point_row_model(r, model.text, sizeof model.text))
        return err_set(err, ST_INPUT, "the row does not say where the model %.60s is",
                       r->model);
    if (point_from_row(&p, r, &model, err))
        return err->code;
    take_unshown(&p, r);
    point_command(&p, buf, cap);
    return strlen(buf) + 1 < cap
               ? ST_OK
               : err_set(err, ST_INPUT, "the command has more than %zu characters",
                         cap - 1);
}

void point_row_remake_command(struct row *r)
{
    char text[sizeof r->command];
    struct err ignored = ERR_INIT;

    if (r->command[0] && point_row_command(r, text, sizeof text, &ignored))
        text[0] = '\0';
    if (r->command[0])
        snprintf(r->command, sizeof r->command, "%s", text);
}
