/* SPDX-License-Identifier: MIT
 *
 * load_servers.c - servers in turn, their rows
 */
#include "harness/serve/load/load_servers.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "harness/base/format.h"
#include "harness/base/textfile.h"
#include "harness/machine/measuring.h"
#include "harness/measure/engines/launch.h"
#include "harness/rows/roofs.h"
#include "harness/measure/sweep/sweep.h"

struct run {
    const struct load_plan *plan;
    struct load_found *out;
    struct sweep_dir *dir; /* NULL: rows are not kept */
    struct row *done;      /* [n_done], of a run that ended early */
    size_t n_done;
    struct launch *running; /* NULL: the server at a URL */
    const char *text;       /* of its --launch; NULL: at a URL */
    uint64_t salt;
    struct topology *topo; /* NULL: nothing of it is needed */
    struct load_roof roof;
};

/* ---- requests.csv: the times of each request that counts, failed ones too -------- */

/* before: size of the file, which begins with a header. A killed program may have left
 * its last line torn: a line end completes it. */
static char *requests_text(const struct row *row, const double *v, size_t n,
                           off_t before, bool is_torn, size_t *len)
{
    static const int decimals[REQUEST_CELLS] = {6, 4, 6, 0, 6, 0};
    char *text = NULL;
    FILE *f = open_memstream(&text, len);

    if (!f)
        return NULL;
    if (!before)
        fputs(REQUESTS_HEADER, f);
    if (is_torn)
        fputc('\n', f);
    for (size_t i = 0; i < n; i++) {
        fprintf(f, strpbrk(row->point, ",\"") ? "\"%s\"" : "%s", row->point);
        fprintf(f, ",%lld,%zu", (long long)row->attempt, i);
        for (int k = 0; k < REQUEST_CELLS; k++) {
            const double cell = v[i * REQUEST_CELLS + (size_t)k];

            fputc(',', f);
            if (!isnan(cell))
                fprintf(f, "%.*f", decimals[k], cell);
        }
        fputc('\n', f);
    }
    return fclose(f) ? (free(text), NULL) : text;
}

static enum status append_to(int fd, const char *dir, const struct row *row,
                             const double *v, size_t n, struct err *err)
{
    const off_t before = lseek(fd, 0, SEEK_END);
    char last = '\n', *text;
    size_t len = 0;
    enum status st = ST_OK;

    if (before < 0 || (before > 0 && pread(fd, &last, 1, before - 1) != 1))
        return err_set_errno(err, ST_IO, "cannot read %s/" REQUESTS_CSV, dir);
    text = requests_text(row, v, n, before, last != '\n', &len);
    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu requests", n);
    if (!textfile_append(fd, text, len, true))
        st = err_set_errno(err, ST_IO,
                           "cannot write to %s/" REQUESTS_CSV
                           " (free disk space and continue with --resume)",
                           dir);
    free(text);
    return st;
}

/* Appends the requests of the row's launch to requests.csv, on disk when it returns, or
 * none of them. v: [n][REQUEST_CELLS], NAN where a cell is empty. The row is to be
 * written after it: if a launch occurs twice, the later one counts. */
static enum status append_requests(const struct sweep_dir *dir, const struct row *row,
                                   const double *v, size_t n, struct err *err)
{
    int fd;
    enum status st = sweep_dir_open_file(dir, REQUESTS_CSV, O_RDWR, &fd, err);

    if (st)
        return st;
    st = append_to(fd, sweep_dir_path(dir), row, v, n, err);
    close(fd);
    return st;
}

/* ---- rows ------------------------------------------------------------------------ */

static enum status add_rows(struct load_found *f, const struct row *rows, size_t n,
                            struct err *err)
{
    struct row *more = realloc(f->rows, (f->n_rows + n + 1) * sizeof *more);

    if (!more)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", f->n_rows + n);
    f->rows = more;
    if (n)
        memcpy(f->rows + f->n_rows, rows, n * sizeof *rows);
    f->n_rows += n;
    return ST_OK;
}

/* " OPTION VALUE" behind the row's command; nothing without a value. */
static void add_option(struct row *row, const char *option, const char *value)
{
    if (!value)
        return;
    text_append(row->command, sizeof row->command, " %s", option);
    shell_word_append(row->command, sizeof row->command, value);
}

