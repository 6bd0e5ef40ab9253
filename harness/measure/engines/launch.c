/* SPDX-License-Identifier: MIT
 *
 * launch.c - a shell's command
 */
#include "harness/measure/engines/launch.h"

#include <string.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/client/server_ready.h"
#include "harness/model/modelref.h"

#define LETTERS         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_CHARACTERS LETTERS "0123456789._-"
#define REREAD_BYTES    1e6 /* of a token, that are worth a sentence */

enum status launch_parse(const char *text, char *name, const char **command,
                         struct err *err)
{
    const size_t n = strspn(text, NAME_CHARACTERS);

    if (!n || n > LAUNCH_MAX_NAME || text[n] != '=' || strlen(text) > LAUNCH_MAX_TEXT ||
        !strstr(text + n, "{port}"))
        return err_set(
            err, ST_USAGE,
            "--launch: '%.60s' is not NAME=COMMAND with {port} in the command, "
            "as 'llama=llama-server -m model.gguf --port {port}'",
            text);
    memcpy(name, text, n);
    name[n] = '\0';
    *command = text + n + 1;
    return ST_OK;
}

/* "OLLAMA_HOST=127.0.0.1:{port} ollama serve" */
static bool begins_with_variable(const char *command)
{
    const size_t n = strspn(command, LETTERS "0123456789_");

    return n && strchr(LETTERS "_", *command) && command[n] == '=';
}

/* "exec COMMAND >/dev/null", each {port} replaced: nobody reads what it prints. exec
 * itself takes no variables. */
static void make_script(char *buf, size_t cap, const char *command, int port)
{
    size_t n = (size_t)snprintf(buf, cap, "exec >/dev/null; exec %s",
                                begins_with_variable(command) ? "env " : "");

    for (const char *c = command; *c && n + 24 < cap;) {
        if (!strncmp(c, "{port}", 6)) {
            n += (size_t)snprintf(buf + n, cap - n, "%d", port);
            c += 6;
        } else {
            buf[n++] = *c++;
        }
    }
    buf[n] = '\0';
}

static enum status wait_for(const struct launch *l, double wait_s, const char *longer,
                            struct err *err)
{
    char words[STDERR_TAIL_BYTES + 1];
    enum server_state state;
    enum status st = server_wait(&state, &l->child, l->url, wait_s, NULL, NULL, err);

    if (st || state == SERVER_READY)
        return st;
    child_stderr_tail(&l->child, words, sizeof words);
    if (state == SERVER_INTERRUPTED)
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (state == SERVER_ENDED)
        return err_set(err, ST_IO, "%s ended before it was ready%s%.200s", l->name,
                       *words ? ": " : ", and printed nothing on standard error",
                       words);
    return err_set(err, ST_IO, "%s is not ready after %.0f s; %s gives it more%s%.200s",
                   l->name, wait_s, longer, *words ? ": " : "", words);
}

int64_t launch_evict(const char *command)
{
    struct err ignored = ERR_INIT;
    struct modelref model;
    char path[4096];
    uint64_t stayed;

    return launch_option(command, 'm', "model", path, sizeof path) &&
                   !modelref_parse(&model, path, NULL, &ignored) &&
                   !modelref_evict(&model, &stayed, &ignored)
               ? (int64_t)stayed
               : -1;
}

/* What it counts from here on. */
static void count_anew(struct launch *l)
{
    struct sandbox_usage usage;
    struct err ignored = ERR_INIT;

    if (!l->has_limit || sandbox_read(l->sandbox, &usage, &ignored))
        return;
    l->n_refaults = usage.n_refaults;
    l->n_major_faults = usage.n_major_faults;
}

enum status launch_start(struct launch *l, const char *text,
                         const struct sandbox_limits *limits, const char *cpus,
                         double wait_s, const char *longer, const struct topology *topo,
                         struct err *err)
{
    const int port = server_free_port();
    char script[LAUNCH_MAX_TEXT + 64];
    char shell[] = "/bin/sh", flag[] = "-c";
    char *const argv[] = {shell, flag, script, NULL};
    struct child_params params = {.program = "/bin/sh", .argv = argv, .foreign = true};
    const char *command;
    enum status st;

