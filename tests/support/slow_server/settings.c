/* SPDX-License-Identifier: MIT
 *
 * settings.c - key=value of slow_server
 */
#include "tests/support/slow_server/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slow_server_settings settings = {
    .ttft_ms = 5, .gap_ms = 2, .n_slots = 512, .fault_every = 1, .fault = ""};

void slow_server_set(const char *text)
{
    static const struct {
        const char *key;
        enum { NUMBER, NUMBERS, EVERY, COUNT, TEXT } is;
        void *v, *second; /* behind a comma, a count where it is EVERY */
    } keys[] = {
        {"ttft=", NUMBER, &settings.ttft_ms, NULL},
        {"word=", NUMBER, &settings.word_ms, NULL},
        {"gap=", NUMBER, &settings.gap_ms, NULL},
        {"slow=", EVERY, &settings.slow_ms, &settings.slow_every},
        {"stall=", NUMBERS, &settings.stall_at, &settings.stall_long},
        {"slots=", COUNT, &settings.n_slots, NULL},
        {"cached=", COUNT, &settings.n_cached, NULL},
        {"remember=", COUNT, &settings.remembers, NULL},
        {"metrics=", COUNT, &settings.counts, NULL},
        {"name=", TEXT, &settings.name, NULL},
        {"key=", TEXT, &settings.api_key, NULL},
        {"extra=", COUNT, &settings.n_extra, NULL},
        {"think=", COUNT, &settings.n_think, NULL},
        {"inline=", COUNT, &settings.is_inline, NULL},
        {"quiet=", COUNT, &settings.n_quiet, NULL},
        {"fault=", TEXT, &settings.fault, NULL},
        {"port=", COUNT, &settings.port, NULL},
        {"every=", COUNT, &settings.fault_every, NULL},
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const size_t n = strlen(keys[i].key);
        const char *comma = strchr(text, ',');

        if (strncmp(text, keys[i].key, n))
            continue;
        if (keys[i].is == TEXT)
            *(const char **)keys[i].v = text + n;
        else if (keys[i].is == COUNT)
            *(int *)keys[i].v = atoi(text + n);
        else
            *(double *)keys[i].v = atof(text + n);
        if (keys[i].is == EVERY && comma)
            *(int *)keys[i].second = atoi(comma + 1);
        if (keys[i].is == NUMBERS && comma)
            *(double *)keys[i].second = atof(comma + 1);
        return;
    }
    fprintf(stderr, "slow_server: what is '%s'?\n", text);
    exit(2);
}