/* What measures the row again; "" where that is too long for its column. */
static void note_command(struct row *row, const struct run *x)
{
    const struct load_plan *p = x->plan;
    const struct load_settings *s = &p->s;
    const size_t cap = sizeof row->command;
    char *buf = row->command;
    char text[64];

    snprintf(buf, cap, "bench load");
    if (x->text)
        text_append(buf, cap, " --launch");
    shell_word_append(buf, cap, x->text ? x->text : s->url);
    if (p->mem_limit)
        text_append(buf, cap, " --mem %llu", (unsigned long long)p->mem_limit);
    if (p->quota_cpus > 0)
        text_append(buf, cap, " --cpus-quota %g", p->quota_cpus);
    add_option(row, "--cpus", p->cpus);
    if (row->load_mode == LOAD_MODE_CLOSED)
        text_append(buf, cap, " --users %lld", (long long)row->n_users);
    else
        text_append(buf, cap, " --rate %.6g", row->rate_asked);
    load_dist_text(&s->prompt, text, sizeof text);
    text_append(buf, cap, " --requests %d --slo %s --prompt %s", s->n_requests,
                s->slo.name, text);
    load_dist_text(&s->output, text, sizeof text);
    text_append(buf, cap, " --output %s", text);
    add_option(row, "--sessions", *s->sessions.text ? s->sessions.text : NULL);
    add_option(row, "--body", s->fields);
    add_option(row, "--prompts", s->file);
    if (s->n_prefix)
        text_append(buf, cap, " --prefix %d", s->n_prefix);
    text_append(buf, cap, "%s%s", s->ignore_eos ? " --ignore-eos" : "",
                s->embeddings    ? " --embeddings"
                : s->completions ? " --completions"
                                 : "");
    add_option(row, "--model", s->model);
    add_option(row, "--api-key-env", s->key_env);
    if (s->level_s != LOAD_LEVEL_S)
        text_append(buf, cap, " --level-time %g", s->level_s);
    if (s->silence_s != LOAD_SILENCE_S)
        text_append(buf, cap, " --timeout %g", s->silence_s);
    if (s->seed != LOAD_SEED)
        text_append(buf, cap, " --seed %llu", (unsigned long long)s->seed);
    if (strlen(buf) + 1 == cap)
        buf[0] = '\0';
}

/* Whether the row is of the same server and settings, whatever its load. */
static bool is_of_run(const struct row *row, const struct run *x)
{
    struct row *own = malloc(sizeof *own);
    const char *a, *b;
    bool is_same;

    if (!own)
        return true;
    *own = *row;
    note_command(own, x);
    a = strstr(own->command, " --requests ");
    b = strstr(row->command, " --requests ");
    is_same = a && b ? !strcmp(a, b) : a == b;
    if (row->load_mode == LOAD_MODE_CLOSED)
        is_same = !strcmp(own->command, row->command);
    else if ((a = strstr(own->command, " --rate ")) && is_same) /* it is rounded */
        is_same = !strncmp(own->command, row->command, (size_t)(a - own->command));
    free(own);
    return is_same;
}

/* Rows of this server that the directory has from before: their levels are not
 * repeated, so they must be of the same settings. */
static enum status check_done(struct run *x, const char *name, const char *text,
                              struct err *err)
{
    x->text = text;
    for (size_t i = 0; i < x->n_done; i++) {
        const struct row *row = &x->done[i];

        if (row->kind == ROW_LOAD && !strcmp(row->engine, name) && !is_of_run(row, x))
            return err_set(err, ST_USAGE,
                           "%s has rows of other settings, `%.300s`: name another "
                           "directory",
                           format_path(x->plan->dir_path).text, row->command);
    }
    x->text = NULL;
    return ST_OK;
}

static enum status check_all_done(struct run *x, struct err *err)
{
    const struct str_list *launches = &x->plan->launches;
    char name[LAUNCH_MAX_NAME + 1];
    enum status st = ST_OK;

    if (!launches->n)
        return check_done(x, "", NULL, err);
    for (size_t i = 0; i < launches->n && st == ST_OK; i++) {
        const char *command;

        st = launch_parse(launches->v[i], name, &command, err);
        if (st == ST_OK)
            st = check_done(x, name, launches->v[i], err);
    }
    return st;
}

static enum status on_row(void *arg, struct row *row,
                          const struct load_samples *samples, struct err *err)
{
    struct run *x = arg;
    enum status st;

    if (x->running) {
        launch_note(x->running, row);
        if (x->plan->mem_limit)
            row->mem_limit_bytes = (int64_t)x->plan->mem_limit;
        if (x->plan->quota_cpus > 0)
            row->cpus_quota = x->plan->quota_cpus;
    }
    if (row->status == ROW_STATUS_OK || row->status == ROW_STATUS_PARTIAL)
        measuring_remark(row->detail, sizeof row->detail);
    note_command(row, x);
    roof_mark(row, x->out->rows, x->out->n_rows);
    st = add_rows(x->out, row, 1, err);
    if (st == ST_OK && x->dir)
        st = append_requests(x->dir, row, samples->requests, samples->n_requests, err);
    if (st == ST_OK && x->dir)
        st = sweep_dir_append(x->dir, row, &samples->e2e, err);
    return st;
}

