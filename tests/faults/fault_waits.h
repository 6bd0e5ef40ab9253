/* SPDX-License-Identifier: MIT
 *
 * fault_waits.h - time, and the part of it that a task waited for a CPU
 */
#ifndef SLM_TESTS_FAULTS_FAULT_WAITS_H
#define SLM_TESTS_FAULTS_FAULT_WAITS_H

#include <stdio.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* How long a task has waited for a CPU so far; 0 where the kernel does not count it. */
static double starved_s(const char *who)
{
    char path[64];
    unsigned long long ran = 0, waited = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%s/schedstat", who);
    f = fopen(path, "re");
    if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2)
        waited = 0;
    if (f)
        fclose(f);
    return (double)waited * 1e-9;
}

#endif
