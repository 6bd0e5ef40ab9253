/* SPDX-License-Identifier: MIT
 *
 * gate_commits.c - work trees, builds, and what is left of them
 */
#include "harness/decide/gate/gate_commits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/measure/engines/engine_child.h"

#define GIT_S      600
#define BUILD_S    86400
#define REMOVE_NS  UINT64_C(120000000000)
#define LAST_BYTES 4096 /* of a failed build's log, */
#define LAST_LINES 20   /* ... and of these the last lines */
#define MAX_WORDS  12

/* Removes the work tree t, and its log. */
#define REMOVE \
    "git worktree remove --force \"$t\" 2>/dev/null; rm -rf \"$t\" \"$t.log\"\n"

/* What gates that were killed have left. */
#define CLEAN_UP                                                       \
    "for t in \"${1%/*}\"/gate-[0-9]*-[ab]; do\n"                      \
    "    p=${t##*/gate-}; [ -d \"$t\" ] || continue\n"                 \
    "    kill -0 \"${p%-?}\" 2>/dev/null || { " REMOVE "    }\ndone\n" \
    "git worktree prune\n"

/* ---- commands -------------------------------------------------------------------- */

static void on_tick(void *arg, double elapsed_s)
{
    (void)elapsed_s;
    if (arg)
        progress_update(arg, 0, "");
}

/* A shell's script with words as $1, $2 ...; *ok: it ended with 0. The first line of
 * its output into out, which may be NULL. Errors: child_start()'s, ST_INTERRUPTED. */
static enum status run_script(bool *ok, char *out, size_t cap, double limit_s,
                              struct progress *progress, struct err *err,
                              const char *script, ...)
{
    char *argv[MAX_WORDS + 5] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                                 (char *)(uintptr_t)script, (char *)(uintptr_t) "sh"};
    struct engine_child c = {
        .params = {.program = "/bin/sh", .argv = argv, .foreign = true},
        .limit_s = limit_s,
        .tick = on_tick,
        .arg = progress};
    int n = 4;
    va_list ap;

    va_start(ap, script);
    for (const char *word; n < MAX_WORDS + 4 && (word = va_arg(ap, const char *));)
        argv[n++] = (char *)(uintptr_t)word;
    va_end(ap);
    enum status st = engine_child_run(&c, err);
    *ok = st == ST_OK && c.end == ENGINE_ENDED && WIFEXITED(c.wstatus) &&
          WEXITSTATUS(c.wstatus) == 0;
    if (st == ST_OK && c.end == ENGINE_INTERRUPTED)
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    if (st == ST_OK && out)
        snprintf(out, cap, "%.*s", (int)strcspn(c.output, "\n"), c.output);
    engine_child_free(&c);
    return st;
}

/* ---- which commits --------------------------------------------------------------- */

static enum status check_options(const struct gate_options *o, struct err *err)
{
    if (!o->build || !o->run)
        return err_set(err, ST_USAGE,
                       "%s needs %s: --build COMMAND makes each commit's program, and "
                       "--run PROGRAM names it from the top of the tree, as --a would",
                       o->build ? "--build"
                       : o->run ? "--run"
                                : "--since",
                       !o->build && !o->run ? "--build and --run"
                       : o->build           ? "--run"
                                            : "--build");
    if (o->since && (o->a || o->b))
        return err_set(err, ST_USAGE,
                       "--since and --%c exclude each other: it compares the working "
                       "tree with where HEAD left that commit",
                       o->a ? 'a' : 'b');
    if (!o->since && !o->a)
        return err_set(err, ST_USAGE,
                       "--build needs the commits: --a HEAD~1 (and --b, default HEAD), "
                       "or --since origin/main");
    if (*o->run == '/')
        return err_set(err, ST_USAGE,
                       "--run: %s is not below the top of the tree, which differs for "
                       "A and B: name it without a leading '/'",
                       format_path(o->run).text);
    return ST_OK;
}