static enum status open_dir(struct run *x, struct err *err)
{
    const struct load_plan *p = x->plan;
    struct topology *topo = NULL;
    struct sweep_settings *settings = calloc(1, sizeof *settings);
    json_t *machine = NULL;
    enum status st = settings ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    if (st == ST_OK)
        st = (p->resume ? sweep_dir_resume : sweep_dir_create)(&x->dir, p->dir_path,
                                                               err);
    if (st == ST_OK)
        st = topology_open(&topo, "", err);
    if (st == ST_OK && p->resume) {
        st = sweep_dir_read_machine(x->dir, &machine, err);
        if (st == ST_OK)
            st = sweep_machine_check(machine, topo, p->dir_path, err);
    } else if (st == ST_OK) {
        st = sweep_settings_init(settings, topo, err);
        if (st == ST_OK) {
            machine = sweep_machine_json(topo, NULL, settings, p->argc, p->argv);
            json_object_del(machine, "sweep"); /* it is none */
            st = sweep_dir_write_machine(x->dir, machine, err);
            sweep_settings_free(settings);
        }
    }
    json_decref(machine);
    free(settings);
    free(topo);
    return st;
}

/* The rows that are there already, copies: the directory's grow, and ours. */
static enum status read_done(struct run *x, struct err *err)
{
    const struct row *rows = NULL;
    enum status st = x->plan->dir_path ? open_dir(x, err) : ST_OK;

    if (st == ST_OK && x->dir)
        rows = sweep_dir_rows(x->dir, &x->n_done);
    if (st == ST_OK && !(x->done = malloc((x->n_done + 1) * sizeof *x->done)))
        st = err_set(err, ST_NO_MEMORY, "no memory for rows");
    if (st == ST_OK && x->n_done)
        memcpy(x->done, rows, x->n_done * sizeof *rows);
    if (st == ST_OK)
        st = check_all_done(x, err);
    return st ? st : add_rows(x->out, x->done, x->n_done, err);
}

/* ---- servers --------------------------------------------------------------------- */

/* The machine, where servers are started or the memory of one is read. */
static enum status read_machine(struct run *x, struct err *err)
{
    const struct load_plan *p = x->plan;

    if (!p->launches.n && (p->no_roof || !load_roof_is_here(p->s.url)))
        return ST_OK;
    return topology_open(&x->topo, "", err);
}

static enum status run_url(struct run *x, struct err *err)
{
    struct load_settings own = x->plan->s;
    enum status st = ST_OK;

    own.salt = x->salt;
    if (x->topo) {
        st = load_roof_place(&x->roof, x->topo, NULL, 0, err);
        own.roof = &x->roof;
    }
    return st ? st : load_run(&x->out->a[0], &own, x->done, x->n_done, on_row, x, err);
}

/* load_start_fn: a run that is gone on with may know all levels of a server. */
static enum status start_server(void *arg, struct load_settings *s, struct err *err)
{
    struct run *x = arg;
    const struct load_plan *p = x->plan;
    const struct sandbox_limits limits = {p->mem_limit, p->quota_cpus};
    struct launch *l = x->running;
    enum status st = launch_start(l, x->text, &limits, p->cpus, p->start_s,
                                  "--start-timeout", x->topo, err);

    s->url = l->url;
    if (st == ST_OK && !p->no_roof) {
        st = load_roof_place(&x->roof, x->topo, &l->place, l->child.pid, err);
        s->roof = &x->roof;
    }
    return st;
}

/* Levels of one server, which is started for them, behind those that a has. */
static enum status run_launch(struct run *x, const char *text,
                              const struct load_settings *s, struct load_answer *a,
                              struct err *err)
{
    struct load_answer now;
    struct load_settings own = *s;
    struct launch l = {.child = CHILD_INIT};
    struct err joining = ERR_INIT;
    const char *command;
    enum status st = launch_parse(text, l.name, &command, err);

    if (st)
        return st;
    own.name = l.name;
    own.salt = x->salt;
    own.start = start_server;
    own.start_arg = x;
    x->running = &l;
    x->text = text;
    st = load_run(&now, &own, x->done, x->n_done, on_row, x, err);
    x->running = NULL;
    x->text = NULL;
    launch_stop(&l);
    if (load_answer_join(a, &now, &joining) && st == ST_OK)
        st = err_set(err, joining.code, "%s", joining.msg);
    load_answer_free(&now);
    return st;
}

/* One turn: each server runs the levels of s, or, after all numbers of users of a
 * round, open loops at shares of its capacity. */