    *l = (struct launch){.child = CHILD_INIT, .cached_bytes = -1};
    st = launch_parse(text, l->name, &command, err);
    if (st == ST_OK && !port)
        st = err_set(err, ST_IO, "no port of this machine is free");
    if (st)
        return st;
    launch_place_find(&l->place, command, topo);
    if (cpus)
        st = launch_place_set(&l->place, cpus, topo, err);
    l->has_limit = limits->memory_bytes > 0;
    if (st == ST_OK && (l->has_limit || limits->quota_cpus > 0))
        st = sandbox_create_with(&l->sandbox, "", limits, err);
    if (st)
        return st;
    snprintf(l->url, sizeof l->url, "http://127.0.0.1:%d", port);
    make_script(script, sizeof script, command, port);
    params.sandbox = l->sandbox;
    if (l->has_limit)
        l->cached_bytes = launch_evict(command);
    if (l->place.is_pinned) {
        params.cpus = l->place.server;
        params.n_cpus = l->place.n_server;
    }
    st = child_start(&l->child, &params, err);
    if (st == ST_OK)
        launch_place_keep(&l->place);
    if (st == ST_OK)
        st = wait_for(l, wait_s, longer, err);
    count_anew(l);
    return st;
}

/* Weights that do not stay in memory are why a server is slow, and no disturbance. */
static void note_faults(struct launch *l, const struct sandbox_usage *usage,
                        struct row *row)
{
    const double n_tokens =
        (double)(row->n_requests + row->n_warm_up) * row->output_tokens;
    const double bytes =
        (double)(usage->n_refaults - l->n_refaults) * (double)sysconf(_SC_PAGESIZE);

    if (n_tokens > 0) {
        row->refaults_per_token =
            (double)(usage->n_refaults - l->n_refaults) / n_tokens;
        row->major_faults_per_token =
            (double)(usage->n_major_faults - l->n_major_faults) / n_tokens;
        if (bytes / n_tokens > REREAD_BYTES && !*row->detail)
            snprintf(row->detail, sizeof row->detail,
                     "the server read %.3g MB again for each token: its memory does "
                     "not hold the model, give more with --mem",
                     bytes / n_tokens * 1e-6);
    }
    l->n_refaults = usage->n_refaults;
    l->n_major_faults = usage->n_major_faults;
}

void launch_note(struct launch *l, struct row *row)
{
    char words[STDERR_TAIL_BYTES + 1], text[200];
    struct sandbox_usage usage;
    struct err ignored = ERR_INIT;

    if (child_has_ended(&l->child)) {
        child_stderr_tail(&l->child, words, sizeof words);
        snprintf(text, sizeof text, "%s ended under load%s%.140s", l->name,
                 *words ? ": " : "", words);
        text_harmless(row->detail, sizeof row->detail, text);
    }
    if (l->place.is_kept)
        format_cpus(row->client_cpus, sizeof row->client_cpus, l->place.client,
                    l->place.n_client);
    if (l->cached_bytes >= 0)
        row->cached_bytes = l->cached_bytes;
    if (!l->has_limit || sandbox_read(l->sandbox, &usage, &ignored))
        return;
    row->mem_enforced_bytes = (int64_t)usage.limit_bytes;
    row->mem_peak_bytes = (int64_t)usage.peak_bytes;
    if (usage.n_oom_kills)
        snprintf(row->detail, sizeof row->detail,
                 "the server was killed for memory: give more with --mem");
    note_faults(l, &usage, row);
}

void launch_stop(struct launch *l)
{
    launch_place_leave(&l->place);
    if (l->child.pid) {
        child_request_end(&l->child);
        child_reap(&l->child, UINT64_C(5000000000), NULL, NULL);
    }
    child_close(&l->child);
    sandbox_destroy(l->sandbox);
    l->sandbox = NULL;
}
