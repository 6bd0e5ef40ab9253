/* SPDX-License-Identifier: MIT
 *
 * launch_place.c - words of a command, and CPUs apart
 */
#include "harness/measure/engines/launch.h"

#include <stdlib.h>
#include <string.h>

/* The next word into buf, without the quotes around it or parts of it; NULL at the end,
 * or where the word is too long or is no plain one: a shell would change it. */
static const char *next_word(const char *at, char *buf, size_t cap)
{
    size_t n = 0;
    char quote = '\0';

    at += strspn(at, " \t");
    if (!*at)
        return NULL;
    for (; *at && (quote || !strchr(" \t", *at)); at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"') {
            quote = quote ? '\0' : *at;
            continue;
        }
        if (n + 1 >= cap || (quote != '\'' && strchr("$`\\", *at)))
            return NULL;
        buf[n++] = *at;
    }
    buf[n] = '\0';
    return quote ? NULL : at;
}

bool launch_option(const char *command, char letter, const char *name, char *buf,
                   size_t cap)
{
    const size_t n = strlen(name);
    char word[4096];

    for (const char *at = command; (at = next_word(at, word, sizeof word));) {
        if (!strncmp(word, "--", 2) && !strncmp(word + 2, name, n) &&
            word[2 + n] == '=')
            return snprintf(buf, cap, "%s", word + 3 + n) < (int)cap;
        if ((word[0] == '-' && word[1] == letter && !word[2]) ||
            (!strncmp(word, "--", 2) && !strcmp(word + 2, name)))
            return next_word(at, buf, cap);
    }
    return false;
}

void launch_place_find(struct launch_place *p, const char *command,
                       const struct topology *topo)
{
    char text[16], *end;
    int core = -1;
    long n;

    *p = (struct launch_place){.is_apart = false};
    if (!launch_option(command, 't', "threads", text, sizeof text))
        return;
    n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > TOPO_MAX_CPUS)
        return;
    p->n_threads = (int)n;
    if (n >= topo->n_allowed_cores)
        return;
    for (int i = 0; i < topo->n_cpus; i++)
        if (topo->cpu[i].allowed && topo->cpu[i].core > core)
            core = topo->cpu[i].core;
    for (int i = 0; i < topo->n_cpus; i++) {
        const struct topo_cpu *cpu = &topo->cpu[i];

        if (cpu->allowed && cpu->core == core)
            p->client[p->n_client++] = cpu->os_id;
        else if (cpu->allowed)
            p->server[p->n_server++] = cpu->os_id;
    }
    p->is_pinned = p->is_apart = p->n_client > 0 && p->n_server > 0;
}

enum status launch_place_set(struct launch_place *p, const char *cpus,
                             const struct topology *topo, struct err *err)
{
    int server[TOPO_MAX_CPUS], n = 0;

    if (placement_parse_cpus(cpus, topo, &n, 0, server, err))
        return err->code;
    p->n_server = n;
    p->n_client = 0;
    memcpy(p->server, server, (size_t)n * sizeof *server);
    for (int i = 0; i < topo->n_cpus; i++) {
        bool is_free = topo->cpu[i].allowed;

        for (int k = 0; k < n; k++)
            is_free &= topo->cpu[i].os_id != server[k];
        if (is_free)
            p->client[p->n_client++] = topo->cpu[i].os_id;
    }
    p->is_pinned = true;
    p->is_apart = p->n_client > 0;
    return ST_OK;
}

void launch_place_keep(struct launch_place *p)
{
    cpu_set_t own;

    if (!p->is_apart || p->is_kept ||
        sched_getaffinity(0, sizeof p->before, &p->before))
        return;
    CPU_ZERO(&own);
    for (int i = 0; i < p->n_client; i++)
        if (p->client[i] < CPU_SETSIZE)
            CPU_SET(p->client[i], &own);
    p->is_kept = !sched_setaffinity(0, sizeof own, &own);
}

void launch_place_leave(struct launch_place *p)
{
    if (p->is_kept)
        sched_setaffinity(0, sizeof p->before, &p->before);
    p->is_kept = false;
}
