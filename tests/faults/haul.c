/* SPDX-License-Identifier: MIT
 *
 * haul.c - an engine that works for long, for haul.py
 *
 *     haul decode MODEL SECONDS EVERY  answers by one open model, one after the other
 *     haul open MODEL TIMES EVERY      opens it in several ways, answers, closes it
 *
 * Every answer of one way must be the same as its first. Between two answers, and with
 * `open` while no model is open, a line of standard output each EVERY seconds: seconds,
 * what was done so far, resident KiB, descriptors, threads, seconds of CPU time, and
 * those that the whole machine has spent.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/engine.h"

static const struct way {
    const char *quant;
    enum weights_residency residency;
    int n_threads, n_sequences;
} ways[] = {{NULL, WEIGHTS_MMAP, 1, 1},
            {NULL, WEIGHTS_PACKED, 2, 1},
            {"Q8_0", WEIGHTS_PACKED, 1, 3},
            {NULL, WEIGHTS_STREAM, 2, 1}};

/* As few as haul.py can compare. */
#define MIN_ANSWERS 6

#define N_WAYS ((int)(sizeof ways / sizeof *ways))

/* So little memory that all layers are streamed. */
static enum status limit_memory(struct slm_params *p, struct err *err)
{
    struct gguf *g = NULL;
    struct slm_info info;
    enum status st = gguf_open(&g, p->path, err);

    if (!st)
        st = slm_plan(&info, g, p, err);
    if (!st)
        p->memory_bytes =
            info.kv_bytes + info.scratch_bytes + info.stream_min_bytes + 4096;
    gguf_close(g);
    return st;
}

static enum status open_way(struct slm **m, const char *path, const struct way *w,
                            struct err *err)
{
    struct slm_params p = slm_params_default();
    enum status st;

    p.path = path;
    p.quant = w->quant;
    p.residency = w->residency;
    p.n_threads = w->n_threads;
    p.n_sequences = w->n_sequences;
    if (w->residency == WEIGHTS_STREAM && (st = limit_memory(&p, err)))
        return st;
    st = slm_open(m, &p, err);
    if (!st)
        st = weights_preload(slm_weights(*m), slm_thread_pool(*m), NULL, NULL, err);
    return st;
}

/* A greedy answer of at most n tokens; *sum becomes a checksum of its tokens and
 * logits. */
static enum status answer(struct slm *m, int n, uint64_t *sum, long *n_tokens,
                          struct err *err)
{
    const struct sampler_params greedy = sampler_params_default();
    const char *prompt = "Once upon a time";
    struct tokenizer *tok = NULL;
    struct sampler *sampler = NULL;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    enum status st = tokenizer_open(&tok, slm_gguf(m), err);

    if (!st)
        st = sampler_open(&sampler, &greedy, tokenizer_n_vocab(tok), err);
    if (!st)
        st = tokenizer_encode(tok, prompt, strlen(prompt), true, false, &ids, &n_ids,
                              err);
    slm_truncate(m, 0);
    if (!st)
        st = slm_eval(m, ids, n_ids, SLM_LOGITS_LAST, err);
    *sum = 0;
    while (!st && n-- > 0 && slm_n_free(m)) {
        const float *logits = slm_logits(m, 0);
        const int32_t id = sampler_next(sampler, logits);
        uint32_t bits;

        memcpy(&bits, &logits[id], sizeof bits);
        *sum = (*sum ^ bits ^ (uint64_t)id << 32) * 0x9e3779b97f4a7c15u;
        ++*n_tokens;
        st = slm_eval(m, &id, 1, SLM_LOGITS_LAST, err);
    }
    free(ids);
    sampler_close(sampler);
    tokenizer_close(tok);
    return st;
}

static double every_s; /* between two lines */

static int n_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = -3; /* ".", ".." and this one */

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* All threads have taken so far. */
static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* By all processes since the machine's start, in ticks of its accounting. */
static double machine_s(void)
{
    unsigned long long user = 0, nice = 0, system = 0, idle, wait, irq = 0, soft = 0,
                       stolen = 0;
    FILE *f = fopen("/proc/stat", "re");

    if (f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice,
                    &system, &idle, &wait, &irq, &soft, &stolen) < 8)
        user = nice = system = irq = soft = stolen = 0;
    if (f)
        fclose(f);
    return (double)(user + nice + system + irq + soft + stolen) /
           (double)sysconf(_SC_CLK_TCK);
}

static void report(uint64_t begin_ns, uint64_t *next_ns, long done)
{
    const uint64_t now = clock_ns();
    char line[256];
    long rss = 0, n_threads = 0;
    FILE *f;

    if (now < *next_ns)
        return;
    *next_ns = now + (uint64_t)(every_s * 1e9);
    f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "VmRSS: %ld", &rss);
        sscanf(line, "Threads: %ld", &n_threads);
    }
    if (f)
        fclose(f);
    printf("%.3f %ld %ld %d %ld %.6f %.2f\n", (double)(now - begin_ns) * 1e-9, done,
           rss, n_descriptors(), n_threads, cpu_s(), machine_s());
    fflush(stdout);
}

static enum status decode(const char *path, double seconds, struct err *err)
{
    const uint64_t begin = clock_ns();
    const uint64_t end = begin + (uint64_t)(seconds * 1e9);
    uint64_t next = begin, first = 0, sum;
    long n_tokens = 0;
    struct slm *m = NULL;
    enum status st = open_way(&m, path, &ways[1], err);

    for (long i = 0; !st && (i < MIN_ANSWERS || clock_ns() < end); i++) {
        st = answer(m, 1 << 30, &sum, &n_tokens, err);
        if (i == 0)
            first = sum;
        if (!st && sum != first)
            st = err_set(err, ST_CHECK, "answer %ld is not the first one", i);
        report(begin, &next, n_tokens);
    }
    slm_close(m);
    return st;
}

static enum status open_often(const char *path, long times, struct err *err)
{
    const uint64_t begin = clock_ns();
    uint64_t next = begin, first[N_WAYS] = {0}, sum;
    long n_tokens = 0;
    enum status st = ST_OK;

    for (long i = 0; !st && i < times; i++) {
        struct slm *m = NULL;

        st = open_way(&m, path, &ways[i % N_WAYS], err);
        if (!st)
            st = answer(m, 4, &sum, &n_tokens, err);
        if (i < N_WAYS)
            first[i] = sum;
        if (!st && sum != first[i % N_WAYS])
            st = err_set(err, ST_CHECK, "answer %ld is not the first one", i);
        slm_close(m);
        report(begin, &next, i + 1);
    }
    return st;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    enum status st = ST_USAGE;

    every_s = argc == 5 ? atof(argv[4]) : 0;
    if (argc == 5 && !strcmp(argv[1], "decode"))
        st = decode(argv[2], atof(argv[3]), &err);
    else if (argc == 5 && !strcmp(argv[1], "open"))
        st = open_often(argv[2], atol(argv[3]), &err);
    else
        err_set(&err, ST_USAGE, "usage: haul decode|open MODEL SECONDS|TIMES EVERY");
    if (st)
        fprintf(stderr, "haul: %s\n", err.msg);
    return status_exit_code(st);
}