static enum status find_commit(struct gate_commit *c, const char *name,
                               const char *option, struct err *err)
{
    bool ok;
    const enum status st = run_script(
        &ok, c->id, sizeof c->id, GIT_S, NULL, err,
        "exec git rev-parse -q --verify --end-of-options \"$1^{commit}\"", name, NULL);

    snprintf(c->name, sizeof c->name, "%.120s", name);
    if (st || ok)
        return st;
    return err_set(
        err, ST_USAGE,
        "%s: there is no commit '%.100s' in the repository of this directory", option,
        format_path(name).text);
}

/* A is where HEAD left it, B the working tree. */
static enum status find_since(struct gate_commits *c, const char *name, struct err *err)
{
    struct gate_commit *a = &c->side[0], *b = &c->side[1];
    bool ok;
    enum status st = find_commit(a, name, "--since", err);

    if (st == ST_OK)
        st = run_script(&ok, a->id, sizeof a->id, GIT_S, NULL, err,
                        "exec git merge-base HEAD \"$1\"", a->id, NULL);
    if (st == ST_OK && !ok)
        return err_set(err, ST_USAGE,
                       "--since: HEAD and '%.100s' have no commit in common here; a "
                       "shallow clone is completed by `git fetch --unshallow`",
                       format_path(name).text);
    /* a commit of what is changed, that no branch names */
    if (st == ST_OK)
        st = run_script(&ok, b->id, sizeof b->id, GIT_S, NULL, err,
                        "exec git -c user.name=gate -c user.email=gate stash create",
                        NULL);
    snprintf(b->name, sizeof b->name, "the working tree");
    if (st == ST_OK && ok && *b->id)
        return ST_OK;
    return st ? st : find_commit(b, "HEAD", "--since", err);
}

enum status gate_commits_find(struct gate_commits *c, const struct gate_options *o,
                              struct err *err)
{
    enum status st = check_options(o, err);
    bool ok = true;

    memset(c, 0, sizeof *c);
    if (st == ST_OK)
        st = run_script(&ok, NULL, 0, GIT_S, NULL, err,
                        "exec git rev-parse --show-toplevel", NULL);
    if (st == ST_OK && !ok)
        return err_set(err, ST_USAGE,
                       "this directory is in no git repository, or there is no git: "
                       "--build and --since compare commits of the one they run in");
    if (st == ST_OK && o->since)
        return find_since(c, o->since, err);
    if (st == ST_OK)
        st = find_commit(&c->side[0], o->a, "--a", err);
    return st ? st
              : find_commit(&c->side[1],
                            o->calibrate ? o->a
                            : o->b       ? o->b
                                         : "HEAD",
                            "--b", err);
}

bool gate_commits_same(const struct gate_commits *c)
{
    struct err ignored = ERR_INIT;
    bool ok;

    return run_script(&ok, NULL, 0, GIT_S, NULL, &ignored,
                      "exec git diff --quiet \"$1\" \"$2\"", c->side[0].id,
                      c->side[1].id, NULL) == ST_OK &&
           ok;
}

/* ---- building -------------------------------------------------------------------- */

/* The end of a failed build's log, for a terminal. */
static void print_log(const char *path)
{
    char text[LAST_BYTES + 1], shown[LAST_BYTES + 1];
    FILE *f = fopen(path, "re");
    const char *at;
    size_t n = 0;
    int lines = 0;

    if (f && fseek(f, -LAST_BYTES, SEEK_END))
        rewind(f);
    if (f)
        n = fread(text, 1, LAST_BYTES, f);
    if (f)
        fclose(f);
    text[n] = '\0';
    for (at = text + n; at > text && lines <= LAST_LINES; at--)
        lines += at[-1] == '\n';
    for (char *line = text + (at - text) + (lines > LAST_LINES), *end; *line;
         line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        fprintf(stderr, "  %s\n", text_harmless(shown, sizeof shown, line));
    }
}