static enum status run_turn(struct run *x, const struct load_settings *s,
                            bool at_capacity, uint64_t *random, struct err *err)
{
    const struct load_plan *p = x->plan;
    size_t order[LOAD_MAX_SERVERS];
    enum status st = ST_OK;

    for (size_t k = 0; k < p->launches.n; k++)
        order[k] = k;
    random_shuffle(order, p->launches.n, sizeof *order, random);
    for (size_t k = 0; k < p->launches.n && st == ST_OK; k++) {
        struct load_answer *a = &x->out->a[order[k]];
        struct load_settings own = *s;

        if (at_capacity) {
            own.users.n = 0;
            own.capacity = a->rate;
        }
        if (!at_capacity || a->rate > 0)
            st = run_launch(x, p->launches.v[order[k]], &own, a, err);
    }
    return st;
}

/* Without numbers of users the capacity of each is searched in turn. */
static enum status run_launches(struct run *x, struct err *err)
{
    const struct load_plan *p = x->plan;
    const size_t n_levels = p->s.users.n ? p->s.users.n : 1;
    uint64_t random = p->s.seed * 2 + 1;
    enum status st = ST_OK;

    for (int round = 1; round <= p->n_rounds && st == ST_OK; round++) {
        struct load_settings s = p->s;

        s.round = round;
        for (size_t i = 0; i < n_levels && st == ST_OK; i++) {
            if (p->s.users.n) {
                s.users = (struct int_list){p->s.users.v + i, 1};
                s.open_loop = false; /* until all of them have run */
            }
            st = run_turn(x, &s, false, &random, err);
        }
        if (st == ST_OK && p->s.users.n && p->s.open_loop)
            st = run_turn(x, &s, true, &random, err);
    }
    return st;
}

/* ---- all of it ------------------------------------------------------------------- */

static void copy_validity(struct row *to, const struct load_found *f)
{
    for (size_t i = f->n_rows; i > 0; i--) {
        const struct row *r = &f->rows[i - 1];

        if (r->attempt != to->attempt || strcmp(r->point, to->point))
            continue;
        memcpy(to->validity, r->validity, sizeof to->validity);
        return;
    }
}

/* All rows are judged together, and a level that was cut off is not reported. */
static enum status conclude(struct load_found *f, bool is_interrupted, struct err *err)
{
    const enum status st = roof_mark_all(f->rows, f->n_rows, err);

    for (size_t i = 0; i < f->n; i++) {
        struct load_answer *a = &f->a[i];

        if (is_interrupted && a->n_levels &&
            a->level[a->n_levels - 1].row.status == ROW_STATUS_INTERRUPTED)
            a->n_levels--;
        for (size_t k = 0; k < a->n_levels; k++)
            copy_validity(&a->level[k].row, f);
        load_answer_find(a);
    }
    return st;
}

/* So that two runs with equal words do not share a server's cache. */
static uint64_t new_salt(void)
{
    uint64_t v;

    return getrandom(&v, sizeof v, 0) == sizeof v ? v : clock_ns() ^ (uint64_t)getpid();
}

enum status load_servers_run(struct load_found *out, const struct load_plan *plan,
                             struct err *err)
{
    struct run x = {.plan = plan, .out = out, .salt = new_salt()};
    struct err late = ERR_INIT;
    enum status st = ST_OK;

    *out = (struct load_found){.n = plan->launches.n ? plan->launches.n : 1};
    out->a = calloc(out->n, sizeof *out->a);
    if (!out->a)
        st = err_set(err, ST_NO_MEMORY, "no memory for answers");
    for (size_t i = 0; out->a && i < out->n; i++)
        load_answer_find(&out->a[i]); /* nothing yet */
    if (st == ST_OK)
        st = read_done(&x, err);
    if (st == ST_OK)
        st = read_machine(&x, err);
    if (st == ST_OK)
        st = plan->launches.n ? run_launches(&x, err) : run_url(&x, err);
    if (out->n_rows) { /* also of a run that ended early */
        const enum status own = conclude(out, st == ST_INTERRUPTED, &late);

        if (st == ST_OK && own)
            st = err_set(err, own, "%s", late.msg);
    }
    out->is_kept = x.dir && out->n_rows;
    if (x.dir && !out->n_rows && !plan->resume)
        sweep_dir_discard(x.dir);
    else if (x.dir)
        sweep_dir_close(x.dir);
    free(x.done);
    free(x.topo);
    return st;
}

void load_found_free(struct load_found *f)
{
    for (size_t i = 0; f->a && i < f->n; i++)
        load_answer_free(&f->a[i]);
    free(f->a);
    free(f->rows);
    *f = (struct load_found){NULL, 0, NULL, 0, false};
}