static enum status check_out(struct gate_commit *c, int side, struct err *err)
{
    char name[64], tree[sizeof c->tree];
    bool ok;
    enum status st;

    snprintf(name, sizeof name, "gate-%ld-%c", (long)getpid(), 'a' + side);
    st = modelref_cache_path(tree, sizeof tree, NULL, name, err);
    if (st == ST_OK && strpbrk(tree, " \t\n'\"\\$`"))
        st = err_set(err, ST_USAGE,
                     "%s: a command cannot name a program in this folder: set "
                     "$SLMBENCH_CACHE to one without blanks and quotes",
                     format_path(tree).text);
    if (st)
        return st;
    snprintf(c->tree, sizeof c->tree, "%s", tree);
    st = run_script(&ok, NULL, 0, GIT_S, NULL, err,
                    "mkdir -p \"${1%/*}\" || exit\n" CLEAN_UP
                    "exec git worktree add -q --force --detach \"$1\" \"$2\"",
                    tree, c->id, NULL);
    return st || ok ? st
                    : err_set(err, ST_IO, "git cannot make a work tree of %s in %s",
                              c->name, format_path(tree).text);
}

/* "build/bin/llama-bench -fa 1" with the tree before it. */
static enum status name_program(struct gate_commit *c, const char *run, struct err *err)
{
    const size_t len = strlen(c->tree), room = sizeof c->program - len;

    memcpy(c->program, c->tree, len);
    if ((size_t)snprintf(c->program + len, room, "/%s", run) >= room)
        return err_set(err, ST_USAGE, "--run: the command is too long");
    return ST_OK;
}

static enum status build(struct gate_commit *c, int side, const char *command,
                         struct err *err)
{
    char log[sizeof c->tree + 8], what[sizeof c->name + 32];
    struct progress progress;
    bool ok;

    snprintf(log, sizeof log, "%s.log", c->tree);
    snprintf(what, sizeof what, "building %c, %.100s", 'A' + side, c->name);
    progress_begin(&progress, what);
    const enum status st =
        run_script(&ok, NULL, 0, BUILD_S, &progress, err,
                   "cd \"$1\" && eval \"$2\" >\"$3\" 2>&1 </dev/null", c->tree, command,
                   log, NULL);
    progress_end(&progress);
    if (st == ST_OK && !ok) {
        print_log(log);
        return err_set(err, ST_INPUT,
                       "%c (%.100s) does not build: the last lines of its --build are "
                       "above",
                       'A' + side, c->name);
    }
    return st;
}

enum status gate_commits_build(struct gate_commits *c, const struct gate_options *o,
                               struct err *err)
{
    enum status st = ST_OK;

    for (int side = 0; side < 2 && st == ST_OK; side++) {
        struct gate_commit *of = &c->side[side];

        if (side && !strcmp(of->id, c->side[0].id)) {
            memcpy(of->program, c->side[0].program, sizeof of->program);
            break;
        }
        st = check_out(of, side, err);
        if (st == ST_OK)
            st = name_program(of, o->run, err);
        if (st == ST_OK)
            st = build(of, side, o->build, err);
    }
    return st;
}

/* Also after Ctrl-C, which a script that is waited for would not survive. */
static void remove_tree(char *tree)
{
    char shell[] = "sh", flag[] = "-c", script[] = "t=$1\n" REMOVE "git worktree prune";
    char *argv[] = {shell, flag, script, shell, tree, NULL};
    const struct child_params params = {
        .program = "/bin/sh", .argv = argv, .foreign = true, .no_output = true};
    struct child child = CHILD_INIT;
    struct err ignored = ERR_INIT;

    if (child_start(&child, &params, &ignored) == ST_OK)
        child_reap(&child, REMOVE_NS, NULL, NULL);
    child_close(&child);
}

void gate_commits_close(struct gate_commits *c)
{
    for (int side = 0; side < 2; side++) {
        if (*c->side[side].tree)
            remove_tree(c->side[side].tree);
        *c->side[side].tree = '\0';
    }
}
